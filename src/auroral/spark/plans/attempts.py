"""Expressions as Spark columns: what cannot be computed is NULL (docs/adr/0005)."""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.classic.column import Column as ClassicColumn
from pyspark.sql.utils import get_active_spark_context

from auroral.errors import NetworkError
from auroral.network.types import Schema
from auroral.sql.expressions.compiler import compile_node
from auroral.sql.expressions.parser import parse
from auroral.sql.expressions.syntax import Call, Cast, Literal, Node, walk
from auroral.sql.expressions.typed import OnlySparkError

_RAISING = frozenset(
    (
        "add_months",
        "date_trunc",
        "element_at",
        "hour",
        "ilike",
        "like",
        "minute",
        "second",
        "timestamp_millis",
        "timestamp_seconds",
        "to_timestamp",
        "to_unix_timestamp",
        "unix_timestamp",
    )
)
"""Functions of the catalogue that Spark cannot compute for some values, ANSI mode or not.

An index of 0, a pattern that ends in its escape, times beyond what 64 bits hold.
"""

_MAP_MAKERS = frozenset(("map", "map_from_arrays", "map_from_entries", "transform_keys"))
"""A NULL key stops them halfway, and what they had begun would be in the next tuple's map."""


def computed(text: str, schema: Schema) -> Column:
    """The column of an expression over a schema, among columns with `_seq`."""
    column = F.expr(text)
    return _attempted(column) if may_raise(text, schema) else column


def may_raise(text: str, schema: Schema) -> bool:
    """Whether Spark may raise, and can go on with the next tuple.

    >>> [may_raise(text, Schema.parse("x int")) for text in ("x / 0 > 1", "sequence(x, 5)")]
    [False, True]
    """
    try:
        tree = parse(text)
        if any(isinstance(node, Call) and node.name in _MAP_MAKERS for node in walk(tree)):
            return False
        compile_node(tree, schema)
    except (OnlySparkError, NetworkError, RecursionError):
        return True
    return any(map(_raises, walk(tree)))


def _raises(node: Node) -> bool:
    match node:
        case Call("like" | "ilike", (_, Literal(), *_)):
            return False  # it was looked at when it was read
        case Call(name):
            return name in _RAISING
        case Literal(type=type):
            return type.name.startswith("interval")
        case Cast(to=type):
            return type.name.startswith("timestamp")
    return False


def _attempted(column: Column) -> Column:
    """The column, NULL where Spark raises.

    It is a branch, although `_seq` is never NULL: what two attempts have in common Spark would
    otherwise compute once, outside of both.
    """
    jvm: Any = get_active_spark_context()._jvm
    bridge = jvm.org.apache.spark.sql.classic.ExpressionUtils
    attempt = jvm.org.apache.spark.sql.catalyst.expressions.TryEval(bridge.expression(column._jc))
    return F.when(F.col("_seq").isNotNull(), ClassicColumn(bridge.column(attempt)))
