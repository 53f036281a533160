"""`auroral run`: run a network over files or live sources."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from auroral.cli import remote
from auroral.cli.check import NetworkFile
from auroral.cli.display import Display, summary
from auroral.client import Client
from auroral.engine import Engine
from auroral.engine.ingest.declared_sources import declared_source
from auroral.errors import SinkError, UsageError, closest, list_existing
from auroral.io.open import open_sink
from auroral.network.check import CheckedNetwork
from auroral.network.endpoints import with_late_outputs
from auroral.network.network import Network
from auroral.network.queries import declared_member
from auroral.network.types import Schema

_LOOK_S = 0.2


def run(
    file: NetworkFile,
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input", metavar="S=PATH", help="read stream S from a .csv, .jsonl or .parquet"
        ),
    ] = None,
    outputs: Annotated[
        list[str] | None,
        typer.Option("--output", metavar="O=PATH", help="write output (or arc) O to a file"),
    ] = None,
    train: Annotated[int | None, typer.Option(min=1, help="most tuples per step")] = None,
    hold: Annotated[
        bool, typer.Option("--hold", help="the input is a prefix: nothing ends")
    ] = False,
    state: Annotated[
        Path | None, typer.Option(help="directory that makes the run restartable")
    ] = None,
    durability: Annotated[
        str | None,
        typer.Option(
            help="what the state survives: power (a power failure) or process (only a crash)",
            show_default="what the network says, else power",
        ),
    ] = None,
    master: Annotated[str, typer.Option(help="Spark master")] = "local[*]",
    clock: Annotated[
        str | None, typer.Option(help="wall, or arrival: time is what _at says")
    ] = None,
    dead_letters: Annotated[
        Path | None,
        typer.Option(
            help="file for rows that do not fit",
            show_default="dead-letters.jsonl, in the state directory if there is one",
        ),
    ] = None,
    jars: Annotated[
        str | None,
        typer.Option(metavar="A.JAR,B.JAR", help="files with connectors of Spark's"),
    ] = None,
    seconds: Annotated[
        float | None, typer.Option("--for", metavar="SECONDS", min=0, help="stop after so long")
    ] = None,
    server: remote.ServerOption = None,
    token: remote.TokenOption = None,
    token_file: remote.TokenFileOption = None,
    ca: remote.CaOption = None,
) -> None:
    """Run a network until its inputs end, or until Ctrl-C; or let a server run it."""
    if server:
        here = {
            "--train": train,
            "--hold": hold or None,
            "--state": state,
            "--durability": durability,
            "--clock": clock,
            "--dead-letters": dead_letters,
            "--jars": jars,
            "--for": seconds,
        }
        _run_there(remote.connected(server, token, token_file, ca), file, inputs, outputs, here)
        return
    _show_warnings()
    network = Network.load(file, imports=True)
    network = with_late_outputs(network, [_pair(text)[0] for text in outputs or []])
    checked = network.check()
    given = named_paths(inputs, "--input", "stream", network.streams)
    live = [name for name, s in network.streams.items() if s.source and name not in given]
    if not given and not live:
        raise UsageError(
            "NOTHING_TO_READ",
            f"no stream has a source; {list_existing(network.streams)}",
            hint="give one with --input NAME=PATH",
        )
    sources = [declared_source(network, name, path, Path()) for name, path in given.items()]
    clock = clock or ("wall" if live else "arrival")
    engine = Engine(
        network,
        master=master,
        state=state,
        durability=durability,
        train=train,
        clock=clock,
        jars=[jar.strip() for jar in jars.split(",")] if jars else (),
        dead_letters=dead_letters or (state or Path()) / "dead-letters.jsonl",
    )
    for source in sources:
        engine.bind_source(source)
    targets = bind_sinks(engine, checked, outputs)
    engine.check()
    stop = threading.Event()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    _on_signal(stop)
    display = Display(network.name)
    display.say("starting Spark …")
    started = time.monotonic()
    engine.start()
    for what, names in engine.edited.items():
        if names:
            display.say(f"the network was edited: {what} {', '.join(names)}")
    _on_signal(stop)  # Spark has put its own handler in place
    try:
        complete = _work(engine, display, stop, hold, seconds, targets)
    finally:
        display.close()
        stats = engine.shutdown()
        for number, handler in before.items():
            signal.signal(number, handler)
    typer.echo(
        summary(
            stats,
            targets,
            elapsed_s=time.monotonic() - started,
            stopped=not complete,
            resumable=state is not None,
            dead_letters=engine.dead_letters,
        ),
        err=True,
    )
    for name, reason in _failed(stats).items():
        hint = "once that is mended, the same command goes on" if state is not None else None
        raise SinkError("SINK_FAILED", reason, where=f"output {name}", hint=hint)


def _run_there(
    client: Client,
    file: Path,
    inputs: list[str] | None,
    outputs: list[str] | None,
    here: Mapping[str, Any],
) -> None:
    """Deploy the network to a server, and feed it."""
    odd = [option for option, value in here.items() if value is not None]
    if odd:
        raise UsageError(
            "BAD_OPTION",
            f"{', '.join(odd)} belongs to a run of its own; with --server, the server has it",
        )
    network = Network.load(file)
    names = [*network.outputs, *network.queries]
    given = named_paths(inputs, "--input", "stream", network.streams)
    targets = named_paths(outputs, "--output", "output", names)
    with client:
        remote.deploy(client, network, given, targets)


def _show_warnings() -> None:
    """Print what the engine warns of, one line each, on standard error."""
    log = logging.getLogger("auroral")
    log.handlers = [handler for handler in log.handlers if not isinstance(handler, _Shown)]
    log.addHandler(_Shown())
    log.propagate = False


class _Shown(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        typer.echo(f"{record.levelname.lower()}: {record.getMessage()}", err=True)


def _failed(stats: Mapping[str, Any]) -> dict[str, str]:
    """Outputs whose sinks failed, and why."""
    outputs = stats["outputs"].items()
    return {name: output["failed"] for name, output in outputs if "failed" in output}


def _on_signal(stop: threading.Event) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())


def _work(
    engine: Engine,
    display: Display,
    stop: threading.Event,
    hold: bool,
    seconds: float | None,
    targets: Mapping[str, str],
) -> bool:
    """Let it run; False if it was stopped before the inputs ended, or no sink is left."""
    if engine.ended:
        _finish(engine)  # it may have been killed after the end was declared, before the last step
        display.say("this run ended before; what was added to its inputs since is not read")
        return True
    deadline = None if seconds is None else time.monotonic() + seconds
    while not engine.idle:
        if stop.is_set() or (deadline is not None and time.monotonic() >= deadline):
            return False
        stats = engine.stats()
        display.show(stats)
        if targets and _failed(stats).keys() >= targets.keys():
            return False  # as when who read our standard output went away
        engine.wait(_LOOK_S)
    display.show(engine.stats(), final=True)
    if not hold:
        _finish(engine)
    return True


def _finish(engine: Engine) -> None:
    """End all input; sinks that fail are told in the end."""
    with suppress(SinkError):
        engine.finish()


def named_paths(given: list[str] | None, option: str, what: str, names: Any) -> dict[str, str]:
    """The paths that an option gives to names, each once and each of something that exists."""
    found: dict[str, str] = {}
    for text in given or []:
        name, equals, path = _pair(text)
        if not equals or not name or not path:
            raise UsageError("BAD_OPTION", f"{option} takes NAME=PATH, found {text!r}")
        if name not in names:
            raise UsageError(
                f"UNKNOWN_{what.upper()}",
                f"there is no {what} {name}; {list_existing(names)}",
                where=option,
                hint=closest(name, names),
            )
        if name in found:
            raise UsageError("BAD_OPTION", f"{option} {name} is given twice")
        found[name] = path
    return found


def _pair(text: str) -> tuple[str, str, str]:
    """NAME, = and PATH; the key of a member may have the sign too.

    >>> _pair("alerts=a=b.csv"), _pair("alerts[x=1]=a.csv")
    (('alerts', '=', 'a=b.csv'), ('alerts[x=1]', '=', 'a.csv'))
    """
    member, bracket, path = text.partition("]=")
    if bracket and "[" in member.partition("=")[0]:
        return f"{member}]", "=", path
    return text.partition("=")


def bind_sinks(
    engine: Engine, checked: CheckedNetwork, outputs: list[str] | None, *, console: bool = True
) -> dict[str, str]:
    """Give outputs their sinks; with no `--output` at all, those without one go to the console."""
    network = checked.network
    schemas = {name: arc.schema for name, arc in checked.arcs.items()} | dict(checked.queries)
    outputs_ = {name: output.from_ for name, output in network.outputs.items()}
    queries = {name: name for name in network.queries if kept(network, name)}
    names = {name: name for name in checked.arcs} | queries | outputs_
    for name in (_pair(text)[0] for text in outputs or []):
        family = declared_member(network.queries, name, network.directory)
        query = family or name
        if query in network.queries and query not in queries and name not in outputs_:
            problem = f"the results of {query} are counted, not kept"
            raise UsageError("ONLY_COUNTED", problem, where="--output")
        if family is not None:
            names[name] = name
            schemas[name] = Schema(schemas[family].fields[1:])  # a member gives no key
    given = named_paths(outputs, "--output", "output", names)
    targets = dict(given)
    for name, path in given.items():
        engine.bind_sink(name, open_sink(name, path, schemas[names[name]]))
    for name in {**outputs_, **queries}:
        output = network.outputs.get(name)
        if name in given:
            continue
        if output is not None and output.sink:
            targets[name] = str(output.sink.get("path", output.sink.get("format")))
        elif not given and console:
            spec = {"format": "console"}
            engine.bind_sink(name, open_sink(name, spec, schemas[names[name]]))
            targets[name] = "console"
    return targets


def kept(network: Network, query: str) -> bool:
    """Whether a query has results to write, not only counts."""
    return network.queries[query].results == "keep"
