"""The Spark session: embedded and quiet by default, bound to loopback."""

from __future__ import annotations

import atexit
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from auroral.errors import RunError, UsageError
from auroral.spark.session.java import require_java
from auroral.storage.temporary import TemporaryDirectory

_QUIET = Path(__file__).with_name("log4j2.properties")
_LONGEST = 60

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
    # A map that raises leaves what it had begun to the next tuple (spark/plans/attempts.py).
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}


_for_analysis = False
"""Whether the session of this process was started only to type an expression."""


def start_session(
    master: str = "local[*]",
    name: str = "auroral",
    *,
    for_analysis: bool = False,
    jars: Sequence[str | Path] = (),
) -> SparkSession:
    """A new session, or the one this process has already; `jars` hold connectors."""
    _require_master(master)
    paths = _existing(jars)
    global _for_analysis  # noqa: PLW0603
    active = _present()
    if active is not None and _for_analysis and not for_analysis:
        if active.sparkContext.master != master or not _has_jars(active, paths):
            active.stop()
            active = None
        _for_analysis = False
    if active is not None:
        found = active.sparkContext.master
        if master != "local[*]" and found != master:
            raise UsageError(
                "OTHER_MASTER",
                f"this process has a Spark session on {found}, not {master}",
                hint="stop it first, or pass it as Engine(spark=…)",
            )
        if not _has_jars(active, paths):
            raise UsageError(
                "OTHER_JARS",
                "this process has a Spark session that was started without these jars:"
                f" {', '.join(paths)}",
                hint="stop it first, or start it with spark.jars and pass it as Engine(spark=…)",
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
        "spark.driver.extraJavaOptions": _java_options(),
        "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
        "spark.python.worker.reuse": "true",
        # Steps of several superboxes share the cores; each has a pool of its own.
        "spark.scheduler.mode": "FAIR",
        # Over TCP every task waits 40 ms for a delayed acknowledgement.
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.sql.warehouse.dir": str(_place() / "warehouse"),
    }
    if paths:
        settings["spark.jars"] = ",".join(paths)
    if master.startswith("local"):
        settings["spark.driver.host"] = "127.0.0.1"
        settings["spark.driver.bindAddress"] = "127.0.0.1"
        # A task that wants more memory than there is fails alone: the process is everybody's.
        settings["spark.executor.killOnFatalError.depth"] = "0"
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        with _jvm_output_to(_log_path()):
            session = builder.getOrCreate()
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else repr(error)
        raise RunError("SPARK_DID_NOT_START", f"{reason}", where=f"master {master}") from error
    _for_analysis = for_analysis
    return session


def _existing(jars: Sequence[str | Path]) -> list[str]:
    """The paths of jars; Spark would only log that one is missing."""
    for jar in jars:
        if not Path(jar).is_file():
            hint = "give paths of files; Spark downloads no Maven coordinates here"
            raise UsageError("NO_JAR", "there is no such jar", where=str(jar), hint=hint)
    return [str(Path(jar).absolute()) for jar in jars]


def _has_jars(session: SparkSession, paths: Sequence[str]) -> bool:
    """Whether a session was started with these jars."""
    found = session.sparkContext.getConf().get("spark.jars", "") or ""
    return set(paths) <= {jar.removeprefix("file://") for jar in found.split(",")}


def _require_master(master: Any) -> None:
    """Refuse what Spark would; its Java ends then without a word to us."""
    if not isinstance(master, str) or not master.startswith(("local", "spark:", "k8s:", "yarn")):
        problem = f"there is no Spark master {master}"
        hint = "as in local[*], local[4], spark://host:7077, k8s://https://host:443, yarn"
        raise UsageError("BAD_OPTION", problem, hint=hint)


def _present() -> SparkSession | None:
    """The session of this thread, else that of the process."""
    found = SparkSession.getActiveSession() or SparkSession._instantiatedSession
    return None if found is None or found.sparkContext._jsc is None else found


@cache
def _place() -> Path:
    """Where Spark has its temporary files: they go with us, or when the next run starts."""
    temporary = TemporaryDirectory()
    atexit.register(temporary.release)
    return temporary.path


def _java_options() -> str:
    """Settings of the JVM; sockets among its temporary files need a short path."""
    place = str(_place())
    own = f" -Djava.io.tmpdir={place}" if len(place) <= _LONGEST and " " not in place else ""
    return f"-Dlog4j2.configurationFile=file:{_QUIET}{own}"


def _log_path() -> Path:
    """Where the JVM and Python workers write: `AURORAL_SPARK_LOG`, or a file that goes with us."""
    return Path(os.environ.get("AURORAL_SPARK_LOG") or _place() / "spark.log")


@contextmanager
def _jvm_output_to(path: Path) -> Iterator[None]:
    """The JVM inherits our standard error; while it starts, that is a file."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with path.open("ab") as log:
            os.dup2(log.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def step_session(session: SparkSession) -> SparkSession:
    """A session on the same context with its own settings; the user's stay as they are."""
    own = session.newSession()
    for key, value in STEP_SETTINGS.items():
        own.conf.set(key, value)
    return own


@contextmanager
def active(session: SparkSession) -> Iterator[None]:
    """Where Spark generates code without running it: it takes the settings of the thread."""
    java: Any = session._jvm
    sessions = java.org.apache.spark.sql.classic.SparkSession
    before = sessions.getActiveSession()
    sessions.setActiveSession(session._jsparkSession)
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


def cores_of(master: str) -> int:
    """How many tasks a master runs at once; of a cluster's, which only it knows, a guess.

    >>> cores_of("local"), cores_of("local[3]"), cores_of("local[4,2]")
    (1, 3, 4)
    """
    if master == "local":
        return 1
    found = re.match(r"local\[(\d+)", master)
    return max(int(found[1]), 1) if found else os.cpu_count() or 2


def is_local(session: SparkSession) -> bool:
    return str(session.sparkContext.master).startswith("local")


def _driver_memory() -> str:
    """A quarter of the machine, between 1 and 4 GB."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{max(1024, min(4096, total // 4 // (1 << 20)))}m"
