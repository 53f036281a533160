"""What Spark says of expressions that only it knows."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from auroral.errors import NetworkError
from auroral.network.types import Schema
from auroral.spark.session.analysis import spark_resolver
from auroral.spark.session.session import step_session

pytestmark = pytest.mark.spark

SCHEMA = Schema.parse("at timestamp, n int, name string")
TYPES = {
    "soundex(name)": "string",
    "width_bucket(n, 0, 10, 5)": "bigint",
    "round(kurtosis(n), 2) + max(n)": "double",
    "array_sort(array(name), (a, b) -> 1)": "array<string>",
    "count(DISTINCT soundex(name)) + kurtosis(n)": "double",
}


def test_types_are_found_without_a_job(spark: SparkSession) -> None:
    resolve = spark_resolver(step_session(spark))
    jobs = spark.sparkContext.statusTracker().getJobIdsForGroup
    before = jobs(None)
    assert {text: str(resolve(text, SCHEMA)) for text in TYPES} == TYPES
    assert jobs(None) == before


def test_a_tuple_may_have_no_field(spark: SparkSession) -> None:
    assert str(spark_resolver(step_session(spark))("soundex('x')", Schema(()))) == "string"


@pytest.mark.parametrize(
    "text",
    [
        "date_format(at, 'bbb')",
        "max(date_format(at, 'bbb'))",
        "date_format(max(at), 'bbb')",
        "max(upper(date_format(max_by(at, n), 'bbb')) || kurtosis(n))",
        "kurtosis(n) > 0 AND max(name RLIKE '(')",
    ],
)
def test_constants_that_can_never_work(spark: SparkSession, text: str) -> None:
    with pytest.raises(NetworkError) as refused:
        spark_resolver(step_session(spark))(text, SCHEMA)
    assert refused.value.code == "BAD_EXPRESSION"


def test_each_mistake_has_its_name(spark: SparkSession) -> None:
    resolve = spark_resolver(step_session(spark))
    for text, code in (("zork(name)", "UNKNOWN_FUNCTION"), ("soundex(zork)", "BAD_EXPRESSION")):
        with pytest.raises(NetworkError) as refused:
            resolve(text, SCHEMA)
        assert refused.value.code == code
        assert "zork" in refused.value.message
