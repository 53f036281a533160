"""The files a network reads and writes: none is written that is read, none by two."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from auroral.errors import RunError, UsageError
from auroral.io.open import is_native
from auroral.io.paths import require_local
from auroral.io.sinks.csv import CsvSink
from auroral.io.sinks.jsonl import JsonlSink
from auroral.io.sinks.sink import Sink
from auroral.io.sources.files import SUFFIXES
from auroral.io.sources.named import unwrapped
from auroral.io.sources.source import Source
from auroral.network.environment import sink_of, sources_of
from auroral.network.network import Network
from auroral.network.queries import Family

Owned = Iterator[tuple[str, Path]]
"""Paths, and in words what each is to whom."""


def require_own_files(
    network: Network,
    sources: Iterable[Source],
    sinks: Mapping[str, Sink],
    dead_letters: Path | None = None,
) -> None:
    """Refuse to write what is read, and to write one file from two places."""
    read = list(_read(network, sources))
    for owner, path in _written(network, sinks, dead_letters):
        require_local(path, owner)
    written: dict[Path, str] = {}
    for owner, path in _written(network, sinks, dead_letters):
        found = path.resolve()
        if found.exists() and not (found.is_file() or found.is_dir()):
            continue  # a terminal or a pipe, which many may write to
        for reader, other in read:
            if _takes(other.resolve(), found):
                raise _same(path, f"it is {reader}, and {owner} would write over it")
        if found in written:
            raise _same(path, f"{written[found]} and {owner} would both write to it")
        written[found] = owner
    for output, sink in sinks.items():
        if isinstance(sink, CsvSink | JsonlSink):
            _require_directory(output, Path(sink.path))


def _require_directory(output: str, path: Path) -> None:
    """Tell before anything starts what opening the file would."""
    problem = f"there is no directory {path.parent}" if not path.parent.is_dir() else None
    if problem is None and not os.access(path if path.exists() else path.parent, os.W_OK):
        problem = "permission denied"
    if problem is not None:
        raise RunError("CANNOT_WRITE", f"the sink of {output}: {problem}", where=str(path))


def _same(path: Path, problem: str) -> UsageError:
    return UsageError("SAME_FILE", problem, where=str(path), hint="give each a file of its own")


def _takes(read: Path, written: Path) -> bool:
    """Whether what is written would be read: the file, or one more in a directory."""
    into = written.parent == read and read.is_dir() and written.suffix.lower() in SUFFIXES
    return read == written or into


def _read(network: Network, sources: Iterable[Source]) -> Owned:
    bound = set()
    for source in sources:
        bound.add(source.stream)
        path = getattr(unwrapped(source), "path", None)
        if path is not None:
            yield f"the source of {source.stream}", Path(path)
    for stream in network.streams:
        for spec in sources_of(network, stream) if stream not in bound else ():
            if is_native(spec):
                yield from _declared(network, f"the source of {stream}", spec)
    for name, query in network.queries.items():
        if isinstance(query, Family) and isinstance(query.values, str):
            yield from _declared(network, f"the values of {name}", {"path": query.values})


def _written(network: Network, sinks: Mapping[str, Sink], dead_letters: Path | None) -> Owned:
    for output, sink in sinks.items():
        path = getattr(sink, "path", None)
        if isinstance(path, str | Path):
            yield f"the sink of {output}", Path(path)
    for output in network.outputs:
        if output not in sinks:
            yield from _declared(network, f"the sink of {output}", sink_of(network, output))
    if dead_letters is not None:
        yield "the file of dead letters", dead_letters


def _declared(network: Network, owner: str, spec: Mapping[str, Any] | None) -> Owned:
    path = (spec or {}).get("path")
    if isinstance(path, str | Path):
        yield owner, (network.directory or Path()) / path
