"""One Spark session for the whole run, and engines whose stores are checked afterwards."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from tests.hunting import Hunt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from auroral import Network
    from auroral.engine import Engine
    from auroral.storage import Store

    MakeEngine = Callable[..., AbstractContextManager[Engine]]

# The same examples on every machine, however slow it is.
settings.register_profile(
    "auroral", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
# Examples that a seed decides, and nothing that an earlier run left behind.
settings.register_profile(
    "hunt", settings.get_profile("auroral"), derandomize=False, database=None, print_blob=False
)
settings.load_profile("auroral")

# Every engine of a test raises if a thread takes its locks in the wrong order.
os.environ["AURORAL_CHECK_LOCK_ORDER"] = "1"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("hunt", "trying the laws with fresh seeds; see `make hunt`")
    group.addoption("--hunt", type=int, metavar="SEED", help="run only laws, with this seed")
    group.addoption("--hunt-until", type=float, metavar="TIME", help="stop at this Unix time")


def pytest_configure(config: pytest.Config) -> None:
    seed = config.getoption("--hunt")
    if seed is not None:
        settings.load_profile("hunt")
        config.pluginmanager.register(Hunt(seed, config.getoption("--hunt-until")))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session as steps have it: ANSI mode off, UTC."""
    from auroral.spark.session.session import start_session

    session = start_session("local[2]")
    session.conf.set("spark.sql.ansi.enabled", "false")
    session.conf.set("spark.sql.session.timeZone", "UTC")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def make_engine(spark: SparkSession) -> MakeEngine:
    """Engines for the length of a block: `with make_engine(network, train=3) as engine`.

    A block that a BaseException leaves has crashed: the engine is dropped as it stands, and
    another one may open its state directory.
    """
    from auroral.engine import Engine

    @contextmanager
    def running(network: Network, *, bind: Any = (), **options: Any) -> Iterator[Engine]:
        engine = Engine(network, spark=spark, **{"background": False, **options})
        for one in bind:
            engine.bind_source(one) if hasattr(one, "poll") else engine.bind_sink(*one)
        engine.start()
        try:
            yield engine
            if engine._loop.failure is None:
                require_sound(engine._store)
        except Exception:
            engine.shutdown()
            raise
        except BaseException:
            # Nothing is sealed, flushed or finished; only the directory's lock is released.
            engine._started = False
            engine._store.close()
            raise
        engine.shutdown()

    return running


def require_sound(store: Store) -> None:
    """The invariants of a state directory between steps."""
    segments = store.manifest.segments()
    for name in {segment.log for segment in segments}:
        log = [segment for segment in segments if segment.log == name]
        held = store.segments(name)
        assert sorted(s.id for s in log) == sorted(s.id for s in held), f"{name}: not as in memory"
        assert [s.first for s in held] == sorted(s.first for s in held), f"{name}: out of order"
        assert all(s.first <= s.last < s.complete_before for s in log), (
            f"{name}: a segment is not sealed"
        )
        assert all(s.complete_before <= store.next_moment for s in log), (
            f"{name}: beyond the last moment"
        )
    for (log_name, consumer), (head, tail) in store.manifest.cursors().items():
        assert 0 <= tail <= head <= store.next_moment, f"{log_name}, {consumer}: {tail}, {head}"
    assert store.manifest.open_steps() == [], "a step was recorded and never committed"
    files = {path.name for path in store.segments_directory.iterdir()}
    assert files == {s.file for s in segments if s.file}, "files and segments differ"
