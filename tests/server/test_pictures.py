"""Pictures, patches and histories: pure functions of what the engine said."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auroral.network.network import Network
from auroral.optimizer.diagram import Move
from auroral.server.delta import apply_patch, merge_patch, without_nulls
from auroral.server.history import PictureHistory
from auroral.server.picture import EngineSample, RateMeter, counted, picture_of
from auroral.server.topology import wiring_of
from tests.conformance.sparkless import make_engine
from tests.server.serving import PLANT, READINGS

TYPES = Path(__file__).parents[2] / "studio" / "src" / "api" / "types.ts"

leaves = st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-2, 2) | st.sampled_from("ab")
documents = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=4)
    ),
    max_leaves=12,
)
objects = st.dictionaries(st.sampled_from("abcd"), documents, max_size=4)


def same(one: Any, other: Any) -> bool:
    """Equal as JSON: 1 is neither true nor "1"."""
    return repr(one) == repr(other) if not isinstance(one, dict) else _same_keys(one, other)


def _same_keys(one: dict[str, Any], other: Any) -> bool:
    return (
        isinstance(other, dict)
        and one.keys() == other.keys()
        and all(same(one[key], other[key]) for key in one)
    )


@pytest.mark.law
@given(objects, objects)
def test_a_patch_makes_the_one_of_the_other(before: Any, after: Any) -> None:
    found = apply_patch(without_nulls(before), merge_patch(before, after))
    assert found == without_nulls(after)


@pytest.mark.law
@given(objects)
def test_nothing_changed_is_an_empty_patch(document: Any) -> None:
    assert merge_patch(document, document) == {}


def test_true_and_one_differ() -> None:
    assert merge_patch({"a": 1, "b": [0]}, {"a": True, "b": [False]}) == {"a": True, "b": [False]}


def sample_of(network: Network, rows: list[Any]) -> tuple[EngineSample, EngineSample]:
    """What an engine says before and after some rows."""
    with make_engine(network) as engine:
        first = EngineSample(0, 10.0, engine.stats(), engine.debug_state())
        engine.enqueue("readings", rows)
        engine.drain()
        return first, EngineSample(2_000_000, 12.0, engine.stats(), engine.debug_state(), '"v"')


def test_a_picture_is_what_the_types_of_the_page_say() -> None:
    network = Network.parse(PLANT)
    before, after = sample_of(network, READINGS)
    meter = RateMeter(0.0).next(before.at_s, counted(before.stats))
    meter = meter.next(after.at_s, counted(after.stats))
    picture = picture_of(after, meter, wiring_of(network, {}), lambda _name: [1.0, None])
    assert picture.keys() == fields_of("Picture")
    assert picture["arcs"]["readings"].keys() == fields_of("ArcFigures")
    assert picture["boxes"]["hot"].keys() - {"queued"} == fields_of("BoxFigures")
    assert picture["outputs"]["alerts"].keys() == fields_of("OutputFigures")
    assert picture["points"]["recent"].keys() == fields_of("PointFigures")
    assert picture["debug"].keys() == fields_of("DebugState")
    assert picture["arcs"]["readings"]["tuples"] == 3
    assert picture["arcs"]["readings"]["rate"] == 1.5
    assert picture["arcs"]["readings"]["mark"] == {"at": 13}
    assert picture["boxes"]["hot"]["out_rate"] == 1.0
    assert picture["boxes"]["tens"]["held"] is not None
    assert picture["outputs"]["alerts"]["waiting"] == 2
    assert picture["outputs"]["alerts"]["latency_p95_s"] is not None
    assert picture["outputs"]["alerts"]["qos"] == {"latency": [[0, 1], [2, 1], [10, 0]]}
    assert picture["points"]["recent"]["rows"] == 3
    assert picture["rate"] == 1.5


def test_a_picture_says_where_the_optimiser_lets_a_box_run() -> None:
    network = Network.parse(PLANT)
    _, after = sample_of(network, READINGS)
    move = Move("hot", "wide", "hot", "wide", why="it lets 2 % pass")
    after.stats["optimizer"]["moves"].append(move.document())
    picture = picture_of(after, RateMeter(0.0), wiring_of(network, {}), lambda _name: [])
    assert picture["moves"] == [
        {
            "box": "hot",
            "text": "passed past wide: it lets 2 % pass",
            "past": "wide",
            "place": "hot",
            "target": "wide",
            "tactic": "passed",
            "side": "",
        }
    ]
    assert picture["moves"][0].keys() == fields_of("MoveFigures")


def test_an_engine_runs_while_one_of_its_applications_is_paused() -> None:
    network = Network.parse(PLANT)
    _, after = sample_of(network, READINGS)
    for paused, state in ((False, "running"), (True, "paused")):
        debug = {**after.debug, "paused": paused, "applications": ["alerts"]}
        sample = replace(after, debug=debug)
        picture = picture_of(sample, RateMeter(0.0), wiring_of(network, {}), lambda _name: [])
        assert picture["state"] == state


def fields_of(name: str) -> set[str]:
    """The fields of a type of the page."""
    text = TYPES.read_text()
    body = text[text.index(f"export type {name} = {{") :]
    found, depth = set(), 0
    for line in body.splitlines()[1:]:
        if line.startswith("};"):
            break
        key = re.match(r"  (\w+)\??:", line)
        if key and depth == 0:
            found.add(key[1])
    return found


def test_patience_is_that_of_the_most_impatient_output_behind() -> None:
    wiring = wiring_of(Network.parse(PLANT), {})
    assert wiring.patience_s == {"readings": 2, "hot": 2, "tens": 30}
    assert wiring.aliases["recent"] == "readings"


def test_an_arc_presses_only_for_readers_whose_outputs_wait() -> None:
    network = Network.parse(PLANT)
    _, after = sample_of(network, READINGS)
    wiring = wiring_of(network, {})
    assert wiring.readers["readings"] == {"hot": 2, "tens": 30}
    arc, boxes = after.stats["streams"]["readings"], after.stats["boxes"]
    arc.update(queued=9, oldest_s=4.0)
    boxes["hot"]["oldest_s"], boxes["tens"]["oldest_s"] = None, 4.0
    assert pressed_on_readings(after, network) == {}, "what waits for tens may wait"
    boxes["hot"]["oldest_s"] = 1.5
    assert pressed_on_readings(after, network) == {"hot": {"oldest_s": 1.5, "patience_s": 2}}
    arc.update(queued=0)
    assert pressed_on_readings(after, network) == {}


def pressed_on_readings(sample: EngineSample, network: Network) -> Any:
    picture = picture_of(sample, RateMeter(0.0), wiring_of(network, {}), lambda _name: [])
    return picture["arcs"]["readings"]["pressed"]


def test_rates_follow_changes_slowly_and_never_go_below_zero() -> None:
    meter = RateMeter(0.0)
    for second in range(1, 20):
        meter = meter.next(float(second), {("a",): 100 * second})
    assert meter.rate("a") == 100
    meter = meter.next(20.0, {("a",): 1900})
    assert meter.rate("a") == 50
    meter = meter.next(21.0, {("a",): 0})  # counts began anew
    assert meter.rate("a") == 25
    assert meter.next(21.0, {("a",): 5}).rate("a") == 25
    assert meter.next(22.0, {}).rates == {}


def figures(utility: float) -> dict[str, Any]:
    output = {"rate": 1.0, "waiting": 0, "utility": utility}
    sections: dict[str, Any] = {"boxes": {}, "arcs": {}, "points": {}, "queries": {}}
    whole = dict.fromkeys(
        ("rate", "utility", "steps", "step_s", "late", "dead", "shed", "memory_bytes"), 0
    )
    return {**whole, **sections, "outputs": {"alerts": output}}


def test_a_history_is_bounded_and_forgets_what_is_gone() -> None:
    history = PictureHistory()
    for tick in range(4000):
        history.add(tick * 0.5, figures(tick))
    found = history.of("alerts")
    assert found is not None
    assert len(found["at_s"]) == 450
    assert found["at_s"][-1] - found["at_s"][0] == 898
    assert found["series"]["utility"][-1] == 3996
    assert len(history.recent("outputs", "alerts", "utility")) == 90
    history.add(3000.0, {**figures(0), "outputs": {}})
    assert history.of("alerts") is None
    assert history.of("*") is not None
