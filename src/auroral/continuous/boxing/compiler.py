"""Compile a continuous query into boxes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from auroral.boxes import Union
from auroral.continuous.boxing.aggregation import QueryWindow, aggregate, aggregated, number
from auroral.continuous.boxing.joins import join
from auroral.continuous.boxing.plan import BoxPlan, Flow
from auroral.continuous.sharing.columns import project
from auroral.errors import closest, list_existing
from auroral.ids import ArcId
from auroral.network.box import LATE_PORTS, Box, Scope
from auroral.network.types import Schema
from auroral.sql.queries.from_clause import FromSource, arc_name
from auroral.sql.queries.names import FromSide, conjuncts
from auroral.sql.queries.queries import ParsedQuery, read_query
from auroral.sql.queries.windows import WindowClause


@dataclass(frozen=True)
class CompiledQuery:
    """The boxes of a query, in an order in which data can flow, and the arc of its results."""

    boxes: dict[str, Box]
    output: str
    schema: Schema
    late: Mapping[str, tuple[str, Schema]] = field(default_factory=dict)
    """By port, the arcs of tuples that come too late for its windows."""


def compile_query(
    name: str,
    sql: str,
    arcs: Mapping[str, Schema],
    progress: Mapping[str, Collection[str]],
    *,
    scope: Scope | None = None,
    streams: Collection[str] | None = None,
) -> CompiledQuery:
    """Compile a query over arcs; `progress` are the fields that make progress on each.

    Boxes are named `name#1`, `name#2` …, which no name of a network can be. Tables that a query
    may join with are those of `scope`; `streams` are the arcs that are streams (all if None).
    A window on a single stream says nothing unless the query aggregates: each tuple of the
    result comes when the tuple it is made from enters its window.

    >>> arcs = {"cars": Schema.parse("vid int, ts bigint")}
    >>> sql = "SELECT vid, count(*) AS n FROM cars [RANGE 1 min, WA ts] GROUP BY vid"
    >>> compiled = compile_query("busy", sql, arcs, {})
    >>> {name: box.kind for name, box in compiled.boxes.items()}
    {'busy#1': 'aggregate', 'busy#2': 'map'}
    >>> print(compiled.schema)
    vid int, n bigint
    """
    query = read_query(sql)
    plan = BoxPlan(name, arcs, progress, scope or Scope(), arcs if streams is None else streams)
    flows = [_entered(plan, source) for source in query.sources]
    if len(flows) > 2:
        raise query.sources[2].piece.error(
            "boxes join two streams at most: more are joined by queries that only select",
            hint="leave out aggregates, DISTINCT and tables, or feed a box with the join",
        )
    window, rows = query.window, None
    if len(flows) == 1:
        flow, window, rows = _single(plan, query, flows[0])
    else:
        _refuse_rows(query.window)
        flow = join(plan, query, (flows[0], flows[1]))
    if aggregated(query, window):
        output = aggregate(plan, query, flow, window, rows)
    else:
        output = project(plan, query, flow)
    return CompiledQuery(plan.boxes, output, plan.schemas[output], _late(plan))


def _late(plan: BoxPlan) -> dict[str, tuple[str, Schema]]:
    """The arcs of late tuples by port; of boxes in a row, those of the first."""
    found: dict[str, tuple[str, Schema]] = {}
    for arc, schema in plan.schemas.items():
        own = ArcId.parse(arc)
        if own.producer in plan.boxes and own.port in LATE_PORTS:
            found.setdefault(own.port, (arc, schema))
    return found


def query_schema(
    sql: str, arcs: Mapping[str, Schema], progress: Mapping[str, Collection[str]] | None = None
) -> Schema:
    """The schema of a query's results.

    >>> arcs = {"reports": Schema.parse("sid int, pos int")}
    >>> print(query_schema("SELECT sid, pos * 2 AS twice FROM reports WHERE pos > 90", arcs))
    sid int, twice int
    """
    return compile_query("query", sql, arcs, progress or {}).schema


def _entered(plan: BoxPlan, source: FromSource) -> Flow:
    """A source of FROM as an arc; streams united are one."""
    names = [plan.scope.arc(arc_name(piece)) for piece in source.arcs]
    for name, piece in zip(names, source.arcs, strict=True):
        if name not in plan.arcs and (len(names) > 1 or name not in plan.scope.tables):
            raise piece.error(
                f"there is no stream {name}; {list_existing(plan.arcs)}",
                code="UNKNOWN_STREAM",
                hint=closest(name, plan.arcs),
            )
    arc = names[0]
    if len(names) > 1:
        arc = plan.add(Union, source.piece, inputs=tuple(names))
    schema = plan.schemas[arc]
    promised = [{n.lower() for n in plan.progress.get(name, ())} for name in names]
    progress = tuple(n for n in schema.names if all(n.lower() in own for own in promised))
    side = FromSide(source.name, schema)
    return Flow(arc, (side,), ({name: name for name in schema.names},), progress)


def _single(
    plan: BoxPlan, query: ParsedQuery, flow: Flow
) -> tuple[Flow, WindowClause | None, QueryWindow | None]:
    """Filter the only stream; rows are counted before that."""
    source = query.sources[0]
    if flow.arc in plan.scope.tables and flow.arc not in plan.arcs:
        raise source.piece.error(f"{source.label} is a table; a query reads at least one stream")
    if query.window is not None and source.window is not None:
        raise query.window.piece.error(
            f"{source.label} has a window already", code="BAD_WINDOW", hint="leave out one"
        )
    window, rows = source.window or query.window, None
    if window is not None and window.rows is not None:
        if query.window is not None:
            _refuse_rows(query.window)
        if aggregated(query, window):
            flow, rows = number(plan, source, flow)
    conditions = [part for piece in query.conditions for part in conjuncts(piece)]
    return plan.filter(flow, [flow.resolve(part) for part in conditions]), window, rows


def _refuse_rows(window: WindowClause | None) -> None:
    if window is not None and window.rows is not None:
        raise window.piece.error(
            "[ROWS n] counts the tuples of a stream",
            code="BAD_WINDOW",
            hint="write it after FROM S",
        )
