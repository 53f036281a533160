"""A check finds every mistake, says where it is, and types what is sound."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from auroral.network.lenient import check_leniently, read_leniently
from auroral.network.network import Network
from tests.server.serving import PLANT

SOUND: dict[str, Any] = {
    "network": "n",
    "streams": {"s": {"schema": "a int, b string", "progress": {"on": "a", "ordered": True}}},
}


def found(document: dict[str, Any]) -> dict[tuple[Any, ...], str]:
    """The codes of the mistakes of a network, by path."""
    checked = read_leniently({**SOUND, **document})
    check_leniently(checked)
    return {mistake.path: mistake.code for mistake in checked.mistakes}


def filtering(where: str, input: str = "s") -> dict[str, str]:
    return {"box": "filter", "input": input, "where": where}


TEMPLATE = {
    "inputs": ["in"],
    "parameters": {"x": 1},
    "boxes": {"b": filtering("a > ${x}", "in")},
    "outputs": "b",
}


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"boxes": {"f": filtering("c > 1")}}, {("boxes", "f", "where"): "UNKNOWN_FIELD"}),
        (
            {"boxes": {"f": filtering("c > 1"), "g": filtering("d > 1"), "h": filtering("a > 1")}},
            {
                ("boxes", "f", "where"): "UNKNOWN_FIELD",
                ("boxes", "g", "where"): "UNKNOWN_FIELD",
            },
        ),
        # What depends on a broken box is not blamed.
        (
            {
                "boxes": {"f": filtering("c > 1"), "g": filtering("a > 1", "f")},
                "outputs": {"o": {"from": "g"}},
                "connection_points": {"p": {"on": "f", "keep": "1 h"}},
                "views": {"v": {"from": "g"}},
                "groups": {"k": ["f", "g"]},
            },
            {("boxes", "f", "where"): "UNKNOWN_FIELD"},
        ),
        (
            {"boxes": {"f": {"box": "nope", "input": "s"}, "g": filtering("a > 1", "f")}},
            {("boxes", "f", "box"): "UNKNOWN_BOX"},
        ),
        ({"outputs": {"o": {"from": "x"}}}, {("outputs", "o", "from"): "UNKNOWN_ARC"}),
        ({"boxes": {"f": filtering("a > 1", "x")}}, {("boxes", "f", "input"): "UNKNOWN_ARC"}),
        (
            {"boxes": {"f": filtering("a > 1", "g"), "g": filtering("a > 1", "f")}},
            {("boxes", "f"): "CYCLE"},
        ),
        (
            {"streams": {"s": {"schema": "a int"}, "t": {"schema": "a nonsense"}, "u": {}}},
            {
                ("streams", "t", "schema"): "UNKNOWN_TYPE",
                ("streams", "u", "schema"): "MISSING_KEY",
            },
        ),
        (
            {"queries": {"q": "SELECT c FROM s", "r": "SELECT a FROM s", "t": "SELEC"}},
            {("queries", "q"): "UNKNOWN_FIELD", ("queries", "t"): "BAD_QUERY"},
        ),
        ({"nonsense": {}, "boxes": []}, {("nonsense",): "UNKNOWN_KEY", ("boxes",): "BAD_FILE"}),
        ({"network": 7}, {("network",): "MISSING_KEY"}),
        ({"engine": {"workers": -1}}, {("engine", "workers"): "BAD_PARAMETER"}),
        (
            {
                "superboxes": {"sb": TEMPLATE},
                "boxes": {
                    "i": {"box": "sb", "input": "s", "y": 3},
                    "j": {"box": "sb", "input": "s"},
                },
            },
            {("boxes", "i", "y"): "UNKNOWN_KEY"},
        ),
        (
            {"outputs": {"o": {"from": "s", "qos": {"latency": [[0, 2]]}}}},
            {("outputs", "o", "qos", "latency"): "BAD_QOS"},
        ),
    ],
)
def test_every_mistake_has_its_place(
    document: dict[str, Any], expected: dict[tuple[Any, ...], str]
) -> None:
    assert found(document) == expected


def test_what_is_sound_is_typed_in_spite_of_the_rest() -> None:
    document = copy.deepcopy(PLANT)
    document["boxes"]["bad"] = filtering("nope > 1", "readings")
    document["boxes"]["behind"] = filtering("true", "bad")
    checked = read_leniently(document)
    check_leniently(checked)
    assert {"readings", "hot", "hot.rest", "tens", "recent"} <= checked.arcs.keys()
    assert not {"bad", "behind"} & checked.arcs.keys()
    assert checked.queries["mild"].names == ("machine",)


def test_a_network_without_mistakes_is_as_check_has_it() -> None:
    checked = read_leniently(PLANT)
    check_leniently(checked)
    assert checked.checked is not None
    strict = Network.parse(PLANT).check()
    assert {name: checked.arcs[name].schema for name in strict.arcs} == {
        name: arc.schema for name, arc in strict.arcs.items()
    }
    assert checked.queries == strict.queries
    assert checked.checked.order == strict.order


def test_no_document_makes_it_fail() -> None:
    for nonsense in (None, 7, "x", [], [1], {}, {"a": 1}, {"schema": None}, {"box": 3}):
        for section in ("streams", "boxes", "queries", "outputs", "groups", "views", "tables"):
            for document in ({section: nonsense}, {section: {"x": nonsense}}):
                checked = read_leniently({**SOUND, **document})
                check_leniently(checked)
                assert checked.network is not None
