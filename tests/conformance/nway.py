"""Joins of up to four sources over streams and what boxes make of them, by brute force.

Every tuple in turn meets all combinations of what came before it on the other sources. The
reference interpreter must say the same, where a query sees all of what boxes have remembered.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import Any

from auroral import Query
from auroral.reference import Reference
from auroral.reference.operator import Tuple

from .alone import Alone, Model
from .shared import Maker, Row, Scenario, _text

STATELESS = ("M", "F", "U")
REMEMBERING = ("D", "G")
ALONE: list[tuple[str, Callable[[Row], bool]]] = [
    ("{a}.k > 0", lambda row: row["k"] is not None and row["k"] > 0),
    ("{a}.x >= 1", lambda row: row["x"] is not None and row["x"] >= 1),
    ("{a}.s IS NOT NULL", lambda row: row["s"] is not None),
    ("{a}.b", lambda row: row["b"] is True),
    ("{a}.u % 2 = 0", lambda row: row["u"] is not None and row["u"] % 2 == 0),
]


@dataclass(frozen=True)
class Condition:
    """A part of WHERE, and what it asks of the rows at some places."""

    text: str
    places: tuple[int, ...]
    holds: Callable[..., bool]


@dataclass(frozen=True)
class NWay:
    """A join: with `rows` of the latest tuples of each source, else of tuples near on `on`."""

    arcs: tuple[str, ...]
    names: tuple[str, ...]
    on: str
    rows: tuple[int, ...]
    ranges: tuple[int, ...]
    conditions: tuple[Condition, ...]
    items: tuple[tuple[int, str], ...]

    @property
    def sql(self) -> str:
        unit = " s" if self.on == "t" else ""
        windows = [f" [ROWS {n}]" for n in self.rows]
        windows = windows or [f" [RANGE {n}{unit}, WA {self.on}]" for n in self.ranges]
        sources = zip(self.arcs, windows or [""] * len(self.arcs), self.names, strict=True)
        items = [f"{self.names[at]}.{name} AS c{n}" for n, (at, name) in enumerate(self.items)]
        where = [condition.text for condition in self.conditions]
        return _text(", ".join(items), ", ".join(f"{s}{w} AS {a}" for s, w, a in sources), where)

    def result(self, parts: Sequence[Row]) -> Row:
        return {f"c{n}": parts[at][name] for n, (at, name) in enumerate(self.items)}

    def chooses(self, place: int, row: Row) -> bool:
        """Whether a row satisfies what WHERE says of its source alone."""
        return all(c.holds(row) for c in self.conditions if c.places == (place,))

    def joins(self, parts: Sequence[Row]) -> bool:
        """Whether rows belong together, but for row windows."""
        said = all(
            c.holds(*(parts[at] for at in c.places)) for c in self.conditions if len(c.places) > 1
        )
        on = [units(part[self.on]) for part in parts] if self.ranges else []
        reach = [units_of(size, self.on) for size in self.ranges]
        near = (on[j] < on[i] + reach[i] for i in range(len(on)) for j in range(len(on)) if i != j)
        return said and all(near)


def units(value: Any) -> Any:
    """A value as marks have it: µs for timestamps."""
    return round(value.timestamp() * 1_000_000) if isinstance(value, datetime) else value


def units_of(size: int, on: str) -> int:
    return size * 1_000_000 if on == "t" else size


@dataclass(frozen=True)
class Moment:
    """What one moment brought on each arc, and what every arc had promised before it."""

    number: int
    arrived: Mapping[str, Sequence[Tuple]]
    promised: Mapping[str, Mapping[str, Any]]


class Watched(Reference):
    """A network whose arcs are watched."""

    def __init__(self, scenario: Scenario):
        super().__init__(scenario.streams())
        self.seen: list[Moment] = []
        self._promised: Mapping[str, Mapping[str, Any]] = {}

    def _flow(self, arrived: dict[str, list[Tuple]]) -> None:
        number = self._moment
        super()._flow(arrived)
        self.seen.append(Moment(number, dict(arrived), self._promised))
        self._promised = {
            arc: {name: promise.least() for name, promise in promises.items()}
            for arc, promises in self.promised().items()
        }


@dataclass
class Brute:
    """All results of a join; it stands where an interpreter would."""

    asked: NWay
    watched: Watched
    since: int
    made: list[Tuple] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._kept: list[list[Row | None]] = [[] for _ in self.asked.arcs]
        """By source, in order of arrival; None counts in row windows and matches nothing."""

    def push(self, _stream: str, _row: Row) -> None:
        """What arrives is watched."""

    def end(self) -> None:
        """Joins have nothing to say at the end but what boxes before them say."""

    def tuples(self, _name: str) -> list[Tuple]:
        for moment in self.watched.seen[self.since :]:
            self.made += [
                Tuple(self.asked.result(parts), 0, moment.number) for parts in self._found(moment)
            ]
        self.since = len(self.watched.seen)
        return self.made

    def _found(self, moment: Moment) -> Iterator[Sequence[Row]]:
        """Combinations that are complete now: by source of the last part, then by arrival."""
        asked = self.asked
        for place, arc in enumerate(asked.arcs):
            for arrived in moment.arrived.get(arc, ()):
                wanted = asked.chooses(place, arrived.row) and not self._late(
                    place, arrived, moment
                )
                self._kept[place].append(arrived.row if wanted else None)
                if asked.rows:
                    del self._kept[place][: -asked.rows[place]]
                if wanted:
                    yield from self._with(place, arrived.row, ())

    def _late(self, place: int, arrived: Tuple, moment: Moment) -> bool:
        """Row windows take what comes; others, what has its place in order."""
        if self.asked.rows:
            return False
        value = units(arrived.row[self.asked.on])
        mark = moment.promised.get(self.asked.arcs[place], {}).get(self.asked.on)
        return value is None or (mark is not None and value < mark)

    def _with(self, place: int, row: Row, before: tuple[Row, ...]) -> Iterator[Sequence[Row]]:
        at = len(before)
        if at == len(self.asked.arcs):
            if self.asked.joins(before):
                yield before
            return
        for other in [row] if at == place else self._kept[at]:
            if other is not None:
                yield from self._with(place, row, (*before, other))


@dataclass
class NWayModel(Model):
    """Joins by brute force and on the reference, every other query on the reference alone."""

    asked: Mapping[str, NWay] = field(default_factory=dict)
    """By SQL."""
    compared: int = 0
    """How often both agreed."""

    def __post_init__(self) -> None:
        self._watched = Watched(self.scenario)
        self._brute: dict[str, Alone] = {}

    def add(self, name: str, given: Any) -> None:
        asked = self.asked.get(given.sql) if isinstance(given, Query) else None
        if asked is None:
            super().add(name, given)
            return
        brute: Any = Brute(asked, self._watched, len(self._watched.seen))
        alone = Alone(given, brute, [name], 0)
        if set(asked.arcs).isdisjoint(REMEMBERING):
            super().add(name, given)
            self._brute[name] = alone
        else:  # such boxes have seen more than the query has
            self.alone.setdefault(name, []).append(alone)

    def remove(self, name: str) -> None:
        super().remove(name)
        self._brute.pop(name, None)

    def feed(self, stream: str, row: Row) -> None:
        self._watched.push(stream, row)
        super().feed(stream, row)

    def end(self) -> None:
        self._watched.end()
        super().end()

    def queries(self) -> dict[str, list[tuple[int, Row]]]:
        found = super().queries()
        for name, alone in self._brute.items():
            brute = [tuple.row for tuple in alone.reference.tuples(name)]
            assert repr([row for _, row in found[name]]) == repr(brute), alone.query.sql
            self.compared += 1
        return found

    def errors(self) -> dict[str, int]:
        return {}


class NWayMaker(Maker):
    """Makes scenarios with joins of two to four sources."""

    def __init__(self, rng: Random, kinds: Mapping[str, float], **options: Any):
        super().__init__(rng, kinds, **options)
        self.asked: dict[str, NWay] = {}

    def _nway(self, _name: str) -> Query:
        rng = self._rng
        count = rng.choice([2, 3, 3, 3, 4])
        arcs = tuple(self._stream() for _ in range(count))
        names = tuple(f"a{n}" for n in range(count))
        on = rng.choice(["n", "n", "t"])
        rows = tuple(rng.randint(1, 5) for _ in arcs) if rng.random() < 0.5 else ()
        ranges = () if rows else tuple(rng.randint(on == "t", 5) for _ in arcs)
        conditions = self._equal(names) + self._more(names)
        if ranges and on == "n" and self._all_on("n") and rng.random() < 0.4:
            ranges, conditions = (), conditions + self._banded(names)
        rng.shuffle(conditions)
        fields = [rng.choice("kxsn") for _ in range(rng.choice([0, 0, 1, 2]))]
        items = [*((n, "u") for n in range(count)), *((rng.randrange(count), f) for f in fields)]
        made = NWay(arcs, names, on, rows, ranges, tuple(conditions), tuple(items))
        self.asked[made.sql] = made
        return Query(made.sql, results=rng.choice(["keep", "keep", "keep", "count"]))

    def _all_on(self, name: str) -> bool:
        """Whether every arc makes progress on a field."""
        declared = self._progress.values()
        return all(p is not None and p.on == name and not p.by for p in declared)

    def _equal(self, names: Sequence[str]) -> list[Condition]:
        """A chain, a star or a circle of equal fields; sometimes only two are equal."""
        rng, places = self._rng, range(len(names))
        shape = rng.choice(["chain", "chain", "star", "star", "circle", "two"])
        hub = rng.choice(places)
        edges = [(n, n + 1) for n in places[:-1]]
        if shape == "star":
            edges = [(hub, n) for n in places if n != hub]
        elif shape == "circle" and len(names) > 2:
            edges.append((places[-1], 0))
        elif shape == "two":
            edges = [(hub, rng.choice([n for n in places if n != hub]))]
        key = rng.choice(["k", "k", "s", "f", "b"])
        found = []
        for i, j in edges:
            one, other = rng.choice([(key, key)] * 6 + [("k", "k"), ("x", "k")])
            found.append(_two(names, i, one, "=", j, other))
        return found

    def _more(self, names: Sequence[str]) -> list[Condition]:
        rng, places = self._rng, range(len(names))
        found = []
        if rng.random() < 0.3:
            i, j = rng.sample(places, 2)
            name = rng.choice("xuk")
            found.append(_two(names, i, name, "<", j, name))
        for _ in range(rng.choice([0, 0, 1, 2])):
            at, (text, holds) = rng.choice(places), rng.choice(ALONE)
            found.append(Condition(text.format(a=names[at]), (at,), holds))
        return found

    def _banded(self, names: Sequence[str]) -> list[Condition]:
        """Each near the one before it, on both sides."""
        found = []
        for i in range(1, len(names)):
            for one, other in ((i, i - 1), (i - 1, i)):
                by = self._rng.randint(0, 4)
                text = f"{names[one]}.n <= {names[other]}.n + {by}"
                found.append(Condition(text, (one, other), _within(by)))
        return found


def _within(by: int) -> Callable[[Row, Row], bool]:
    return lambda one, other: None not in (one["n"], other["n"]) and one["n"] <= other["n"] + by


def _two(names: Sequence[str], i: int, one: str, op: str, j: int, other: str) -> Condition:
    """A comparison of two fields; as in Spark NaN equals itself."""

    def holds(left: Row, right: Row) -> bool:
        a, b = left[one], right[other]
        if a is None or b is None:
            return False
        if isinstance(a, float) and math.isnan(a):
            return op == "=" and math.isnan(b)
        return bool(a == b if op == "=" else a < b)

    return Condition(f"{names[i]}.{one} {op} {names[j]}.{other}", (i, j), holds)
