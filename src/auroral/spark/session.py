"""The Spark session: embedded and quiet by default, bound to loopback."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from auroral.errors import RunError, UsageError
from auroral.spark.java import require_java

_QUIET = Path(__file__).with_name("log4j2.properties")

# Steps are small jobs over few files: adaptive execution and many partitions only cost time.
# Without ANSI mode an expression never fails a train (docs/adr/0005).
STEP_SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.files.minPartitionNum": "1",
    "spark.sql.files.openCostInBytes": str(4 << 20),
    "spark.sql.files.maxPartitionBytes": str(128 << 20),
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
    "spark.sql.execution.arrow.pyspark.selfDestruct.enabled": "false",
    "spark.sql.parquet.enableVectorizedReader": "true",
    "spark.sql.caseSensitive": "false",
}


def start_session(master: str = "local[*]", name: str = "auroral") -> SparkSession:
    """A new session, or the one this process has already."""
    active = SparkSession.getActiveSession()
    if active is not None:
        found = active.sparkContext.master
        if master != "local[*]" and found != master:
            raise UsageError(
                "OTHER_MASTER",
                f"this process has a Spark session on {found}, not {master}",
                hint="stop it first, or pass it as Engine(spark=…)",
            )
        return active
    require_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName(name)
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.ui.retainedJobs": "10",
        "spark.ui.retainedStages": "10",
        "spark.sql.ui.retainedExecutions": "10",
        "spark.driver.memory": os.environ.get("AURORAL_DRIVER_MEMORY", _driver_memory()),
        "spark.driver.maxResultSize": "1g",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile=file:{_QUIET}",
        "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
        "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
        "spark.python.worker.reuse": "true",
    }
    if master.startswith("local"):
        settings["spark.driver.host"] = "127.0.0.1"
        settings["spark.driver.bindAddress"] = "127.0.0.1"
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        session = builder.getOrCreate()
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else repr(error)
        raise RunError("SPARK_DID_NOT_START", f"{reason}", where=f"master {master}") from error
    return session


def step_session(session: SparkSession) -> SparkSession:
    """A session on the same context with its own settings; the user's stay as they are."""
    own = session.newSession()
    for key, value in STEP_SETTINGS.items():
        own.conf.set(key, value)
    return own


def is_local(session: SparkSession) -> bool:
    return session.sparkContext.master.startswith("local")


def _driver_memory() -> str:
    """A quarter of the machine, between 1 and 4 GB."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{max(1024, min(4096, total // 4 // (1 << 20)))}m"
