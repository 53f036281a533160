"""Queries that aggregate: windows of RANGE or ROWS, or groups by an attribute that progresses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from auroral.boxes import Aggregate, Filter, Map, Number
from auroral.boxes.order import Order
from auroral.boxes.window import Length, Window
from auroral.continuous.boxing.plan import BoxPlan, Flow, free_name
from auroral.continuous.sharing.columns import ResultColumn, columns, mapped
from auroral.errors import list_existing
from auroral.network.types import Type, quoted
from auroral.sql.expressions.parser import parse
from auroral.sql.expressions.syntax import Name, Node, free_names
from auroral.sql.queries.from_clause import FromSource
from auroral.sql.queries.names import Resolved, is_aggregated, without_aggregates
from auroral.sql.queries.queries import ParsedQuery
from auroral.sql.queries.text import Piece
from auroral.sql.queries.windows import WindowClause, length

_EXAMPLE = "write a window, as in FROM S [RANGE 1 min, WA ts], or [ROWS 100]"
_LEAST: dict[str, Length] = {"timestamp": "1 us", "timestamp_ntz": "1 us", "date": 1}


@dataclass(frozen=True)
class QueryWindow:
    """Windows over a field of an arc; results come per window and group."""

    on: str
    size: Length
    advance: Length | None = None
    piece: Piece | None = None


@dataclass(frozen=True)
class Key:
    """What GROUP BY lists: a field of the arc, with the expression it was computed from."""

    field: str
    tree: Node
    piece: Piece


def aggregated(query: ParsedQuery, window: WindowClause | None) -> bool:
    """Whether a query has one result per window and group rather than per tuple."""
    expressions = [item.piece for item in query.items if item.star is None]
    called = any(is_aggregated(piece.tree) for piece in expressions)
    windowed = window is not None and (window.range or window.rows) is not None
    return bool(called or query.groups or query.having or (query.distinct and windowed))


def number(plan: BoxPlan, source: FromSource, flow: Flow) -> tuple[Flow, QueryWindow]:
    """Count a stream's tuples as they enter, before any predicate [3 §5.2].

    Windows of rows are windows over that number, for all groups together.
    """
    window = source.window
    assert window is not None
    assert window.rows is not None
    if flow.arc not in plan.streams:
        raise window.piece.error(
            "rows are counted as they enter the system: an aggregate over [ROWS n] reads a"
            f" stream, not {source.label}",
            code="BAD_WINDOW",
            hint="a stream with below: route is none of these: late tuples leave it before",
        )
    name = free_name("arrival_number", plan.schemas[flow.arc].names)
    arc = plan.add(Number, window.piece, {}, input=flow.arc, **{"as": name})
    advance = window.count(window.slide) if window.slide else None
    return flow.at(arc), QueryWindow(name, window.count(window.rows), advance, window.piece)


def aggregate(
    plan: BoxPlan,
    query: ParsedQuery,
    flow: Flow,
    window: WindowClause | None,
    rows: QueryWindow | None,
) -> str:
    """Add the boxes of an aggregate: keys, windows, HAVING, and the fields of the result."""
    flow, listed, keys = _keyed(plan, query, flow)
    calls = _AggregateCalls(plan, flow, keys)
    if rows is None and window is not None and window.range is not None:
        calls.allowed.add(_window_attribute(flow, window).lower())
    results = [calls.outside(column) for column in listed]
    having = calls.condition(query.having, listed) if query.having else None
    windows = rows or _windows(plan, query, flow, window, keys)
    by = tuple(dict.fromkeys(key.field for key in keys if key.field != windows.on))
    places = {f"compute.{name}": piece for name, piece in calls.places.items()}
    if windows.piece is not None:
        places |= {"window": windows.piece, "order.on": windows.piece}
    if keys:
        places["order.by"] = keys[0].piece
    arc = plan.add(
        Aggregate,
        query.whole,
        places,
        input=flow.arc,
        order=Order(windows.on, by=by),
        window=Window(size=windows.size, advance=windows.advance),
        compute=calls.compute or {calls.name("count(*)", query.whole): "count(*)"},
    )
    if having is not None:
        assert query.having is not None
        plan.require([having], plan.schemas[arc])
        arc = plan.add(Filter, query.having, input=arc, where=having.text)
    return mapped(plan, results, arc)


def _keyed(
    plan: BoxPlan, query: ParsedQuery, flow: Flow
) -> tuple[Flow, list[ResultColumn], list[Key]]:
    """The result's fields and the keys; keys that are expressions are computed by a map."""
    starred = next((item for item in query.items if item.star is not None), None)
    called = any(is_aggregated(i.piece.tree) for i in query.items if i.star is None)
    if starred is not None and (query.groups or called):
        raise starred.piece.error(
            "* stands for fields that are not aggregated", code="NOT_AGGREGATED"
        )
    listed = columns(query, flow)
    if query.distinct and (query.groups or called):
        raise query.distinct.error("the results of an aggregate are distinct already")
    wanted = [_group(piece, query, flow) for piece in query.groups]
    if query.distinct:
        wanted = [Resolved(c.piece, c.text, ()) for c in listed]
    keys: list[Key] = []
    compute: dict[str, str] = {}
    places: dict[str, Piece] = {}
    schema = plan.schemas[flow.arc]
    for found in wanted:
        tree = found.tree
        if isinstance(tree, Name):
            keys.append(Key(schema.field(tree.name).name, tree, found.piece))
            continue
        name = free_name(f"group_{len(keys) + 1}", (*schema.names, *compute))
        compute[name], places[f"compute.{name}"] = found.text, found.piece
        keys.append(Key(name, tree, found.piece))
    if compute:
        made = plan.add(
            Map, next(iter(places.values())), places, input=flow.arc, keep="*", compute=compute
        )
        flow = flow.at(made)
    return flow, listed, keys


def _group(piece: Piece, query: ParsedQuery, flow: Flow) -> Resolved:
    """What a part of GROUP BY means: an expression, or the alias of one in SELECT."""
    aliases = {i.alias.lower(): i.piece for i in query.items if i.alias is not None}
    tree = piece.tree
    alias = tree.name.lower() if isinstance(tree, Name) else ""
    if alias in aliases and not any(alias in side.schema for side in flow.sides):
        return flow.resolve(aliases[alias])
    if is_aggregated(tree):
        raise piece.error("GROUP BY takes fields and expressions of them, not aggregates")
    found = flow.resolve(piece)
    if not found.references:
        raise piece.error(f"expected a field or an expression of fields, found {piece.text}")
    return found


def _windows(
    plan: BoxPlan, query: ParsedQuery, flow: Flow, window: WindowClause | None, keys: Sequence[Key]
) -> QueryWindow:
    """The windows of RANGE; without it, groups by an attribute that progresses are windows.

    Each value of such an attribute is a window of its own, of the least size there is: no more
    of it comes once progress has passed it [3 §7].
    """
    schema = plan.schemas[flow.arc]
    if window is not None and window.range is not None:
        on = _window_attribute(flow, window)
        of = schema.field(on).type
        advance = length(window.slide, of) if window.slide else None
        return QueryWindow(on, length(window.range, of), advance, window.piece)
    progressing = {name.lower() for name in flow.progress}
    if window is not None and window.wa is not None:
        progressing.add(_window_attribute(flow, window).lower())
    key = next((key for key in keys if key.field.lower() in progressing), None)
    if key is None:
        place = query.groups[0] if query.groups else query.items[0].piece
        raise place.error(
            "an aggregate needs a window, or a field that makes progress in GROUP BY;"
            f" {list_existing(flow.progress)}",
            code="NO_WINDOW",
            hint=_EXAMPLE,
        )
    least = _least(schema.field(key.field).type, key.piece)
    return QueryWindow(key.field, least, None, key.piece)


def _window_attribute(flow: Flow, window: WindowClause) -> str:
    """The field of WA; without it, the one that makes progress."""
    if window.wa is not None:
        return flow.attribute(window.wa)
    if len(flow.progress) != 1:
        found = "none is declared" if not flow.progress else list_existing(flow.progress)
        raise window.piece.error(
            f"the window needs the attribute that makes progress: {found}",
            code="BAD_WINDOW",
            hint="add WA and the attribute, as in [RANGE 1 min, WA ts]",
        )
    return flow.progress[0]


def _least(of: Type, place: Piece) -> Length:
    """The least distance of two values of a type."""
    if of.is_integral:
        return 1
    if of.name == "decimal":
        return float(f"1e-{of.scale}") if of.scale else 1
    if of.name in _LEAST:
        return _LEAST[of.name]
    raise place.error(
        f"values of {of} have no least distance: groups by them need a window", hint=_EXAMPLE
    )


class _AggregateCalls:
    """The aggregates of a query, each computed once, and expressions over their results."""

    def __init__(self, plan: BoxPlan, flow: Flow, keys: Sequence[Key]):
        self.flow = flow
        self.keys = keys
        self.taken = list(plan.schemas[flow.arc].names)
        self.allowed = {key.field.lower() for key in keys}
        self.compute: dict[str, str] = {}
        self.places: dict[str, Piece] = {}

    def name(self, call: str, place: Piece) -> str:
        """The field that holds an aggregate."""
        for name, known_call in self.compute.items():
            if parse(known_call) == parse(call):
                return name
        name = free_name(f"agg_{len(self.compute) + 1}", (*self.taken, *self.compute))
        self.compute[name], self.places[name] = call, place
        return name

    def outside(self, column: ResultColumn) -> ResultColumn:
        """A result's field as an expression over windows, keys and aggregates."""
        text = self.text(Resolved(column.piece, column.text, ()), column.resolved)
        return replace(column, text=text)

    def condition(self, having: Piece, listed: Sequence[ResultColumn]) -> Resolved:
        aliases = {column.name.lower(): column.text for column in listed}
        found = self.flow.resolve(having, aliases)
        return Resolved(having, self.text(found, found), ())

    def text(self, found: Resolved, origin: Resolved | None) -> str:
        tree = found.tree
        for key in self.keys:
            if key.tree == tree:
                return quoted(key.field)
        with found.piece.located():
            text = without_aggregates(found.text, lambda call: self.name(call, found.piece))
        made = {name.lower() for name in self.compute}
        loose = [n for n in free_names(parse(text)) if n.lower() not in self.allowed | made]
        if loose:
            raise _not_aggregated(found.piece, origin, loose[0], self.flow)
        return text


def _not_aggregated(piece: Piece, origin: Resolved | None, name: str, flow: Flow) -> Exception:
    for reference in origin.references if origin else ():
        if flow.names[reference.side][reference.field].lower() == name.lower():
            piece = origin.piece.part(reference.start, reference.end) if origin else piece
            break
    return piece.error(
        f"expected an aggregate or what GROUP BY lists, found the field {piece.text}",
        code="NOT_AGGREGATED",
        hint=f"write first({piece.text}) or group by it",
    )
