"""Which boxes run as one: outputs of different worth run apart, also those without graphs."""

from __future__ import annotations

from collections.abc import Sequence

from auroral import EngineOptions, Network, QoS
from auroral.network.arc import Arc
from auroral.scheduling.superboxes import superboxes

TIGHT = QoS(latency=[(0, 1), (0.5, 1), (1, 0)])
LOOSE = QoS(latency=[(0, 1), (60, 1), (120, 0)])


def fused(net: Network, beside: Sequence[str] = (), more: Sequence[str] = ()) -> set[str]:
    """The boxes of each superbox, as they are fused if outputs and some more arcs are wanted."""
    checked = net.check()
    wanted = [output.from_ for output in checked.network.outputs.values()]
    found = superboxes(checked, [*wanted, *more, *beside], beside=beside)
    return {" ".join(sorted(superbox.boxes)) for superbox in found}


def branches(**graphs: QoS | None) -> tuple[Network, Arc]:
    """A network in which every output filters a stream for itself; and the stream."""
    net = Network("branches")
    s = net.stream("s", schema="a int")
    for name, qos in graphs.items():
        net.output(name, s.filter("a > 0", name=f"{name}_box"), qos=qos)
    return net, s


def test_an_output_without_graphs_runs_apart_from_one_with_graphs() -> None:
    net, _ = branches(tight=TIGHT, plain=None)
    assert fused(net) == {"tight_box", "plain_box"}


def test_outputs_without_graphs_are_of_one_worth() -> None:
    net, _ = branches(tight=TIGHT, plain=None, also_plain=None, empty=QoS())
    assert fused(net) == {"tight_box", "also_plain_box empty_box plain_box"}


def test_nothing_runs_apart_in_a_network_without_graphs() -> None:
    net, _ = branches(one=None, other=None)
    assert fused(net) == {"one_box other_box"}


def test_outputs_that_all_have_the_same_graphs_run_together() -> None:
    net, _ = branches(one=TIGHT, other=TIGHT)
    assert fused(net) == {"one_box other_box"}


def test_boxes_that_lead_to_both_run_apart_from_either() -> None:
    net = Network("shared")
    both = net.stream("s", schema="a int").filter("a > 0", name="both")
    net.output("tight", both.filter("a > 1", name="tight_box"), qos=TIGHT)
    net.output("plain", both.filter("a > 2", name="plain_box"))
    assert fused(net) == {"both", "tight_box", "plain_box"}
    net.engine = EngineOptions(superbox="fuse")
    assert fused(net) == {"both plain_box tight_box"}


def test_kept_history_behind_an_output_runs_apart_and_on_its_way_does_not() -> None:
    net = Network("kept")
    both = net.stream("s", schema="a int").filter("a > 0", name="both")
    net.output("tight", both.filter("a > 1", name="tight_box"), qos=TIGHT)
    both.filter("a > 2", name="kept_box")
    assert fused(net, beside=["both", "kept_box"]) == {"both tight_box", "kept_box"}


def test_kept_history_is_as_urgent_as_an_output_without_graphs() -> None:
    net, s = branches(tight=TIGHT, plain=None)
    s.filter("a > 2", name="kept_box")
    assert fused(net, beside=["kept_box"]) == {"tight_box", "kept_box plain_box"}


def test_a_view_with_graphs_counts_as_an_output() -> None:
    net, s = branches(plain=None, loose=LOOSE)
    net.view("seen", s.filter("a > 3", name="seen_box"), qos=TIGHT)
    assert fused(net, beside=["seen_box"]) == {"plain_box", "loose_box", "seen_box"}
    net.views["seen"] = net.views["seen"].model_copy(update={"qos": LOOSE})
    assert fused(net, beside=["seen_box"]) == {"plain_box", "loose_box seen_box"}


def test_an_arc_that_is_delivered_and_is_no_output_has_no_graphs() -> None:
    net, s = branches(tight=TIGHT)
    both = s.filter("a > 4", name="both")
    net.output("near", both.filter("a > 5", name="near_box"), qos=TIGHT)
    assert fused(net) == {"both near_box tight_box"}
    assert fused(net, more=["both"]) == {"both", "near_box", "tight_box"}
