"""Random streams and continuous queries that come and go."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from auroral import Delayed, EngineOptions, Family, Network, Ordered, Progress, Query

from .derived import BOXES

Row = dict[str, Any]
EVENT = "u bigint, k int, x bigint, f double, s string, b boolean, t timestamp, n bigint"
_EPOCH = datetime(2024, 1, 1, tzinfo=UTC)

ATOMS = [
    *(
        "{a}k > 1",
        "{a}k IN (1, 3)",
        "{a}k BETWEEN 0 AND 2",
        "{a}k <> 2",
        "{a}k IS NULL",
        "{a}k < 1.5",
    ),
    *("{a}k <=> NULL", "{a}k NOT IN (0, 2)", "{a}k + {a}x > 3", "{a}x % 2 = 0", "{a}x = {a}k"),
    *("{a}x >= 2", "{a}x * 2 <= {a}k + 5", "NOT ({a}x = 1)", "{a}x = 4611686018427387904"),
    *("{a}f > 0.5", "{a}f = 0.0", "{a}f <= 0", "{a}f IS NULL", "{a}f = CAST('NaN' AS DOUBLE)"),
    *("{a}f <> 0.5", "{a}f < 1e300", "{a}f IN (0.5, 2.5)", "{a}f NOT BETWEEN 0 AND 1"),
    *("{a}s LIKE 'a%'", "{a}s = 'a'", "{a}s >= 'b'", "{a}s IN ('a', 'b', 'é')", "{a}s IS NOT NULL"),
    *("{a}s NOT LIKE 'a%'", "{a}s < 'ab'", "length({a}s) > 1", "{a}b", "NOT {a}b", "{a}b = false"),
    *(
        "{a}b IS NULL",
        "{a}t < timestamp'2024-01-01 00:00:08'",
        "{a}t >= timestamp'2024-01-01 00:00:05'",
    ),
    *("{a}n > 6", "{a}n BETWEEN 3 AND 12", "{a}u % 3 = 1", "{a}k = 1", "{a}k = 2", "{a}x < 3"),
]
ITEMS = [
    *("{a}u", "{a}u", "{a}k", "{a}x", "{a}f", "{a}s", "{a}b", "{a}t", "{a}n"),
    *("{a}k + 1 AS c{i}", "{a}f * 2 AS c{i}", "upper({a}s) AS c{i}", "3 AS c{i}", "'z' AS c{i}"),
    *("{a}x + {a}k AS c{i}", "CASE WHEN {a}b THEN {a}k ELSE {a}x END AS c{i}", "{a}x AS c{i}"),
    "NOT {a}b AS c{i}",
]
PYTHON_ATOMS = [
    *("is_odd({a}k)", "is_odd({a}x)", "NOT is_odd({a}x)", "more_than({a}k, {a}x) > 0"),
    *("more_than({a}n, {a}k + 1) <= 6.5", "({a}k = 1 OR is_odd({a}x))"),
    "more_than(more_than({a}n, {a}k), 1) > 2",
]
PYTHON_ITEMS = ["is_odd({a}x) AS odd", "more_than({a}n, {a}k) + 1 AS more"]
FAMILIES = [
    ("{a}k = :p", "k"),
    ("{a}x > :p", "x"),
    ("{a}s = :p", "s"),
    ("{a}f >= :p", "f"),
    ("{a}k < :p OR {a}x = :p", "k"),
    ("{a}n BETWEEN :p AND :p + 4", "x"),
    ("{a}x + :p > 3", "x"),
]
PARAMETERS: dict[str, list[Any]] = {
    "k": [0, 1, 2, 3, None],
    "x": [0, 1, 2, 4, None],
    "s": ["a", "b", "é", "", None],
    "f": [0.0, 0.5, 2.5, math.nan, None],
}
CALLS = [
    *("count(*)", "count(*)", "sum(x)", "sum(k)", "min(k)", "max(x)", "count(f)", "avg(k)"),
    *("max(s)", "min(f)", "sum(x) + count(*)", "count(s)"),
]
VALUES: dict[str, list[Any]] = {
    "k": [None, 0, 1, 1, 2, 2, 3],
    "x": [None, 0, 1, 2, 3, 4, -5, 2**62],
    "f": [None, math.nan, -0.0, 0.0, 0.5, 0.5, 2.5, math.inf],
    "s": [None, "", "a", "ab", "b", "é"],
    "b": [None, True, False],
}


@dataclass(frozen=True)
class Feed:
    stream: str
    rows: list[Row]


@dataclass(frozen=True)
class Modify:
    add: dict[str, Any]
    remove: list[str]


@dataclass(frozen=True)
class Look:
    """Take the results of some query, or of all over a stream together."""

    name: str
    together: bool = False


Action = Feed | Modify | Look


@dataclass(frozen=True)
class Scenario:
    """Streams and queries, and what happens then."""

    progress: Mapping[str, Progress | None]
    queries: Mapping[str, Query]
    actions: list[Action]
    ends: bool
    routing: str
    derived: Sequence[str] = ()
    """Arcs that boxes make of the first and the last stream."""

    def streams(self) -> Network:
        """The network without queries."""
        net = Network("shared")
        net.directory = Path(__file__).parent
        net.function("is_odd", "query_functions:is_odd", returns="boolean")
        net.function("more_than", "query_functions:more_than", returns="double")
        for name, progress in self.progress.items():
            net.stream(name, EVENT, progress=progress)
        first, *_, last = [*self.progress, *self.progress]
        for arc in self.derived:
            BOXES[arc](net, first, last)
        return net

    def network(self) -> Network:
        net = self.streams()
        for name, query in self.queries.items():
            net.queries[name] = query
        net.engine = EngineOptions(routing=self.routing)
        return net


# ── what happens ──


class Maker:
    """Makes scenarios."""

    def __init__(
        self,
        rng: Random,
        kinds: Mapping[str, float] | None = None,
        *,
        derived: Sequence[str] = (),
        grouped: bool = False,
    ):
        """Over arcs of `BOXES` besides streams; `grouped`: with progress by groups."""
        self._rng = rng
        self._derived = derived
        self._grouped = grouped
        self._kinds = kinds or {
            "select": 6, "join": 3, "aggregate": 3, "boxed": 0.6, "family": 2, "count": 1,
        }  # fmt: skip
        self._number = 0
        self._units = 0
        self._arrived = 0
        self._live: dict[str, Query] = {}
        self._keys: dict[str, list[Any]] = {}

    def scenario(self, size: int = 12) -> Scenario:
        rng = self._rng
        streams = ["A", "B", "C"][: rng.choice([1, 2, 2, 3])]
        self._progress = {name: self._declared() for name in streams}
        self._odd = rng.random() < 0.3
        """Whether streams break their promises."""
        initial: dict[str, Query] = {}
        for _ in range(rng.choice([0, 1, 2, 4, 6])):
            initial |= self._fresh()
        self._live |= initial
        actions = [self._action() for _ in range(size)]
        routing = rng.choice(["tickets", "random", "fixed", "optimal"])
        ends = rng.random() < 0.6
        return Scenario(self._progress, initial, actions, ends, routing, self._derived)

    def _declared(self) -> Progress | None:
        n, t = Ordered("n"), Ordered("t")
        made = self._rng.choice([n, n, Delayed("n", 2), t, Delayed("t", "2 s"), None])
        if made is None or not self._grouped:
            return made
        by = self._rng.choice([(), ("k",), ("k",), ("s",), ("k", "s")])
        return made.model_copy(update={"by": by})

    def _action(self) -> Action:
        rng = self._rng
        turn = rng.random()
        if turn < 0.55:
            return self._feed()
        if turn < 0.85:
            return self._modify()
        kept = [n for n, q in self._live.items() if q.results == "keep"]
        if kept and turn < 0.95:
            return Look(rng.choice(kept))
        return Look(rng.choice(list(self._progress)), together=True)

    def _feed(self) -> Feed:
        rng = self._rng
        stream = rng.choice(list(self._progress))
        return Feed(stream, [self._row(stream) for _ in range(rng.choice([0, 1, 1, 2, 3, 5, 8]))])

    def _row(self, stream: str) -> Row:
        rng, declared = self._rng, self._progress[stream]
        self._arrived += 1
        self._units += rng.choice([0, 0, 1, 1, 2])
        delays = [0] if declared and declared.delay is None else [0, 0, -1, -2]
        delays = [0, 0, -1, -4] if self._odd or declared is None else delays
        units = self._units + rng.choice(delays)
        row = {name: rng.choice(values) for name, values in VALUES.items()}
        row |= {"u": self._arrived, "n": units, "t": _EPOCH + timedelta(seconds=units)}
        if rng.random() < 0.03:
            row[rng.choice("nt")] = None
        return row

    def _modify(self) -> Modify:
        rng = self._rng
        add: dict[str, Any] = {}
        remove: list[str] = []
        families = [name for name, keys in self._keys.items() if name in self._live]
        if rng.random() < 0.45 and self._live:
            gone = rng.choice(list(self._live))
            if gone in families and self._keys[gone] and rng.random() < 0.6:
                key = rng.choice(self._keys[gone])
                self._keys[gone].remove(key)
                remove.append(f"{gone}[{key}]")
            else:
                remove.append(gone)
                before = self._live.pop(gone)
                families = [name for name in families if name != gone]
                if rng.random() < 0.3:
                    (query,) = self._fresh(gone).values()
                    if query.sql == before.sql:  # who comes back after a crash has to tell them
                        query = query.model_copy(update={"sql": f"{query.sql} "})
                    self._live[gone] = add[gone] = query
                    return Modify(add, remove)
        if families and rng.random() < 0.4:
            name = rng.choice(families)
            family = self._live[name]
            assert isinstance(family, Family)
            add[name] = self._members(name, family.values[0]["_of"], rng.choice([1, 2]))
        elif rng.random() < 0.8 or not remove:
            fresh: dict[str, Query] = {}
            for _ in range(rng.choice([1, 1, 1, 2, 4])):
                fresh |= self._fresh()
            self._live |= fresh
            add |= fresh
        return Modify(add, remove)

    # ── queries ──

    def _fresh(self, name: str | None = None) -> dict[str, Query]:
        """A new query, under a name that another has had or a new one."""
        rng = self._rng
        self._number += 1
        name = name or f"q{self._number}"
        (kind,) = rng.choices(list(self._kinds), list(self._kinds.values()))
        self._keys.pop(name, None)
        return {name: getattr(self, f"_{kind}")(name)}

    def _where(self, *qualifiers: str, most: int = 3) -> list[str]:
        rng, found = self._rng, []
        for _ in range(rng.choice([0, 1, 1, 2, 2, 3][: most + 3])):
            atoms = [
                rng.choice(ATOMS).format(a=rng.choice(qualifiers))
                for _ in range(rng.choice([1, 1, 1, 2, 3]))
            ]
            found.append(atoms[0] if len(atoms) == 1 else f"({' OR '.join(atoms)})")
        return found

    def _items(self, *qualifiers: str) -> str:
        rng = self._rng
        if len(qualifiers) == 1 and rng.random() < 0.15:
            return "*"
        items = [
            rng.choice(ITEMS).format(a=rng.choice(qualifiers), i=i)
            for i in range(rng.choice([1, 2, 3, 4]))
        ]
        named: dict[str, str] = {}
        for item in items:
            named.setdefault(item.rpartition(" ")[2].rpartition(".")[2], item)
        return ", ".join(named.values())

    def _select(self, _name: str) -> Query:
        return Query(_text(self._items(""), self._stream(), self._where("")))

    def _python(self, _name: str) -> Query:
        """A query that calls Python functions, which fail on some tuples."""
        rng = self._rng
        where = [rng.choice(PYTHON_ATOMS).format(a="") for _ in range(rng.choice([0, 1, 1, 2]))]
        where += self._where("", most=1)
        rng.shuffle(where)
        items = "u" if where and rng.random() < 0.5 else f"u, {rng.choice(PYTHON_ITEMS)}"
        return Query(_text(items.format(a=""), self._stream(), where))

    def _count(self, name: str) -> Query:
        kind = self._rng.choice([self._select, self._select, self._join, self._aggregate])
        made = kind(name)
        return Query(made.sql, results="count")

    def _stream(self) -> str:
        return self._rng.choice([*self._progress, *self._derived])

    def _joined(self) -> tuple[str, list[str]]:
        """Two sources and how they meet."""
        rng = self._rng
        one, other = self._stream(), self._stream()
        names = [one, other] if one != other else ["l", "r"]
        alias = ["", ""] if one != other else [" AS l", " AS r"]
        on = rng.choice(["n", "n", "t"])
        if rng.random() < 0.5:
            windows = [f"[ROWS {rng.randint(1, 4)}]" for _ in names]
        else:
            unit = " s" if on == "t" else ""
            windows = [f"[RANGE {rng.randint(0, 4)}{unit}, WA {on}]" for _ in names]
            if unit:
                windows = [w.replace("RANGE 0", "RANGE 1") for w in windows]
        sources = ", ".join(
            f"{s} {w}{a}" for s, w, a in zip((one, other), windows, alias, strict=True)
        )
        a, b = names
        equal = [f"{a}.k = {b}.k", f"{a}.x = {b}.k", f"{a}.s = {b}.s", f"{a}.f = {b}.f"]
        where = rng.sample(equal, rng.choice([0, 1, 1, 1, 1, 2]))
        if rng.random() < 0.3:
            where.append(rng.choice([f"{a}.x < {b}.x", f"{a}.u <> {b}.u", f"{a}.k <= {b}.x + 1"]))
        return sources, [*where, "|", *names]

    def _join(self, _name: str) -> Query:
        sources, rest = self._joined()
        names = [f"{name}." for name in rest[-2:]]
        where = rest[: rest.index("|")] + self._where(*names, most=2)
        return Query(_text(self._items(*names), sources, where))

    def _aggregate(self, _name: str) -> Query:
        rng = self._rng
        on = rng.choice(["n", "n", "t"])
        unit = " s" if on == "t" else ""
        size, slide = rng.randint(1, 6), rng.randint(1, 4)
        window = f"[RANGE {size}{unit}, SLIDE {slide}{unit}, WA {on}]"
        by = rng.choice(["", "k", "k", "s", "b", "k, s"])
        calls = [f"{rng.choice(CALLS)} AS c{i}" for i in range(rng.choice([1, 2, 3]))]
        items = ", ".join([*([by] if by else []), *calls])
        text = _text(items, f"{self._stream()} {window}", self._where(""))
        text += f" GROUP BY {by}" if by else ""
        having = rng.choice(["count(*) > 1", "sum(x) > 2", "count(f) < 3 OR max(k) = 2"])
        return Query(text + (f" HAVING {having}" if by and rng.random() < 0.3 else ""))

    def _boxed(self, _name: str) -> Query:
        rng = self._rng
        rows = f"{rng.choice(list(self._progress))} [ROWS {rng.randint(1, 4)}]"
        if rng.random() < 0.6:
            return Query(_text("count(*) AS c, sum(k) AS sk", rows, self._where("")))
        on = rng.choice(["n", "t"])
        unit = " s" if on == "t" else ""
        return Query(
            _text("DISTINCT k", f"{self._stream()} [RANGE {rng.randint(1, 5)}{unit}, WA {on}]", [])
        )

    def _family(self, name: str) -> Query:
        rng = self._rng
        predicate, of = rng.choice(FAMILIES)
        shown = rng.choice(["", "", ", :p AS over"])
        of += "!" if shown else ""  # the reference cannot write out a NULL without a type
        self._keys[name] = []
        values = self._members(name, of, rng.choice([1, 3, 5]))
        results = rng.choice(["keep", "keep", "keep", "count"])
        if rng.random() < 0.7:
            where = [predicate.format(a=""), *self._where("", most=1)]
            text = _text(self._items("") + shown, self._stream(), where)
        else:
            sources, rest = self._joined()
            names = [f"{each}." for each in rest[-2:]]
            where = rest[: rest.index("|")] + self._where(*names, most=1)
            where.append(predicate.format(a=rng.choice(names)))
            text = _text(self._items(*names) + shown, sources, where)
        return Family(text, values, "rule", results=results)

    def _windows(self, name: str) -> Query:
        """A family of aggregates."""
        rng = self._rng
        of = rng.choice(["k", "x"])
        self._keys[name] = []
        values = self._members(name, of, rng.choice([1, 1, 2, 3]))
        window = f"[RANGE {rng.randint(1, 6)}, SLIDE {rng.randint(1, 4)}, WA n]"
        by = rng.choice(["", "k", "s"])
        text = _text(
            f"{by}{', ' if by else ''}{rng.choice(CALLS)} AS c",
            f"{self._stream()} {window}",
            [f"{of} {rng.choice(['=', '>='])} :p", *self._where("", most=1)],
        )
        return Family(text + (f" GROUP BY {by}" if by else ""), values, "rule")

    def _members(self, name: str, of: str, count: int) -> list[Row]:
        rows: list[Row] = []
        for _ in range(count):
            self._number += 1
            self._keys[name].append(self._number)
            values = PARAMETERS[of.rstrip("!")]
            p = self._rng.choice(values[:-1] if of.endswith("!") or not rows else values)
            rows.append({"rule": self._number, "p": p, "_of": of})
        return rows


def _text(items: str, sources: str, where: list[str]) -> str:
    condition = f" WHERE {' AND '.join(where)}" if where else ""
    return f"SELECT {items} FROM {sources}{condition}"
