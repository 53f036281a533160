"""SQL over kept history and tables, answered by Spark."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from pyspark import StatusTracker
from pyspark.sql import SparkSession

import auroral as au
from auroral.engine.points.look import KeptRows
from auroral.errors import RunError, UsageError

from .test_attach import feed, network

if TYPE_CHECKING:
    from tests.conftest import MakeEngine

pytestmark = pytest.mark.spark


def test_history_and_tables_are_read(make_engine: MakeEngine) -> None:
    net = network({"rows": 6})
    net.table("names", "sid int, name string")
    names = [{"sid": 0, "name": "zero"}, {"sid": 1, "name": "one"}]
    with make_engine(net, tables={"names": names}) as engine:
        assert engine.sql("SELECT count(*) AS n FROM recent").to_pylist() == [{"n": 0}]
        for start in range(0, 40, 4):
            feed(engine, range(start, start + 4))
        found = engine.sql("SELECT t FROM recent ORDER BY t")
        assert found["t"].to_pylist() == [33, 34, 35, 37, 38, 39]
        found = engine.sql(
            "SELECT name, count(*) AS n FROM recent r JOIN names USING (sid) GROUP BY name"
            " ORDER BY name"
        )
        assert found.to_pylist() == [{"name": "one", "n": 2}, {"name": "zero", "n": 2}]
        feed(engine, range(40, 44))
        assert engine.sql("SELECT max(t) AS t FROM recent").to_pylist() == [{"t": 43}]
        with pytest.raises(UsageError, match="there is no table"):
            engine.sql("SELECT * FROM reports")
        with pytest.raises(RunError, match="nothing") as raised:
            engine.sql("SELECT nothing FROM recent")
        assert raised.value.code == "BAD_SELECT"


def test_a_select_is_limited_and_can_be_ended(make_engine: MakeEngine) -> None:
    with make_engine(network({"rows": 4000})) as engine:
        feed(engine, range(4000))
        found = engine.sql("SELECT t FROM recent ORDER BY t DESC", 3, job="limited")
        assert found["t"].to_pylist() == [3999, 3998, 3997]
        context = SparkSession.active().sparkContext
        assert context.getLocalProperty("spark.jobGroup.id") is None
        endless = "SELECT count(*) FROM recent a, recent b, recent c WHERE a.t + b.t + c.t = 1.5"
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(engine.sql, endless, 10, job="endless")
            tracker = context.statusTracker()
            while not tracker.getJobIdsForGroup("endless") and not asked.done():
                pass
            engine.cancel_sql("endless")
            with pytest.raises(RunError, match="BAD_SELECT"):
                asked.result(60)
        # Nothing is left behind that would hold up the network.
        while any(stage_tasks(tracker, job) for job in tracker.getJobIdsForGroup("endless")):
            pass
        with pytest.raises(RunError, match="BAD_SELECT"):
            engine.sql("SELECT count(*) FROM recent", job="endless")
        assert engine.sql("SELECT max(t) AS t FROM recent").to_pylist() == [{"t": 3999}]


@pytest.mark.parametrize(
    "made",
    ["repeat('x', 2147483632)", "size(sequence(1, 2000000000))", "size(sequence(t, 2000000000))"],
)
def test_a_select_that_wants_too_much_memory_fails_alone(
    make_engine: MakeEngine, made: str
) -> None:
    with make_engine(network({"rows": 40})) as engine, ThreadPoolExecutor(1) as pool:
        feed(engine, range(4))
        asked = pool.submit(engine.sql, f"SELECT {made} FROM recent LIMIT 1")
        with pytest.raises(RunError, match="BAD_SELECT"):
            asked.result(120)
        feed(engine, range(4, 8))
        assert engine.sql("SELECT max(t) AS t FROM recent").to_pylist() == [{"t": 7}]


def stage_tasks(tracker: StatusTracker, job: int) -> int:
    """How many tasks of a job run."""
    told = tracker.getJobInfo(job)
    stages = [tracker.getStageInfo(stage) for stage in (told.stageIds if told else ())]
    return sum(stage.numActiveTasks for stage in stages if stage is not None)


def test_a_view_gives_its_first_results_at_once(make_engine: MakeEngine) -> None:
    net = au.Network("border")
    reports = net.stream("reports", "sid int, t bigint, pos int", progress=au.Ordered("t"))
    crowd = reports.filter("pos >= 30").aggregate(
        au.Order("t"), au.Window(size=5), name="crowd", cnt="count(*)"
    )
    net.view("crowds", crowd, keep="1 hour")
    net.view("unseen", crowd.filter("cnt > 99"))
    with make_engine(net) as engine:
        engine.enqueue("reports", [(t % 3, t, 40) for t in range(23)])
        engine.drain()
        assert engine.sql("SELECT sum(cnt) AS n FROM crowds").to_pylist() == [{"n": 20}]
        engine.attach("crowds", "SELECT t, cnt FROM crowds", name="app")
        engine.drain()
        assert engine.dequeue("app").num_rows == 4
        engine.attach("unseen", "SELECT t, cnt FROM unseen", name="late")
        engine.drain()
        assert engine.dequeue("late").num_rows == 0  # nothing of the past
        engine.enqueue("reports", [(0, 40, 40)] * 120 + [(0, 50, 40)])
        engine.drain()
        assert engine.dequeue("late").to_pylist() == [{"t": 40, "cnt": 120}]
        engine.detach("late")


def test_segments_that_expire_while_a_query_runs_stay_readable(
    make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with make_engine(network({"rows": 6})) as engine:
        feed(engine, range(12))
        frame = KeptRows._frame

        def expiring(self: KeptRows, *given: Any) -> Any:
            found = frame(self, *given)
            assert all("/frame-" in path for path in found.inputFiles()), "no names of their own"
            feed(engine, range(12, 40))  # what was to be read is kept no more
            return found

        monkeypatch.setattr(KeptRows, "_frame", expiring)
        assert engine.sql("SELECT max(t) AS t FROM recent").to_pylist() == [{"t": 11}]
        assert not list(engine._store.directory.glob("frame-*"))
