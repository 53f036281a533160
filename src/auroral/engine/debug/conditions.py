"""Conditions over the fields of an arc: checked when they are given, computed on whole columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from auroral.boxes.predicate import require_boolean
from auroral.continuous.sharing.template import Attribute
from auroral.eddy.vectors.compiler import Compiler
from auroral.eddy.vectors.evaluation import TupleColumns
from auroral.eddy.vectors.vector import type_of
from auroral.errors import AuroralError, UsageError
from auroral.network.box import Resolver
from auroral.network.types import Schema, Type
from auroral.spark.plans.attempts import may_raise
from auroral.sql.expressions.expression import analyze, evaluator
from auroral.sql.expressions.parser import parse
from auroral.sql.expressions.syntax import free_names
from auroral.sql.expressions.typed import OnlySparkError

_BOOLEAN = Type("boolean")


class Condition:
    """A predicate over a schema; NULL counts as false.

    >>> hot = Condition("pos > 30", Schema.parse("sid int, pos int"))
    >>> hot.holds(pa.table({"sid": [1, 2, 3], "pos": [29, 31, None]})).tolist()
    [False, True, False]
    """

    def __init__(self, text: str, schema: Schema, resolver: Resolver | None = None):
        if not isinstance(text, str):
            raise UsageError("BAD_CALL", f"a condition is SQL text, not {text!r:.60}")
        self.text = text
        require_boolean(analyze(text, schema, resolver=resolver), text, "condition")
        self._find: Callable[[Any], Any] | None = None
        if not _is_columnar(text, schema):
            self._find = self._row_evaluator(text, schema)

    def _row_evaluator(self, text: str, schema: Schema) -> Callable[[Any], Any]:
        try:
            return evaluator(text, schema)
        except OnlySparkError as error:
            raise UsageError(
                "BAD_CONDITION",
                f"the condition uses {error}, which only Spark can compute",
                hint="use a function of the catalogue",
            ) from None

    def holds(self, table: pa.Table) -> npt.NDArray[np.bool_]:
        """For each tuple whether it satisfies the condition."""
        if not table.num_rows:
            return np.zeros(0, np.bool_)
        if self._find is None:
            found = TupleColumns(table).evaluate(Attribute(self.text, _BOOLEAN)).values
            return np.asarray(pc.fill_null(found, False).to_numpy(zero_copy_only=False), np.bool_)
        return np.array([self._find(row) is True for row in table.to_pylist()], np.bool_)


def _is_columnar(text: str, schema: Schema) -> bool:
    """Whether an expression can be computed on whole columns."""
    if may_raise(text, schema):
        return False
    try:
        tree = parse(text)
        used = [schema.field(name) for name in free_names(tree)]
        computed = Compiler(schema, {}).compile(tree)
    except (AuroralError, OnlySparkError, RecursionError):
        return False
    if computed.fallible or computed.type != _BOOLEAN:
        return False
    return all(type_of(field.type.arrow()) == field.type for field in used)
