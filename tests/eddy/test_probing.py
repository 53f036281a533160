"""Routing of joins on simulated trains: which SteM new tuples probe first."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auroral.continuous.sharing.template import JoinShape
from auroral.eddy.routes.probing import JoinRouter, ProbeRouter, Probes
from auroral.eddy.routes.routing import POLICIES, Visit
from auroral.eddy.stems.group import JoinGroup

TRAIN, CHUNK = 100_000, 16_384
NAMES = ("a", "b", "c", "d")


def train(router: ProbeRouter, matches: Mapping[int, float], tuples: int = TRAIN) -> float:
    """Send a train from source 0; tuples joined on the way for each new one."""
    chunks = -(-tuples // CHUNK)
    orders = router.orders(chunks) or [tuple(sorted(matches, key=matches.__getitem__))]
    probes, joined = Probes(), 0.0
    for number in range(chunks):
        order, rows = orders[number % len(orders)], tuples / chunks
        probes.add(Probes({}, {order: round(rows)}))
        for place in order:
            made = rows * matches[place]
            probes.add(Probes({place: Visit(round(rows), round(made), 1e-7 * made)}))
            rows, joined = made, joined + made
    router.learn(probes)
    return joined / tuples


def test_the_selective_stem_is_probed_first_and_when_that_changes_the_other() -> None:
    router = ProbeRouter("tickets", NAMES[:3], 0)
    before = [train(router, {1: 100.0, 2: 0.01}) for _ in range(20)]
    assert sum(before[1:]) / 19 < 2, "0.01 + 1 is the best"
    after = [train(router, {1: 0.01, 2: 100.0}) for _ in range(20)]
    assert after[0] > 100
    assert sum(after[2:]) / 18 < 2


def test_of_stems_that_all_return_more_than_they_get_the_least_comes_first() -> None:
    """Each has one ticket; only how many tuples they return tells them apart."""
    router = ProbeRouter("tickets", NAMES[:3], 0)
    for _ in range(3):
        train(router, {1: 2.0, 2: 50.0})
    assert router.chances()[1] > 0.99
    for _ in range(8):
        train(router, {1: 50.0, 2: 2.0})
    assert router.chances()[2] > 0.95


def test_every_stem_keeps_a_ticket_and_a_chance() -> None:
    router = ProbeRouter("tickets", NAMES, 0)
    for _ in range(10):
        train(router, {1: 0.5, 2: 30.0, 3: 500.0})
    told = router.statistics()["stems"]
    assert all(stem["tickets"] >= 1 for stem in told.values())
    chances = router.chances()
    assert all(chance > 0 for chance in chances.values())
    assert chances[1] > chances[2] > chances[3]
    assert sum(chances.values()) == pytest.approx(1)


def test_a_sample_decides_until_something_is_known_and_always_with_optimal() -> None:
    for policy in POLICIES:
        router = ProbeRouter(policy, NAMES[:3], 0)
        assert (router.orders(2) == []) is (policy in ("tickets", "optimal"))
        train(router, {1: 0.5, 2: 0.1})
        assert (router.orders(2) == []) is (policy == "optimal")
    assert ProbeRouter("fixed", NAMES, 1).orders(1) == [(0, 2, 3)]


@given(
    st.sampled_from(POLICIES),
    st.integers(3, 5),
    st.data(),
    st.lists(st.lists(st.floats(0, 1e4), min_size=4, max_size=4), max_size=5),
)
def test_every_order_has_every_other_stem_once(
    policy: str, sources: int, data: st.DataObject, trains: list[list[float]]
) -> None:
    names = [f"s{n}" for n in range(sources)]
    prober = data.draw(st.integers(0, sources - 1))
    others = [place for place in range(sources) if place != prober]
    router, again = (ProbeRouter(policy, names, prober, seed=7) for _ in range(2))
    for matches in trains:
        told = Probes(
            {place: Visit(1000, round(1000 * matches[place % 4]), 0.0) for place in others},
            {tuple(others): 1000},
        )
        for one in (router, again):
            one.learn(told)
        orders = router.orders(3)
        assert orders == again.orders(3)
        assert all(sorted(order) == others for order in orders)
        assert all(stem["tickets"] >= 1 for stem in router.statistics()["stems"].values())


def test_what_users_see() -> None:
    router = JoinRouter("fixed")
    joins = {"two": ("A", "B"), "three": ("A", "B", "A")}
    assert router.orders(joins, {"A": 20_000, "B": 3}) == {
        ("three", 0): [(1, 2)] * 2,
        ("three", 1): [(0, 2)],
        ("three", 2): [(0, 1)] * 2,
    }
    router.learn({("three", 1): Probes({0: Visit(10, 4, 0.1), 2: Visit(4, 9, 0.1)}, {(0, 2): 10})})
    told = router.statistics()["three"]
    assert list(told) == ["A (1)", "B", "A (2)"]
    assert told["B"] == {
        "tuples": 10,
        "stems": {
            "A (1)": {
                "tickets": 7,
                "share": pytest.approx(7 / 8, abs=0.01),
                "probed": 10,
                "matched": 4,
                "first": 10,
                "recent_matches_per_tuple": 0.4,
            },
            "A (2)": {
                "tickets": 1,
                "share": pytest.approx(1 / 8, abs=0.01),
                "probed": 4,
                "matched": 9,
                "first": 0,
                "recent_matches_per_tuple": 2.25,
            },
        },
        "orders": {"A (1), A (2)": 10},
    }
    assert router.orders({}, {}) == {}
    assert router.statistics() == {}


def test_only_what_equalities_lead_to_is_probed_next() -> None:
    """In a chain a = b = c = d, c cannot follow a; what nothing leads to comes when it must."""
    equal = ((0, "k", 1, "k"), (1, "m", 2, "m"), (2, "n", 3, "n"))
    group = JoinGroup("g", JoinShape(NAMES, equal, "rows"), ((),) * 4, (9,) * 4)
    assert group.reachable([0], [1, 2, 3]) == [1]
    assert group.reachable([1], [0, 2, 3]) == [0, 2]
    assert group.reachable([1, 0], [2, 3]) == [2]
    apart = JoinGroup("g", JoinShape(NAMES, equal[:1], "rows"), ((),) * 4, (9,) * 4)
    assert apart.reachable([0, 1], [2, 3]) == [2, 3]
