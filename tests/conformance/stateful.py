"""Random networks of boxes that remember, among boxes that do not."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

from auroral import Network, Order, Window
from auroral.continuous.boxing.progress import promised
from auroral.network.arc import Arc
from auroral.network.check import type_arcs
from auroral.network.types import Field, Schema, Type
from auroral.sql.aggregates.analysis import analyze_aggregate

from .events import EVENT, ORDERED, TABLE, length, routing, several

_SIMPLE = ("int", "bigint", "double", "string", "decimal", "date", "timestamp", "boolean")
_GROUPING = ("int", "bigint", "double", "string", "boolean", "date")
_NUMBERS = {"int", "bigint", "double"}
_WIDEST = 12
KINDS = (
    *("aggregate", "aggregate", "aggregate", "join", "join", "resample", "dedup", "bsort"),
    *("stateful_map", "wait_for", "latch"),
)
ORDER_KEPT = {
    "int": ("{0} - 2", "{0} * 3", "cast({0} as bigint)", "greatest({0}, {0} + 1)"),
    "bigint": ("{0} div 2", "3 + {0}", "round({0}, -1)", "least({0}, {0} * 2)"),
    "double": ("floor({0})", "round({0})", "{0} * 0.5D", "cast({0} as int)"),
    "decimal": ("{0} + 1.5", "round({0}, 1)", "cast({0} as double)"),
    "date": ("{0} + 2", "trunc({0}, 'month')", "cast({0} as timestamp)"),
    "timestamp": ("{0} + INTERVAL 3 SECONDS", "date_trunc('minute', {0})", "unix_timestamp({0})"),
}
"""Expressions that keep the order of a field, and so its progress."""
PLAIN = ("filter", "map", "union", "routes")


def stateful_network(
    rng: Random, most_boxes: int, kinds: tuple[str, ...] = KINDS, *, routed: bool = False
) -> Network:
    """Up to so many boxes over one to three streams; at least one of them remembers.

    With `routed`, late tuples leave streams that make progress.
    """
    net = Network("random", directory=Path(__file__).parent)
    net.function("picky", "plain_functions:picky", returns="bigint")
    builder = _Builder(rng, net, routed)
    boxes = rng.randint(1, most_boxes)
    first = rng.randrange(boxes)
    for number in range(boxes):
        stateless = number != first and rng.random() < 0.35
        builder.add(rng.choice(PLAIN if stateless else kinds), number)
    builder.outputs()
    flush = rng.choice(["eager", "eager", "slow", "lazy"])
    net.engine = net.engine.model_copy(update={"flush": flush})
    return net


class _Builder:
    def __init__(self, rng: Random, net: Network, routed: bool):
        self._rng, self._net = rng, net
        liked = rng.choice(ORDERED)
        self._streams = []
        for name in "abc"[: rng.choice([1, 2, 2, 3])]:
            declared = several(rng, liked)
            declared = routing(rng, declared) if routed else declared
            self._streams.append(net.stream(name, schema=EVENT, progress=declared))
        self._arcs = list(self._streams)
        self._late = [arc.late for arc in self._streams if net.streams[arc.name].routed]
        self._joins = 0

    def add(self, kind: str, number: int) -> None:
        kind = "filter" if kind == "join" and self._joins == 2 else kind
        name = f"{kind}{number}"
        made: Arc = getattr(self, f"_{kind}")(name)
        if len(made.schema) > _WIDEST:
            kept = self._rng.sample(made.schema.names, 7)
            kept = [n for n in made.schema.names if n in kept]
            made = made.map(keep=kept, name=f"narrow{number}")
        self._arcs.append(made)

    def outputs(self) -> None:
        """What the newest boxes make, and some of what was late."""
        rng = self._rng
        chosen = [*self._arcs[-1:], *rng.sample(self._arcs[-3:], min(2, len(self._arcs[-3:])))]
        chosen += [arc for arc in self._late if rng.random() < 0.6]
        for arc in dict.fromkeys(arc.name for arc in chosen):
            self._net.output(arc.replace(".", "_"), arc)

    # ── boxes that remember ──

    def _aggregate(self, name: str) -> Arc:
        rng, arc = self._rng, self._arc(final=True)
        schema, by = arc.schema, self._by(arc)
        window: dict[str, Any]
        late: dict[str, Any] = {}
        if rng.random() < 0.15 or not self._orderable(schema):
            order, window = Order("tup#", by=by), {"size": rng.randint(1, 4)}
            window |= {"advance": rng.randint(1, 5)} if rng.random() < 0.5 else {}
        else:
            order = self._order(arc, by)
            window, late = self._window(order, schema.field(order.on).type)
        if rng.random() < 0.15:
            window["advance"], late = self._predicate(schema), {}
            if rng.random() < 0.5:
                window = {"advance": window["advance"]}
        window |= {"timeout": rng.choice([1, 2.5, 6])} if rng.random() < 0.2 else {}
        compute = self._compute(schema, taken=[order.on, *by])
        made = arc.aggregate(order, Window(**window), name=name, **late, **compute)
        self._late.append(made.late)
        return made

    def _window(self, order: Order, on: Type) -> tuple[dict[str, Any], dict[str, Any]]:
        """A window over values, and what becomes of late tuples."""
        rng = self._rng
        window = {"size": length(rng, on)}
        window |= {"advance": length(rng, on)} if rng.random() < 0.5 else {}
        window |= {"align": "first"} if order.slack is not None and rng.random() < 0.3 else {}
        late = {"late": "revise", "history": length(rng, on)} if rng.random() < 0.4 else {}
        return window, late

    def _join(self, name: str) -> Arc:
        self._joins += 1
        rng, left = self._rng, self._arc(final=True)
        if rng.random() < 0.15:
            table = self._table()
            sides = [left, table] if rng.random() < 0.5 else [table, left]
            on = self._matching(*(side.schema for side in sides))
            return sides[0].join(sides[1], on, name=name)
        right = self._arc(final=True)
        on = self._matching(left.schema, right.schema)
        alike = self._alike(left, right)
        if rng.random() < 0.2 or not alike:
            rows = (rng.randint(1, 4), rng.randint(1, 4))
            return left.join(right, on, name=name, rows=rows, **self._timeout())
        (one, other) = rng.choice(alike)
        type = left.schema.field(one).type
        if rng.random() < 0.2:
            one, other, type = "tup#", "tup#", Type("bigint")
        band: dict[str, Any] = {"within": length(rng, type, least=0, most=4)}
        if rng.random() < 0.4:
            band = {"range": self._range(type)}
        orders = [
            Order(field, slack=self._slack(), by=self._by(arc) if rng.random() < 0.3 else ())
            for field, arc in ((one, left), (other, right))
        ]
        band |= self._timeout()
        made = left.join(right, on, name=name, left=orders[0], right=orders[1], **band)
        if one != "tup#":
            self._late += [made.port("left_late"), made.port("right_late")]
        return made

    def _over_both(self, left: Schema, right: Schema, taken: list[str]) -> dict[str, Any]:
        """Now and then a function over fields of both sides."""
        rng = self._rng
        sides = [[f.name for f in s if f.type.name in ("int", "bigint")] for s in (left, right)]
        if rng.random() < 0.4 or not all(sides) or "both" in taken:
            return {}
        w, v = (rng.choice(names) for names in sides)
        any_ = rng.choice(left.names)
        texts = [f"max({v}) - left.{w}", f"sum(right.{v} * left.{w})", f"left.{any_}"]
        texts += [f"count(*) FILTER (WHERE {v} >= left.{w})", f"sum({v} + left.{w}) / left.{w}"]
        return {"both": rng.choice(texts)}

    def _timeout(self) -> dict[str, Any]:
        """Now and then a limit of the time for which tuples are held."""
        return {"timeout": self._rng.choice([1, 2.5, 6])} if self._rng.random() < 0.25 else {}

    def _range(self, type: Type) -> list[Any]:
        """Two ends of a band; now and then one of them is negative."""
        rng = self._rng
        if rng.random() < 0.6:
            return [length(rng, type, least=0, most=4) for _ in range(2)]
        short = length(rng, type, least=1, most=2)
        far = length(rng, type, least=4, most=6)
        if not isinstance(short, str):
            short, far = sorted((short, far))  # lengths of doubles have units of different sizes
        ends = [f"-{short}" if isinstance(short, str) else -short, far]
        return ends if rng.random() < 0.5 else ends[::-1]

    def _resample(self, name: str) -> Arc:
        rng, left, right = self._rng, self._arc(final=True), self._arc(final=True)
        alike = self._alike(left, right)
        if not alike:
            return self._dedup(name)
        (one, other) = rng.choice(alike)
        by = self._by(right)
        type = left.schema.field(one).type
        if rng.random() < 0.15:
            one, other, type = "tup#", "tup#", Type("bigint")
        if one in by or "tup" in by:
            by = ()
        made = left.resample(
            right,
            left=Order(one, slack=self._slack(), by=self._by(left) if rng.random() < 0.2 else ()),
            right=Order(other, slack=self._slack(), by=by),
            within=length(rng, type, least=0, most=3),
            name=name,
            **self._timeout(),
            **self._compute(right.schema, taken=[one, *by]),
            **self._over_both(left.schema, right.schema, taken=[one, *by]),
        )
        if one != "tup#":
            self._late += [made.port("left_late"), made.port("right_late")]
        return made

    def _dedup(self, name: str) -> Arc:
        rng, arc = self._rng, self._arc(ordered=True, final=True)
        keys = [f.name for f in arc.schema if f.type.name in _GROUPING] or [arc.schema.names[0]]
        order = self._order(arc, self._by(arc) if rng.random() < 0.4 else ())
        chosen = rng.sample(keys, min(len(keys), rng.choice([1, 1, 2])))
        made = arc.dedup(*chosen, order=order, name=name)
        self._late.append(made.late)
        return made

    def _bsort(self, name: str) -> Arc:
        arc = self._arc(ordered=True)
        order = self._order(arc, self._by(arc))
        if self._rng.random() < 0.15:
            order = Order("tup#", slack=self._slack(), by=order.by)
        made = arc.bsort(order, name=name)
        if order.attribute is not None:
            self._late.append(made.late)
        return made

    def _number(self, name: str) -> Arc:
        arc = self._rng.choice(self._streams)
        if any(
            box.kind == "number" and arc.name in box.sources() for box in self._net.boxes.values()
        ):
            return self._filter(name)
        return self._net.box("number", name, input=arc, **{"as": "nr"})

    def _stateful_map(self, name: str) -> Arc:
        rng, arc = self._rng, self._arc(final=True)
        returns = {"length": "bigint", "text": "string", "parts": "array<string>"}
        free = [n for n in arc.schema.names if n not in returns]
        kept = [n for n in free if rng.random() < 0.4]
        keep = "*" if len(free) == len(arc.schema) and rng.random() < 0.3 else kept
        udf = "stateful_functions:Gather"
        return arc.stateful_map(udf, by=self._by(arc), returns=returns, keep=keep, name=name)

    def _wait_for(self, name: str) -> Arc:
        rng, held, signal = self._rng, self._arc(final=True), self._arc(final=True)
        match = self._matching(held.schema, signal.schema, functions=False) or "true"
        match = match.replace("left.", "held.").replace("right.", "signal.")
        made = held.wait_for(signal, match, timeout=rng.choice([1, 2.5, 6, 50]), name=name)
        self._late.append(made.late)
        return made

    def _latch(self, name: str) -> Arc:
        arc = self._arc(final=True)
        by = self._by(arc) or tuple(f.name for f in arc.schema if f.type.name in _GROUPING)[:1]
        if not by:
            return self._filter(name)
        compute = self._compute(arc.schema, taken=list(by), functions=False)
        fields = [arc.schema.field(n) for n in by]
        fields += [Field(n, analyze_aggregate(t, arc.schema).type) for n, t in compute.items()]
        table = self._net.table(f"{name}_kept", Schema(tuple(fields)), key=by)
        return arc.latch(table, by=by, name=name, **compute)

    # ── boxes that do not ──

    def _filter(self, name: str) -> Arc:
        arc = self._arc()
        kept = arc.filter(self._predicate(arc.schema), name=name)
        self._arcs.append(kept.rest)
        return kept

    def _routes(self, name: str) -> Arc:
        arc = self._arc()
        split = arc.filter(
            routes={port: self._predicate(arc.schema) for port in ("p", "q")}, name=name
        )
        self._arcs += [split.port("q"), split.rest]
        return split.port("p")

    def _map(self, name: str) -> Arc:
        rng, arc = self._rng, self._arc()
        field = rng.choice(_simple(arc.schema) or list(arc.schema))
        text = {
            "int": f"{field.name} + 1",
            "bigint": f"{field.name} * 2",
            "double": f"{field.name} / 2",
            "string": f"concat({field.name}, '!')",
            "boolean": f"NOT {field.name}",
        }
        if field.type.name in ORDER_KEPT and rng.random() < 0.5:
            kept = rng.choice(ORDER_KEPT[field.type.name]).format(field.name)
            return arc.map(keep="*", name=name, **{field.name: kept})
        if field.type.name in text:
            return arc.map(keep="*", name=name, **{field.name: text[field.type.name]})
        return arc.map(keep="*", name=name, copy=field.name)

    def _union(self, name: str) -> Arc:
        rng, arc = self._rng, self._arc()
        same = [a for a in (*self._arcs, *self._late) if str(a.schema) == str(arc.schema)]
        return self._net.union(arc, *rng.choices(same, k=rng.randint(1, 2)), name=name)

    # ── parameters ──

    def _arc(self, *, ordered: bool = False, final: bool = False) -> Arc:
        """An arc to read; rather a new one, now and then one of late tuples.

        `final`: one that carries no corrections.
        """
        rng = self._rng
        pool = self._late if self._late and rng.random() < 0.08 else self._arcs
        pool = pool[-3:] if rng.random() < 0.6 else pool
        fit = [a for a in pool if not ordered or self._orderable(a.schema)]
        if final:
            arcs, _ = type_arcs(self._net, self._net.boxes)
            fit = [a for a in fit if arcs[a.name].revised_by is None]
        return rng.choice(fit or self._streams)

    def _order(self, arc: Arc, by: tuple[str, ...]) -> Order:
        """Slack, or mostly what the arc promises."""
        fields = self._orderable(arc.schema)
        promised = [name for name in self._promised(arc) if name in fields]
        slack = self._slack() if promised else self._rng.choice([None, 0, 1, 1, 2, 3])
        if slack is None and promised and self._rng.random() < 0.9:
            fields = promised
        on = self._rng.choice(fields)
        return Order(on, slack=slack, by=tuple(name for name in by if name != on))

    def _slack(self) -> int | None:
        return self._rng.choice([None, None, None, None, 0, 1, 2, 3])

    def _promised(self, arc: Arc) -> tuple[str, ...]:
        arcs, order = type_arcs(self._net, self._net.boxes)
        return tuple(promised(self._net, arcs, order)[arc.name])

    def _orderable(self, schema: Schema) -> list[str]:
        return [f.name for f in schema if f.type.is_orderable and f.type.name in _SIMPLE]

    def _by(self, arc: Arc) -> tuple[str, ...]:
        own = ("_revises", "tup")  # an aggregate may make fields of these names itself
        names = [f.name for f in arc.schema if f.type.name in _GROUPING and f.name not in own]
        grouped = {n for s in self._net.streams.values() for p in s.progressing for n in p.by}
        if grouped and grouped <= set(names) and self._rng.random() < 0.5:
            return tuple(sorted(grouped))
        return tuple(self._rng.sample(names, min(len(names), self._rng.choice([0, 0, 1, 1, 2]))))

    def _alike(self, left: Arc, right: Arc) -> list[tuple[str, str]]:
        """Pairs of fields that a band can compare; promised ones if there are any."""
        pairs = [
            (a.name, b.name)
            for a in left.schema
            for b in right.schema
            if (a.type == b.type or {a.type.name, b.type.name} <= _NUMBERS)
            and a.type.is_orderable
            and a.type.name in _SIMPLE
        ]
        mine, theirs = self._promised(left), self._promised(right)
        best = [(a, b) for a, b in pairs if a in mine and b in theirs]
        return best if best and self._rng.random() < 0.8 else pairs

    def _matching(self, left: Schema, right: Schema, *, functions: bool = True) -> str | None:
        """A predicate over both sides: equal keys, something else, both or nothing."""
        rng, parts = self._rng, []
        pairs = [
            (a.name, b.name)
            for a in _simple(left)
            for b in _simple(right)
            if a.type == b.type or {a.type.name, b.type.name} == {"int", "bigint"}
        ]
        keys = [(a, b) for a, b in pairs if left.field(a).type.name in _GROUPING]
        if keys and rng.random() < 0.7:
            parts += [f"left.{a} = right.{b}" for a, b in rng.sample(keys, min(len(keys), 1))]
        if pairs and rng.random() < 0.4:
            a, b = rng.choice(pairs)
            operator = rng.choice(["<=", "<>", "<", "<=>"])
            parts.append(f"left.{a} {operator} right.{b}")
        whole = [
            [f.name for f in side if f.type.name in ("int", "bigint")] for side in (left, right)
        ]
        if functions and all(whole) and rng.random() < 0.2:
            a, b = (rng.choice(names) for names in whole)
            parts.append(f"picky(left.{a} + right.{b}) % 2 = 0")
        return " AND ".join(parts) or None

    def _predicate(self, schema: Schema) -> str:
        rng = self._rng
        field = rng.choice(_simple(schema) or list(schema))
        name, kind = field.name, field.type.name
        by_kind = {
            "int": [f"{name} > 1", f"{name} % 2 = 0", f"{name} IN (1, 3, NULL)"],
            "bigint": [f"{name} % 3 = 1", f"{name} > 2"],
            "double": [f"{name} > 0.05", f"isnan({name}) OR {name} < 2"],
            "string": [f"{name} = 'a'", f"{name} >= 'b'"],
            "decimal": [f"{name} >= 1.25"],
            "date": [f"{name} >= date'1970-01-05'"],
            "timestamp": [f"{name} < timestamp'1970-01-01 00:00:06'"],
            "boolean": [name],
        }
        return rng.choice([*by_kind.get(kind, []), f"{name} IS NOT NULL"])

    def _compute(
        self, schema: Schema, taken: list[str], *, functions: bool = True
    ) -> dict[str, Any]:
        rng = self._rng
        used = {name.lower() for name in taken}
        names = [n for n in ("n", "k", "c1", "c2", "c3") if n not in used]
        rng.shuffle(names)
        count = rng.choice([1, 2, 3])
        return {name: self._computed(schema, functions=functions) for name in names[:count]}

    def _computed(self, schema: Schema, *, functions: bool = True) -> Any:
        rng = self._rng
        numbers = [f for f in schema if f.type.is_numeric]
        simple = _simple(schema) or list(schema)
        any_ = rng.choice(simple).name
        found: list[Any] = ["count(*)", f"count({any_})", f"count(DISTINCT {any_})"]
        found += [f"first({any_})", f"last({any_})", f"first({any_}, true)"]
        found += [f"min({any_})", f"max({any_})"]
        found += [f"count(*) FILTER (WHERE {self._predicate(schema)})"]
        if numbers:
            n, m = rng.choice(numbers).name, rng.choice(numbers).name
            found += [f"sum({n})", f"avg({n})", f"stddev({n})", f"sum({n}) / count(*)"]
            found += [
                f"max({n}) - min({n})",
                f"max_by({any_}, {m})",
                f"sum({n}) FILTER (WHERE {m} > 1)",
            ]
            found.append({"udf": "window_functions:Spread", "args": [n], "returns": "double"})
        texts = [f.name for f in schema if f.type.name == "string"]
        whole = [f.name for f in schema if f.type.name in ("int", "bigint")]
        if texts and whole:
            args = [rng.choice(texts), rng.choice(whole)]
            found.append({"udf": "window_functions:Joined", "args": args, "returns": "string"})
        return rng.choice([how for how in found if functions or isinstance(how, str)])

    def _table(self) -> Arc:
        if "refs" not in self._net.tables:
            return self._net.table("refs", TABLE)
        return Arc(self._net, "refs")


def _simple(schema: Schema) -> list[Field]:
    return [field for field in schema if field.type.name in _SIMPLE]
