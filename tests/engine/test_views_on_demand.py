"""Views that keep nothing run while queries are attached to them, and only then."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import auroral as au
from auroral.engine.points.attach_socket import ask
from auroral.errors import UsageError
from tests.conformance.sparkless import make_engine
from tests.engine.test_attach_elsewhere import looked


def network() -> au.Network:
    """Counts by threes in a view, of numbers that an output doubles."""
    net = au.Network("n")
    ticks = net.stream("ticks", "k int, t bigint", progress=au.Ordered("t"))
    net.output("doubled", ticks.map(twice="k * 2", name="double"))
    some = ticks.filter("k > 1", name="some")
    net.view("thirds", some.aggregate(**window(3), c="count(*)", name="by_three"))
    return net


def window(size: int) -> dict[str, Any]:
    return {"order": au.Order("t"), "window": au.Window(size=size)}


def feed(engine: au.Engine, first: int, last: int) -> None:
    engine.enqueue("ticks", [{"k": n % 5, "t": n} for n in range(first, last)])
    engine.drain()


def taken(engine: au.Engine, name: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in engine.dequeue(name).to_pylist()]


def counts(begins: int, first: int, last: int) -> list[tuple[int, int]]:
    """The windows from `first` to `last` that are not empty, of tuples from `begins` on."""
    there = [n for n in range(begins, last + 3) if n % 5 > 1]
    found = [(t, sum(t <= n < t + 3 for n in there)) for t in range(first, last, 3)]
    return [(t, count) for t, count in found if count]


def running(engine: au.Engine) -> set[str]:
    return {box for superbox in engine._loop.execution.superboxes for box in superbox.boxes}


@pytest.mark.parametrize("background", [False, True])
def test_a_path_runs_while_queries_are_attached(background: bool) -> None:
    with make_engine(network(), train=3, background=background) as engine:
        feed(engine, 0, 5)
        assert running(engine) == {"double"}, "nobody wants the view"
        assert not engine.describe("thirds")["runs"]
        engine.attach("thirds", "SELECT * FROM thirds", name="one")
        assert running(engine) == {"double", "some", "by_three"}
        feed(engine, 5, 20)
        assert taken(engine, "one") == counts(5, 3, 16)
        engine.attach("thirds", "SELECT c FROM thirds", name="other")
        engine.detach("one")
        feed(engine, 20, 30)
        assert taken(engine, "other") == [(c,) for _, c in counts(5, 18, 25)]
        assert engine.describe("thirds")["attachments"] == ["other"]
        engine.detach("other")
        feed(engine, 30, 41)
        assert running(engine) == {"double"}
        logs, cursors = engine._store.names()
        left = [*logs, *(name for place in cursors for name in place)]
        assert not [n for n in left if "three" in n or "some" in n or "thirds" in n]
        engine.attach("thirds", "SELECT * FROM thirds", name="one")
        feed(engine, 41, 50)
        assert taken(engine, "one") == counts(41, 39, 46), "it begins empty"
        assert taken(engine, "doubled") == [(n % 5 * 2,) for n in range(50)]
        told = [entry for entry in engine.story("thirds") if entry["event"] == "changed"]
        assert [entry["why"][:9] for entry in told] == ["it runs: ", "it rests:", "it runs: "]
        assert "ran" in [entry["event"] for entry in engine.story("thirds")]


def test_what_runs_already_is_not_begun_anew() -> None:
    net = network()
    net.output("counted", "by_three")
    with make_engine(net, train=3) as engine:
        feed(engine, 0, 5)
        engine.attach("thirds", "SELECT * FROM thirds", name="one")
        feed(engine, 5, 12)
        assert taken(engine, "one") == counts(0, 3, 9), "it knows the tuples before"
        engine.detach("one")
        feed(engine, 12, 20)
        assert taken(engine, "counted") == counts(0, 0, 16)


def test_a_restart_goes_on_with_the_path(tmp_path: Path) -> None:
    options: dict[str, Any] = {"state": tmp_path, "train": 3}
    with make_engine(network(), **options) as engine:
        feed(engine, 0, 5)
        engine.attach("thirds", "SELECT * FROM thirds", name="one")
        feed(engine, 5, 10)
    with make_engine(network(), **options) as engine:
        feed(engine, 10, 20)
        assert taken(engine, "one") == counts(5, 3, 16)
        engine.detach("one")
    with make_engine(network(), **options) as engine:
        feed(engine, 20, 30)
        assert running(engine) == {"double"}


def test_a_query_of_another_process_sees_what_flows(tmp_path: Path) -> None:
    with make_engine(network(), state=tmp_path, background=True) as engine:
        feed(engine, 0, 5)
        with pytest.raises(UsageError, match=r"NOT_MATERIALIZED.*nothing of the past.*--follow"):
            list(ask(tmp_path, "thirds", "SELECT * FROM thirds", follow=False))
        assert running(engine) == {"double"}
        tables = ask(tmp_path, "thirds", "SELECT * FROM thirds", follow=True)
        assert next(tables).num_rows == 0
        got: list[tuple[int, int]] = []
        seen = threading.Event()

        def follow() -> None:
            for table in tables:
                got.extend(tuple(row.values()) for row in table.to_pylist())
                if len(got) == len(counts(5, 3, 16)):
                    seen.set()

        thread = threading.Thread(target=follow)
        thread.start()
        feed(engine, 5, 20)
        assert seen.wait(30)
    thread.join(30)
    assert got == counts(5, 3, 16)
    with make_engine(network(), state=tmp_path) as engine:
        feed(engine, 20, 25)
        assert running(engine) == {"double"}, "it was attached for a while only"
    with pytest.raises(UsageError, match=r"NOT_MATERIALIZED.*nothing flows now"):
        looked(tmp_path, "SELECT * FROM thirds", "thirds")


def test_mistakes_leave_the_view_at_rest() -> None:
    with make_engine(network()) as engine:
        feed(engine, 0, 5)
        with pytest.raises(UsageError, match=r"HISTORY_TOO_SHORT.*keeps nothing of the past"):
            engine.attach("thirds", "SELECT * FROM thirds", since=3)
        with pytest.raises(au.NetworkError, match="UNKNOWN_FIELD"):
            engine.attach("thirds", "SELECT nothing FROM thirds", name="one")
        assert not engine._loop.execution.context.queries.epochs.planned, "nothing has happened"
        engine.attach("thirds", "SELECT * FROM thirds", name="one")
        with pytest.raises(UsageError, match="DUPLICATE_NAME"):
            engine.attach("thirds", "SELECT * FROM thirds", name="one")
        with pytest.raises(au.AuroralError, match="thirds"):
            engine.attach("thirds", "SELECT * FROM third")
        feed(engine, 5, 12)
        assert taken(engine, "one") == counts(5, 3, 9)
        engine.finish()
        engine.detach("one")


def test_a_view_may_change_while_a_query_is_attached() -> None:
    with make_engine(network(), train=3) as engine:
        engine.attach("thirds", "SELECT * FROM thirds", name="one")
        feed(engine, 0, 7)
        with pytest.raises(
            UsageError, match=r"QUERY_READS.*one is attached to thirds.*another arc"
        ):
            engine.modify(add={"views": {"thirds": {"from": "some"}}}, remove=["thirds"])
        kept = {"views": {"thirds": {"from": "by_three", "keep": "all"}}}
        engine.modify(add=kept, remove=["thirds"])
        feed(engine, 7, 13)
        engine.attach("thirds", "SELECT * FROM thirds", name="two")
        engine.modify(add={"views": {"thirds": {"from": "by_three"}}}, remove=["thirds"])
        feed(engine, 13, 20)
        assert taken(engine, "one") == counts(0, 0, 16)
        assert taken(engine, "two") == counts(0, 6, 16), "what was kept since, and what flows"
        engine.detach("one")
        engine.detach("two")
        engine.drain()
        assert running(engine) == {"double"}


def test_changes_at_once_are_made_one_after_the_other() -> None:
    with make_engine(network(), background=True) as engine:
        errors: list[BaseException] = []

        def change(number: int) -> None:
            try:
                if number % 2:
                    engine.attach("thirds", "SELECT * FROM thirds", name=f"a{number}")
                else:
                    box = {"box": "filter", "input": "ticks", "where": f"k > {number}"}
                    engine.modify(add={f"b{number}": box, f"o{number}": {"from": f"b{number}"}})
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=change, args=(n,)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert not errors
        assert {"b0", "b2", "b4"} <= set(engine.list_entities()["boxes"])
        feed(engine, 0, 10)
        for number in (1, 3, 5):
            assert taken(engine, f"a{number}") == counts(0, 0, 7)
        assert [len(taken(engine, f"o{n}")) for n in (0, 2, 4)] == [8, 4, 0]
