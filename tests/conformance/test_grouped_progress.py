"""Queries where some streams have progress by groups: what is shared, and what comes of it."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from auroral import Delayed, Network, Order, Ordered
from auroral.continuous.boxing.expansion import expanded
from auroral.errors import NetworkError
from auroral.reference import Reference

from . import sparkless
from .driving import Drive, manner
from .shared import Maker
from .test_shared_queries import set_out

EVENT = "k int, s string, n bigint"


def network() -> Network:
    """A stream with progress by groups and one without, and what boxes make of them."""
    net = Network("grouped")
    own = net.stream("own", EVENT, progress=Ordered("n", by=("k",)))
    other = net.stream("other", EVENT, progress=Ordered("n", by=("s",)))
    one = net.stream("one", EVENT, progress=Delayed("n", 2))
    of_one = one.filter("k > 0", name="of_one")
    own.filter("k > 0", name="of_own")
    own.map(name="bare", n="n", g="s")
    net.union(own, one, name="mixed")
    net.union(own, other, name="unlike")
    net.union(one, of_one, name="alike")
    one.join(of_one, left=Order("n"), right=Order("n"), within=3, name="pairs")
    return net


SUM = "SELECT {by}, count(*) AS c FROM {arc} [RANGE 3, WA n] GROUP BY {by}"
BAND = "SELECT l.k FROM {0} [RANGE 3, WA n] AS l, {1} [RANGE 2, WA n] AS r WHERE l.k = r.k"
SHARED = {
    **{f"s_{arc}": SUM.format(arc=arc, by="k") for arc in ("one", "of_one", "alike", "unlike")},
    "by_other": SUM.format(arc="own", by="s"),
    "no_groups": SUM.format(arc="bare", by="g"),
    "by_number": SUM.format(arc="pairs", by="k"),
    **{f"b_{arc}": BAND.format(arc, "one") for arc in ("one", "of_one", "own", "mixed")},
}
BOXED = {
    **{f"s_{arc}": SUM.format(arc=arc, by="k") for arc in ("own", "of_own", "mixed")},
    "finer": SUM.format(arc="of_own", by="s, k"),
    "jointly": SUM.format(arc="pairs", by="right_n"),
}


@pytest.mark.parametrize("query", [*SHARED, *BOXED])
def test_only_groups_that_close_by_themselves_need_a_box(
    query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = network()
    net.query("q", (SHARED | BOXED)[query])
    with sparkless.make_engine(net) as engine:
        assert engine.stats()["queries"]["q"]["shared"] == (query in SHARED)


def test_a_family_is_told_whose_progress_differs() -> None:
    net = network()
    text = SUM.format(arc="mixed", by="k").replace("GROUP", "WHERE s = :p GROUP")
    net.family("f", text, [{"rule": 1, "p": "a"}], key="rule")
    with pytest.raises(NetworkError, match="progress of mixed on n differs from group to group"):
        net.check()


def test_pairs_close_jointly_whoever_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A window of pairs may be complete before the pairs of every other are [3 §7]."""
    net = Network("pairs")
    one = net.stream("one", EVENT, progress=Delayed("n", 2))
    one.join(one.filter("k > 0"), left=Order("n"), right=Order("n"), within=3, name="pairs")
    net.query("q", BOXED["jointly"])
    rows = [{"k": 1, "n": n} for n in range(9)]
    reference = Reference(expanded(net))
    for row in rows:
        reference.push("one", row)
    expected = [found.row for found in reference.tuples("q")]
    assert expected
    with sparkless.make_engine(net) as engine:
        engine.enqueue("one", rows)
        engine.drain()
        assert engine.dequeue("q").to_pylist() == expected


@pytest.mark.parametrize("seed", range(8))
def test_queries_give_what_they_would_give_alone(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = Random(seed)
    kinds = {"join": 3, "aggregate": 4, "select": 1}
    scenario = Maker(rng, kinds, derived=("M", "F", "U"), grouped=True).scenario(20)
    set_out(monkeypatch, rng)
    Drive(sparkless.make_engine, scenario, manner(rng), rng).go(tmp_path)
