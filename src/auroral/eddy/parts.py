"""The compiled predicates of one arc: few parts of growing size, as queries come and go.

A new query makes a small part of its own; parts of like size are put together, so that adding
costs little however many there are, and a tuple meets few parts.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from auroral.eddy.index import Part, Selection, Statistics, build, operators
from auroral.eddy.routing import Operator

Ids = npt.NDArray[np.int32]
_GROWTH = 4
"""Parts less than so many times larger than a new one are put together with it."""
_CHEAP = 50_000
"""So many queries are compiled again as soon as there are statistics."""


@dataclass(frozen=True)
class Compiled:
    """A part in a file that tasks read, and what it was made from."""

    path: str
    part: Part
    selections: tuple[Selection, ...]
    informed: bool
    """Whether there were statistics when it was made."""

    @property
    def queries(self) -> int:
        return sum(len(selection.ids) for selection in self.selections)


@dataclass(frozen=True)
class Snapshot:
    """What tasks need to know of an arc's queries at one time."""

    paths: tuple[str, ...] = ()
    removed: Mapping[str, Ids] = field(default_factory=dict)
    operators: tuple[Operator, ...] = ()


class Parts:
    """The parts of one arc."""

    def __init__(self, directory: Path, name: str):
        self._directory = directory
        self._name = name
        self._number = 0
        self._parts: list[Compiled] = []
        self._removed: dict[str, set[int]] = {}
        self.statistics = Statistics()

    def add(self, selections: Sequence[Selection]) -> None:
        """Compile new queries, together with parts that are not much larger."""
        size = sum(len(selection.ids) for selection in selections)
        mine = list(selections)
        while self._parts and self._parts[-1].queries < _GROWTH * max(size, 1):
            last = self._parts.pop()
            mine = [*last.selections, *mine]
            size += last.queries
        self._compile(mine)

    def remove(self, kind: str, ids: Ids) -> None:
        """Forget queries; a part most of whose queries are gone is compiled anew."""
        self._removed.setdefault(kind, set()).update(ids.tolist())
        gone = sum(map(len, self._removed.values()))
        if gone > sum(part.queries for part in self._parts) // 2:
            self._rebuild()

    def learn(self, samples: Mapping[str, pa.Array]) -> bool:
        """Take samples of values; True if parts made without them were made anew."""
        first = not self.statistics.samples
        self.statistics = Statistics({**self.statistics.samples, **samples})
        small = sum(part.queries for part in self._parts) <= _CHEAP
        if first and samples and small and not all(part.informed for part in self._parts):
            self._rebuild()
            return True
        return False

    def snapshot(self) -> Snapshot:
        """The parts as they are now."""
        removed = {
            kind: np.array(sorted(ids), np.int32) for kind, ids in self._removed.items() if ids
        }
        parts = [compiled.part for compiled in self._parts]
        return Snapshot(tuple(c.path for c in self._parts), removed, operators(parts))

    def described(self) -> list[str]:
        """How many queries are bits of bitmaps, and how many are filed under a predicate."""
        parts = [compiled.part for compiled in self._parts]
        dense = sum(len(block.ids) for part in parts for block in part.blocks)
        filed = sum(len(access.ids) for part in parts for access in part.accesses)
        return [f"{dense} queries by bitmaps, {filed} by access predicates"] if parts else []

    def _rebuild(self) -> None:
        selections = [s for part in self._parts for s in part.selections]
        self._parts = []
        self._compile(selections)

    def _compile(self, selections: Sequence[Selection]) -> None:
        live = merged([self._live(selection) for selection in selections])
        if not live:
            return
        part = build(live, self.statistics)
        self._number += 1
        path = self._directory / f"{self._name}-{self._number}"
        path.write_bytes(pickle.dumps(part, protocol=5))
        informed = bool(self.statistics.samples)
        self._parts.append(Compiled(str(path), part, tuple(live), informed))

    def _live(self, selection: Selection) -> Selection:
        """A selection without the queries that are gone; they need not be remembered then."""
        removed = self._removed.get(selection.kind)
        if not removed:
            return selection
        there = set(selection.ids.tolist()) & removed
        if not there:
            return selection
        removed -= there
        stay = ~np.isin(selection.ids, np.fromiter(there, np.int32))
        rows = selection.constants.filter(pa.array(stay))
        return Selection(selection.kind, selection.clauses, selection.ids[stay], rows)


def merged(selections: Sequence[Selection]) -> list[Selection]:
    """Selections that differ in nothing but constants as one."""
    alike: dict[tuple[object, ...], list[Selection]] = {}
    for selection in selections:
        if len(selection.ids):
            key = (selection.kind, selection.clauses, selection.constants.schema)
            alike.setdefault(key, []).append(selection)
    return [_together(same) for same in alike.values()]


def _together(same: Sequence[Selection]) -> Selection:
    if len(same) == 1:
        return same[0]
    ids = np.concatenate([selection.ids for selection in same])
    rows = pa.concat_tables([selection.constants for selection in same]).combine_chunks()
    return Selection(same[0].kind, same[0].clauses, ids, rows)


_loaded: dict[str, Part] = {}


def load_parts(paths: Sequence[str]) -> list[Part]:
    """The parts of an arc from their files; a process keeps those in use."""
    for path in paths:
        if path not in _loaded:
            with open(path, "rb") as file:
                _loaded[path] = pickle.load(file)
    whose = {path.rpartition("-")[0] for path in paths}
    for path in [p for p in _loaded if p.rpartition("-")[0] in whose and p not in paths]:
        del _loaded[path]
    return [_loaded[path] for path in paths]
