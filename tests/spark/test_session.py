"""Sessions: whose settings hold in which thread."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from pyspark.sql import SparkSession

from auroral.spark.session.session import active, start_session, step_session

pytestmark = pytest.mark.spark

SETTING = "spark.sql.mapKeyDedupPolicy"


def setting(session: SparkSession) -> str:
    """What Spark reads in this thread."""
    java: Any = session._jvm
    return str(java.org.apache.spark.sql.internal.SQLConf.get().getConfString(SETTING, "EXCEPTION"))


@pytest.mark.parametrize("has_own", [False, True])
def test_settings_of_steps_hold_while_code_is_generated(spark: SparkSession, has_own: bool) -> None:
    def run() -> list[str]:
        if has_own:
            spark.createDataFrame([(1,)], "x int")  # makes the session the thread's own
        before = SparkSession.getActiveSession()
        found = [setting(spark)]
        with active(step_session(spark)):
            found.append(setting(spark))
        assert (SparkSession.getActiveSession() is None) == (before is None) == (not has_own)
        return [*found, setting(spark)]

    with ThreadPoolExecutor(1) as others:
        assert others.submit(run).result() == ["EXCEPTION", "LAST_WIN", "EXCEPTION"]


def test_another_thread_finds_the_session_and_leaves_it_as_it_is(spark: SparkSession) -> None:
    key = "spark.sql.shuffle.partitions"
    before = spark.conf.get(key)
    try:
        spark.conf.set(key, "7")
        with ThreadPoolExecutor(1) as others:
            found = others.submit(start_session).result()
        assert found.sparkContext is spark.sparkContext
        assert spark.conf.get(key) == "7"
    finally:
        spark.conf.set(key, before or "2")
