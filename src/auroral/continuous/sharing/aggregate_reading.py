"""Aggregates over windows whose partial results queries can share.

What makes queries share is the stream, the attribute of the windows and the keys; they may differ
in WHERE, in RANGE and SLIDE, in HAVING, and in what they compute.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

from auroral.boxes import Aggregate, Filter, Map
from auroral.continuous.analysis import Surroundings, constants_of
from auroral.continuous.boxing.compiler import compile_query
from auroral.continuous.sharing.aggregate_shape import AggregateShape, ReadAggregate, SharedCall
from auroral.continuous.sharing.families import ReadFamily, family_of
from auroral.continuous.sharing.predicates import Atoms, Names, NotShared, Slot
from auroral.continuous.sharing.template import Atom, Attribute, Clause, TemplateItem
from auroral.errors import NetworkError, closest, list_existing
from auroral.network.box import Box, Scope
from auroral.network.types import FRACTIONAL, Schema
from auroral.sql.aggregates.analysis import analyze_aggregate
from auroral.sql.aggregates.functions import AGGREGATE_FUNCTIONS
from auroral.sql.expressions.expression import analyze
from auroral.sql.expressions.lexer import tokens
from auroral.sql.expressions.parser import parse
from auroral.sql.expressions.syntax import Name
from auroral.sql.expressions.typed import OnlySparkError

__all__ = [
    "AggregateShape",
    "ReadAggregate",
    "SharedCall",
    "read_aggregate_family",
    "read_shared_aggregate",
]

_NESTED = ("array", "map", "struct")
_CONSTANT = re.compile(r"CAST\('\x01([^']*)' AS [^\x01]*\x01\*/\)")
"""What stands for a parameter while a query is compiled."""


def read_shared_aggregate(
    sql: str,
    arcs: Mapping[str, Schema],
    progress: Mapping[str, Collection[str]],
    *,
    scope: Scope | None = None,
    streams: Collection[str] | None = None,
) -> ReadAggregate:
    """Read an aggregate that can share partial results; NotShared says why one can not.

    Mistakes are those that `compile_query` finds.

    >>> arcs = {"S": Schema.parse("sym string, price double, ts bigint")}
    >>> sql = "SELECT sym, max(price) AS top FROM S [RANGE 60, SLIDE 10, WA ts] GROUP BY sym"
    >>> read = read_shared_aggregate(sql, arcs, {})
    >>> read.size, read.advance, read.shape.by, str(read.schema())
    (60, 10, ('sym',), 'sym string, top double')
    """
    around = Surroundings(arcs, progress, scope or Scope(), streams, {})
    found, slots = _read(sql, around, None)
    return replace(found, constants=constants_of(slots, sql))


def read_aggregate_family(
    sql: str,
    arcs: Mapping[str, Schema],
    progress: Mapping[str, Collection[str]],
    *,
    columns: Schema,
    scope: Scope | None = None,
    streams: Collection[str] | None = None,
) -> tuple[ReadAggregate, ReadFamily]:
    """Read an aggregate with parameters `:name`, in WHERE and HAVING; and how to find constants.

    >>> arcs = {"S": Schema.parse("sym string, price double, ts bigint")}
    >>> sql = "SELECT count(*) AS n FROM S [RANGE 60, WA ts] WHERE sym = :sym HAVING count(*) > :n"
    >>> columns = Schema.parse("sym string, n int")
    >>> read_aggregate_family(sql, arcs, {}, columns=columns)[1].parameters
    ('sym', 'n')
    """
    around = Surroundings(arcs, progress, scope or Scope(), streams, {})
    found, slots = _read(sql, around, columns)
    return found, family_of(found.template(), slots)


def _read(
    sql: str, around: Surroundings, parameters: Schema | None
) -> tuple[ReadAggregate, list[Slot]]:
    where, box, having, fields = _parts(_boxes(sql, around, parameters))
    arc = box.input if where is None else where.input
    schema = around.arcs[arc]
    shape = _shape(arc, schema, box)
    size, advance, _ = box.lengths(shape.types[0])
    calls = {name: _call(how, schema) for name, how in box.compute.items()}
    names = {name.lower(): call.name for name, call in calls.items()}
    unique = tuple(dict.fromkeys(calls.values()))
    results = shape.results(unique)
    items = tuple(
        TemplateItem(name, _attribute(_renamed(str(how), names), results))
        for name, how in fields.compute.items()
    )
    slots: list[Slot] = []
    clauses = _clauses(where, {}, Names([schema], {}, parameters), slots)
    kept = _clauses(having, names, Names([results], {}, parameters), slots)
    types = tuple(slot.type for slot in slots)
    return ReadAggregate(shape, size, advance, unique, items, clauses, kept, types), slots


def _boxes(sql: str, around: Surroundings, parameters: Schema | None) -> list[Box]:
    """What the query is compiled into; a parameter is a constant that nobody can write."""
    if parameters is not None:
        sql = _with_constants(sql, parameters)
    arcs, progress, scope = around.arcs, around.progress, around.scope
    compiled = compile_query("query", sql, arcs, progress, scope=scope, streams=around.streams)
    return list(compiled.boxes.values())


def _with_constants(sql: str, parameters: Schema) -> str:
    made, at = "", 0
    in_window = False
    for mark, word in pairwise(tokens(sql)):
        in_window = word.text in ("range", "rows") if mark.text == "[" else in_window
        in_window &= mark.text != "]"
        if mark.text == ":" and word.kind == "word" and word.start == mark.end:
            name = sql[word.start : word.end]
            if in_window:
                raise NetworkError(
                    "BAD_WINDOW", f"all members of a family have the same windows; found :{name}"
                )
            if name not in parameters:
                raise NetworkError(
                    "UNKNOWN_PARAMETER",
                    f"there is no column {name} among the values;"
                    f" {list_existing(parameters.names)}",
                    hint=closest(name, parameters.names),
                )
            field = parameters.field(name)
            made += sql[at : mark.start] + f"CAST('\1{field.name}' AS {field.type}/*\1*/)"
            at = word.end
    return made + sql[at:]


def _parts(boxes: list[Box]) -> tuple[Filter | None, Aggregate, Filter | None, Map]:
    """WHERE, the aggregate, HAVING and the fields of the result."""
    at = int(isinstance(boxes[0], Filter))
    match boxes[:at], boxes[at:]:
        case [*where], [Aggregate() as box, *having, Map() as fields]:
            before, after = (_filter(some) for some in (where, having))
            return before, box, after, fields
    raise NotShared("panes are shared by aggregates over one stream with windows of RANGE")


def _filter(boxes: list[Box]) -> Filter | None:
    if not boxes:
        return None
    (box,) = boxes
    assert isinstance(box, Filter)
    return box


def _shape(arc: str, schema: Schema, box: Aggregate) -> AggregateShape:
    on, by = schema.field(box.order.on), [schema.field(name) for name in box.order.by]
    if on.type.name in FRACTIONAL or (on.type.name == "decimal" and on.type.precision > 18):
        raise NotShared(f"windows over {on.type} have no panes")
    types = (on.type, *(field.type for field in by))
    return AggregateShape(arc, on.name, tuple(field.name for field in by), types)


def _call(how: Any, schema: Schema) -> SharedCall:
    """An aggregate whose partial results can be merged."""
    if not isinstance(how, str):
        raise NotShared("window functions in Python see the tuples of a window in order")
    try:
        (call,) = analyze_aggregate(how, schema).calls
    except NetworkError:  # only Spark can evaluate it
        raise NotShared(f"only Spark can evaluate {how}") from None
    nested = any(type.name in _NESTED for type in call.types)
    mergeable = AGGREGATE_FUNCTIONS[call.name].merges(call.types)
    if not mergeable or call.distinct or nested:
        raise NotShared(f"partial results of {how} can not be merged")
    texts = [*call.args, *([] if call.where is None else [call.where])]
    arguments = tuple(_attribute(text, schema) for text in map(_canonical, texts))
    plain = [argument.text for argument in arguments]
    where = None if call.where is None else plain.pop()
    return SharedCall(replace(call, args=tuple(plain), where=where), arguments)


def _clauses(
    box: Filter | None, renamed: Mapping[str, str], names: Names, slots: list[Slot]
) -> tuple[Clause, ...]:
    """A predicate in conjunctive normal form; its constants go to slots behind those there are."""
    if box is None:
        return ()
    atoms = Atoms(names)
    atoms.slots = slots
    text = _CONSTANT.sub(r":\1", _renamed(str(box.where), renamed))
    found: list[Clause] = []
    try:
        for leaves in atoms.clauses(parse(text)):
            clause = atoms.clause(leaves, 0)
            if isinstance(clause, tuple):
                found.append(clause)
            elif not clause:
                field = atoms.attribute(Name(names.schema.names[0]), 0)
                nothing = atoms.add(Slot(field.type, (), lambda _: [], listed=True))
                found.append((Atom(field, "in", nothing),))
    except OnlySparkError as only:
        raise NotShared(f"only Spark can evaluate {only.what}") from None
    return tuple(found)


def _attribute(text: str, schema: Schema) -> Attribute:
    """An expression that an eddy can evaluate."""
    if _CONSTANT.search(text):
        raise NotShared("parameters of families of aggregates stand in WHERE and HAVING")
    try:
        found = analyze(text, schema)
    except NetworkError:
        raise NotShared(f"only Spark can evaluate {text}") from None
    fields = tuple(sorted(found.fields))  # not as results are listed: others list them otherwise
    return Attribute(found.column or text, found.type, found.column, fields)


def _canonical(text: str) -> str:
    """The same text for what is written with other spaces or in other case."""
    if _CONSTANT.search(text):
        return text
    return " ".join(token.text for token in tokens(text)[:-1])


def _renamed(text: str, names: Mapping[str, str]) -> str:
    """The text with columns called otherwise."""
    made, at = "", 0
    for token in tokens(text):
        name = token.text.strip("`").lower() if token.kind in ("word", "quoted") else ""
        if name in names:
            made += text[at : token.start] + names[name]
            at = token.end
    return made + text[at:]
