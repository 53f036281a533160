"""A running engine: boxes change places while tuples flow, and nothing else changes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import pytest

import auroral as au
from auroral.simulation.networks import measured_network
from tests.conformance.sparkless import make_engine
from tests.optimizer.pricing import PricedExecutor

TRAIN = 100


def network(**engine: Any) -> au.Network:
    """A costly filter, a map, and a filter behind them that reads neither's fields."""
    net = au.Network("n")
    ticks = net.stream("ticks", "n bigint, k int, g int", progress=au.Ordered("n"))
    costly = ticks.filter("g > 0", name="costly").map(keep="*", twice="n * 2", name="double")
    net.output("o", costly.filter("k > 0", name="cheap"))
    counted = costly_counts(ticks)
    net.output("w", counted)
    net.engine = net.engine.model_copy(update=engine)
    return net


def costly_counts(ticks: Any) -> Any:
    window = au.Window(size=50)
    return ticks.aggregate(order=au.Order("n"), window=window, c="count(*)", name="counted")


def rows(first: int, last: int, *, k_every: int, g_every: int) -> list[dict[str, int]]:
    """Of the tuples, one in `k_every` passes the cheap filter, and one in `g_every` the other."""
    return [
        {"n": n, "k": int(n % k_every == 0), "g": int(n % g_every == 0)} for n in range(first, last)
    ]


def expected(given: Iterable[dict[str, int]]) -> list[tuple[int, ...]]:
    return [(r["n"], r["k"], r["g"], r["n"] * 2) for r in given if r["k"] and r["g"]]


def taken(engine: au.Engine, output: str = "o") -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in engine.dequeue(output).to_pylist()]


def moved(engine: au.Engine) -> list[tuple[str, str]]:
    return [(move["box"], move["past"]) for move in engine.stats()["optimizer"]["moves"]]


PRICES = {"costly": 0.002, "double": 0.001, "cheap": 0.0005}
SELECTIVE = {"k_every": 10, "g_every": 1}
FLIPPED = {"k_every": 1, "g_every": 50}


def trains(engine: au.Engine, given: list[dict[str, int]]) -> None:
    for at in range(0, len(given), TRAIN):
        engine.enqueue("ticks", given[at : at + TRAIN])
        engine.drain()


@pytest.mark.parametrize("background", [False, True])
def test_a_cheap_filter_moves_forward_and_back_and_no_tuple_is_lost(background: bool) -> None:
    executor = PricedExecutor(PRICES)
    options = {"executor": executor, "train": TRAIN, "background": background}
    with make_engine(network(), **options) as engine:
        first = rows(0, 10 * TRAIN, **SELECTIVE)
        trains(engine, first)
        assert moved(engine) == [("cheap", "double"), ("cheap", "costly")]
        found = taken(engine)
        assert found == expected(first)
        second = rows(10 * TRAIN, 60 * TRAIN, **FLIPPED)
        trains(engine, second)
        assert moved(engine) == [], "a filter that drops nothing is where it is declared"
        assert taken(engine) == expected(second)
        assert engine.stats()["optimizer"]["changes"] == 2
        story = [entry["why"] for entry in engine.story("cheap") if entry["event"] == "moved"]
    assert [why.partition(":")[0] for why in story] == [
        "in front of double",
        "in front of costly",
        "back behind double",
        "back behind costly",
    ]


FREE = {"costly": 2e-4, "double": 1e-7, "cheap": 1e-7}
"""A filter that costs next to nothing is worth its place until it drops next to nothing."""


@pytest.mark.parametrize("train", [50, 1_000])
def test_a_filter_moves_and_moves_back_within_ten_trains(train: int) -> None:
    phases = {"k_every": 20, "g_every": 1}, {"k_every": 1, "g_every": 20}
    executor = PricedExecutor(FREE)
    after = []
    with make_engine(network(), executor=executor, train=train) as engine:
        for number, phase in enumerate(phases):
            for count in range(1, 21):
                at = (20 * number + count) * train
                engine.enqueue("ticks", rows(at, at + train, **phase))
                engine.drain()
                if (("cheap", "costly") in moved(engine)) == (number == 0):
                    after.append(count)
                    break
    assert len(after) == 2
    assert max(after) <= 10


@pytest.mark.parametrize("seed", range(3))
def test_boxes_stay_in_place_while_the_input_is_steady(seed: int) -> None:
    """Two orders that cost the same: chance alone makes the one or the other look better."""
    rng, at = Random(seed), 0
    executor = PricedExecutor({"costly": 1e-3, "cheap": 1e-3, "double": 1e-9})
    with make_engine(network(), executor=executor, train=TRAIN) as engine:
        for _ in range(100):
            size = rng.choice([10, 30, 60])
            given = [
                {"n": n, "k": rng.randint(0, 1), "g": rng.randint(0, 1)}
                for n in range(at, at + size)
            ]
            at += size
            engine.enqueue("ticks", given)
            engine.drain()
        assert engine.stats()["optimizer"]["changes"] <= 1


def test_boxes_stay_in_place_while_selectivities_alternate() -> None:
    executor = PricedExecutor({"costly": 1e-3, "cheap": 1e-3, "double": 1e-9})
    with make_engine(network(), executor=executor, train=TRAIN) as engine:
        for number in range(60):
            phase = {"k_every": 20, "g_every": 1} if number % 2 else {"k_every": 1, "g_every": 20}
            engine.enqueue("ticks", rows(number * TRAIN, (number + 1) * TRAIN, **phase))
            engine.drain()
        assert engine.stats()["optimizer"]["changes"] == 0


def test_results_go_on_while_the_order_changes_under_load() -> None:
    options = {"executor": PricedExecutor(PRICES), "train": 37, "background": True}
    first = rows(0, 2_000, **SELECTIVE)
    second = rows(2_000, 4_000, **FLIPPED)
    with make_engine(network(), **options) as engine:
        for at in range(0, 4_000, 50):
            engine.enqueue("ticks", [*first, *second][at : at + 50])
        engine.drain()
        assert taken(engine) == expected([*first, *second])
        engine.finish()
        assert taken(engine, "w") == [(n, 50) for n in range(0, 4_000, 50)]
        assert engine.stats()["optimizer"]["changes"] >= 1


def test_the_declared_network_stays_what_it_was() -> None:
    net = network()
    with make_engine(net, executor=PricedExecutor(PRICES), train=TRAIN) as engine:
        before = {name: engine.describe(name) for name in ("costly", "double", "cheap")}
        trains(engine, rows(0, 10 * TRAIN, **SELECTIVE))
        assert moved(engine)
        for name, known in before.items():
            found = engine.describe(name)
            assert {key: found[key] for key in ("kind", "box", "arcs", "input")} == {
                key: known[key] for key in ("kind", "box", "arcs", "input")
            }
        stats = engine.stats()
        assert stats["boxes"]["costly"]["in"] < 10 * TRAIN, "it gets what the cheap one passes"
        assert stats["boxes"]["cheap"]["in"] == 10 * TRAIN - missed(stats)
        running = stats["optimizer"]["subnetworks"][0]
        assert running == {
            "declared": ["costly", "double", "cheap"],
            "runs": ["cheap", "costly", "double"],
        }


def missed(stats: dict[str, Any]) -> int:
    """Tuples that the costly filter dropped before the cheap one saw them."""
    costly = stats["boxes"]["costly"]
    return 0 if costly["selectivity"] == 1 else costly["in"] - costly["out"]


def test_a_restart_goes_on_with_the_order_that_there_was(tmp_path: Path) -> None:
    options = {"executor": PricedExecutor(PRICES), "train": TRAIN, "state": tmp_path / "state"}
    first = rows(0, 10 * TRAIN, **SELECTIVE)
    second = rows(10 * TRAIN, 12 * TRAIN, **SELECTIVE)
    with make_engine(network(), **options) as engine:
        trains(engine, first)
        assert moved(engine)
        engine.enqueue("ticks", second[:TRAIN])
    with make_engine(network(), **options) as engine:
        assert moved(engine) == [("cheap", "double"), ("cheap", "costly")]
        engine.enqueue("ticks", second[TRAIN:])
        engine.drain()
        assert moved(engine), "it stays until it is measured again"
        assert taken(engine) == expected([*first, *second])


def test_a_restart_without_the_optimiser_goes_back(tmp_path: Path) -> None:
    options = {"executor": PricedExecutor(PRICES), "train": TRAIN, "state": tmp_path / "state"}
    first = rows(0, 10 * TRAIN, **SELECTIVE)
    with make_engine(network(), **options) as engine:
        trains(engine, first)
        assert moved(engine)
    more = rows(10 * TRAIN, 13 * TRAIN, **SELECTIVE)
    with make_engine(network(optimize=False), **options) as engine:
        trains(engine, more)
        assert moved(engine) == []
        assert engine.stats()["optimizer"]["subnetworks"] == []
        assert taken(engine) == expected([*first, *more])


def test_boxes_stay_where_the_network_says_so() -> None:
    options = {"executor": PricedExecutor(PRICES), "train": TRAIN}
    with make_engine(network(optimize=False), **options) as engine:
        trains(engine, rows(0, 10 * TRAIN, **SELECTIVE))
        assert engine.stats()["optimizer"]["changes"] == 0
        assert engine.stats()["boxes"]["cheap"]["in"] == 10 * TRAIN


def test_what_saves_little_stays() -> None:
    prices = {"costly": 1e-9, "double": 1e-9, "cheap": 1e-9}
    with make_engine(network(), executor=PricedExecutor(prices), train=TRAIN) as engine:
        trains(engine, rows(0, 10 * TRAIN, **SELECTIVE))
        assert moved(engine) == []


def test_a_change_of_the_network_starts_from_the_declared_order() -> None:
    options = {"executor": PricedExecutor(PRICES), "train": TRAIN}
    with make_engine(network(), **options) as engine:
        first = rows(0, 10 * TRAIN, **SELECTIVE)
        trains(engine, first)
        assert moved(engine)
        report = engine.modify(
            add={"doubled": {"from": "double"}},
        )
        assert report["added"] == ["outputs.doubled"]
        assert report["rebuilt"] == []
        assert moved(engine) == []
        second = rows(10 * TRAIN, 20 * TRAIN, **SELECTIVE)
        trains(engine, second)
        assert taken(engine) == expected([*first, *second])
        assert taken(engine, "doubled") == [(r["n"], r["k"], r["g"], r["n"] * 2) for r in second]
        assert moved(engine) == [], "an output reads the arc in between"


def test_a_query_over_an_arc_in_between_gets_what_is_declared() -> None:
    options = {"executor": PricedExecutor(PRICES), "train": TRAIN}
    with make_engine(network(), **options) as engine:
        first = rows(0, 10 * TRAIN, **SELECTIVE)
        trains(engine, first)
        assert moved(engine)
        engine.modify(add={"q": "SELECT n, twice FROM double WHERE k = 0"})
        second = rows(10 * TRAIN, 12 * TRAIN, **SELECTIVE)
        trains(engine, second)
        assert moved(engine) == []
        assert taken(engine, "q") == [(r["n"], r["n"] * 2) for r in second if not r["k"]]
        assert taken(engine) == expected([*first, *second])


def test_filters_are_combined_where_each_box_is_a_step(tmp_path: Path) -> None:
    net = au.Network("n")
    ticks = net.stream("ticks", "n bigint, k int, g int", progress=au.Ordered("n"))
    both = ticks.filter("k > 0", name="one").filter("g > 0", name="other")
    net.output("o", both.map(keep="*", twice="n * 2", name="double"))
    net.engine = net.engine.model_copy(update={"superbox": "box"})
    given = rows(0, 10 * TRAIN, k_every=2, g_every=3)
    with make_engine(net, train=TRAIN, state=tmp_path) as engine:
        trains(engine, given)
        assert [m["tactic"] for m in engine.stats()["optimizer"]["moves"]] == ["combined"]
        assert "moved" in [entry["event"] for entry in engine.story("other")]
        assert taken(engine) == expected(given)
        boxes = [box for superbox in engine._loop.execution.superboxes for box in superbox.boxes]
    assert boxes == ["other", "double"]
    # What is simulated is what ran.
    assert [*measured_network(net, tmp_path).model.boxes] == ["other", "double"]
