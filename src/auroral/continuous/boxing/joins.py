"""Queries over two streams: a band join, a join of row windows, or a join with a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from auroral.boxes import Join
from auroral.boxes.join import joined
from auroral.boxes.order import Order
from auroral.boxes.predicate import sided
from auroral.boxes.window import Length
from auroral.continuous.boxing.bands import JoinBand, find_band, with_whole_division
from auroral.continuous.boxing.plan import BoxPlan, Flow, conjunction
from auroral.continuous.sharing.join_windows import (
    attributes_of,
    no_window,
    range_of,
    refuse_slide,
    require_alike,
    row_sizes,
)
from auroral.network.types import Schema, Type, quoted
from auroral.progress.durations import parse_duration_us
from auroral.sql.queries.from_clause import FromSource
from auroral.sql.queries.names import Resolved, conjuncts, resolve
from auroral.sql.queries.queries import ParsedQuery
from auroral.sql.queries.text import Piece
from auroral.sql.queries.windows import length

_PREFIX = ("left", "right")
_TIMELY = ("timestamp", "timestamp_ntz")


def join(plan: BoxPlan, query: ParsedQuery, flows: tuple[Flow, Flow]) -> Flow:
    """Join two streams [3 §5.3].

    Of `S [WA a, RANGE m], T [WA b, RANGE n]`, tuples l and r pair if r.b > l.a − n and
    r.b < l.a + m. The band of the join box has its ends too, so these are said once more in
    its predicate. Without windows the band is what WHERE says of attributes that progress.
    """
    conditions = [part for piece in query.conditions for part in conjuncts(piece)]
    sources = (query.sources[0], query.sources[1])
    rows = row_sizes(sources)
    if any(flow.arc in plan.scope.tables for flow in flows):
        _require_no_window(sources)
        return _joined(plan, query, flows, _on(plan, flows, conditions))
    if rows is not None:
        return _joined(plan, query, flows, _on(plan, flows, conditions), rows=rows)
    flows, conditions = _filtered(plan, flows, conditions)
    band, on = _band(plan, query, flows, _on(plan, flows, conditions))
    of = plan.schemas[flows[0].arc].field(band.left).type
    lengths = (_length(band.before, of), _length(band.after, of))
    orders = {"left": Order(band.left), "right": Order(band.right)}
    return _joined(plan, query, flows, on, range=lengths, **orders)


def _joined(
    plan: BoxPlan, query: ParsedQuery, flows: tuple[Flow, Flow], on: list[Resolved], **how: Any
) -> Flow:
    """Add the join box; what progresses after it are the ordered attributes, or a stream's."""
    place = query.sources[1].piece
    places = {"right.on": place, "left.on": query.sources[0].piece}
    if on:
        how["on"] = conjunction(on)
        places["on"] = on[0].piece
    arc = plan.add(Join, place, places, inputs=(flows[0].arc, flows[1].arc), **how)
    left, right = (plan.schemas[flow.arc] for flow in flows)
    called = joined(left, right).names[len(left) :]
    names = dict(zip(right.names, called, strict=True))
    kept = [flow.progress for flow in flows]
    if "range" in how:
        kept = [(how[side].on,) for side in _PREFIX]
    elif "rows" in how:
        kept = [(), ()]
    progress = (*kept[0], *(names[name] for name in kept[1]))
    sides = (flows[0].sides[0], flows[1].sides[0])
    return Flow(arc, sides, (flows[0].names[0], names), progress)


def _on(plan: BoxPlan, flows: tuple[Flow, Flow], conditions: Sequence[Piece]) -> list[Resolved]:
    """The predicates of the join box."""
    schemas = (plan.schemas[flows[0].arc], plan.schemas[flows[1].arc])
    on = [with_whole_division(_sided(piece, flows), schemas) for piece in conditions]
    plan.require(on, sided(left=schemas[0], right=schemas[1]))
    return on


def _filtered(
    plan: BoxPlan, flows: tuple[Flow, Flow], conditions: Sequence[Piece]
) -> tuple[tuple[Flow, Flow], list[Piece]]:
    """Predicates on one stream are filters before the join."""
    single: list[list[Piece]] = [[], []]
    both: list[Piece] = []
    for piece in conditions:
        sides = _sided(piece, flows).sides
        (single[min(sides)] if len(sides) == 1 else both).append(piece)
    one, other = (
        plan.filter(flow, [flow.resolve(piece) for piece in own])
        for flow, own in zip(flows, single, strict=True)
    )
    return (one, other), both


def _band(
    plan: BoxPlan, query: ParsedQuery, flows: tuple[Flow, Flow], on: list[Resolved]
) -> tuple[JoinBand, list[Resolved]]:
    """The band of the windows, or else of the predicates; and the predicates that remain."""
    windows = [source.window for source in query.sources]
    ranges = [w.range if w is not None else None for w in windows]
    attributes = [attributes_of(flow, w) for flow, w in zip(flows, windows, strict=True)]
    schemas = (plan.schemas[flows[0].arc], plan.schemas[flows[1].arc])
    if any(ranges):
        return _ranged(query, on, attributes, schemas)
    for window in windows:
        if window is not None:
            refuse_slide(window)
    found = find_band(on, schemas, (attributes[0], attributes[1]))
    if found is None:
        raise no_window(query.sources, attributes)
    return found


def _ranged(
    query: ParsedQuery,
    on: list[Resolved],
    attributes: Sequence[Sequence[str]],
    schemas: Sequence[Schema],
) -> tuple[JoinBand, list[Resolved]]:
    """The band of two windows of RANGE."""
    lengths: list[Length] = []
    fields = []
    for source, own, schema in zip(query.sources, attributes, schemas, strict=True):
        extent = range_of(source, own)
        fields.append(schema.field(own[0]))
        lengths.append(length(extent, fields[-1].type))
    require_alike(query.sources, fields)
    left, right = (f"{side}.{quoted(f.name)}" for side, f in zip(_PREFIX, fields, strict=True))
    of, place = fields[0].type, query.sources[1].piece
    after, before = (_literal(amount, of) for amount in lengths)
    strict = f"{right} > {left} - {before} AND {right} < {left} + {after}"
    band = JoinBand(fields[0].name, fields[1].name, lengths[1], lengths[0])
    return band, [*on, Resolved(place, strict, ())]


def _sided(piece: Piece, flows: tuple[Flow, Flow]) -> Resolved:
    """A predicate over `left.x` and `right.y`."""
    sides = (flows[0].sides[0], flows[1].sides[0])
    return resolve(
        piece, sides, lambda side, name: f"{_PREFIX[side]}.{quoted(flows[side].names[0][name])}"
    )


def _require_no_window(sources: Sequence[FromSource]) -> None:
    for source in sources:
        if source.window is not None:
            raise source.window.piece.error("a join with a table has no window", code="BAD_WINDOW")


def _length(amount: Any, of: Type) -> Length:
    return f"{amount} us" if of.name in _TIMELY and not isinstance(amount, str) else amount


def _literal(amount: Length, of: Type) -> str:
    """A length as an expression adds it."""
    if not isinstance(amount, str):
        return f"{amount}D" if of.name in ("float", "double") else str(amount)
    micros = parse_duration_us(amount)
    if of.name == "date":
        return str(micros // 86_400_000_000)
    fraction = f".{micros % 1_000_000:06}" if micros % 1_000_000 else ""
    return f"INTERVAL {micros // 1_000_000}{fraction} SECONDS"
