"""What `auroral explain` says of boxes that may change places."""

from __future__ import annotations

import auroral as au
from auroral.engine.inspect.box_order import explained_fields, explained_order
from auroral.optimizer import COMMUTING, SIFTING


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
