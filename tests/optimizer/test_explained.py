"""What `auroral explain` says of boxes that may change places."""

from __future__ import annotations

from pathlib import Path

import auroral as au
from auroral.catalog import read_catalog
from auroral.engine.inspect.box_order import EarlierRun, explained_fields, explained_order
from auroral.optimizer import COMMUTING, SIFTING, Estimate, Subnetworks
from auroral.scheduling.costs import BoxCost
from tests.conformance.sparkless import make_engine


def network() -> au.Network:
    net = au.Network("n")
    net.function("odd", "tests.conformance.plain_functions:odd", returns="boolean")
    reports = net.stream("reports", "k int, x bigint")
    net.output("o", reports.filter("odd(x)", name="costly").filter("k > 1", name="cheap"))
    return net


def test_explain_tells_before_after_and_why() -> None:
    lines = explained_order(network().check(), ["cheap"])
    assert lines[1] == "boxes that may change places: costly → cheap"
    assert lines[2] == "  with assumed costs: cheap → costly; measured costs decide"
    assert lines[3].startswith("  cheap in front of costly: (1 − s)/c of cheap is ")
    assert "c = 0.1 µs, s = 0.5" in lines[3]
    assert "c = 2 µs, s = 0.5" in lines[3]
    assert lines[4].endswith(COMMUTING[0].because)


def test_explain_tells_what_an_earlier_run_has_measured(tmp_path: Path) -> None:
    net = au.Network("n")
    reports = net.stream("reports", "k int, x bigint")
    net.output("o", reports.filter("x >= 0", name="all").filter("k > 90", name="few"))
    with make_engine(net, state=tmp_path) as engine:
        for _ in range(5):
            engine.enqueue("reports", [(k, k) for k in range(100)])
            engine.drain()
    earlier = EarlierRun.of(read_catalog(tmp_path))
    lines = explained_order(net.check(), ["few"], None, earlier)
    assert lines[1] == "boxes that may change places: all → few"
    assert [line.split(": c")[0] for line in lines[2:4]] == [
        "  measured of all",
        "  measured of few",
    ]
    assert lines[2].endswith("s = 1")
    assert lines[3].endswith("s = 0.09")
    assert lines[4].startswith("  it ran last as: ")
    assert lines[5] == "  with measured costs: few → all; measured costs decide"
    assert lines[6].startswith("  few in front of all: (1 − s)/c of few is ")


def test_explain_tells_how_boxes_ran_last_and_which_were_not_measured() -> None:
    checked = network().check()
    cost = BoxCost().after(100, 50, 0.1)
    moved = Subnetworks(checked, ["cheap"])
    known = {"cheap": Estimate(1e-7, 0.5), "costly": Estimate(1e-3, 0.5)}
    moves = moved.best(moved.all[0], known)
    lines = explained_order(checked, ["cheap"], None, EarlierRun({"cheap": cost}, moves))
    assert "  not measured yet, so they stay: costly" in lines
    assert "  it ran last as: cheap → costly" in lines
    assert lines[-1] == "  with measured costs they stay; measured costs decide while it runs"
    assert explained_order(checked, ["cheap"], None, EarlierRun()) == explained_order(
        checked, ["cheap"]
    )


def test_explain_tells_that_boxes_stay() -> None:
    net = network()
    net.engine = net.engine.model_copy(update={"optimize": False})
    assert "optimize: false" in explained_order(net.check(), ["cheap"])[1]
    plain = au.Network("n")
    reports = plain.stream("reports", "k int, x bigint")
    plain.output("o", reports.filter("x > 1", name="one").filter("k > 1", name="other"))
    lines = explained_order(plain.check(), ["other"])
    assert lines[1:] == [
        "boxes that may change places: one → other",
        "  with assumed costs they stay; measured costs decide while it runs",
    ]
    assert explained_order(plain.check(), ["one", "other"]) == []


def test_explain_tells_by_what_a_join_sifts_and_what_nobody_reads() -> None:
    net = au.Network("n")
    left, right = (net.stream(name, "t bigint, k int", progress=au.Ordered("t")) for name in "ab")
    order = au.Order("t")
    joined = left.join(right, "left.k = right.k", left=order, right=order, within=1, name="j")
    some = joined.filter("right_k > 1", name="some")
    net.output("o", some.map(keep=("t",), name="last"))
    lines = explained_order(net.check(), ["last"])
    assert lines[1] == "boxes that may change places: j → some → last"
    assert lines[2] == "  with assumed costs: some@right → j → some → last; measured costs decide"
    assert lines[3].startswith("  some in front of the right input of j too, by `k` > 1: (1 − s)/c")
    assert lines[4].endswith(SIFTING.because)
    assert explained_fields(net.check(), ["last"]) == [
        "",
        "fields that nobody reads, left out:",
        "  j: k, right_t",
        "  some: k, right_k, right_t",
    ]
    net.engine = net.engine.model_copy(update={"optimize": False})
    assert explained_fields(net.check(), ["last"]) == []
