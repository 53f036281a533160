"""Intervals of an output's value carried upstream to the arc on which they are dropped (pure).

Backwards, by the inverse functions of boxes that have one [1 §4.5]: a filter, a union, a sort and
a map that copies a field keep values; a map by a linear expression has a linear inverse; groups of
an aggregate, keys of a dedup and fields of one side of a join are those of their input. Where a
box has no inverse, forward trial (`auroral.shedding.trial`) may find an interval further
upstream; otherwise tuples are dropped behind that box.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from decimal import Decimal

from auroral.boxes import Aggregate, BSort, Dedup, Filter, Join, Map, Union
from auroral.errors import AuroralError
from auroral.network.check import CheckedNetwork, TypedArc
from auroral.network.types import Schema, Type
from auroral.shedding.sites import CarriedField, CarryInterval, ValueOnArc
from auroral.sql.expressions.compiler import CAST_FUNCTIONS, compile_node
from auroral.sql.expressions.parser import parse
from auroral.sql.expressions.syntax import Call, Cast, Name, Node, free_names
from auroral.sql.expressions.typed import OnlySparkError

FindByTrial = Callable[[str, str], ValueOnArc | None]
"""Given an output and an arc, how its values are told on the arc by trial; None if not at all."""
Carried = dict[str, CarriedField]


def interval_carrier(
    checked: CheckedNetwork,
    values: Mapping[str, tuple[str, str]],
    trial: FindByTrial | None = None,
) -> CarryInterval:
    """Carries intervals of outputs' values, which are given by their arc and field.

    >>> from auroral.network.network import Network
    >>> net = Network("weather")
    >>> warm = net.stream("reports", "id int, celsius double").filter("id > 3", name="some")
    >>> _ = warm.map(name="american", fahrenheit="celsius * 1.8 + 32")
    >>> carry = interval_carrier(net.check(), {"hot": ("american", "fahrenheit")})
    >>> found = carry("hot", {"reports", "some"})
    >>> found["reports"].interval(50, 212)
    DropInterval(field='celsius', low=10.0, high=100.0)
    """

    def carry(output: str, arcs: Collection[str]) -> Mapping[str, ValueOnArc] | None:
        if output not in values or values[output][0] not in checked.arcs:
            return None
        arc, field = values[output]
        name = checked.arcs[arc].schema.field(field).name
        found = _carried(checked, checked.arcs[arc], CarriedField(name), arcs)
        if trial is None or (found is not None and _are_first(checked, found, arcs)):
            return found
        return _tried(checked, output, arc, arcs, trial) or found

    return carry


def _carried(
    checked: CheckedNetwork, arc: TypedArc, value: CarriedField, arcs: Collection[str]
) -> Carried | None:
    """The arcs, as far upstream as possible, on which a value can be told."""
    upstream = _behind(checked, arc, value)
    if upstream:
        merged = _merged(_carried(checked, checked.arcs[name], own, arcs) for name, own in upstream)
        if merged is not None:
            return merged
    return {arc.name: value} if arc.name in arcs else None


def _merged(parts: Iterable[Carried | None]) -> Carried | None:
    """All of them, if each is known and an arc stands for the same values on all ways."""
    merged: Carried = {}
    for part in parts:
        if part is None or any(merged.get(arc, own) != own for arc, own in part.items()):
            return None
        merged |= part
    return merged


def _behind(
    checked: CheckedNetwork, arc: TypedArc, value: CarriedField
) -> list[tuple[str, CarriedField]]:
    """The arcs that a box reads and from which a value comes; empty if that cannot be told."""
    box = checked.network.boxes.get(arc.producer)
    inputs = checked.inputs_of(arc.producer) if box is not None else ()
    match box:
        case Filter():
            (source,) = inputs
            return [(source.name, _filtered(box, source.schema, value))]
        case Map():
            (source,) = inputs
            found = _mapped(box, source.schema, value)
            return [] if found is None else [(source.name, found)]
        case Union():
            return [(source.name, _named(source.schema, value)) for source in inputs]
        case BSort():
            return [(inputs[0].name, value)]
        case Dedup() if _among(value.field, box.keys):
            return [(inputs[0].name, value)]
        case Aggregate() if _among(value.field, box.order.by) and not arc.port:
            return [(inputs[0].name, _named(inputs[0].schema, value))]
        case Join() if box.rows is None and not arc.port:
            return _joined(checked, arc.producer, value)
    return []


def _filtered(box: Filter, schema: Schema, value: CarriedField) -> CarriedField:
    """A filter that asks for the field passes other values than those that come."""
    try:
        asked = {name.lower() for text in box.predicates.values() for name in _names(text)}
    except (AuroralError, OnlySparkError):
        asked = {name.lower() for name in schema.names}
    return replace(value, selective=value.selective or value.field.lower() in asked)


def _mapped(box: Map, schema: Schema, value: CarriedField) -> CarriedField | None:
    for name in box.kept(schema):
        if name.lower() == value.field.lower():
            return _named(schema, value)
    for name, text in box.texts.items():
        if name.lower() == value.field.lower():
            line = linear(text, schema)
            if line is None:
                return None
            field, scale, offset = line
            return replace(
                value,
                field=field,
                scale=value.scale * scale,
                offset=value.scale * offset + value.offset,
            )
    return None


def _joined(
    checked: CheckedNetwork, name: str, value: CarriedField
) -> list[tuple[str, CarriedField]]:
    """The side that a field of a join comes from; tables give nothing to drop."""
    box = checked.network.boxes[name]
    taken: set[str] = set()
    for source, schema in zip(box.sources(), checked.schemas_of(name), strict=True):
        for field in schema:
            given = field.name
            while given.lower() in taken:
                given = f"right_{given}"
            taken.add(given.lower())
            if given.lower() == value.field.lower():
                own = replace(value, field=field.name)
                return [(source, own)] if source in checked.arcs else []
    return []


def _named(schema: Schema, value: CarriedField) -> CarriedField:
    return replace(value, field=schema.field(value.field).name)


def _among(field: str, names: Collection[str]) -> bool:
    return field.lower() in {name.lower() for name in names}


def _names(text: str) -> list[str]:
    return list(free_names(parse(text)))


# ── linear expressions ──


def linear(text: str, schema: Schema) -> tuple[str, float, float] | None:
    """The field x and the constants a ≠ 0 and b of an expression a·x + b; None if it is none.

    >>> schema = Schema.parse("pos int, speed double")
    >>> linear("2 * (pos - 3) / 4", schema), linear("-speed", schema)
    (('pos', 0.5, -1.5), ('speed', -1.0, 0.0))
    >>> linear("pos + speed", schema), linear("pos * pos", schema), linear("pos % 7", schema)
    (None, None, None)
    """
    try:
        found = _line(parse(text), schema)
    except (AuroralError, OnlySparkError, RecursionError):
        return None
    field, scale, offset = found or (None, 0.0, 0.0)
    if field is None or not scale or not math.isfinite(scale) or not math.isfinite(offset):
        return None
    return field, scale, offset + 0.0  # no -0.0


_Line = tuple[str | None, float, float]
"""A field and two constants; without a field, the second constant is all."""


def _line(node: Node, schema: Schema) -> _Line | None:
    if not any(True for _ in free_names(node)):
        constant = compile_node(node, schema).value()
        if isinstance(constant, bool) or not isinstance(constant, int | float | Decimal):
            return None
        return None, 0.0, float(constant)
    match node:
        case Name(name):
            field = schema.field(name)
            return (field.name, 1.0, 0.0) if field.type.is_numeric else None
        case Cast(child, to, _):
            return _widened(child, to, schema)
        case Call(name, (child,)) if name in CAST_FUNCTIONS:
            return _widened(child, CAST_FUNCTIONS[name], schema)
        case Call("negative", (child,)):
            inner = _line(child, schema)
            return None if inner is None else (inner[0], -inner[1], -inner[2])
        case Call("positive", (child,)):
            return _line(child, schema)
        case Call("+" | "-" | "*" | "/" as name, (left, right)):
            first, second = _line(left, schema), _line(right, schema)
            return None if first is None or second is None else _combined(name, first, second)
    return None


def _combined(name: str, left: _Line, right: _Line) -> _Line | None:
    (x, a, b), (y, c, d) = left, right
    if name in ("+", "-"):
        sign = 1 if name == "+" else -1
        if x is not None and y is not None and x != y:
            return None
        return x if x is not None else y, a + sign * c, b + sign * d
    if name == "*":
        if x is not None and y is not None:
            return None
        return (x, a * d, b * d) if y is None else (y, b * c, b * d)
    return (x, a / d, b / d) if y is None and d else None


_WIDTHS = ("tinyint", "smallint", "int", "bigint")


def _widened(child: Node, to: Type, schema: Schema) -> _Line | None:
    """A cast that keeps every value: to a wider integer, or to double."""
    source = compile_node(child, schema).type
    wider = source.name in _WIDTHS and to.name in _WIDTHS
    wider = wider and _WIDTHS.index(source.name) <= _WIDTHS.index(to.name)
    if source == to or wider or (to.name == "double" and source.is_numeric):
        return _line(child, schema)
    return None


# ── forward trial ──


def _are_first(checked: CheckedNetwork, found: Mapping[str, object], arcs: Collection[str]) -> bool:
    """Whether there is no arc to drop on further upstream than these."""
    return all(not (_upstream(checked, arc) & {*arcs}) for arc in found)


def _tried(
    checked: CheckedNetwork, output: str, arc: str, arcs: Collection[str], trial: FindByTrial
) -> dict[str, ValueOnArc] | None:
    """The one arc furthest upstream of an output, if its values are told there by trial."""
    before = [name for name in arcs if name in _upstream(checked, arc)]
    first = [name for name in before if not _upstream(checked, name) & {*before}]
    if len(first) != 1:
        return None
    told = trial(output, first[0])
    return None if told is None else {first[0]: told}


def _upstream(checked: CheckedNetwork, arc: str) -> set[str]:
    """All arcs that lead to an arc."""
    found: set[str] = set()
    stack = [checked.arcs[arc].producer]
    while stack:
        name = stack.pop()
        if name in checked.network.boxes:
            for source in checked.inputs_of(name):
                if source.name not in found:
                    found.add(source.name)
                    stack.append(source.producer)
    return found
