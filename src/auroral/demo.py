"""`make demo`: a factory that runs behind the studio."""

from __future__ import annotations

import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp

from auroral.engine import Engine
from auroral.errors import AuroralError, RunError, UsageError
from auroral.network.network import Network
from auroral.server.app import create_app
from auroral.server.guards import LOOPBACK
from auroral.server.network_file import NetworkFile
from auroral.server.running import HttpServer
from auroral.server.service import EngineService
from auroral.server.settings import ServerSettings
from auroral.server.tokens import AccessTokens
from auroral.spark.running.executor import StepExecutor

NETWORK = Path(__file__).parents[2] / "examples" / "factory.yaml"
HOST = "127.0.0.1"
PORT = 8640
SECONDS = 30.0
"""How long the demo lasts if nobody is there to stop it."""
_LOOK_S = 0.5
_MOST_STARTING_S = 60.0
"""How long the demo waits for the first tuples before its time begins."""
_BEFORE = """\
Auroral demo: five machines report temperature and pressure, 2,000 readings a second, and stations
report finished pieces. One network words alerts, computes means and joins both, on Spark.
"""
_AFTER = """\
That was examples/factory.yaml. Serve it, or a network of your own, and keep what you change:
  .venv/bin/auroral serve examples/factory.yaml --state factory-state
Go on with docs/tutorial/first-studio.md.
"""


def main() -> None:
    """Serve the demo: until Ctrl-C on a terminal, else for half a minute."""
    try:
        demo(None if sys.stdout.isatty() else SECONDS)
    except AuroralError as error:
        sys.stderr.write(f"auroral: {error}\n")
        raise SystemExit(error.exit_code) from None


def demo(seconds: float | None, *, port: int = PORT, executor: StepExecutor | None = None) -> None:
    """Serve a copy of the factory for some time, and say what happened."""
    if not NETWORK.exists():
        raise UsageError("NO_DEMO", "the demo needs a source checkout with examples/factory.yaml")
    _say(_BEFORE)
    _say("starting Spark …")
    with ExitStack() as stack:
        directory = Path(tempfile.mkdtemp(prefix="auroral-demo-"))
        stack.callback(shutil.rmtree, directory, ignore_errors=True)
        # A copy: what a visitor deploys is written to the file, and the example stays as it is.
        file = Path(shutil.copy(NETWORK, directory))
        network = Network.load(file)
        engine = Engine(network, executor=executor, dead_letters=directory / "dead-letters.jsonl")
        stop = stack.enter_context(_stopped_by_signals())
        engine.start()
        stack.callback(engine.shutdown)
        _take_signals(stop)  # Spark has put its own handlers in place
        settings = ServerSettings(hosts=LOOPBACK)
        service = EngineService(engine, settings, file=NetworkFile(file))
        stack.callback(service.close)
        tokens = AccessTokens.made()
        server = listening(create_app(service, tokens), port)
        server.start()
        stack.callback(server.stop)
        print(f"studio: {server.url}/#token={tokens['editor']}", flush=True)  # noqa: T201
        ending = "Ctrl-C stops it" if seconds is None else f"it ends after {seconds:.0f} seconds"
        _say(f"Open that address in a browser; {ending}.\n")
        if seconds:
            _await_tuples(engine, server, stop)
        started = time.monotonic()
        _watch(server, stop, seconds)
        _say(outcome(engine.stats(), time.monotonic() - started))
    _say(_AFTER)


def listening(app: ASGIApp, port: int) -> HttpServer:
    """A server on a port, or on any that is free if somebody has it."""
    try:
        return HttpServer(app, HOST, port)
    except RunError as error:
        if error.code != "CANNOT_BIND" or not port:
            raise
        _say(f"port {port} is taken, so the demo takes another")
        return HttpServer(app, HOST, 0)


def outcome(stats: Mapping[str, Any], elapsed_s: float) -> str:
    """What happened, to be read by a person.

    >>> streams = {"ticks": {"in": 1200}}
    >>> outputs = {"alerts": {"out": 2, "waiting": 1}}
    >>> steps = {"count": 7, "median_s": 0.0204}
    >>> qos = {"alerts": {"utility": 0.984}}
    >>> given = {"streams": streams, "outputs": outputs, "steps": steps, "qos": qos, "shedding": {}}
    >>> print(outcome(given, 30.0))
    1,200 tuples in 30 s, 7 steps, median step 20 ms
      stream ticks: 1,200 tuples in
      output alerts: 3 results, utility 0.98
    """
    taken = sum(stream["in"] for stream in stats["streams"].values())
    steps = stats["steps"]
    line = f"{taken:,} tuples in {elapsed_s:.0f} s, {steps['count']:,} steps"
    if steps["median_s"]:
        line += f", median step {steps['median_s'] * 1000:.0f} ms"
    lines = [line]
    for name, stream in stats["streams"].items():
        lines.append(f"  stream {name}: {stream['in']:,} tuples in")
    for name, output in stats["outputs"].items():
        line = f"  output {name}: {output['out'] + output['waiting']:,} results"
        if name in stats["qos"]:
            line += f", utility {stats['qos'][name]['utility']:.2f}"
        lines.append(line)
    if dropped := stats["shedding"].get("dropped"):
        lines.append(f"  load shedding dropped {dropped:,} tuples")
    return "\n".join(lines)


def _await_tuples(engine: Engine, server: HttpServer, stop: threading.Event) -> None:
    """Wait until sources give tuples, which takes Spark a while on a busy machine."""
    end = time.monotonic() + _MOST_STARTING_S
    while server.alive and time.monotonic() < end and not stop.wait(_LOOK_S):
        if any(stream["in"] for stream in engine.stats()["streams"].values()):
            return


def _watch(server: HttpServer, stop: threading.Event, seconds: float | None) -> None:
    end = None if seconds is None else time.monotonic() + seconds
    while server.alive and not stop.wait(_LOOK_S):
        if end is not None and time.monotonic() >= end:
            return


@contextmanager
def _stopped_by_signals() -> Iterator[threading.Event]:
    """An event that Ctrl-C and SIGTERM set."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    stop = threading.Event()
    _take_signals(stop)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _take_signals(stop: threading.Event) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    main()
