"""Wiring: what a checked network needs of logs, consumers, sources and sinks."""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from auroral.boxes.eddy import Eddy
from auroral.engine.boxed import UNBOXED, Running
from auroral.engine.queries import Queries
from auroral.engine.readers import ALL, OUTPUT, consumer
from auroral.engine.rests import REST
from auroral.engine.stepper import PLANE
from auroral.engine.tables import require_readable
from auroral.engine.versions import EDDY, arcs_of
from auroral.errors import UsageError
from auroral.io.interleave import Interleaver
from auroral.io.named import NamedSource
from auroral.io.open import extra_of, is_native, naming, open_sink, open_source, sinks_to_come
from auroral.io.sinks.sink import Sink
from auroral.io.source import Source
from auroral.network.check import CheckedNetwork
from auroral.network.environment import resolved, sink_of, sources_of
from auroral.network.network import Network
from auroral.network.types import Schema
from auroral.scheduling.superboxes import Superbox, superboxes
from auroral.spark.lowering import not_executable
from auroral.storage import HELD, Change, Store

NEXT = "next@"
"""The name of boxes that are to come among the consumers of logs."""


def require_executable(
    network: Network, bound: Iterable[str] = (), tables: Container[str] = ()
) -> None:
    """Refuse what can be declared but not run yet, by name.

    `bound` outputs have other sinks, and the rows of `tables` are given.
    """
    for name in network.tables:
        if name not in tables:
            require_readable(network, name)
    for name, box in network.boxes.items():
        if not box.executable:
            raise not_executable(network.place("boxes", name), box)
    for name, format in sinks_to_come(network).items():
        if name not in bound:
            raise UsageError(
                "UNKNOWN_FORMAT",
                f"this version checks {format} sinks but does not write to them yet",
                where=network.place("outputs", name, "sink"),
                hint="give the output another sink",
            )


def output_arcs(checked: CheckedNetwork, bound: Iterable[str] = ()) -> dict[str, str]:
    """Outputs and the arcs they deliver; any arc with a sink of its own is an output too."""
    arcs = {name: output.from_ for name, output in checked.network.outputs.items()}
    return arcs | {name: name for name in bound if name not in arcs and name in checked.arcs}


def all_superboxes(
    checked: CheckedNetwork, outputs: Mapping[str, str], boxed: Running
) -> tuple[Superbox, ...]:
    """Fused boxes, and one empty superbox per stream that feeds none: its log moves on too.

    The boxes of queries that failed are left out, of what would be fused without that: what
    others read, and where they are, stays as it was.
    """
    eddies = [name for name, box in checked.network.boxes.items() if isinstance(box, Eddy)]
    fused = superboxes(checked, [*outputs.values(), *eddies])
    left = {box for box in checked.network.boxes if boxed.owner(box) not in boxed.failed}
    fused = tuple(superbox.having(left) for superbox in fused)
    read = {source for superbox in fused for source in superbox.sources}
    alone = [name for name in checked.network.streams if name not in read]
    return (*fused, *(Superbox(name, (name,), (), ()) for name in alone))


def register_consumers(
    store: Store,
    boxes: Sequence[Superbox],
    outputs: Mapping[str, str],
    plane: Sequence[str],
    begin: Callable[[str], int] = lambda _box: 0,
) -> None:
    """A log keeps what any consumer needs, so all are known before anything is deleted.

    New ones begin where `begin` says; an eddy where the one before it on an arc has come to.
    Boxes that are no more need nothing.
    """
    wanted = {(source, box.name) for box in boxes for source in box.sources}
    wanted |= {(log, PLANE) for log in plane}
    _, cursors = store.names()
    heads = {
        (log, name): max(
            (store.head(log, n) for o, n in cursors if o == log and _is_before(n, name)),
            default=begin(name),
        )
        for log, name in wanted - set(cursors)
    }
    arcs = {(arc, consumer(output)) for output, arc in outputs.items()}
    heads |= {(arc, name): begin(arc) for arc, name in arcs - set(cursors)}
    if heads:
        store.commit(Change(heads=heads))
    stale = [key for key in cursors if key not in wanted and _is_box(key[1])]
    if stale:
        store.forget([], stale)


def _is_box(reader: str) -> bool:
    """Whether a consumer is a superbox, not an output or another reader of results."""
    return not reader.startswith((OUTPUT, REST)) and reader not in (ALL, HELD, PLANE, NEXT)


def hold(store: Store, logs: Iterable[str], moment: int) -> None:
    """Keep for boxes that are to come what comes from their moment on, though others pass it."""
    heads = {(log, NEXT): moment for log in logs if not store.has_cursor(log, NEXT)}
    if heads:
        store.commit(Change(heads=heads))


def let_go(store: Store, moment: int | None) -> None:
    """The boxes that were to come are there; others are to come at a moment, or none."""
    held = store.readers(NEXT)
    if held and moment is not None:
        store.commit(Change(heads=dict.fromkeys(held, moment)))
    elif held:
        store.forget([], held)


def _is_before(one: str, other: str) -> bool:
    """Whether one eddy served some of the arcs that are another's now."""
    eddies = one.startswith(EDDY) and other.startswith(EDDY)
    return eddies and not set(arcs_of(one)).isdisjoint(arcs_of(other))


def forget_boxes(store: Store, queries: Queries) -> None:
    """Drop what boxes of queries that were removed have written and remembered.

    What sinks have still to get of it is kept for them.
    """
    prefixes = tuple(f"{name}#" for name in json.loads(store.manifest.meta(UNBOXED) or "[]"))
    if prefixes:
        queries.rests.keep(prefixes, queries.versions.settled)
        logs, cursors = store.names()
        gone = [log for log in logs if log.startswith(prefixes)]
        kept = store.manifest.progress()
        store.forget(
            gone,
            [(log, r) for log, r in cursors if log.startswith(prefixes) and not r.startswith(REST)],
            [name for name in kept if name.partition(" of ")[2].startswith(prefixes)],
            [key for key in store.counters if key[0].startswith(prefixes)],
        )
        store.commit(Change(meta={UNBOXED: "[]"}))


def forget_eddies(store: Store, queries: Queries) -> None:
    """Drop the panes and SteMs of queries that went with a change of boxes, or before a restart."""
    logs, _ = store.names()
    state = {log: log.removeprefix(EDDY).rpartition("/")[0] for log in logs if log.startswith(EDDY)}
    wanted = queries.versions.tables()
    gone = [log for log, table in state.items() if table not in wanted]
    if gone:
        store.forget(gone, [])


def declared_sinks(
    network: Network,
    checked: CheckedNetwork,
    schema_of: Callable[[str, str], Schema | None],
    bound: Container[str],
) -> dict[str, Sink]:
    """The sinks that the network file names, unless the output has one already.

    `schema_of` tells what outputs give of queries.
    """
    root = network.directory or Path()
    arcs = output_arcs(checked)
    found = {}
    for name, output in network.outputs.items():
        if output.sink and name not in bound:
            schema = schema_of(name, output.from_)
            if schema is None and name in arcs:
                schema = checked.schema_of(arcs[name])
            if schema is None:  # the query was removed in an earlier run
                continue
            found[name] = open_sink(name, sink_of(network, name) or {}, schema, root=root)
    return found


def declared_sources(network: Network, bound: Sequence[Source]) -> list[Source]:
    """The sources that the network file names, unless the stream has one already.

    Formats of Spark's own are left to Structured Streaming.
    """
    taken = {source.stream for source in bound}
    found: list[Source] = []
    for name in network.streams:
        own = sources_of(network, name) if name not in taken else []
        for number, spec in enumerate(own, 1):
            if not is_native(spec):
                continue
            source = declared_source(network, name, spec)
            label, idle_s = naming(spec)
            if len(own) > 1 or label is not None:
                source = named(network, source, label or str(number), idle_s)
            found.append(source)
    return found


def named(network: Network, source: Source, name: str, idle_s: float | None) -> NamedSource:
    """A source as one of several of its stream."""
    schema = network.streams[source.stream].schema_.arrow()
    return NamedSource(source, name, schema, idle_s=idle_s)


def interleaved(
    network: Network, sources: Sequence[Source], position: Any | None
) -> Interleaver | None:
    """The sources in one order of arrival, where an earlier run had come to.

    Several sources of one stream have names; those that were given none have numbers.
    """
    if not sources:
        return None
    every: list[Source] = []
    for source in sources:
        own = [other for other in sources if other.stream == source.stream]
        if len(own) > 1 and not isinstance(source, NamedSource):
            source = named(network, source, str(own.index(source) + 1), None)
        every.append(source)
    merged = Interleaver(every)
    if position is not None:
        merged.seek(position)
    return merged


def declared_source(
    network: Network, stream: str, spec: str | Mapping[str, Any], root: Path | None = None
) -> Source:
    """The source of a stream; relative paths are below `root`, or where the network file lies."""
    declared = network.streams[stream]
    return open_source(
        stream,
        spec,
        declared.schema_,
        progress_on=declared.punctuated.on if declared.punctuated else None,
        by=declared.punctuated.by if declared.punctuated else (),
        root=root or network.directory or Path(),
        extra=extra_of(declared.sources if isinstance(spec, str) else [spec]),
    )


def declared_jars(network: Network) -> list[Path]:
    """The jars that the network names; relative paths are below the network file."""
    names = enumerate(network.engine.jars)
    root = network.directory or Path()
    return [
        root / resolved(name, lambda i=i: network.place("engine", "jars", i)) for i, name in names
    ]
