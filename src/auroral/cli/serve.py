"""`auroral serve`: run a network behind a web server, with the studio."""

from __future__ import annotations

import re
import shutil
import signal
import ssl
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from auroral.cli.run import bind_sinks, named_paths
from auroral.engine import Engine
from auroral.engine.ingest.declared_sources import declared_source
from auroral.errors import UsageError
from auroral.network.endpoints import with_late_outputs
from auroral.network.network import Network
from auroral.server.addresses import FeedAddress
from auroral.server.app import create_app
from auroral.server.feeds import Feed
from auroral.server.flight import FlightFeed, FlightTls
from auroral.server.guards import LOOPBACK
from auroral.server.lines import LineFeed, LinesOption
from auroral.server.logs import LogForm, log_to_stderr
from auroral.server.network_file import NetworkFile
from auroral.server.running import HttpServer, TlsFiles, bound_socket, is_loopback, require_safe
from auroral.server.service import EngineService
from auroral.server.settings import ServerLimits, ServerSettings
from auroral.server.tokens import AccessTokens

_WAIT_S = 0.5
TOKENS = "tokens.json"
"""The name of the file of tokens in a state directory."""


def serve(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="the network, YAML or JSON; it may not exist yet"),
    ],
    state: Annotated[
        Path | None, typer.Option(help="directory that makes the server restartable")
    ] = None,
    host: Annotated[str, typer.Option(help="address to listen on")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free")] = 8640,
    token_file: Annotated[
        Path | None,
        typer.Option(help="file of the tokens", show_default="tokens.json in the state directory"),
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="listen to other machines without TLS")
    ] = False,
    tls_cert: Annotated[Path | None, typer.Option(help="certificate, PEM")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="key of the certificate, PEM")] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="a name by which clients may address the server")
    ] = None,
    allow_module: Annotated[
        list[str] | None,
        typer.Option(help="a module whose functions networks from the wire may name"),
    ] = None,
    allow_path: Annotated[
        list[Path] | None,
        typer.Option(help="a directory in which networks from the wire may use files"),
    ] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", metavar="S=PATH", help="read stream S from a file, as run does"),
    ] = None,
    outputs: Annotated[
        list[str] | None,
        typer.Option("--output", metavar="O=PATH", help="write output O to a file"),
    ] = None,
    train: Annotated[int | None, typer.Option(min=1, help="most tuples per step")] = None,
    durability: Annotated[
        str | None,
        typer.Option(
            help="what the state survives: power or process",
            show_default="what the network says, else power",
        ),
    ] = None,
    master: Annotated[str, typer.Option(help="Spark master")] = "local[*]",
    jars: Annotated[
        str | None, typer.Option(metavar="A.JAR,B.JAR", help="files with connectors of Spark's")
    ] = None,
    max_body: Annotated[
        int, typer.Option(min=1024, metavar="BYTES", help="largest body of a request")
    ] = ServerLimits.body_bytes,
    flight: Annotated[
        str | None,
        typer.Option(metavar="PORT|unix:PATH", help="serve Arrow Flight there, too"),
    ] = None,
    lines: Annotated[
        list[str] | None,
        typer.Option(
            metavar="S=HOST:PORT|unix:PATH[,FORMAT]",
            help="take lines of stream S there: ndjson, csv, influx, syslog, xml",
        ),
    ] = None,
    log: Annotated[str, typer.Option(help="form of the log: text or json")] = "text",
    exit_on_failure: Annotated[
        bool,
        typer.Option(
            "--exit-on-failure", help="end with status 1 if the engine fails, to be started again"
        ),
    ] = False,
) -> None:
    """Run a network behind a web server until Ctrl-C; prints the address of the studio."""
    tls = _tls(tls_cert, tls_key)
    require_safe(host, tls, insecure=insecure)
    log_to_stderr(_log_form(log))
    network = load_or_begin(file)
    network = with_late_outputs(network, [text.partition("=")[0] for text in outputs or []])
    checked = network.check()
    given = named_paths(inputs, "--input", "stream", network.streams)
    flight_at = None if flight is None else FeedAddress.parse(flight, "--flight")
    if flight_at is not None:
        flight_at.require_safe("--flight", tls=tls is not None, insecure=insecure)
    lines_at = [LinesOption.parse(text) for text in lines or ()]
    for option in lines_at:
        option.address.require_safe("--lines", tls=False, insecure=insecure)
        option.require_stream(network.streams)
    letters = (state or file.absolute().parent) / "dead-letters.jsonl"
    engine = Engine(
        network,
        master=master,
        state=state,
        durability=durability,
        train=train,
        jars=[jar.strip() for jar in jars.split(",")] if jars else (),
        dead_letters=letters,
    )
    for name, path in given.items():
        engine.bind_source(declared_source(network, name, path, Path()))
    bind_sinks(engine, checked, outputs, console=False)
    engine.check()
    hosts = [*LOOPBACK, host, *(allow_host or [])] if is_loopback(host) or allow_host else None
    kept = [token_file, tls_cert, tls_key, letters]
    settings = ServerSettings(
        ServerLimits(body_bytes=max_body),
        hosts=hosts,
        modules=frozenset(allow_module or ()),
        roots=allow_path or (),
        protected=[path for path in kept if path is not None],
        master=master,
    )
    with ExitStack() as stack:
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        stop = threading.Event()
        _on_signals(stop)
        stack.callback(lambda: [signal.signal(n, handler) for n, handler in before.items()])
        # Mistakes are told before Spark starts, which takes seconds.
        bound = bound_socket(host, port)
        stack.callback(bound.close)
        known = token_file or (state / TOKENS if state is not None else None)
        were_there = known is not None and known.exists()
        if known is not None and were_there:
            AccessTokens.kept(known)
        typer.echo("starting Spark …", err=True)
        engine.start()
        _on_signals(stop)  # Spark has put its own handlers in place
        stack.callback(engine.shutdown)
        service = EngineService(engine, settings, file=NetworkFile(file), state=state)
        stack.callback(service.close)
        tokens = AccessTokens.kept(_token_path(token_file, state, stack))
        server = HttpServer(
            create_app(service, tokens), host, port, tls, bound=bound, limits=settings.limits
        )
        feeds = _feeds(
            engine, flight_at, lines_at, tokens, tls, insecure=insecure, limits=settings.limits
        )
        service.feeds.extend(feeds)
        _start_all(feeds, stack)
        server.start()
        stack.callback(server.stop)
        for feed in feeds:
            typer.echo(f"feed: {feed.address}")
        tell_address(server.url, tokens, known if were_there else None)
        failure = None
        while server.alive and failure is None and not stop.wait(_WAIT_S):
            failure = service.failure() if exit_on_failure else None
        typer.echo("stopping …", err=True)
        if failure is not None:
            raise failure


def tell_address(url: str, tokens: AccessTokens, known: Path | None) -> None:
    """Print the address of the studio, with the editor's token if somebody may need it.

    What a service prints stays in a journal: tokens that were there before are only pointed to.
    """
    if known is None or sys.stdout.isatty():
        typer.echo(f"studio: {url}/#token={tokens['editor']}")
    else:
        typer.echo(f"studio: {url}/")
        typer.echo(f"tokens: {known}")


def _feeds(
    engine: Engine,
    flight: FeedAddress | None,
    lines: Sequence[LinesOption],
    tokens: AccessTokens,
    tls: TlsFiles | None,
    *,
    insecure: bool,
    limits: ServerLimits,
) -> list[Feed]:
    """The feeds that options ask for."""
    found: list[Feed] = []
    if flight is not None:
        pair = (
            None if tls is None else FlightTls(tls.certificate.read_bytes(), tls.key.read_bytes())
        )
        role_of = tokens.role_of
        feed = FlightFeed(engine, flight, role_of, tls=pair, insecure=insecure, limits=limits)
        found.append(feed)
    for option in lines:
        found.append(LineFeed(engine, option, tokens.role_of, insecure=insecure))
    return found


def load_or_begin(file: Path) -> Network:
    """The network of a file; an empty one if there is no such file yet."""
    if file.exists():
        return Network.load(file, imports=True)
    if not file.absolute().parent.is_dir():
        problem = f"cannot read the network file: there is no directory {file.parent}"
        raise UsageError("CANNOT_READ", problem, where=str(file))
    name = re.sub(r"\W", "_", file.stem, flags=re.ASCII)
    fits = re.match(r"[A-Za-z]", name)
    return Network(name if fits else f"n{name}", directory=file.absolute().parent, imports=True)


def _tls(certificate: Path | None, key: Path | None) -> TlsFiles | None:
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise UsageError("BAD_OPTION", "--tls-cert and --tls-key belong together")
    for path in (certificate, key):
        if not path.is_file():
            raise UsageError("CANNOT_READ", "there is no such file", where=str(path))
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except OSError as error:  # such as ssl.SSLError
        raise UsageError(
            "CANNOT_READ",
            f"the certificate and the key cannot be used: {error.strerror or error}",
            where=f"--tls-cert {certificate}, --tls-key {key}",
            hint="expected PEM, and the key of this certificate",
        ) from None
    return TlsFiles(certificate, key)


def _log_form(given: str) -> LogForm:
    if given == "json":
        return "json"
    if given == "text":
        return "text"
    raise UsageError("BAD_OPTION", f"expected text or json, found {given!r}", where="--log")


def _token_path(given: Path | None, state: Path | None, stack: ExitStack) -> Path:
    """Where tokens are kept: without a state directory, only while the server runs."""
    if given is not None:
        return given
    if state is not None:
        return state / TOKENS
    directory = tempfile.mkdtemp(prefix="auroral-serve-")
    stack.callback(shutil.rmtree, directory, ignore_errors=True)
    path = Path(directory, TOKENS)
    typer.echo(f"tokens: {path}", err=True)
    return path


def _start_all(feeds: Sequence[Feed], stack: ExitStack) -> None:
    for feed in feeds:
        feed.start()
        stack.callback(feed.stop)


def _on_signals(stop: threading.Event) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
