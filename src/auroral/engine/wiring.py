"""Wiring: what a checked network needs of logs, consumers, sources and sinks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from auroral.engine.delivery import consumer
from auroral.engine.stepper import PLANE
from auroral.io.interleave import Interleaver
from auroral.io.open import SOURCES, open_sink, open_source
from auroral.io.sinks.sink import Sink
from auroral.io.source import Source
from auroral.network.check import CheckedNetwork
from auroral.network.network import Network
from auroral.scheduling.superboxes import Superbox, superboxes
from auroral.storage import Change, Store


def output_arcs(checked: CheckedNetwork, bound: Iterable[str] = ()) -> dict[str, str]:
    """Outputs and the arcs they deliver; any arc with a sink of its own is an output too."""
    arcs = {name: output.from_ for name, output in checked.network.outputs.items()}
    return arcs | {name: name for name in bound if name not in arcs and name in checked.arcs}


def all_superboxes(checked: CheckedNetwork, outputs: Mapping[str, str]) -> tuple[Superbox, ...]:
    """Fused boxes, and one empty superbox per stream that feeds none: its log moves on too."""
    fused = superboxes(checked, outputs.values())
    read = {source for superbox in fused for source in superbox.sources}
    alone = [name for name in checked.network.streams if name not in read]
    return (*fused, *(Superbox(name, (name,), (), ()) for name in alone))


def register_consumers(
    store: Store, boxes: Sequence[Superbox], outputs: Mapping[str, str], plane: Sequence[str]
) -> None:
    """A log keeps what any consumer needs, so all are known before anything is deleted."""
    wanted = {(source, box.name) for box in boxes for source in box.sources}
    wanted |= {(arc, consumer(output)) for output, arc in outputs.items()}
    wanted |= {(log, PLANE) for log in plane}
    new = wanted - set(store.manifest.cursors())
    if new:
        store.commit(Change(heads=dict.fromkeys(new, 0)))


def declared_sinks(checked: CheckedNetwork) -> dict[str, Sink]:
    """The sinks that the network file names."""
    root = checked.network.directory or Path()
    return {
        name: open_sink(name, output.sink, checked.schema_of(output.from_), root=root)
        for name, output in checked.network.outputs.items()
        if output.sink
    }


def declared_sources(network: Network, bound: Sequence[Source]) -> list[Source]:
    """The sources that the network file names, unless the stream has one already.

    Formats of Spark's own are left to Structured Streaming.
    """
    taken = {source.stream for source in bound}
    return [
        declared_source(network, name, stream.source)
        for name, stream in network.streams.items()
        if stream.source and name not in taken and not is_sparks(stream.source)
    ]


def interleaved(sources: Sequence[Source], position: Any | None) -> Interleaver | None:
    """The sources in one order of arrival, where an earlier run had come to."""
    if not sources:
        return None
    merged = Interleaver(sources)
    if position is not None:
        merged.seek(position)
    return merged


def is_sparks(spec: Mapping[str, Any]) -> bool:
    """Whether a source is to be read by one of Spark's connectors."""
    return "format" in spec and spec["format"] not in SOURCES


def declared_source(
    network: Network, stream: str, spec: str | Mapping[str, Any], root: Path | None = None
) -> Source:
    """The source of a stream; relative paths are below `root`, or where the network file lies."""
    declared = network.streams[stream]
    return open_source(
        stream,
        spec,
        declared.schema_,
        progress_on=declared.progress.on if declared.progress else None,
        by=declared.progress.by if declared.progress else (),
        root=root or network.directory or Path(),
    )
