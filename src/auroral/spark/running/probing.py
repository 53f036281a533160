"""How long Spark's code for the expressions of a box takes: a trial with some real tuples.

The driver generates the code that tasks would run, and runs it in the thread that asks. It is not
a job, so that it neither waits for steps nor keeps them waiting, and only the processor time of
the thread counts, however busy the machine is. So the result can be compared with the time that
tasks spend in Python functions: seconds of one core for a tuple.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from auroral.optimizer import Probe
from auroral.spark.plans.attempts import computed
from auroral.spark.session.session import active

_LEAST_S = 0.2
_LEAST_PASSES = 3
_MOST_PASSES = 100
_FIRST_ROWS = 10
"""A trial takes so much processor time, in passes over the tuples, of which the first are slow:
Java compiles. The fastest one counts. A few tuples tell first how many a pass can have."""


def probed_seconds(session: SparkSession, probe: Probe, rows: pa.Table) -> float:
    """The seconds that the expressions of a probe take for one of some tuples of its log.

    The tuples have their fields and `_seq`.
    """
    jvm: Any = session._jvm
    clock = jvm.java.lang.management.ManagementFactory.getThreadMXBean()
    given = _inputs(session, probe, rows)
    with active(session):
        tuples = _rows(given)
        project = _projection(jvm, given, probe)

    def pass_s(count: int) -> float:
        """The processor time of one pass over so many tuples."""
        some = (
            jvm.scala.collection.immutable.ArraySeq.unsafeWrapArray(tuples).iterator().take(count)
        )
        before = clock.getCurrentThreadCpuTime()
        some.foreach(project)
        return float(clock.getCurrentThreadCpuTime() - before) / 1e9

    calling_s = min(pass_s(0) for _ in range(10))
    first_s = max(pass_s(_FIRST_ROWS), 1e-9) / _FIRST_ROWS
    count = max(min(rows.num_rows, int(_LEAST_S / first_s)), _FIRST_ROWS)
    passes: list[float] = []
    while len(passes) < _LEAST_PASSES or (sum(passes) < _LEAST_S and len(passes) < _MOST_PASSES):
        passes.append(pass_s(count))
    spent_s: float = max(min(passes) - calling_s, 0.0)
    return float(spent_s / count)


def _inputs(session: SparkSession, probe: Probe, rows: pa.Table) -> DataFrame:
    """What the expressions read."""
    data = session.createDataFrame(rows)
    for layer in probe.layers:
        made = [computed(text, layer.schema).alias(name) for name, text in layer.texts]
        data = data.select("_seq", *made)
    return data.select("_seq", *(f"`{name}`" for name in probe.reads))


def _rows(data: DataFrame) -> Any:
    """Rows as Spark has them; those of a table in the driver need no job."""
    return data._jdf.queryExecution().executedPlan().executeCollect()


def _projection(jvm: Any, given: DataFrame, probe: Probe) -> Any:
    """The code that Spark generates for the expressions.

    They are planned over rows that Spark does not know, or it would evaluate them at once.
    """
    session = given.sparkSession
    java: Any = session._jsparkSession
    context: Any = session.sparkContext._jsc
    nothing = context.parallelize([], 1)
    unknown = DataFrame(
        java.createDataFrame(nothing, java.parseDataType(given.schema.json())), session
    )
    made = [
        computed(text, probe.schema).alias(f"made{number}")
        for number, text in enumerate(probe.texts)
    ]
    plan: Any = unknown.select(*made)._jdf.queryExecution().optimizedPlan()
    generator = jvm.org.apache.spark.sql.catalyst.expressions.UnsafeProjection
    # Nothing of it can be called from here: Java has many generated classes of one name.
    return generator.create(plan.projectList(), plan.child().output())
