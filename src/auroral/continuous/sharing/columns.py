"""What SELECT lists: names and expressions of the result's fields."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from auroral.boxes import Dedup, Map
from auroral.boxes.order import Order
from auroral.continuous.boxing.plan import BoxPlan, Flow
from auroral.errors import list_existing
from auroral.network.types import quoted
from auroral.sql.queries.names import Resolved
from auroral.sql.queries.queries import ParsedQuery, SelectItem
from auroral.sql.queries.text import Piece

_PREFIX = ("left", "right")


@dataclass(frozen=True)
class ResultColumn:
    """A field of the result: its name, and its expression over the arc's fields.

    `field` names the arc's field if it is nothing but a copy of it.
    """

    name: str
    text: str
    piece: Piece
    field: str | None = None
    resolved: Resolved | None = None


def columns(query: ParsedQuery, flow: Flow) -> list[ResultColumn]:
    """The result's fields in the order written, `*` written out.

    A field is called by its alias or its own name; a name of another stream already taken
    becomes `right_<name>`, of a third `<stream>_<name>`; an expression without alias is
    `column_<place>`.
    """
    found: list[ResultColumn] = []
    for item in query.items:
        found += _starred(item, flow, found) if item.star is not None else [_one(item, flow, found)]
    seen: set[str] = set()
    for column in found:
        if column.name.lower() in seen:
            raise column.piece.error(
                f"the field {column.name} occurs twice",
                code="DUPLICATE_FIELD",
                hint="name one of them with AS",
            )
        seen.add(column.name.lower())
    return found


def project(plan: BoxPlan, query: ParsedQuery, flow: Flow) -> str:
    """Put the result's fields together; of like results, DISTINCT lets the first pass."""
    listed = columns(query, flow)
    if query.distinct is None and len(query.items) == 1 and query.items[0].star == "":
        if plan.boxes:
            return flow.arc
        return plan.add(Map, query.items[0].piece, input=flow.arc, keep="*")
    arc = mapped(plan, listed, flow.arc)
    if query.distinct is None:
        return arc
    on = next((c.name for c in listed if c.field in flow.progress), None)
    if on is None:
        raise query.distinct.error(
            f"DISTINCT without a window needs a field that makes progress in SELECT;"
            f" {list_existing(flow.progress)}",
            hint="add a window, as in FROM S [RANGE 1 min, WA ts]",
        )
    keys = tuple(column.name for column in listed)
    return plan.add(Dedup, query.distinct, input=arc, keys=keys, order=Order(on))


def mapped(plan: BoxPlan, listed: Sequence[ResultColumn], arc: str) -> str:
    """A map that computes the fields."""
    places = {f"compute.{column.name}": column.piece for column in listed}
    compute = {column.name: column.text for column in listed}
    return plan.add(Map, listed[0].piece, places, input=arc, compute=compute)


def _one(item: SelectItem, flow: Flow, before: Sequence[ResultColumn]) -> ResultColumn:
    resolved = flow.resolve(item.piece)
    field = flow.column(item.piece)
    name = item.alias
    if name is None and field is not None:
        reference = resolved.references[0]
        name = reference.field
        if not any(c.field == field and c.name.lower() == name.lower() for c in before):
            name = _free(name, reference.side, flow, before)
    name = name or f"column_{len(before) + 1}"
    return ResultColumn(name, resolved.text, item.piece, field, resolved)


def _starred(item: SelectItem, flow: Flow, before: Sequence[ResultColumn]) -> list[ResultColumn]:
    wanted = range(len(flow.sides))
    if item.star:
        names = [(side.name or "").lower() for side in flow.sides]
        if item.star.lower() not in names:
            raise item.piece.error(
                f"there is no stream {item.star} here; {list_existing(filter(None, names))}",
                code="UNKNOWN_STREAM",
            )
        wanted = range(names.index(item.star.lower()), names.index(item.star.lower()) + 1)
    found = list(before)
    for side in wanted:
        for field in flow.sides[side].schema.names:
            arc_field = flow.names[side][field]
            name = _free(field, side, flow, found)
            found.append(ResultColumn(name, quoted(arc_field), item.piece, arc_field))
    return found[len(before) :]


def _free(name: str, side: int, flow: Flow, before: Iterable[ResultColumn]) -> str:
    taken = {column.name.lower() for column in before}
    prefix = _PREFIX[side] if side < len(_PREFIX) else flow.sides[side].name or f"s{side}"
    while name.lower() in taken:
        name = f"{prefix}_{name}"
    return name
