"""Constants in expressions that can never work: patterns, formats, names of zones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from auroral.spark.session.causes import lies_in_values, reason
from auroral.spark.session.session import active
from auroral.sql.expressions.parser import parse
from auroral.sql.expressions.syntax import Call, Literal, walk

_PATTERNS = frozenset(
    (
        "regexp",
        "regexp_count",
        "regexp_extract",
        "regexp_extract_all",
        "regexp_instr",
        "regexp_like",
        "regexp_replace",
        "regexp_substr",
        "rlike",
        "split",
    )
)


def impossible(chosen: DataFrame, text: str) -> str | None:
    """Why an expression that Spark has typed cannot be computed for any tuple; None if it may.

    `chosen` is the expression over rows that Spark does not know to be none. Its code is
    generated and nothing is run: the code makes constant patterns and formats before it sees
    the first tuple. What would be made with the first tuple is made here.
    """
    session = chosen.sparkSession
    java: Any = session._jvm
    generator = java.org.apache.spark.sql.catalyst.expressions.codegen.GenerateUnsafeProjection
    try:
        with active(session):
            _make_constants(session, text)
            for expressions, fields in _computed(chosen):
                generator.generate(expressions, fields)
    except (PySparkException, Py4JError) as error:
        return reason(error) if lies_in_values(error) else None
    return None


def _computed(chosen: DataFrame) -> Iterator[tuple[Any, Any]]:
    """Spark's expressions and the fields they read: of a tuple, and of what was aggregated."""
    execution = chosen._jdf.queryExecution()
    plan = execution.optimizedPlan()
    fields = plan.collectLeaves().head().output()
    if plan.nodeName() != "Aggregate":
        yield plan.expressions(), fields
        return
    for arguments in _aggregated(plan.expressions()):
        yield arguments, fields
    last = execution.sparkPlan()
    yield last.resultExpressions(), last.aggregateAttributes()


def _aggregated(expressions: Any) -> Iterator[Any]:
    """What each aggregate function among expressions takes."""
    for at in range(expressions.size()):
        node = expressions.apply(at)
        if node.nodeName() == "AggregateExpression":
            yield node.aggregateFunction().children()
        else:
            yield from _aggregated(node.children())


def _make_constants(session: SparkSession, text: str) -> None:
    jvm: Any = session._jvm
    for node in walk(parse(text)):
        match node:
            case Call(name, (_, Literal(str() as value), *_)) if name in _PATTERNS:
                jvm.java.util.regex.Pattern.compile(value)
            case Call("encode" | "decode", (_, Literal(str() as value))):
                constant = session.range(1).select(F.encode(F.lit(""), value))
                constant._jdf.queryExecution().optimizedPlan()
