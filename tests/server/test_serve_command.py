"""`auroral serve` in a process of its own, on Spark."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from auroral.cli.serve import load_or_begin, tell_address
from auroral.errors import RunError, UsageError
from auroral.network.network import Network
from auroral.server.logs import LOGGERS
from auroral.server.running import HttpServer, bound_socket
from auroral.server.tokens import AccessTokens
from tests.conformance.sparkless import make_engine

ROWS = "\n".join(["n", *map(str, range(100))]) + "\n"
NETWORK = """
network: new
streams: {s: {schema: {n: int}}}
boxes: {even: {box: filter, input: s, where: n % 2 = 0}}
outputs: {out: {from: even}}
connection_points: {kept: {on: s, keep: 1 h}}
"""


def command(*given: str) -> list[str]:
    return [sys.executable, "-m", "auroral.cli.main", "serve", *given]


@pytest.fixture(autouse=True)
def loggers_as_before() -> Iterator[None]:
    """`serve` says where this process logs to; other tests expect that nobody has."""
    logs = [logging.getLogger(name) for name in LOGGERS]
    before = [(log, log.handlers, log.propagate, log.level) for log in logs]
    yield
    for log, handlers, propagate, level in before:
        log.handlers, log.propagate = handlers, propagate
        log.setLevel(level)


@pytest.mark.spark
def test_a_server_begins_with_nothing_takes_a_network_and_ends_well(tmp_path: Path) -> None:
    file, state = tmp_path / "new.yaml", tmp_path / "state"
    given = command(str(file), "--state", str(state), "--port", "0", "--master", "local[2]")
    with subprocess.Popen(
        given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            assert said.startswith("studio: http://127.0.0.1:")
            url, _, token = said.removeprefix("studio: ").strip().partition("/#token=")
            headers = {"Authorization": f"Bearer {token}"}
            with httpx.Client(base_url=f"{url}/api/v1", headers=headers, timeout=60) as client:
                assert client.get("/network").json() == {"network": "new"}
                kind = {"Content-Type": "application/yaml"}
                made = client.put("/network", content=NETWORK, headers=kind)
                assert made.status_code == 200, made.text
                csv = {"Content-Type": "text/csv"}
                sent = client.post("/streams/s", content=ROWS, headers=csv)
                assert sent.json()["accepted"] == 100
                assert client.post("/control/drain", json={"timeout_s": 40}).json()["drained"]
                assert len(client.get("/outputs/out").json()["rows"]) == 50
                asked = client.post("/sql", json={"query": "SELECT max(n) AS m FROM kept"})
                assert asked.json()["rows"] == [[99]]
                # What only Spark knows is typed by Spark.
                document = client.get("/network").json()
                document["boxes"]["even"]["where"] = "bit_count(n) = 1"
                assert client.post("/check", json=document).json()["ok"]
                document["boxes"]["even"]["where"] = "no_such_function(n) = 1"
                assert not client.post("/check", json=document).json()["ok"]
            process.send_signal(signal.SIGTERM)
            _, log = process.communicate(timeout=60)
            assert process.returncode == 0, log
            assert token not in log
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    assert Network.load(file).streams.keys() == {"s"}
    assert (state / "tokens.json").exists()


def java_of(session: int) -> int:
    """Spark's Java process among those of a session."""
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            number = int(place.name)
            if os.getsid(number) == session and (place / "comm").read_text() == "java\n":
                return number
    raise AssertionError("there is no Java process")


@pytest.mark.spark
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are found in /proc")
def test_a_server_ends_with_its_engine_if_told_so_and_goes_on_where_it_was(tmp_path: Path) -> None:
    file, state = tmp_path / "new.yaml", tmp_path / "state"
    file.write_text(NETWORK)
    given = command(str(file), "--state", str(state), "--port", "0", "--master", "local[2]")
    with subprocess.Popen(
        [*given, "--exit-on-failure"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            url, _, token = said.removeprefix("studio: ").strip().partition("/#token=")
            sent = httpx.post(
                f"{url}/api/v1/streams/s",
                headers={"Authorization": f"Bearer {token}", "Content-Type": "text/csv"},
                content=ROWS,
                timeout=60,
            )
            assert sent.json()["accepted"] == 100
            os.kill(java_of(process.pid), signal.SIGKILL)
            _, log = process.communicate(timeout=60)
            assert process.returncode == 1, log
            assert "auroral: SPARK_ENDED: " in log
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    with make_engine(Network.load(file), state=state) as engine:
        engine.drain()
        assert engine.dequeue("out").num_rows == 50


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--host", "0.0.0.0"], "INSECURE_BIND"),
        (["--tls-cert", "nope.pem"], "BAD_OPTION"),
        (["--tls-cert", "nope.pem", "--tls-key", "nope.pem"], "CANNOT_READ"),
        (["--log", "loud"], "BAD_OPTION"),
        (["--input", "nope=x.csv"], "UNKNOWN_STREAM"),
        (["--tls-cert", __file__, "--tls-key", __file__], "CANNOT_READ"),
        (["--lines", "nope=0"], "UNKNOWN_STREAM"),
        (["--lines", "s=0,yaml"], "UNKNOWN_CONVERTER"),
        (["--lines", "s=0.0.0.0:0"], "INSECURE_BIND"),
        (["--flight", "nowhere"], "BAD_ADDRESS"),
        (["--flight", "0.0.0.0:0"], "INSECURE_BIND"),
    ],
)
def test_mistakes_are_told_before_spark_starts(
    tmp_path: Path, options: list[str], code: str
) -> None:
    from typer.testing import CliRunner

    from auroral.cli.main import app

    found = CliRunner().invoke(app, ["serve", str(tmp_path / "n.yaml"), *options])
    assert isinstance(found.exception, UsageError)
    assert found.exception.code == code
    assert "starting Spark" not in found.output


def test_of_two_servers_that_start_on_one_port_one_is_told() -> None:
    """Both can be bound, while none listens yet."""
    first = bound_socket("127.0.0.1", 0)
    port = first.getsockname()[1]
    with first, bound_socket("127.0.0.1", port) as second:
        HttpServer(FastAPI(), "127.0.0.1", port, bound=first)
        with pytest.raises(RunError, match="CANNOT_BIND"):
            HttpServer(FastAPI(), "127.0.0.1", port, bound=second)


def test_a_taken_port_and_exposed_tokens_are_told_before_spark_starts(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from auroral.cli.main import app

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        found = CliRunner().invoke(app, ["serve", str(tmp_path / "n.yaml"), "--port", port])
        assert isinstance(found.exception, RunError)
        assert found.exception.code == "CANNOT_BIND"
    tokens = tmp_path / "tokens.json"
    tokens.write_text("{}", encoding="utf-8")
    tokens.chmod(0o644)
    options = ["--port", "0", "--token-file", str(tokens)]
    found = CliRunner().invoke(app, ["serve", str(tmp_path / "n.yaml"), *options])
    assert isinstance(found.exception, UsageError)
    assert found.exception.code == "TOKENS_EXPOSED"
    assert "starting Spark" not in found.output


def test_a_file_that_is_not_there_begins_a_network(tmp_path: Path) -> None:
    assert load_or_begin(tmp_path / "my plant-2.yaml").name == "my_plant_2"
    assert load_or_begin(tmp_path / "2.yaml").name == "n2"
    with pytest.raises(UsageError, match="CANNOT_READ"):
        load_or_begin(tmp_path / "nowhere" / "n.yaml")


def test_tokens_that_were_there_stay_out_of_journals(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens, known = AccessTokens.made(), tmp_path / "tokens.json"
    link = f"studio: http://127.0.0.1:1/#token={tokens['editor']}\n"
    tell_address("http://127.0.0.1:1", tokens, None)
    assert capsys.readouterr().out == link
    tell_address("http://127.0.0.1:1", tokens, known)
    assert capsys.readouterr().out == f"studio: http://127.0.0.1:1/\ntokens: {known}\n"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    tell_address("http://127.0.0.1:1", tokens, known)
    assert capsys.readouterr().out == link
