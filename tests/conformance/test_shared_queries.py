"""Queries that share an eddy, come and go: each gives what it would give alone."""

from __future__ import annotations

import threading
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

import auroral.engine.starting
import auroral.spark.running.stateful_runner
from auroral import Family, Ordered, Query
from auroral.engine.runtime.stepper import Stepper

from . import sparkless
from .delivering import DeliveringDrive
from .driving import Drive, Manner, manner
from .nway import NWayMaker, NWayModel
from .shared import Action, Feed, Maker, Modify, Scenario

if TYPE_CHECKING:
    from tests.conftest import MakeEngine


def set_out(monkeypatch: pytest.MonkeyPatch, rng: Random) -> None:
    """Let tasks share the work in some way."""
    buckets, rows = rng.choice([1, 2, 3]), rng.choice([0, 3, 50_000])
    monkeypatch.setattr(auroral.engine.starting, "default_buckets", lambda _cores: buckets)
    monkeypatch.setattr(auroral.spark.running.stateful_runner, "PARALLEL_ROWS", rows)


@pytest.mark.parametrize("seed", [1, 28, 36, 38, 2070])
def test_queries_give_what_they_would_give_alone(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = Random(seed)
    scenario = Maker(rng).scenario(rng.choice([6, 12, 20]))
    chosen = manner(rng)
    set_out(monkeypatch, rng)
    Drive(sparkless.make_engine, scenario, chosen, rng).go(tmp_path)


@pytest.mark.parametrize("seed", range(4))
def test_queries_that_need_boxes_come_and_go_beside_others(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = Random(seed)
    kinds = {"boxed": 4, "select": 2, "join": 1, "aggregate": 1, "family": 1, "count": 1}
    scenario = Maker(rng, kinds).scenario(12)
    Drive(sparkless.make_engine, scenario, manner(rng), rng).go(tmp_path)


@pytest.mark.parametrize("seed", range(6))
def test_families_of_aggregates_come_and_go(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = Random(seed)
    scenario = Maker(rng, {"windows": 4, "aggregate": 1, "select": 1}).scenario(20)
    crashes = frozenset(rng.sample(range(60), 3))
    Drive(sparkless.make_engine, scenario, Manner(2, crashes, drains=0.1), rng).go(tmp_path)


@pytest.mark.parametrize("seed", range(6))
def test_queries_call_python_functions(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which fail on some tuples: these are counted once each, whatever the order of filters."""
    rng = Random(seed)
    scenario = Maker(rng, {"python": 4, "select": 1, "join": 1}).scenario(12)
    set_out(monkeypatch, rng)
    Drive(sparkless.make_engine, scenario, manner(rng), rng).go(tmp_path)


@pytest.mark.parametrize("seed", range(8))
def test_queries_read_what_boxes_make(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = Random(seed)
    scenario = Maker(rng, {"join": 4, "aggregate": 1, "select": 1}, derived=("M", "F")).scenario(12)
    set_out(monkeypatch, rng)
    Drive(sparkless.make_engine, scenario, manner(rng), rng).go(tmp_path)


@pytest.mark.parametrize("seed", range(6))
def test_sinks_get_what_their_queries_give(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = Random(seed)
    scenario = Maker(rng).scenario(20)
    DeliveringDrive(sparkless.make_engine, scenario, manner(rng), rng).go(tmp_path)


@pytest.mark.spark
@pytest.mark.parametrize("seed", [7, 11])
def test_queries_give_the_same_on_spark(make_engine: MakeEngine, seed: int, tmp_path: Path) -> None:
    rng = Random(seed)
    scenario = Maker(rng).scenario(10)
    Drive(make_engine, scenario, manner(rng), rng).go(tmp_path)


@pytest.mark.spark
def test_functions_and_joins_of_many_streams_give_the_same_on_spark(
    make_engine: MakeEngine, tmp_path: Path
) -> None:
    rng = Random(5)
    maker = NWayMaker(rng, {"nway": 3, "python": 2})
    scenario = maker.scenario(14)
    model = NWayModel(scenario, asked=maker.asked)
    Drive(make_engine, scenario, manner(rng), rng, model).go(tmp_path)
    assert model.compared


# ── what went wrong once ──

_ROWS = Maker(Random(3))
_ROWS._progress, _ROWS._odd = {"A": Ordered("n"), "B": Ordered("n")}, False
FEW = {"few": Query("SELECT u FROM A WHERE k > 0")}
PAIRS = "SELECT A.u FROM A [ROWS 3], B [ROWS 2] WHERE A.k = B.k"
COUNTS = "SELECT k, count(*) AS c FROM A [RANGE 2, SLIDE 2, WA n] GROUP BY k"
RULES = Family("SELECT u FROM A WHERE x > :p", [{"rule": n, "p": n} for n in (1, 2)], "rule")
MORE = [{"rule": 3, "p": 0, "_of": "x"}]


def feed(stream: str, rows: int) -> Feed:
    return Feed(stream, [_ROWS._row(stream) for _ in range(rows)])


def modify(*remove: str, **add: Any) -> Modify:
    given = {name: Query(q) if isinstance(q, str) else q for name, q in add.items()}
    return Modify(given, [*remove])


PLANS: dict[str, tuple[dict[str, Query], list[Action], frozenset[int]]] = {
    "another under the same name, while tuples wait for both": (
        FEW,
        [feed("A", 3), modify("few", few="SELECT x FROM A WHERE k < 3"), feed("A", 3)],
        frozenset((17,)),
    ),
    "another that needs boxes of its own under the same name": (
        {**FEW, "last": Query("SELECT count(*) AS c FROM A [ROWS 2]")},
        [
            feed("A", 3),
            modify("last", last="SELECT sum(k) AS s, count(*) AS c FROM A [ROWS 3]"),
            feed("A", 3),
            modify(
                "last", "few", last="SELECT k FROM A", few="SELECT count(*) AS n FROM A [ROWS 4]"
            ),
            feed("A", 5),
            modify(
                "last", "few", last="SELECT count(*) AS n FROM A [ROWS 1]", few="SELECT k FROM A"
            ),
            feed("A", 3),
        ],
        frozenset((30, 77)),
    ),
    "here and gone before anything came": (
        FEW,
        [feed("A", 3), modify(gone="SELECT x FROM A"), modify("gone"), feed("A", 3)],
        frozenset((17,)),
    ),
    "nobody reads a stream any more": (
        {**FEW, "other": Query("SELECT u FROM B")},
        [feed("B", 3), modify("other"), feed("B", 3), feed("A", 3)],
        frozenset((41,)),
    ),
    "predicates over fields that nobody reads any more": (
        {
            **FEW,
            **{f"q{n}": Query(f"SELECT x FROM A WHERE x > {n}") for n in range(4)},
            "named": Query("SELECT s FROM A WHERE s LIKE 'a%' AND b"),
            "pairs": Query(PAIRS),
            "pairs2": Query(f"{PAIRS} AND A.n > 2"),
            "closer": Query(f"{PAIRS} AND A.x < B.x"),
            "counts": Query(COUNTS),
            "counts2": Query(f"{COUNTS} HAVING count(*) > 1"),
            "sums": Query(f"{COUNTS} HAVING sum(x) > 1"),
        },
        [feed("A", 4), modify("named", "closer", "sums"), feed("B", 2), feed("A", 4)],
        frozenset(),
    ),
    "a family and a member of it at once": (
        {**FEW, "rules": RULES},
        [feed("A", 3), modify("rules[1]", "rules", "rules"), feed("A", 3)],
        frozenset((18,)),
    ),
    "a family that has lost all its members, and gets another": (
        {"rules": RULES},
        [feed("A", 3), modify("rules[1]", "rules[2]"), modify(rules=MORE), feed("A", 3)],
        frozenset(),
    ),
}


@pytest.mark.parametrize("plan", PLANS)
def test_queries_come_and_go(plan: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    queries, actions, crashes = PLANS[plan]
    progress = {"A": Ordered("n"), "B": Ordered("n")}
    scenario = Scenario(progress, queries, actions, ends=True, routing="tickets")
    Drive(sparkless.make_engine, scenario, Manner(2, crashes, drains=0), Random(1)).go(tmp_path)


def test_what_reads_one_log_through_boxes_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two eddies read the log of a stream, one through boxes; after a crash that serves less."""
    joined = "SELECT F.u FROM F [ROWS 2], M [ROWS 2] WHERE F.k = M.k"
    actions: list[Action] = [
        modify(joined=joined),
        modify("joined", made="SELECT u FROM M"),
        feed("A", 5),
        modify("few"),
        feed("A", 2),
    ]
    scenario = Scenario(
        {"A": Ordered("n")}, FEW, actions, ends=False, routing="tickets", derived=("M", "F")
    )
    for point in range(16, 46):
        way = Manner(8, frozenset((point,)), drains=0)
        Drive(sparkless.make_engine, scenario, way, Random(1)).go(tmp_path / str(point))


@pytest.mark.parametrize("members", [1, 2])
def test_a_member_that_went_still_counts_what_waited_for_it(
    members: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = Scenario({"A": Ordered("n")}, {}, [], ends=False, routing="tickets").network()
    rules = [{"rule": n, "p": n} for n in range(1, members + 1)]
    text = "SELECT count(*) AS c FROM A [RANGE 10, WA n] WHERE k = :p"
    net.family("windows", text, rules, key="rule")
    with sparkless.make_engine(net, state=tmp_path) as engine:
        engine.enqueue("A", [{"k": 1, "n": 1}, {"k": 2, "n": 2}, {"k": 1, "n": 15}])
        engine.modify(remove=["windows[1]"])
    with sparkless.make_engine(net, state=tmp_path) as engine:
        engine.drain()
        found = {row["rule"]: row["c"] for row in engine.dequeue("windows").to_pylist()}
        assert found == dict.fromkeys(range(1, members + 1), 1)
        engine.modify(add={"windows": [{"rule": 1, "p": 2}]})
        engine.enqueue("A", [{"k": 2, "n": 16}, {"k": 2, "n": 31}])
        engine.drain()
        assert {"rule": 1, "c": 1} in engine.dequeue("windows").to_pylist()


def test_what_was_added_in_the_place_of_what_was_declared_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declaring = Scenario({"A": None}, FEW, [], ends=False, routing="tickets").network()
    silent = Scenario({"A": None}, {}, [], ends=False, routing="tickets").network()
    with sparkless.make_engine(declaring, state=tmp_path) as engine:
        engine.enqueue("A", feed("A", 3).rows)
        engine.modify(remove=["few"])
    with sparkless.make_engine(silent, state=tmp_path) as engine:
        engine.modify(add={"few": "SELECT x FROM A"})
        engine.enqueue("A", feed("A", 3).rows)
        engine.drain()
    for _ in range(2):
        with sparkless.make_engine(silent, state=tmp_path) as engine:
            assert engine.list_entities()["queries"] == ["few"]
    with sparkless.make_engine(declaring, state=tmp_path) as engine:
        assert engine.describe("few")["sql"] == FEW["few"].sql


def test_what_was_removed_stays_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often the network that declares it is started."""
    net = Scenario({"A": None}, FEW, [], ends=False, routing="tickets").network()
    for start in range(4):
        with sparkless.make_engine(net, state=tmp_path) as engine:
            if start == 0:
                engine.modify(remove=["few"], add={"all": "SELECT u FROM A"})
            engine.enqueue("A", feed("A", 3).rows)
            engine.drain()
            assert engine.list_entities()["queries"] == ["all"]
            assert engine.dequeue("all").num_rows == 3


def test_boxes_do_not_change_while_spark_gets_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def warm_up(_self: Stepper) -> None:
        begun.set()
        assert go_on.wait(60)

    monkeypatch.setattr(Stepper, "warm_up", warm_up)
    net = Scenario({"A": None}, FEW, [], ends=False, routing="tickets").network()
    with sparkless.make_engine(net, state=tmp_path, background=True) as engine:
        assert begun.wait(60)
        free = engine._loop._busy.acquire(blocking=False)
        go_on.set()
        assert not free, "a query could come that needs other boxes"
        engine.modify(add={"last": "SELECT count(*) AS c FROM A [ROWS 2]"})
        engine.enqueue("A", feed("A", 5).rows)
        engine.drain()
        assert engine.dequeue("last")["c"].to_pylist() == [2, 2]
