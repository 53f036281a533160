"""From boxes to computations on whole columns, where every expression has one.

What has none (functions that only Spark knows, casts of texts, Python functions) stays with
Spark. Both give the same values: whole columns are computed as the row evaluator computes tuples,
which agrees with Spark (tests/eddy/test_evaluation.py, tests/sql/test_conformance.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from auroral.boxes import Filter, Map, Union
from auroral.boxes.filter import REST
from auroral.eddy.vectors.compiler import Compiler
from auroral.eddy.vectors.vector import type_of
from auroral.errors import AuroralError
from auroral.ids import ArcId
from auroral.network.check import CheckedNetwork
from auroral.network.types import Schema, Type
from auroral.scheduling.superboxes import Superbox
from auroral.spark.plans.attempts import may_raise
from auroral.spark.plans.lowering import roots
from auroral.spark.plans.physical import Physical
from auroral.spark.running.column_boxes import (
    ColumnBoxes,
    ColumnFilter,
    ColumnMap,
    ColumnStage,
    ColumnUnion,
    ComputedColumn,
    kernel_input,
)
from auroral.sql.expressions.function_calls import called_of
from auroral.sql.expressions.parser import parse
from auroral.sql.expressions.syntax import free_names
from auroral.sql.expressions.typed import OnlySparkError


class _NotColumnsError(Exception):
    """Something has to be evaluated by Spark."""


def columns_before_kernel(
    checked: CheckedNetwork, superbox: Superbox, physical: Physical
) -> ColumnBoxes | None:
    """The boxes before a kernel, and the expressions it takes; None if Spark must evaluate some."""
    assert superbox.stateful is not None
    arcs = checked.network.boxes[superbox.stateful].sources()
    needs = _Needs(checked, superbox)
    for arc in arcs_before_kernel(checked, superbox):
        needs.add(arc, checked.arcs[arc].schema.names)
    inputs: list[ColumnStage] = []
    try:
        for port, (arc, columns) in enumerate(zip(arcs, physical.inputs, strict=True)):
            schema = columns.schema
            made = tuple(
                ComputedColumn(name, _field(text, schema), text, type)
                for name, (text, type) in columns.texts.items()
            )
            needs.add(arc, needs.of_columns(made, schema))
            inputs.append(ColumnMap(arc, kernel_input(port), made))
        stages = _stages(checked, superbox, needs)
    except _NotColumnsError:
        return None
    return ColumnBoxes(needs.read(), (*stages, *inputs))


def in_columns(text: str, schema: Schema) -> bool:
    """Whether a predicate can be computed on whole columns."""
    try:
        _fields_of(text, Type("boolean"), schema)
    except _NotColumnsError:
        return False
    return True


def arcs_before_kernel(checked: CheckedNetwork, superbox: Superbox) -> list[str]:
    """The arcs of a superbox that are written to logs, although a kernel runs behind them."""
    return [a for a in superbox.terminals if checked.arcs[a].producer != superbox.stateful]


def columns_of_superbox(checked: CheckedNetwork, superbox: Superbox) -> ColumnBoxes | None:
    """The boxes of a superbox that remembers nothing; None if Spark must evaluate some."""
    needs = _Needs(checked, superbox)
    for arc in superbox.terminals:
        unread = checked.unread.get(arc, frozenset())
        needs.add(arc, [name for name in checked.arcs[arc].schema.names if name not in unread])
    try:
        stages = _stages(checked, superbox, needs)
    except _NotColumnsError:
        return None
    return ColumnBoxes(needs.read(), stages)


class _Needs:
    """Which fields of each arc are needed; filled from the end of the flow to its beginning."""

    def __init__(self, checked: CheckedNetwork, superbox: Superbox):
        self._checked = checked
        self._sources = superbox.sources
        self._fields: dict[str, set[str]] = {}

    def add(self, arc: str, fields: Iterable[str]) -> None:
        self._fields.setdefault(arc, set()).update(fields)

    def __contains__(self, arc: str) -> bool:
        return arc in self._fields

    def of(self, arc: str) -> tuple[str, ...]:
        """The needed fields of an arc, in its order."""
        wanted = self._fields.get(arc, set())
        return tuple(name for name in self._checked.arcs[arc].schema.names if name in wanted)

    def read(self) -> dict[str, pa.Schema]:
        """What is needed of the arcs that are read from logs; tables are read otherwise."""
        logs = [arc for arc in self._sources if arc in self._checked.arcs]
        return {arc: _arrow(self._checked.arcs[arc].schema, self.of(arc)) for arc in logs}

    def of_columns(self, columns: Sequence[ComputedColumn], schema: Schema) -> set[str]:
        """The fields that columns are made of; Spark's are refused."""
        found: set[str] = set()
        for column in columns:
            if column.field is not None:
                found.add(column.field)
            else:
                found |= _fields_of(column.text, column.type, schema)
        return found


def _stages(checked: CheckedNetwork, superbox: Superbox, needs: _Needs) -> tuple[ColumnStage, ...]:
    functions = {name.lower() for name in checked.network.functions}
    stages: list[ColumnStage] = []
    for name in reversed(superbox.boxes):
        if name == superbox.stateful:
            continue
        box = checked.network.boxes[name]
        if isinstance(box, Filter):
            stages.append(_filter(checked, name, box, needs, functions))
        elif isinstance(box, Map):
            stages.append(_map(checked, name, box, needs, functions))
        elif isinstance(box, Union):
            stages.append(_union(checked, superbox, name, box, needs))
        else:
            raise _NotColumnsError
    return tuple(reversed(stages))


def _filter(
    checked: CheckedNetwork, name: str, box: Filter, needs: _Needs, functions: set[str]
) -> ColumnFilter:
    (source,) = box.sources()
    schema = checked.arcs[source].schema
    ports = [(str(ArcId(name, port)), text) for port, text in box.predicates.items()]
    rest = str(ArcId(name, REST))
    for arc, text in ports:
        _refuse_calls(text, functions)
        needs.add(source, _fields_of(text, Type("boolean"), schema))
        needs.add(source, needs.of(arc))
    wanted = rest in needs
    needs.add(source, needs.of(rest))
    return ColumnFilter(source, tuple(ports), rest if wanted else None)


def _map(
    checked: CheckedNetwork, name: str, box: Map, needs: _Needs, functions: set[str]
) -> ColumnMap:
    (source,) = box.sources()
    schema, output = checked.arcs[source].schema, checked.arcs[name].schema
    if box.functions():
        raise _NotColumnsError
    for text in box.texts.values():
        _refuse_calls(text, functions)
    kept = set(box.kept(schema))
    columns = tuple(
        ComputedColumn(field, field, "", output.field(field).type)
        if field in kept
        else ComputedColumn(field, None, box.texts[field], output.field(field).type)
        for field in needs.of(name)
    )
    needs.add(source, needs.of_columns(columns, schema))
    return ColumnMap(source, name, columns)


def _union(
    checked: CheckedNetwork, superbox: Superbox, name: str, box: Union, needs: _Needs
) -> ColumnUnion:
    names = needs.of(name)
    at = [checked.arcs[name].schema.names.index(field) for field in names]
    fields = []
    for source in box.sources():
        given = checked.arcs[source].schema.names
        fields.append(tuple(given[n] for n in at))
        needs.add(source, fields[-1])
    # One moment can come by several inputs only if they have a root in common.
    groups = [
        {root for log in _logs(checked, superbox, source) for root in roots(checked, log)}
        for source in box.sources()
    ]
    ranked = len(set().union(*groups)) < sum(map(len, groups))
    return ColumnUnion(box.sources(), name, tuple(fields), names, ranked)


def _logs(checked: CheckedNetwork, superbox: Superbox, arc: str) -> set[str]:
    """The logs that an arc within a superbox is made of."""
    if arc in superbox.sources:
        return {arc}
    sources = checked.network.boxes[checked.arcs[arc].producer].sources()
    return {log for source in sources for log in _logs(checked, superbox, source)}


def _arrow(schema: Schema, names: Iterable[str]) -> pa.Schema:
    return pa.schema([pa.field(name, schema.field(name).type.arrow()) for name in names])


def _refuse_calls(text: str, functions: set[str]) -> None:
    if called_of(text, functions):
        raise _NotColumnsError


def _field(text: str, schema: Schema) -> str | None:
    """The field that an expression is."""
    bare = text.strip().strip("`")
    return schema.field(bare).name if bare in schema else None


def _fields_of(text: str, type: Type, schema: Schema) -> set[str]:
    """The fields an expression reads; refuse one that whole columns cannot give."""
    if may_raise(text, schema):
        raise _NotColumnsError
    try:
        tree = parse(text)
        used = {schema.field(name) for name in free_names(tree)}
        computed = Compiler(schema, {}).compile(tree)
    except (AuroralError, OnlySparkError, RecursionError):
        raise _NotColumnsError from None
    if computed.fallible or computed.type != type:
        raise _NotColumnsError
    if any(type_of(field.type.arrow()) != field.type for field in used):
        raise _NotColumnsError
    return {field.name for field in used}
