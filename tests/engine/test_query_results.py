"""Who gets the results of queries that come and go, and how long they are kept."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import auroral as au
import auroral.engine.topology.execution
from auroral.cli.display import summary
from auroral.io.sinks.callback import CallbackSink
from auroral.io.sinks.sink import Delivery
from tests.conformance import sparkless

from .market import ALERTS, RULES, above, alerts, batch, numbers, ticks


def _market(path: Path | None = None) -> au.Network:
    net = ticks()
    net.query("dear", "SELECT n FROM ticks WHERE price > 10")
    net.query("all", "SELECT n FROM ticks")
    net.family("alerts", ALERTS, RULES, "rule")
    if path is not None:
        net.output("file", "dear", sink={"format": "csv", "path": str(path)})
    return net


def _collect(engine: au.Engine, names: list[str]) -> dict[str, list[int]]:
    got: dict[str, list[int]] = {name: [] for name in names}

    def sink_of(name: str) -> Callable[[Delivery], None]:
        return lambda delivery: got[name].extend(delivery.table["n"].to_pylist())

    for name in names:
        engine.bind_sink(name, CallbackSink(sink_of(name)))
    return got


@pytest.mark.parametrize("background", [False, True])
def test_a_sink_gets_all_that_a_query_gave_before_it_was_removed(background: bool) -> None:
    """Whatever still waited; the sinks of others go on."""
    names = ["dear", "all", "alerts", "alerts[1]", "alerts[3]"]
    with sparkless.make_engine(_market(), background=background) as engine:
        got = _collect(engine, names)
        engine.enqueue("ticks", batch(0, 20))
        engine.modify(remove=["dear", "alerts[1]"])
        engine.enqueue("ticks", batch(20, 40))
        engine.modify(remove=["alerts"])
        engine.enqueue("ticks", batch(40, 60))
        engine.drain()
        assert got["alerts[1]"] == [n for _, n in alerts(RULES[:1], (0, 20))]
        assert got["all"] == list(range(60))
        assert got["dear"] == above(10, (0, 20))
        found = [*alerts(RULES, (0, 20)), *alerts(RULES[1:], (20, 40))]
        assert sorted(got["alerts"]) == sorted(n for _, n in found)
        assert got["alerts[3]"] == [n for _, n in alerts(RULES[2:3], (0, 40))]
        assert list(engine.stats()["outputs"]) == ["all"]


def test_a_file_goes_on_with_a_query_that_takes_the_place_of_another(tmp_path: Path) -> None:
    path = tmp_path / "dear.csv"
    net = _market(path)
    with sparkless.make_engine(net, state=tmp_path / "state") as engine:
        engine.enqueue("ticks", batch(0, 20))
        with pytest.raises(au.UsageError, match=r"SINK_FIELDS.*has the fields n, the new dear"):
            engine.modify(remove=["dear"], add={"dear": "SELECT n, price FROM ticks"})
        engine.modify(remove=["dear"], add={"dear": "SELECT n FROM ticks WHERE price > 15"})
        engine.enqueue("ticks", batch(20, 40))
        engine.drain()
        expected = [*above(10, (0, 20)), *above(15, (20, 40))]
        assert path.read_text().split() == ["n", *map(str, expected)]
        engine.modify(remove=["dear"])
        with pytest.raises(au.UsageError, match="the output file reads dear, which was removed"):
            engine.dequeue("file")
        assert list(engine.stats()["outputs"]) == []
    with sparkless.make_engine(net, state=tmp_path / "state") as engine:
        engine.enqueue("ticks", batch(40, 60))
        engine.drain()
        assert engine.list_entities()["queries"] == ["all", "alerts"], "what was removed stays away"
        assert path.read_text().split() == ["n", *map(str, expected)]


def _held(engine: au.Engine) -> int:
    """How many tuples are kept for queries over ticks."""
    return sum(segment.rows for segment in engine._store.segments("matches@ticks"))


def test_results_are_kept_for_those_who_are_there() -> None:
    """Not for a query that was removed, nor for a member that was read once."""
    with sparkless.make_engine(_market()) as engine:
        engine.enqueue("ticks", batch(0, 20))
        engine.drain()
        engine.dequeue("dear"), engine.dequeue("alerts[1]"), engine.dequeue_all("alerts")
        engine.modify(remove=["dear"])
        for start in range(20, 80, 20):
            engine.enqueue("ticks", batch(start, start + 20))
            engine.drain()
            engine.dequeue("alerts")
            assert numbers(engine.dequeue("all"))[-20:] == list(range(start, start + 20))
            assert _held(engine) == 0
        engine.enqueue("ticks", batch(80, 100))
        engine.drain()
        engine.modify(remove=["all", "alerts"], add={"other": "SELECT sym FROM news"})
        engine.enqueue("ticks", batch(100, 120))
        engine.drain()
        assert _held(engine) == 0, "nobody can read them any more"


def test_results_are_kept_until_all_members_have_theirs() -> None:
    net = ticks()
    net.family("alerts", ALERTS, RULES, "rule")
    with sparkless.make_engine(net) as engine:
        for start in range(0, 60, 20):
            engine.enqueue("ticks", batch(start, start + 20))
            engine.drain()
            for rule in RULES:
                assert _held(engine) > 0
                assert numbers(engine.dequeue(f"alerts[{rule['rule']}]")) == [
                    n for _, n in alerts([rule], (start, start + 20))
                ]
            assert _held(engine) == 0
        got = _collect(engine, ["alerts[1]"])
        engine.enqueue("ticks", batch(60, 80))
        engine.drain()
        assert got["alerts[1]"] == [n for _, n in alerts(RULES[:1], (60, 80))]
        found = sorted(numbers(engine.dequeue("alerts")))
        assert found[-5:] == sorted(n for _, n in alerts(RULES, (60, 80)))[-5:], "kept for it too"


def test_fields_of_results_taken_together_differ_in_their_names() -> None:
    """Whatever queries call them."""
    net = ticks()
    net.query("one", "SELECT n, sym AS queries FROM ticks")
    net.query("other", "SELECT price AS sym FROM ticks")
    with sparkless.make_engine(net) as engine:
        engine.enqueue("ticks", batch(1, 3))
        engine.drain()
        found = engine.dequeue_all()
        assert found.column_names == ["n", "sym", "price", "queries"]
        assert found["queries"].to_pylist() == [["one", "other"]] * 2


def test_what_is_no_sink_and_a_second_one_are_refused() -> None:
    with sparkless.make_engine(_market()) as engine:
        wrong: Any = 5
        with pytest.raises(au.UsageError, match="BAD_OPTION: expected a sink or a function"):
            engine.bind_sink("all", wrong)
        got: list[int] = []
        engine.bind_sink("all", lambda delivery: got.extend(delivery.table["n"].to_pylist()))
        with pytest.raises(au.UsageError, match="HAS_SINK"):
            engine.bind_sink("all", print)
        engine.enqueue("ticks", batch(0, 5))
        engine.drain()
        assert got == list(range(5))


def test_a_sink_begins_after_what_was_taken_together() -> None:
    net = ticks()
    net.query("all", "SELECT n FROM ticks")
    net.query("unread", "SELECT n FROM ticks")
    with sparkless.make_engine(net) as engine:
        engine.enqueue("ticks", batch(0, 5))
        engine.drain()
        assert engine.dequeue_all("ticks").num_rows == 5
        got = _collect(engine, ["all"])
        engine.enqueue("ticks", batch(5, 8))
        engine.drain()
        assert got["all"] == [5, 6, 7]


def test_a_query_that_needs_boxes_may_have_a_sink_while_it_runs(tmp_path: Path) -> None:
    """And after a restart, bound before the start or after it."""
    got: list[int] = []
    net = _market()

    def take(delivery: Delivery) -> None:
        got.extend(delivery.table["c"].to_pylist())

    with sparkless.make_engine(net, state=tmp_path) as engine:
        engine.modify(add={"last": "SELECT count(*) AS c FROM ticks [ROWS 2]"})
        engine.bind_sink("last", take)
        engine.enqueue("ticks", batch(0, 4))
        engine.drain()
    session: Any = sparkless.InProcessExecutor()
    engine = au.Engine(net, executor=session, state=tmp_path, background=False)
    engine.bind_sink("last", take)
    with engine:
        engine.enqueue("ticks", batch(4, 6))
        engine.drain()
    assert got == [2, 2, 2]


def test_each_query_has_the_reason_of_its_own_failure() -> None:
    net = ticks()
    net.function("boom", _boom, returns="boolean")
    net.function("bang", _bang, returns="boolean")
    net.query("one", "SELECT n FROM ticks WHERE boom(n)")
    net.query("two", "SELECT n FROM ticks WHERE bang(n)")
    net.query("none", "SELECT n FROM ticks WHERE price < 0 AND boom(n)")
    with sparkless.make_engine(net) as engine:
        engine.enqueue("ticks", batch(1, 4))
        engine.drain()
        stats = engine.stats()
        found = {name: query.get("error") for name, query in stats["queries"].items()}
        assert found == {"one": "ValueError: boom", "two": "KeyError: 'bang'", "none": None}
        told = summary(
            stats,
            {"one": "one.csv"},
            elapsed_s=1.0,
            stopped=False,
            resumable=False,
            dead_letters=Path("dead"),
        )
        assert "query one: 0 matches, failed on 3 tuples (ValueError: boom)" in told


def _boom(_values: Any) -> Any:
    raise ValueError("boom")


def _bang(_values: Any) -> Any:
    raise KeyError("bang")


@pytest.mark.parametrize("background", [False, True])
def test_a_function_that_gets_results_may_change_queries(background: bool) -> None:
    """Also its own, which gives it nothing more; others get everything."""
    with sparkless.make_engine(_market(), background=background) as engine:
        got = _collect(engine, ["all", "alerts[1]"])
        once: list[int] = []

        def fire(delivery: Delivery) -> None:
            once.extend(delivery.table["n"].to_pylist())
            engine.modify(
                remove=["dear", "alerts"],
                add={
                    "pairs": "SELECT count(*) AS c FROM ticks [ROWS 2]",
                    "late": "SELECT n FROM ticks",
                },
            )

        engine.bind_sink("dear", fire)
        for start in range(0, 60, 20):
            engine.enqueue("ticks", batch(start, start + 20))
            engine.drain()
        assert once == above(10, (0, 20))
        assert got["all"] == list(range(60))
        assert got["alerts[1]"] == [n for _, n in alerts(RULES[:1], (0, 20))]
        assert numbers(engine.dequeue("late")) == list(range(20, 60))
        assert engine.dequeue("pairs")["c"].to_pylist() == [2] * 20
        assert engine.list_entities()["queries"] == ["all", "late", "pairs"]


def test_two_threads_may_change_queries_while_sinks_do() -> None:
    with sparkless.make_engine(_market(), background=True) as engine:
        count = 0

        def add(_delivery: Delivery) -> None:
            nonlocal count
            count += 1
            engine.modify(add={f"called{count}": "SELECT count(*) AS c FROM ticks [ROWS 2]"})

        engine.bind_sink("all", add)

        def change(name: str) -> None:
            for n in range(5):
                engine.modify(
                    add={f"{name}{n}": "SELECT count(DISTINCT n) AS c FROM ticks [ROWS 2]"}
                )
                engine.enqueue("ticks", batch(n, n + 1))
                engine.modify(remove=[f"{name}{n}"])

        with ThreadPoolExecutor(2) as threads:
            for done in [threads.submit(change, name) for name in ("x", "y")]:
                done.result(timeout=120)
        engine.drain()
        queries = engine.list_entities()["queries"]
        assert queries == ["dear", "all", "alerts", *(f"called{n + 1}" for n in range(count))]
        assert engine.stats()["outputs"]["all"]["out"] == 10


@pytest.mark.parametrize("background", [False, True])
def test_what_arrives_while_boxes_change_is_for_the_new_ones(background: bool) -> None:
    """A sink that enqueues is called while everything before is processed."""
    with sparkless.make_engine(_market(), background=background) as engine:
        fed: list[int] = []

        def feed(_delivery: Delivery) -> None:
            if len(fed) < 4:
                fed.append(len(fed))
                engine.enqueue("ticks", batch(100, 110))

        engine.bind_sink("all", feed)
        engine.enqueue("ticks", batch(0, 10))
        engine.modify(add={"each": "SELECT count(*) AS c FROM ticks [ROWS 1]"})
        engine.enqueue("ticks", batch(10, 20))
        for _ in range(5):  # what a sink enqueues comes after what is waited for
            engine.drain()
        assert len(fed) == 4
        total = engine.stats()["streams"]["ticks"]["in"]
        assert total == 60
        assert 10 <= engine.dequeue("each").num_rows <= total - 10
        assert engine.stats()["outputs"]["all"]["out"] == total


def _edited(path: Path, dear: str | None) -> au.Network:
    net = ticks()
    net.query("all", "SELECT n FROM ticks")
    if dear is not None:
        net.query("dear", dear)
        net.output("file", "dear", sink={"format": "csv", "path": str(path)})
    return net


def test_what_waits_for_the_sink_of_an_edited_query_is_delivered(tmp_path: Path) -> None:
    path, state = tmp_path / "dear.csv", tmp_path / "state"
    with sparkless.make_engine(_edited(path, "SELECT n FROM ticks"), state=state) as engine:
        engine.enqueue("ticks", batch(0, 3))
        engine.drain()
        engine.enqueue("ticks", batch(3, 5))
    with sparkless.make_engine(
        _edited(path, "SELECT n FROM ticks WHERE n > 5"), state=state
    ) as engine:
        engine.enqueue("ticks", batch(5, 8))
        engine.drain()
    assert path.read_text().split() == ["n", "0", "1", "2", "3", "4", "6", "7"]
    with (
        pytest.raises(au.UsageError, match="SINK_FIELDS"),
        sparkless.make_engine(_edited(path, "SELECT n, sym FROM ticks"), state=state),
    ):
        pass


def test_a_query_comes_back_with_the_network_that_says_so(tmp_path: Path) -> None:
    for dear in ("SELECT n FROM ticks", None, "SELECT n FROM ticks", "SELECT n FROM ticks"):
        net = ticks()
        net.query("all", "SELECT n FROM ticks")
        if dear is not None:
            net.query("dear", dear)
        with sparkless.make_engine(net, state=tmp_path) as engine:
            engine.enqueue("ticks", batch(0, 3))
            engine.drain()
            assert ("dear" in engine.list_entities()["queries"]) is (dear is not None)


def test_a_query_that_is_only_counted_now_has_no_sink_after_a_restart(tmp_path: Path) -> None:
    net = _edited(tmp_path / "dear.csv", "SELECT n FROM ticks")
    with sparkless.make_engine(net, state=tmp_path / "state") as engine:
        counted = au.Query("SELECT n FROM ticks", results="count")
        engine.modify(remove=["dear"], add={"dear": counted})
    with sparkless.make_engine(net, state=tmp_path / "state") as engine:
        engine.enqueue("ticks", batch(0, 3))
        engine.drain()
        assert engine.matches("dear")["matches"].to_pylist() == [3]


def test_another_query_of_the_same_name_may_have_another_sink(tmp_path: Path) -> None:
    with sparkless.make_engine(_market(), state=tmp_path / "state") as engine:
        for turn in range(2):
            engine.bind_sink("dear", au.JsonlSink(tmp_path / f"dear{turn}.jsonl"))
            engine.enqueue("ticks", batch(0, 20))
            engine.modify(remove=["dear"])
            engine.modify(add={"dear": "SELECT n FROM ticks WHERE price > 10"})
        engine.drain()
    texts = [(tmp_path / f"dear{turn}.jsonl").read_text() for turn in range(2)]
    assert texts[0] == texts[1] != ""


def test_state_of_removed_boxes_is_gone_whenever_it_crashed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = "SELECT count(*) AS c, min(n) AS low FROM ticks [ROWS 3]"

    def crash(*_args: Any) -> None:
        raise SystemExit

    with (
        monkeypatch.context() as patch,
        suppress(SystemExit),
        sparkless.make_engine(_market(), state=tmp_path) as engine,
    ):
        engine.modify(add={"three": query})
        engine.enqueue("ticks", batch(0, 2))
        engine.drain()
        patch.setattr(auroral.engine.topology.execution, "drop_unused_eddy_state", crash)
        engine.modify(remove=["three"], add={"three": query})
    with sparkless.make_engine(_market(), state=tmp_path) as engine:
        engine.enqueue("ticks", batch(10, 16))
        engine.drain()
        assert engine.dequeue("three")["low"].to_pylist() == [10, 13]
