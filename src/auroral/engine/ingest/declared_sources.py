"""Sources that a network declares, and all sources in one order of arrival."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from auroral.io.open import extra_of, is_native, naming, open_source
from auroral.io.sources.interleave import Interleaver
from auroral.io.sources.named import NamedSource
from auroral.io.sources.source import Source
from auroral.network.environment import sources_of
from auroral.network.network import Network


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
    merged = Interleaver(named_apart(network, sources, sources))
    if position is not None:
        merged.seek(position)
    return merged


def named_apart(network: Network, some: Sequence[Source], every: Sequence[Source]) -> list[Source]:
    """Some of all sources, with numbers for names where a stream has several without any."""
    found: list[Source] = []
    for source in some:
        own = [other for other in every if other.stream == source.stream]
        if len(own) > 1 and not isinstance(source, NamedSource):
            source = named(network, source, str(own.index(source) + 1), None)
        found.append(source)
    return found


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
