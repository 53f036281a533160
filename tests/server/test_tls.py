"""TLS: the client and Flight trust the certificate that they are told to, and no other."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import flight

from auroral.client import Client
from auroral.errors import RunError
from auroral.server.addresses import FeedAddress
from auroral.server.app import create_app
from auroral.server.flight import FlightFeed, FlightTls
from auroral.server.running import HttpServer, TlsFiles
from auroral.server.service import EngineService
from auroral.server.settings import ServerSettings
from auroral.server.tokens import AccessTokens
from tests.server.feeding import role_of, running

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="makes certificates")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> TlsFiles:
    """A certificate for this machine, which nobody else trusts."""
    place = tmp_path_factory.mktemp("tls")
    key, certificate = place / "key.pem", place / "certificate.pem"
    command = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
        " -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1"
    )
    output = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*command.split(), *output], check=True, capture_output=True)
    return TlsFiles(certificate, key)


def test_the_client_checks_certificates(files: TlsFiles) -> None:
    tokens = AccessTokens.made()
    with running() as engine:
        app = create_app(EngineService(engine, ServerSettings()), tokens)
        server = HttpServer(app, "127.0.0.1", 0, files)
        server.start()
        try:
            with Client(server.url, tokens["editor"], verify=str(files.certificate)) as client:
                assert client.stats()["dead"] == 0
                with client.follow("hot") as follower:
                    client.enqueue("reports", [{"sid": 1, "pos": 31.0}])
                    assert follower.next(20) is not None
            with (
                Client(server.url, tokens["editor"]) as stranger,
                pytest.raises(RunError, match=r"UNREACHABLE.*certificate"),
            ):
                stranger.stats()
        finally:
            server.stop()


def test_flight_has_the_certificate_of_the_server(files: TlsFiles, tmp_path: Path) -> None:
    certificate = files.certificate.read_bytes()
    tls = FlightTls(certificate, files.key.read_bytes())
    with running() as engine:
        feed = FlightFeed(engine, FeedAddress.parse("0", "--flight"), role_of, tls=tls)
        feed.start()
        try:
            assert feed.address.startswith("grpc+tls://127.0.0.1:")
            call = flight.FlightCallOptions(headers=[(b"authorization", b"Bearer view")])
            with flight.FlightClient(feed.address, tls_root_certs=certificate) as client:
                assert len(list(client.list_flights(options=call))) == 2
            with (
                flight.FlightClient(feed.address) as stranger,
                pytest.raises((flight.FlightUnavailableError, pa.ArrowException)),
            ):
                list(stranger.list_flights(options=call))
        finally:
            feed.stop()
