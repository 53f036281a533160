"""Queries that no boxes can answer, one tuple at a time: joins of more than two streams, and
queries that call Python functions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal

import pyarrow as pa

from auroral.boxes.order import Order
from auroral.continuous.analysis import QueryTree
from auroral.continuous.functions import PythonFunction
from auroral.network.box import ManyInputs, Scope
from auroral.network.types import Field, Schema, Type
from auroral.reference.calling import called
from auroral.reference.operator import Emission, FunctionFailedError, Now, Row, Tuple
from auroral.reference.progress.marks import passes
from auroral.reference.windowing.order import OrderProgress
from auroral.reference.windowing.windows import oldest
from auroral.sql.expressions.compiler import compile_node
from auroral.sql.expressions.syntax import Call, Name, Node
from auroral.sql.queries.names import substituted

Functions = Mapping[str, PythonFunction]
"""By lower-case name."""


class SelectJoin(ManyInputs):
    """A whole query as one box. The interpreter makes it; it cannot be declared."""

    kind: ClassVar[str] = "query"

    box: Literal["query"] = "query"
    asked: QueryTree
    callables: dict[str, PythonFunction]

    def ports(self, _inputs: Sequence[Schema], _scope: Scope) -> dict[str, Schema]:
        return {"": self.asked.schema}


class ReferenceSelectJoin:
    """Lets every tuple meet all combinations of what came before it on the other sources.

    A tuple that satisfies what the query says of its source alone, and is not late, is kept as
    long as its window lasts. `errors` counts tuples on which a Python function raised.
    """

    def __init__(self, box: SelectJoin, inputs: Sequence[Schema], errors: Counter[str], query: str):
        asked, functions = box.asked, {n.lower(): f for n, f in box.callables.items()}
        self._query, self._errors = query, errors
        self._schemas = inputs
        self._near = asked.near
        self._joined = len(inputs) > 1
        conditions = [
            (c.sides, Predicate(c.tree, asked.fields, functions)) for c in asked.conditions
        ]
        self._own = [
            [p for sides, p in conditions if sides == {place} or (not sides and not place)]
            for place in range(len(inputs))
        ]
        self._whole = [p for sides, p in conditions if len(sides) > 1]
        self._items = {
            name: expression(tree, asked.fields, functions) for name, _, tree in asked.items
        }
        self._progress: list[OrderProgress] = []
        if asked.near is not None and not asked.near.rows:
            orders = zip(asked.near.on, inputs, strict=True)
            self._progress = [OrderProgress(Order(on), schema) for on, schema in orders]
        self._kept: list[list[Tuple | None]] = [[] for _ in inputs]
        """By source, in order of arrival; None counts in windows of rows and matches nothing."""

    def push(self, port: int, arrived: Tuple) -> Iterator[Emission]:
        wanted = self._holds(self._own[port], self._named(port, arrived))
        late = self._progress[port].arrive(arrived.row) if wanted and self._progress else None
        if late:
            yield Emission(None, arrived, late)
        found = arrived if wanted and not late else None
        if self._joined:
            self._keep(port, found)
        if found is not None:
            for parts in self._combined(port, arrived, ()):
                yield from self._result(parts)

    def settle(self, now: Now) -> list[Emission]:
        for progress, promises in zip(self._progress, now.promises, strict=False):
            progress.settle(promises, now.ended)
        for place in range(len(self._progress)):
            self._kept[place] = [t for t in self._kept[place] if self._is_needed(place, t)]
        if now.ended:
            self._kept = [[] for _ in self._kept]
        return []

    def held(self) -> int:
        return sum(one is not None for kept in self._kept for one in kept)

    def _keep(self, port: int, found: Tuple | None) -> None:
        assert self._near is not None
        if found is not None or self._near.rows:
            self._kept[port].append(found)
        if self._near.rows:
            del self._kept[port][: -self._near.rows[port]]

    def _combined(
        self, port: int, arrived: Tuple, before: tuple[Tuple, ...]
    ) -> Iterator[tuple[Tuple, ...]]:
        """All combinations with what the other sources have, in order of their arrival."""
        place = len(before)
        if place == len(self._kept):
            yield before
            return
        for other in [arrived] if place == port else self._kept[place]:
            if other is not None and self._is_near(before, place, other):
                yield from self._combined(port, arrived, (*before, other))

    def _is_near(self, before: Sequence[Tuple], place: int, other: Tuple) -> bool:
        """Whether a part lies in the bands of all before it; those of rows are in windows."""
        return all(self._in_band(at, one, place, other) for at, one in enumerate(before))

    def _in_band(self, i: int, one: Tuple, j: int, other: Tuple) -> bool:
        if not self._progress:
            return True
        assert self._near is not None
        bands = self._near.bands
        a, b = self._progress[i].value(one.row), self._progress[j].value(other.row)
        return bool(a - bands[j][i] <= b <= a + bands[i][j])

    def _is_needed(self, place: int, kept: Tuple | None) -> bool:
        """Whether a tuple may still come that lies near a kept one."""
        assert self._near is not None
        assert kept is not None
        value = self._progress[place].value(kept.row)
        return not all(
            passes(progress.mark_of_all(), value + self._near.bands[place][other])
            for other, progress in enumerate(self._progress)
            if other != place
        )

    def _result(self, parts: Sequence[Tuple]) -> Iterator[Emission]:
        row: Row = {}
        for place, part in enumerate(parts):
            row |= self._named(place, part)
        if not self._holds(self._whole, row):
            return
        made, failed = {}, False
        for name, run in self._items.items():
            try:
                made[name] = run(row)
            except FunctionFailedError:
                made[name], failed = None, True
        self._errors[self._query] += failed
        yield Emission("", Tuple(made, oldest(list(parts))))

    def _named(self, place: int, part: Tuple) -> Row:
        """The fields of a part as expressions call them."""
        if not self._joined:
            return part.row
        return {f"s{place}.{name}": value for name, value in part.row.items()}

    def _holds(self, predicates: Sequence[Predicate], row: Row) -> bool:
        """Whether all hold; if all others do, one that failed is an error of the query."""
        found = [predicate.holds(row) for predicate in predicates]
        if False in found:
            return False
        self._errors[self._query] += None in found
        return None not in found


class Predicate:
    """A part of WHERE: alternatives of which one must hold."""

    def __init__(self, tree: Node, fields: Schema, functions: Functions):
        self._alternatives = [expression(each, fields, functions) for each in _alternatives(tree)]

    def holds(self, row: Row) -> bool | None:
        """Whether it holds for a row; None if a Python function failed and no other one does."""
        failed = False
        for run in self._alternatives:
            try:
                if run(row) is True:
                    return True
            except FunctionFailedError:
                failed = True
        return None if failed else False


def _alternatives(tree: Node) -> list[Node]:
    if isinstance(tree, Call) and tree.name == "or":
        return [each for arg in tree.args for each in _alternatives(arg)]
    return [tree]


def expression(tree: Node, fields: Schema, functions: Functions) -> Callable[[Row], Any]:
    """An expression as a function of a row; what Python functions return are fields of the row."""
    return _compiled(tree, fields, functions)[1]


def _compiled(
    tree: Node, fields: Schema, functions: Functions
) -> tuple[Type, Callable[[Row], Any]]:
    calls: dict[str, Callable[[Row], Any]] = {}
    results: list[Field] = []

    def look(node: Node) -> Node | None:
        if not isinstance(node, Call) or node.name not in functions:
            return None
        name, function = f"call {len(calls)}", functions[node.name]
        calls[name] = _call(function, [_compiled(arg, fields, functions) for arg in node.args])
        results.append(Field(name, function.returns))
        return Name(name)

    plain = substituted(tree, look)
    typed = compile_node(plain, Schema((*fields.fields, *results)))

    def run(row: Row) -> Any:
        return typed.run(row | {name: call(row) for name, call in calls.items()})

    return typed.type, run


def _call(
    function: PythonFunction, arguments: Sequence[tuple[Type, Callable[[Row], Any]]]
) -> Callable[[Row], Any]:
    """A Python function as a function of a row; it sees Arrow arrays of one value each."""

    def call(row: Row) -> Any:
        arrays = [pa.array([run(row)], type.arrow()) for type, run in arguments]
        return called(function.udf, function.returns, arrays)

    return call
