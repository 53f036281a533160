"""Networks that change while data flow: what is untouched, what is new, what is rebuilt."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import auroral as au
from auroral.engine.lifecycle.fates import Fate, compare
from tests.conformance import sparkless

WINDOW = {"box": "aggregate", "order": {"on": "t"}, "window": {"size": 10}}


def network() -> au.Network:
    """Counts by tens of those that pass a filter, and everything doubled."""
    net = au.Network("n")
    ticks = net.stream("ticks", "k int, t bigint", progress=au.Ordered("t"))
    some = ticks.filter("k > 1", name="some")
    counted = some.aggregate(
        order=au.Order("t"), window=au.Window(size=10), c="count(*)", name="counted"
    )
    net.output("counts", counted)
    net.output("doubled", ticks.map(twice="k * 2", name="double"))
    return net


def rows(first: int, last: int) -> list[dict[str, int]]:
    return [{"k": n % 5, "t": n} for n in range(first, last)]


def taken(engine: au.Engine, output: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in engine.dequeue(output).to_pylist()]


@pytest.mark.parametrize("background", [False, True])
def test_a_new_box_sees_what_arrives_after_the_call(background: bool) -> None:
    with sparkless.make_engine(network(), background=background, train=4) as engine:
        engine.enqueue("ticks", rows(0, 25))
        report = engine.modify(
            add={
                "none": {"box": "filter", "input": "ticks", "where": "k = 0"},
                "zeros": {"from": "none"},
            }
        )
        assert report["added"] == ["boxes.none", "outputs.zeros"]
        engine.enqueue("ticks", rows(25, 50))
        engine.drain()
        assert taken(engine, "zeros") == [(0, t) for t in range(25, 50, 5)]
        assert taken(engine, "counts") == [(t, 6) for t in (0, 10, 20, 30)]
        assert taken(engine, "doubled") == [(n % 5 * 2,) for n in range(50)]
        assert "none" in engine.list_entities()["boxes"]
        removed = engine.modify(remove=["zeros", "none"])["removed"]
        assert sorted(removed) == ["boxes.none", "outputs.zeros"]
        with pytest.raises(au.UsageError, match="UNKNOWN_OUTPUT"):
            engine.dequeue("zeros")
        logs, cursors = engine._store.names()
        assert not [name for name in [*logs, *(log for log, _ in cursors)] if "none" in name]


def test_windows_behind_a_changed_filter_keep_what_they_have() -> None:
    with sparkless.make_engine(network(), train=3) as engine:
        engine.enqueue("ticks", rows(0, 5))
        report = engine.modify(
            add={"some": {"box": "filter", "input": "ticks", "where": "k > 3"}}, remove=["some"]
        )
        assert (report["rebuilt"], report["reset"]) == (["boxes.some"], [])
        engine.enqueue("ticks", rows(5, 15))
        engine.drain()
        assert taken(engine, "counts") == [(0, 4)], "three of the first five, one of the others"


@pytest.mark.parametrize(
    ("change", "fate", "counts"),
    [
        ({"window": {"size": 10, "timeout": 900}}, "kept", [[(0, 6)]]),
        ({"compute": {"c": "count(*)", "most": "max(k)"}}, "reset", [[(0, 3, 4)]]),
        (
            {"compute": {"c": "count(*)", "most": "max(k)"}, "on_change": "drain"},
            "drained",
            [[(0, 3)], [(0, 3, 4)]],
        ),
        ({"compute": {"c": "count(k)"}, "on_change": "reset"}, "reset", [[(0, 3)]]),
    ],
)
def test_state_is_kept_drained_or_reset(
    change: dict[str, Any], fate: str, counts: list[list[tuple[Any, ...]]]
) -> None:
    declared = {**WINDOW, "input": "some", "compute": {"c": "count(*)"}, **change}
    net = network()
    if fate == "kept":
        window = net.boxes["counted"].window.model_copy(update={"timeout": 99})  # type: ignore[attr-defined]
        net.boxes["counted"] = net.boxes["counted"].model_copy(update={"window": window})
    with sparkless.make_engine(net, train=3) as engine:
        engine.enqueue("ticks", rows(0, 5))
        report = engine.modify(add={"counted": declared}, remove=["counted"])
        assert report[fate] == ["boxes.counted"]
        assert report["rebuilt"] == ["boxes.counted"]
        engine.enqueue("ticks", rows(5, 15))
        engine.drain()
        assert [taken(engine, "counts") for _ in counts] == counts


def test_an_output_gives_what_it_gave_before_with_the_fields_of_then() -> None:
    with sparkless.make_engine(network(), train=3) as engine:
        engine.enqueue("ticks", rows(0, 3))
        thrice = {"box": "map", "input": "ticks", "compute": {"twice": "k * 2", "k": "k"}}
        engine.modify(add={"double": thrice}, remove=["double"])
        engine.modify(add={"doubled": {"from": "some"}}, remove=["outputs.doubled"])
        engine.enqueue("ticks", rows(3, 6))
        engine.drain()
        assert engine.dequeue("doubled", 0).column_names == ["twice"]  # and takes nothing
        assert taken(engine, "doubled") == [(0,), (2,), (4,)]
        assert engine.dequeue("doubled", 0).column_names == ["k", "t"]
        assert taken(engine, "doubled") == [(3, 3), (4, 4)]
        assert taken(engine, "doubled") == []


def test_streams_come_and_go_with_their_sources(tmp_path: Path) -> None:
    path = tmp_path / "more.csv"
    path.write_text("x\n1\n2\n")
    with sparkless.make_engine(network(), train=3) as engine:
        engine.modify(
            add={
                "streams": {
                    "more": {"schema": {"x": "int"}, "source": {"format": "csv", "path": str(path)}}
                },
                "outputs": {"xs": {"from": "more"}},
            }
        )
        engine.drain()
        assert taken(engine, "xs") == [(1,), (2,)]
        engine.enqueue("more", [{"x": 3}])
        engine.drain()
        assert taken(engine, "xs") == [(3,)]
        engine.modify(remove=["more", "xs"])
        with pytest.raises(au.UsageError, match="UNKNOWN_STREAM"):
            engine.enqueue("more", [{"x": 4}])


def test_a_stream_may_get_other_fields() -> None:
    net = au.Network("n")
    net.output("out", net.stream("s", "x int"))
    with sparkless.make_engine(net) as engine:
        engine.enqueue("s", [{"x": 1}])
        engine.modify(add={"s": {"schema": {"x": "int", "y": "string"}}}, remove=["streams.s"])
        engine.enqueue("s", [{"x": 2, "y": "b"}])
        engine.drain()
        assert taken(engine, "out") == [(1,)]
        assert taken(engine, "out") == [(2, "b")]


def test_a_clock_is_there_when_a_box_needs_one() -> None:
    now = [1_000_000]
    options: dict[str, Any] = {"now_us": lambda: now[0], "train": 2}
    with sparkless.make_engine(network(), **options) as engine:
        engine.enqueue("ticks", rows(0, 5))
        timed = {"window": {"size": 10, "timeout": 2}, "compute": {"c": "count(*)"}}
        engine.modify(
            add={"timed": {**WINDOW, **timed, "input": "ticks"}, "soon": {"from": "timed"}}
        )
        engine.enqueue("ticks", rows(5, 7))
        engine.drain()
        assert taken(engine, "soon") == []
        now[0] += 5_000_000
        engine._ingest.tick()
        engine.drain()
        assert taken(engine, "soon") == [(0, 2)]


def test_queries_keep_what_they_read() -> None:
    with sparkless.make_engine(network()) as engine:
        engine.modify(add={"high": "SELECT k FROM some WHERE k > 3"})
        thinner = {"box": "map", "input": "ticks", "compute": {"k": "k", "t": "t", "z": "1"}}
        with pytest.raises(au.UsageError, match=r"QUERY_READS.*high reads some, which has other"):
            engine.modify(add={"some": thinner}, remove=["some"])
        engine.modify(add={"some": thinner, "high": "SELECT z FROM some"}, remove=["some", "high"])
        engine.enqueue("ticks", rows(0, 2))
        engine.drain()
        assert taken(engine, "high") == [(1,), (1,)]


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        ({"remove": ["some"]}, "UNKNOWN_ARC: box counted, key input: there is no arc some"),
        ({"add": {"some": {"box": "union", "inputs": ["ticks"]}}}, "DUPLICATE_NAME"),
        ({"remove": ["boxes.nope"]}, "UNKNOWN_ENTITY: there is no nope in boxes"),
        ({"remove": ["nope"]}, "UNKNOWN_QUERY: there is no query nope"),
        ({"add": {"x": {"box": "filter", "input": "ticks", "where": "z"}}}, "UNKNOWN_FIELD"),
        ({"network": network(), "remove": ["some"]}, "BAD_CALL: give a whole network, or"),
        ({"network": 3}, "BAD_CALL: network is a Network"),
        ({"remove": ["doubled", 3]}, "BAD_CALL: remove lists names"),
    ],
)
def test_a_change_that_cannot_be_is_refused_whole(call: dict[str, Any], problem: str) -> None:
    with sparkless.make_engine(network()) as engine:
        with pytest.raises(au.AuroralError, match=problem):
            engine.modify(**call)
        assert engine.network == network()
        engine.enqueue("ticks", rows(0, 15))
        engine.drain()
        assert taken(engine, "counts") == [(0, 6)]


def test_a_whole_network_takes_the_place_of_another() -> None:
    other = network()
    other.query("high", "SELECT k, t FROM ticks WHERE k > 3")
    del other.outputs["doubled"], other.boxes["double"]
    with sparkless.make_engine(network()) as engine:
        report = engine.modify(network=other)
        assert report["added"] == ["queries.high"]
        assert sorted(report["removed"]) == ["boxes.double", "outputs.doubled"]
        engine.enqueue("ticks", rows(0, 15))
        engine.drain()
        assert taken(engine, "high") == [(4, 4), (4, 9), (4, 14)]
        assert taken(engine, "counts") == [(0, 6)]
        assert engine.modify(network=other)["rebuilt"] == []


@pytest.mark.parametrize("first", [True, False])
def test_queries_stay_and_go_with_the_network_that_declares_them(
    tmp_path: Path, first: bool
) -> None:
    """Whether they were there from the beginning, or came with another network."""
    declaring, more = network(), network()
    for net in (declaring, more):
        net.query("five", "SELECT count(*) AS c FROM ticks [RANGE 5, SLIDE 5, WA t]")
    more.output("low", "some.rest")
    with sparkless.make_engine(declaring if first else network(), state=tmp_path) as engine:
        engine.modify(network=declaring)
        engine.enqueue("ticks", rows(0, 3))
        engine.modify(network=more)  # in the middle of a window
        engine.enqueue("ticks", rows(3, 12))
        engine.drain()
        assert taken(engine, "five")[:2] == [(5,), (5,)]
        report = engine.modify(network=network())
        assert "queries.five" in report["removed"]
        assert engine.list_entities()["queries"] == []
        engine.enqueue("ticks", rows(12, 30))
        engine.drain()
        with pytest.raises(au.UsageError, match="UNKNOWN_OUTPUT"):
            engine.dequeue("five")
    with sparkless.make_engine(network(), state=tmp_path) as engine:
        assert engine.list_entities()["queries"] == []


def test_a_restart_with_the_same_file_keeps_what_was_changed_since(tmp_path: Path) -> None:
    with sparkless.make_engine(network(), state=tmp_path) as engine:
        engine.modify(add={"low": {"from": "some.rest"}})
        engine.enqueue("ticks", rows(0, 5))
    with sparkless.make_engine(network(), state=tmp_path) as engine:
        engine.enqueue("ticks", rows(5, 15))
        engine.drain()
        assert len(taken(engine, "low")) == 6
        assert taken(engine, "counts") == [(0, 6)]


def test_a_restart_with_an_edited_file_changes_the_network(tmp_path: Path) -> None:
    edited = network()
    edited.output("low", "some.rest")
    with sparkless.make_engine(network(), state=tmp_path) as engine:
        engine.enqueue("ticks", rows(0, 5))
    for _ in range(2):
        with sparkless.make_engine(edited, state=tmp_path) as engine:
            assert "low" in engine.list_entities()["outputs"]
    with sparkless.make_engine(edited, state=tmp_path) as engine:
        engine.enqueue("ticks", rows(5, 15))
        engine.drain()
        assert taken(engine, "low") == [(0, 5), (1, 6), (0, 10), (1, 11)]
        assert taken(engine, "counts") == [(0, 6)], "its state was kept"
    other = au.Network("other")
    other.stream("s", "x int")
    with (
        pytest.raises(au.StateError, match="STATE_OF_OTHER_NETWORK"),
        sparkless.make_engine(other, state=tmp_path),
    ):
        pass


EDITS: list[dict[str, Any]] = [
    {"add": {"extra": {**WINDOW, "input": "ticks", "compute": {"n": "count(*)"}}}},
    {"remove": ["extra"]},
    {"add": {"more": {"schema": {"x": "int"}}}},
    {"remove": ["more"]},
    {"add": {"seen": {"from": "extra"}}},
    {"remove": ["seen"]},
    {"add": {"high": "SELECT k FROM ticks WHERE k > 2"}},
    {"remove": ["high"]},
    {"add": {"rare": {"box": "filter", "input": "ticks", "where": "k = 3"}}},
    {"remove": ["rare"], "add": {"rare": {"box": "filter", "input": "ticks", "where": "k = 1"}}},
]


class _CrashError(BaseException):
    """The process is gone."""


@settings(max_examples=40)
@given(
    edits=st.lists(st.tuples(st.sampled_from(EDITS), st.integers(0, 12)), max_size=6),
    train=st.integers(1, 9),
    crash=st.integers(0, 60),
)
def test_untouched_outputs_are_as_without_edits(
    tmp_path_factory: pytest.TempPathFactory,
    edits: list[tuple[dict[str, Any], int]],
    train: int,
    crash: int,
) -> None:
    """Whatever comes and goes beside them, and wherever the process ends."""
    state = tmp_path_factory.mktemp("state")
    left = [crash or -1]

    def fault(_point: str) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise _CrashError

    found: dict[str, list[Any]] = {"counts": [], "doubled": []}
    steps: list[tuple[str, Any]] = []
    at = 0
    for number, (edit, more) in enumerate(edits):
        steps += [("rows", (at, at + more, number)), ("edit", edit)]
        at += more
    steps.append(("rows", (at, 50, len(edits))))
    done = 0
    for _attempt in range(3):
        try:
            options: dict[str, Any] = {"train": train, "fault": fault, "durability": "process"}
            with sparkless.make_engine(network(), state=state, **options) as engine:
                for kind, given in steps[done:]:
                    if kind == "rows":
                        first, last, position = given
                        engine.enqueue("ticks", rows(first, last), position=position)
                    else:
                        with suppress(au.NetworkError, au.UsageError):  # if it fits nothing
                            engine.modify(**given)
                    done += 1
                engine.drain()
                for output, results in found.items():
                    results += taken(engine, output)
            break
        except _CrashError:
            continue
    else:
        raise AssertionError("it crashed more than once")
    assert found["counts"] == [(t, 6) for t in range(0, 40, 10)]
    assert found["doubled"] == [(n % 5 * 2,) for n in range(50)]


def test_fates_of_boxes_and_outputs() -> None:
    before = network().check()
    after = network()
    after.boxes["some"] = after.boxes["some"].model_copy(update={"where": "k > 2"})
    after.boxes["double"] = after.boxes["double"].model_copy(update={"on_change": "drain"})
    change = compare(before, after.check(), (before.network, after))
    assert change.boxes == {"double": Fate.SAME, "some": Fate.REBUILT, "counted": Fate.SAME}
    assert set(change.outputs.values()) == {Fate.SAME}
    assert not change.is_untouched(["some", "counted"], ["ticks"])
    assert change.is_untouched(["counted"], ["some"])


def test_sources_and_sinks_are_bound_and_unbound_while_it_runs() -> None:
    schema = network().streams["ticks"].schema_
    got: list[int] = []
    with sparkless.make_engine(network(), train=3) as engine:
        engine.enqueue("ticks", rows(0, 2))
        engine.drain()
        engine.bind_sink("doubled", lambda d: got.extend(d.table["twice"].to_pylist()))
        engine.bind_source(au.IterableSource("ticks", iter(rows(2, 5)), schema))
        engine.drain()
        assert got == [0, 2, 4, 6, 8], "what waited comes first"
        with pytest.raises(au.UsageError, match="DUPLICATE_NAME"):
            engine.bind_source(au.IterableSource("ticks", iter(rows(5, 6)), schema))
        engine.unbind_source("ticks")
        engine.unbind_sink("doubled")
        with pytest.raises(au.UsageError, match="NO_SINK"):
            engine.unbind_sink("doubled")
        engine.enqueue("ticks", rows(5, 7))
        engine.drain()
        assert taken(engine, "doubled") == [(0,), (2,)]
        with pytest.raises(au.UsageError, match="UNKNOWN_STREAM"):
            engine.bind_source(au.IterableSource("nope", iter([]), schema))


class _Endless(au.IterableSource):
    """A source that has nothing more just now."""

    finite = False
    exhausted = False


def test_a_stream_does_not_wait_for_a_source_that_was_unbound() -> None:
    schema = network().streams["ticks"].schema_
    with sparkless.make_engine(network(), train=5) as engine:
        engine.bind_source(_Endless("ticks", iter(rows(0, 30)), schema), name="one")
        engine.bind_source(_Endless("ticks", iter(rows(30, 50)), schema), name="two")
        engine.drain()
        assert taken(engine, "counts") == [(0, 6), (10, 6)], "the first one has come to 29"
        engine.unbind_source("ticks", "one")
        engine.drain()
        assert taken(engine, "counts") == [(20, 6), (30, 6)]


@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("tuples", [0, 5])
def test_an_output_can_be_read_as_soon_as_it_is_added(background: bool, tuples: int) -> None:
    with sparkless.make_engine(network(), background=background) as engine:
        engine.enqueue("ticks", rows(0, tuples))
        engine.drain()
        for _ in range(5):  # all at one moment: nothing arrives in between
            engine.modify(add={"low": {"from": "some.rest"}})
            assert engine.dequeue("low").num_rows == 0
            engine.modify(remove=["low"])


def test_points_come_and_go_but_not_under_attached_queries() -> None:
    with sparkless.make_engine(network(), train=3) as engine:
        engine.modify(add={"recent": {"on": "some", "keep": "all"}})
        engine.enqueue("ticks", rows(0, 5))
        engine.attach("recent", "SELECT k FROM recent", name="ks")
        engine.drain()
        assert taken(engine, "ks") == [(2,), (3,), (4,)]
        with pytest.raises(au.UsageError, match=r"QUERY_READS.*ks is attached to recent"):
            engine.modify(remove=["recent"])
        other = {"box": "map", "input": "ticks", "compute": {"k": "k", "t": "t", "z": "1"}}
        with pytest.raises(au.UsageError, match=r"QUERY_READS.*ks reads some, which has other"):
            engine.modify(add={"some": other}, remove=["some"])
        engine.detach("ks")
        engine.modify(remove=["recent"])
        assert "recent" not in engine.stats()["connection_points"]


def test_a_box_that_nobody_reads_forgets_what_it_had() -> None:
    with sparkless.make_engine(network(), train=3) as engine:
        engine.enqueue("ticks", rows(0, 5))
        engine.modify(remove=["counts"])
        engine.enqueue("ticks", rows(5, 7))
        engine.modify(add={"counts": {"from": "counted"}})
        engine.enqueue("ticks", rows(7, 15))
        engine.drain()
        assert taken(engine, "counts") == [(0, 3)], "of three tuples: those before were missed"
