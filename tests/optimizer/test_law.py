"""The law: whatever the optimiser moves, the results are those of the declared network."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import auroral as au
import auroral.engine.parts
from auroral.engine.runtime.reordering import OrderChange, OrderOptimizer
from auroral.network.arc import Arc
from auroral.network.check import CheckedNetwork
from auroral.optimizer import Diagram, Estimate, Move, Subnetworks, as_moved, optimize
from auroral.reference import Reference
from tests.conformance.sparkless import make_engine

SCHEMA = "t bigint, k int, x bigint, s string"
PREDICATES = ["k > 1", "x % 2 = 0", "s LIKE 'a%'", "k IS NULL", "t % 3 <> 1", "S <> 'b' OR K = 0"]
COMPUTED: list[dict[str, str]] = [
    {"x": "x + k"},
    {"s": "concat(s, 'a')"},
    {"k": "CASE WHEN k > 1 THEN k ELSE NULL END", "x": "-x"},
    {"t": "t + 1"},
]
VALUES: dict[str, list[Any]] = {
    "k": [None, 0, 1, 2, 3],
    "x": [None, -3, 0, 1, 2, 5],
    "s": [None, "", "a", "ab", "b"],
}


FORGETTING: list[dict[str, str]] = [
    {"t": "t", "k": "k", "x": "x", "s": "'c'"},
    {"t": "t", "k": "1", "x": "t", "s": "s"},
]
"""Maps that do not read all fields, so that maps before them need not give these."""
CALLING = ["odd(x)", "picky(x + k) > 0"]
CALLED: list[dict[str, str]] = [{"x": "picky(x)"}, {"k": "CASE WHEN odd(x) THEN k ELSE -1 END"}]


PAIR_PREDICATES = [
    "k > 1",
    "right_x % 2 = 0",
    "s LIKE 'a%' AND right_s <> 'b'",
    "k IS NULL OR right_k IS NULL",
    "x + right_x > 1 AND RIGHT_K > 0 AND k BETWEEN 0 AND 2",
    "right_t % 3 <> 1 AND t % 3 <> 1",
]
"""What filters behind a join read: one side, both, or parts of each."""


SOMETHING = {f"b{n}": Estimate(1e-3, 0.01 if n % 2 else 0.99) for n in range(10)}


def network(rng: Random, *, calling: bool = False) -> au.Network:
    """Chains of filters, maps and unions; windows, points and second readers cut them."""
    net = au.Network("random")
    if calling:
        for name, returns in (("picky", "bigint"), ("odd", "boolean")):
            net.function(name, f"tests.conformance.plain_functions:{name}", returns=returns)
    predicates = [*PREDICATES, *(CALLING if calling else [])]
    computed = [*COMPUTED, *(CALLED if calling else [])]
    progress: list[Any] = [au.Ordered("t"), au.Delayed("t", 2)]
    arcs: list[Arc] = [
        net.stream(name, schema=SCHEMA, progress=rng.choice(progress))
        for name in "ab"[: rng.randint(1, 2)]
    ]
    kinds = ["filter", "filter", "filter", "map", "map", "union", "sort", "join", "join"]
    for number in range(rng.randint(3, 9)):
        name = f"b{number}"
        # Long chains are more telling than wide networks.
        arc = arcs[-1] if rng.random() < 0.75 else rng.choice(arcs)
        kind = rng.choice(kinds)
        if kind == "filter":
            kept = arc.filter(rng.choice(predicates), name=name)
            arcs += [kept.rest, kept] if rng.random() < 0.1 else [kept]
        elif kind == "map":
            if rng.random() < 0.8:
                arcs.append(arc.map(keep="*", name=name, **rng.choice(computed)))
            else:
                arcs.append(arc.map(name=name, **rng.choice(FORGETTING)))
        elif kind == "union":
            other = rng.choice(arcs)
            if rng.random() < 0.7:  # a branch of its own, in front of which a filter may come
                other = other.map(keep="*", name=f"{name}b", **rng.choice(computed))
            arcs.append(net.union(*rng.sample([arc, other], 2), name=name))
        elif kind == "sort":
            arcs.append(arc.bsort(au.Order("t"), name=name))
        else:
            arcs.append(joined(rng, rng.sample([arc, rng.choice(arcs)], 2), name))
            kinds = [kind for kind in kinds if kind != "join"]  # pairs of pairs are many
    net.output("last", arcs[-1])
    if rng.random() < 0.3:
        net.output("other", rng.choice(arcs))
    if rng.random() < 0.3:
        net.connection_point("recent", rng.choice(arcs), keep={"rows": 5})
    if rng.random() < 0.4:
        window = au.Window(size=4)
        counted = arcs[-1].aggregate(order=au.Order("t"), window=window, n="count(*)", name="count")
        net.output("counts", counted)
        net.output("missed", counted.late)
    return net


def joined(rng: Random, sides: list[Arc], name: str) -> Arc:
    """Pairs, filters behind them, sometimes a map in between; then the fields of all arcs again."""
    on = rng.choice(["left.k = right.k", "left.k = right.k", "left.k = right.k AND left.x > 0"])
    orders = [au.Order("t", slack=rng.choice([None, None, None, 1, 3])) for _ in range(2)]
    left, right = sides
    arc = left.join(right, on, left=orders[0], right=orders[1], within=rng.randint(0, 3), name=name)
    for number in range(rng.randint(1, 3)):
        if rng.random() < 0.3:
            arc = arc.map(keep="*", s="concat(s, right_s)", name=f"{name}m{number}")
        arc = arc.filter(rng.choice(PAIR_PREDICATES), name=f"{name}f{number}")
    return arc.map(keep=("t", "k"), x="right_x", s="s", name=f"{name}n")


def rows(rng: Random, count: int) -> list[dict[str, Any]]:
    made = []
    for number in range(count):
        row = {name: rng.choice(values) for name, values in VALUES.items()}
        made.append({"t": max(number // 2 - rng.choice([0, 0, 0, 1, 4]), 0), **row})
    return made


def estimates(rng: Random, checked: CheckedNetwork) -> dict[str, Estimate]:
    return {
        name: Estimate(10 ** rng.uniform(-7, -2), rng.random() if box.kind == "filter" else 1.0)
        for name, box in checked.network.boxes.items()
        if rng.random() < 0.95
    }


def fixed(net: au.Network) -> list[str]:
    return [str(point.on) for point in net.connection_points.values()]


def leading(net: au.Network) -> set[str]:
    """The boxes that lead to an output or a connection point: an engine runs no others."""
    checked = net.check()
    found: set[str] = set()
    stack = [checked.arcs[arc].producer for arc in fixed(net)]
    stack += [checked.arcs[output.from_].producer for output in net.outputs.values()]
    while stack:
        box = stack.pop()
        if box in net.boxes and box not in found:
            found.add(box)
            stack += [arc.producer for arc in checked.inputs_of(box)]
    return found


def produced(net: au.Network, given_rows: list[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    """What the reference gives for each output, in order, and the tuples that were late."""
    reference = interpreted(net, given_rows)
    found: dict[str, Any] = {name: reference.collected(name) for name in net.outputs}
    return {**found, "late": reference.late}


def interpreted(net: au.Network, given_rows: list[tuple[str, dict[str, Any]]]) -> Reference:
    reference = Reference(net)
    for stream, row in given_rows:
        reference.push(stream, row)
    reference.end()
    return reference


@given(st.integers(0, 10**9))
def test_a_network_gives_the_same_after_any_moves(seed: int) -> None:
    rng = Random(seed)
    net = network(rng)
    checked = net.check()
    separate = rng.random() < 0.5
    found = optimize(checked, estimates(rng, checked), fixed=fixed(net), separate=separate)
    streams = sorted(net.streams)
    given_rows = [(rng.choice(streams), row) for row in rows(rng, 40)]
    assert produced(found.checked.network, given_rows) == produced(net, given_rows)
    for arc in {output.from_ for output in net.outputs.values()} | set(fixed(net)):
        assert found.checked.arcs[arc].schema == checked.arcs[arc].schema
        assert arc not in found.checked.displaced


@given(st.integers(0, 10**9))
def test_functions_fail_for_no_other_tuples_than_declared(seed: int) -> None:
    rng = Random(seed)
    net = network(rng, calling=True)
    checked = net.check()
    found = optimize(checked, estimates(rng, checked), fixed=fixed(net))
    streams = sorted(net.streams)
    given_rows = [(rng.choice(streams), row) for row in rows(rng, 40)]
    declared = interpreted(net, given_rows)
    after = interpreted(found.checked.network, given_rows)
    for name in net.outputs:
        assert after.collected(name) == declared.collected(name)
    assert after.late == declared.late
    left = Counter((one.reason, str(one.row)) for one in declared.dead)
    fewer = Counter((one.reason, str(one.row)) for one in after.dead)
    assert fewer <= left, "a filter that moved can only keep tuples from failing"


def test_random_networks_have_something_to_move() -> None:
    rng = Random(1)
    kinds = set()
    for _ in range(100):
        net = network(rng, calling=True)
        checked = net.check()
        for move in optimize(checked, estimates(rng, checked), fixed=fixed(net)).moves:
            kinds.add(checked.network.boxes[move.past].kind)
    assert kinds == {"filter", "map", "union", "join"}


def test_random_networks_have_something_to_combine_and_to_narrow() -> None:
    rng = Random(2)
    tactics = set()
    for _ in range(50):
        net = network(rng)
        checked = net.check()
        found = optimize(checked, estimates(rng, checked), fixed=fixed(net), separate=True)
        tactics |= {move.tactic for move in found.moves}
    assert tactics == {"passed", "sifted", "combined", "narrowed"}


@given(st.integers(0, 10**9))
def test_what_is_best_is_found_again_and_costs_no_more(seed: int) -> None:
    rng = Random(seed)
    net = network(rng)
    checked = net.check()
    known = estimates(rng, checked)
    outputs = [output.from_ for output in net.outputs.values()]
    subnetworks = Subnetworks(checked, [*outputs, *fixed(net)])
    for boxes in subnetworks.all:
        moves = subnetworks.best(boxes, known)
        assert {move.box for move in moves} <= boxes
        assert {move.past for move in moves} <= boxes
        assert moves == subnetworks.best(boxes, known)
        declared, better = (subnetworks.cost_s(boxes, m, known, {}) for m in ((), moves))
        assert better <= declared * (1 + 1e-9)
        again = as_moved(checked, [move for move in moves if move.tactic == "passed"])
        twice = Subnetworks(again, [*outputs, *fixed(net)])
        here = {p: known[again.origin(p)] for p in again.network.boxes if again.origin(p) in known}
        own = {place for place in again.network.boxes if again.origin(place) in boxes}
        more = [m for part in twice.all if part & own for m in twice.best(part, here)]
        assert not [move for move in more if move.tactic == "passed"]


class RestlessOptimizer(OrderOptimizer):
    """Lets boxes change places at any time, in any order that the rules allow."""

    def __init__(self, rng: Random):
        super().__init__()
        self._rng = rng

    def decide(
        self, subnetworks: Subnetworks | None, current: tuple[Move, ...]
    ) -> OrderChange | None:
        assert subnetworks is not None
        if self._rng.random() < 0.7:
            return None
        known = estimates(self._rng, subnetworks.checked)
        moves: tuple[Move, ...] = ()
        for boxes in subnetworks.all:
            best = subnetworks.best(boxes, known)
            moves += subnetworks.tidied(boxes, best) if self._rng.random() < 0.7 else best
        declared = Diagram.of(subnetworks.checked)
        if declared.after(moves) == declared.after(current):
            return None
        self.changes += 1
        return OrderChange(moves)


@pytest.mark.parametrize("seed", range(16))
def test_an_engine_gives_what_the_reference_gives_while_boxes_move(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = Random(seed)
    made: list[RestlessOptimizer] = []

    def restless() -> RestlessOptimizer:
        made.append(RestlessOptimizer(rng))
        return made[-1]

    monkeypatch.setattr(auroral.engine.parts, "OrderOptimizer", restless)
    net = network(rng)
    while not optimize(net.check(), SOMETHING, fixed=fixed(net)).moves:
        net = network(rng)
    mode = rng.choice(["auto", "fuse", "box", "box", "application", "spanner"])
    net.engine = net.engine.model_copy(update={"superbox": mode})
    streams = sorted(net.streams)
    given_rows = [(rng.choice(streams), row) for row in rows(rng, 150)]
    train = rng.choice([1, 4, 9, None])
    taken: dict[str, list[dict[str, Any]]] = {name: [] for name in net.outputs}
    at = 0
    while at < len(given_rows):
        with make_engine(net, state=tmp_path / "state", train=train, clock="arrival") as engine:
            stop = min(at + rng.randint(30, 80), len(given_rows))
            while at < stop:
                size = rng.randint(1, 9)
                for stream, row in given_rows[at : at + size]:
                    engine.enqueue(stream, [row])
                at += size
                engine.drain()
            if at >= len(given_rows):
                engine.finish()
            for name in net.outputs:
                taken[name] += engine.dequeue(name).to_pylist()
            boxes = engine.stats()["boxes"]
    late = {
        (name, why): count
        for name, box in boxes.items()
        for why, count in box.get("late", {}).items()
        if count
    }
    reference = produced(net, given_rows)
    run = leading(net)
    assert late == {key: n for key, n in reference.pop("late").items() if key[0] in run}
    assert taken == reference
    assert sum(one.changes for one in made) > 0
