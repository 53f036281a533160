"""Joins of many queries by brute force: every tuple in turn meets everything before it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from auroral.continuous.sharing.template import JoinShape
from auroral.progress.lowwater import LowWater

Row = dict[str, Any]
NEVER = 10**6


@dataclass(frozen=True)
class JoinQuery:
    """A query of some shape; it is there from moment `since` until before `until`."""

    id: int
    shape: JoinShape
    chosen: tuple[Callable[[Row], bool], ...]
    """The predicate on each source."""
    rows: tuple[int, ...] = ()
    bands: tuple[tuple[Any, ...], ...] = ()
    whole: Callable[[Sequence[Row]], bool] = lambda parts: True
    """The predicate on all parts together."""
    since: int = 0
    until: int = NEVER

    def there(self, moment: int) -> bool:
        return self.since <= moment < self.until

    def sees(self, row: Row, place: int) -> bool:
        return self.there(row["_seq"]) and self.chosen[place](row)


@dataclass
class Model:
    """All results of all queries, and which tuples were late."""

    queries: Sequence[JoinQuery]
    arcs: Mapping[str, Sequence[Row]]
    """In order of arrival."""
    marks: Mapping[tuple[str, str], LowWater] = field(default_factory=dict)

    def results(self) -> dict[JoinShape, list[Row]]:
        """By shape, in order: hidden fields, `parts`, `queries`."""
        found = {}
        for shape in dict.fromkeys(query.shape for query in self.queries):
            made = [result for result in self._of(shape) if result["queries"]]
            found[shape] = sorted(made, key=lambda result: (result["_seq"], result["_sub"]))
        return found

    def late(self) -> dict[str, dict[str, int]]:
        """By arc and reason, the tuples that some query would have taken."""
        found: dict[str, dict[str, int]] = {}
        for arc, rows in self.arcs.items():
            for row in rows:
                for why in {
                    why
                    for query in self.queries
                    for place, of in enumerate(query.shape.arcs)
                    if query.shape.kind == "range" and of == arc and query.sees(row, place)
                    for why in [self.reason(query.shape, place, row)]
                    if why
                }:
                    counts = found.setdefault(arc, {})
                    counts[why] = counts.get(why, 0) + 1
        return found

    def reason(self, shape: JoinShape, place: int, row: Row) -> str | None:
        value = row[shape.on[place]]
        if value is None:
            return "null"
        if isinstance(value, float) and not abs(value) < float("inf"):
            return "nan"
        mark = self.marks.get((shape.arcs[place], shape.on[place]), LowWater()).at(row["_seq"] - 1)
        return "late" if mark is not None and value < mark else None

    def held(self, last: int, ended: bool = False) -> dict[str, int]:
        """By arc, the tuples needed when all moments before `last` have passed.

        A tuple that some query of a shape wants is kept for the largest window of the shape.
        """
        found: dict[str, set[int]] = {}
        for shape in dict.fromkeys(query.shape for query in self.queries):
            same = [query for query in self.queries if query.shape == shape]
            for place, arc in enumerate(shape.arcs):
                needed = found.setdefault(arc, set())
                came = [n for n, row in enumerate(self.arcs[arc]) if row["_seq"] < last]
                for n in came:
                    row = self.arcs[arc][n]
                    wanted = any(query.sees(row, place) for query in same)
                    if not wanted or not self._fits(shape, place, row):
                        continue
                    if shape.kind == "rows":
                        window = max(query.rows[place] for query in same)
                        near = len(came) - n <= window and not ended
                    else:
                        near = any(self._near(query, place, row, last) for query in same)
                    needed |= {n} if near else set()
        return {arc: len(needed) for arc, needed in found.items()}

    def _near(self, query: JoinQuery, place: int, row: Row, last: int) -> bool:
        shape = query.shape
        value = row[shape.on[place]]
        for other, arc in enumerate(shape.arcs):
            if other != place:
                mark = self.marks.get((arc, shape.on[other]), LowWater()).at(last - 1)
                band = query.bands[place][other]
                if mark is None or not (
                    mark > value + band if place < other else mark - band > value
                ):
                    return True
        return False

    def _fits(self, shape: JoinShape, place: int, row: Row) -> bool:
        keys = [(i, a) for i, a, _, _ in shape.equal] + [(j, b) for _, _, j, b in shape.equal]
        if any(row[name] is None for at, name in keys if at == place):
            return False
        return shape.kind == "rows" or self.reason(shape, place, row) is None

    def _of(self, shape: JoinShape) -> Iterator[Row]:
        """Every combination whose last part has just come; sources come in their order."""
        count = len(shape.arcs)
        arrivals = sorted(
            (row["_seq"], place, n)
            for place, arc in enumerate(shape.arcs)
            for n, row in enumerate(self.arcs[arc])
        )
        came: list[list[int]] = [[] for _ in range(count)]
        for _, prober, number in arrivals:
            came[prober].append(number)
            choices = [[number] if p == prober else came[p] for p in range(count)]
            for numbers in itertools.product(*choices):
                parts = [self.arcs[arc][n] for arc, n in zip(shape.arcs, numbers, strict=True)]
                ages = [len(came[p]) - 1 - numbers[p] for p in range(count)]
                if all(self._fits(shape, p, part) for p, part in enumerate(parts)):
                    yield self._result(shape, prober, parts, ages)

    def _result(
        self, shape: JoinShape, prober: int, parts: Sequence[Row], ages: Sequence[int]
    ) -> Row:
        equal = all(parts[i][a] == parts[j][b] for i, a, j, b in shape.equal)
        queries = [
            query.id
            for query in self.queries
            if query.shape == shape
            and equal
            and query.there(parts[prober]["_seq"])
            and all(query.sees(part, p) for p, part in enumerate(parts))
            and query.whole(parts)
            and self._windowed(query, parts, ages)
        ]
        return {
            "_seq": parts[prober]["_seq"],
            "_ts": min(part["_ts"] for part in parts),
            "_sub": _sub(prober, parts),
            "parts": [part["v"] for part in parts],
            "queries": sorted(queries),
        }

    def _windowed(self, query: JoinQuery, parts: Sequence[Row], ages: Sequence[int]) -> bool:
        if query.shape.kind == "rows":
            return all(age < size for age, size in zip(ages, query.rows, strict=True))
        on = [_number(part[name]) for part, name in zip(parts, query.shape.on, strict=True)]
        return all(
            on[i] - query.bands[j][i] <= on[j] <= on[i] + query.bands[i][j]
            for i, j in itertools.combinations(range(len(on)), 2)
        )


def _number(value: Any) -> Any:
    return value if isinstance(value, float) else Fraction(value)


def _sub(prober: int, parts: Sequence[Row]) -> bytes:
    partners = [p for p in range(len(parts)) if p != prober]
    plain = len(partners) == 1
    made = bytes([prober])
    for place in (prober, *partners):
        sub = parts[place]["_sub"]
        if place != prober:
            made += parts[place]["_seq"].to_bytes(8, "big")
        if not plain and place != partners[-1]:
            sub = b"\x01" + sub.replace(b"\x00", b"\x00\xff") + b"\x00\x00"
        made += sub
    return made
