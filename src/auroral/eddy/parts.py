"""The compiled predicates of one arc: few parts of growing size, as queries come and go.

A new query makes a small part of its own; parts of like size are put together, so that adding
costs little however many there are, and a tuple meets few parts.
"""

from __future__ import annotations

import copy
import pickle
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from auroral.disk import disk_errors
from auroral.eddy.filters.index import CompiledQueries, Selection, Statistics, build, operators
from auroral.eddy.filters.selections import merged
from auroral.eddy.registered import fields_of, is_group
from auroral.eddy.routes.routing import RoutedOperator

Ids = npt.NDArray[np.int32]
_GROWTH = 4
"""Parts less than so many times larger than a new one are put together with it."""
_FEW = 128
"""So many are always put together: filters know best what a tuple needs if they are one part."""
_OFTEN = 16
_CHEAP = 50_000
"""So many queries are compiled again as soon as there are statistics."""


@dataclass(frozen=True)
class CompiledPart:
    """A part in a file that tasks read, and what it was made from."""

    path: str
    part: CompiledQueries
    selections: tuple[Selection, ...]
    informed: bool
    """Whether there were statistics of all it asks for when it was made."""

    @cached_property
    def queries(self) -> int:
        return sum(len(selection.ids) for selection in self.selections)

    @cached_property
    def fields(self) -> frozenset[str]:
        """What its predicates read, those of queries that are gone too."""
        return frozenset(name for s in self.selections for name in fields_of(s.clauses))


@dataclass(frozen=True)
class Snapshot:
    """What tasks need to know of an arc's queries at one time."""

    paths: tuple[str, ...] = ()
    removed: Mapping[str, Ids] = field(default_factory=dict)
    operators: tuple[RoutedOperator, ...] = ()


class Parts:
    """The parts of one arc."""

    def __init__(self, directory: Path, name: str):
        self._directory = directory
        # Processes remember parts by their path, so no path may ever mean another part.
        self._name = f"{name}-{uuid.uuid4().hex[:12]}"
        self._of_group = is_group(name)
        self._numbers = count(1)
        self._parts: list[CompiledPart] = []
        self._removed: dict[str, set[int]] = {}
        self.statistics = Statistics()
        self._learnt = 0

    def draft(self) -> Parts:
        """The same, to be changed while these are in use; no file of the two has one name."""
        made = copy.copy(self)
        made._parts = list(self._parts)
        made._removed = {kind: set(ids) for kind, ids in self._removed.items()}
        return made

    def take_over(self, other: Parts) -> None:
        """Know what others have learnt of values."""
        self.statistics, self._learnt = other.statistics, other._learnt

    def add(self, selections: Sequence[Selection]) -> None:
        """Compile new queries, together with parts that are not much larger."""
        size = sum(len(selection.ids) for selection in selections)
        mine = list(selections)
        while self._parts and self._parts[-1].queries < max(_GROWTH * size, _FEW):
            last = self._parts.pop()
            mine = [*last.selections, *mine]
            size += last.queries
        self._compile(mine)

    def remove(self, queries: Iterable[tuple[str, Ids]]) -> None:
        """Forget queries, of some kinds; if most are gone, the others are compiled anew."""
        for kind, ids in queries:
            self._removed.setdefault(kind, set()).update(ids.tolist())
        gone = sum(map(len, self._removed.values()))
        if gone > sum(part.queries for part in self._parts) // 2:
            self._rebuild()
        elif self._of_group:
            self._drop_dead()

    def learn(self, samples: Mapping[str, pa.Array]) -> bool:
        """Take samples of values; True if predicates were compiled anew for them.

        That is done for the first samples, and now and then as values drift, unless it would
        hold up trains more than it can save: a bit costs every tuple something, what is filed
        under an access predicate does not.
        """
        self.statistics = Statistics({**self.statistics.samples, **samples})
        self._learnt += 1
        size = sum(part.queries for part in self._parts)
        due = self._learnt % _OFTEN == 0 and size <= _CHEAP // 10
        uninformed = any(not part.informed and self._knows(part.part) for part in self._parts)
        worth = size <= _CHEAP or self.split()[0] > _CHEAP
        if not size or not (due or (uninformed and worth)):
            return False
        self._rebuild()
        return True

    def knows(self, operators: Iterable[RoutedOperator]) -> bool:
        """Whether there are statistics of all attributes that can be sampled."""
        return all(each.costly or each.name in self.statistics.samples for each in operators)

    def _knows(self, part: CompiledQueries) -> bool:
        return self.knows(operators([part]))

    @property
    def fields(self) -> set[str]:
        """The fields that tuples must have for the parts there are now."""
        return set().union(*(compiled.fields for compiled in self._parts))

    @property
    def paths(self) -> tuple[str, ...]:
        """The files of the parts there are now."""
        return tuple(compiled.path for compiled in self._parts)

    def snapshot(self) -> Snapshot:
        """The parts as they are now."""
        removed = {
            kind: np.array(sorted(ids), np.int32) for kind, ids in self._removed.items() if ids
        }
        parts = [compiled.part for compiled in self._parts]
        return Snapshot(self.paths, removed, operators(parts))

    def split(self) -> tuple[int, int]:
        """How many queries are bits of bitmaps, how many are filed under an access predicate."""
        parts = [compiled.part for compiled in self._parts]
        dense = sum(self._count(block.kind, block.ids) for part in parts for block in part.blocks)
        return dense, sum(self._count(a.kind, a.ids) for part in parts for a in part.accesses)

    def _count(self, kind: str, ids: Ids) -> int:
        """How many of these queries have not been removed."""
        removed = self._removed.get(kind)
        gone = np.isin(ids, np.fromiter(removed, np.int32)).sum() if removed else 0
        return len(ids) - int(gone)

    def _drop_dead(self) -> None:
        """Compile anew what asks for fields that a group need not make any more."""
        dead = [part for part in self._parts if any(map(self._is_dead, part.selections))]
        self._parts = [part for part in self._parts if not any(part is d for d in dead)]
        for part in dead:
            self._compile(part.selections)

    def _is_dead(self, selection: Selection) -> bool:
        removed = self._removed.get(selection.kind, set())
        return len(selection.ids) <= len(removed) and removed.issuperset(selection.ids.tolist())

    def _rebuild(self) -> None:
        selections = [s for part in self._parts for s in part.selections]
        self._parts = []
        self._compile(selections)

    def _compile(self, selections: Sequence[Selection]) -> None:
        live = merged([self._live(selection) for selection in selections])
        if not live:
            return
        part = build(live, self.statistics)
        path = self._directory / f"{self._name}.{next(self._numbers)}"
        with disk_errors(path):
            path.write_bytes(pickle.dumps(part, protocol=5))
        self._parts.append(CompiledPart(str(path), part, tuple(live), self._knows(part)))

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


_loaded: dict[str, CompiledQueries] = {}


def load_parts(paths: Sequence[str]) -> list[CompiledQueries]:
    """The parts of an arc from their files; a process keeps those in use."""
    for path in paths:
        if path not in _loaded:
            with open(path, "rb") as file:
                _loaded[path] = pickle.load(file)
    whose = {path.rpartition("-")[0] for path in paths}
    for path in [p for p in _loaded if p.rpartition("-")[0] in whose and p not in paths]:
        del _loaded[path]
    return [_loaded[path] for path in paths]
