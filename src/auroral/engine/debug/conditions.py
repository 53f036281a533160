"""Conditions over the fields of an arc: checked when they are given, computed on whole columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
from auroral.errors import AuroralError, NetworkError, RunError, UsageError
from auroral.network.box import Resolver
from auroral.network.types import Schema, Type
from auroral.spark.plans.attempts import may_raise
from auroral.sql.expressions.bounded import Allowance, bounded_catalogue
from auroral.sql.expressions.expression import analyze, evaluator
from auroral.sql.expressions.parser import parse
from auroral.sql.expressions.syntax import Call, free_names, walk
from auroral.sql.expressions.typed import OnlySparkError
from auroral.sql.functions.catalogue import COSTLY, SqlFunction

_BOOLEAN = Type("boolean")


class Condition:
    """A predicate over a schema; NULL counts as false, and so does what cannot be computed.

    Conditions come from who only looks, and are computed where the engine is: so regular
    expressions are searched in linear time, and what functions make of a tuple is bounded.

    >>> hot = Condition("pos > 30", Schema.parse("sid int, pos int"))
    >>> hot.holds(pa.table({"sid": [1, 2, 3], "pos": [29, 31, None]})).tolist()
    [False, True, False]
    """

    def __init__(self, text: str, schema: Schema, resolver: Resolver | None = None):
        if not isinstance(text, str):
            raise UsageError("BAD_CALL", f"a condition is SQL text, not {text!r:.60}")
        self.text = text
        self._allowance = Allowance()
        catalogue = bounded_catalogue(self._allowance)
        checked = analyze(text, schema, resolver=resolver, catalogue=catalogue)
        require_boolean(checked, text, "condition")
        self._find: Callable[[Any], Any] | None = None
        if not _is_columnar(text, schema):
            self._find = _row_evaluator(text, schema, catalogue)

    def holds(self, table: pa.Table) -> npt.NDArray[np.bool_]:
        """For each tuple whether it satisfies the condition."""
        if not table.num_rows:
            return np.zeros(0, np.bool_)
        if self._find is None:
            found = TupleColumns(table).evaluate(Attribute(self.text, _BOOLEAN)).values
            return np.asarray(pc.fill_null(found, False).to_numpy(zero_copy_only=False), np.bool_)
        return np.array([self._satisfies(self._find, row) for row in table.to_pylist()], np.bool_)

    def _satisfies(self, find: Callable[[Any], Any], row: Any) -> bool:
        self._allowance.renew()
        try:
            return find(row) is True
        except RunError:  # of this tuple: a bad pattern, or too large
            return False


def _row_evaluator(
    text: str, schema: Schema, catalogue: Mapping[str, SqlFunction]
) -> Callable[[Any], Any]:
    try:
        return evaluator(text, schema, catalogue=catalogue)
    except NetworkError as error:
        if error.code != "NOT_IN_REFERENCE":
            raise
        raise UsageError(
            "BAD_CONDITION",
            f"the condition has what only Spark can compute: {error.message}",
            hint="use a function of the catalogue, and write patterns out",
        ) from None


def _is_columnar(text: str, schema: Schema) -> bool:
    """Whether an expression can be computed on whole columns, and without an allowance."""
    try:
        tree = parse(text)
        if any(isinstance(node, Call) and node.name in COSTLY for node in walk(tree)):
            return False
        if may_raise(text, schema):
            return False
        used = [schema.field(name) for name in free_names(tree)]
        computed = Compiler(schema, {}).compile(tree)
    except (AuroralError, OnlySparkError, RecursionError):
        return False
    if computed.fallible or computed.type != _BOOLEAN:
        return False
    return all(type_of(field.type.arrow()) == field.type for field in used)
