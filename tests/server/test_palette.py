"""The palette, the starters: each example runs and gives something."""

from __future__ import annotations

import copy

import pytest

from auroral.network.network import Network
from auroral.server.palette import box_kinds, functions, palette
from auroral.server.starting import starters
from tests.conformance.sparkless import make_engine

DECLARATIONS = {"stream", "table", "output", "query", "connection_point", "view", "group"}


def test_the_palette_has_everything_and_each_example_gives_something() -> None:
    entries = {entry.kind: entry for entry in palette()}
    assert entries.keys() == box_kinds().keys() | DECLARATIONS
    for kind, entry in entries.items():
        assert entry.summary.endswith("."), kind
        assert "[" not in entry.summary, kind
        assert entry.example is not None, kind
        assert entry.example.out, kind
        assert sum(map(len, entry.example.in_.values())) == 3, kind
    assert entries["filter"].ports == ["", "rest"]
    assert entries["join"].inputs == "two"
    assert entries["union"].inputs == "many"
    out = [{"machine": "press", "celsius": 99}, {"machine": "mill", "celsius": 98}]
    assert entries["filter"].example is not None
    assert entries["filter"].example.out == out


def test_what_a_card_shows_is_a_key_of_the_box() -> None:
    for entry in palette():
        if entry.section == "boxes":
            cls = box_kinds()[entry.kind]
            keys = {field.alias or name for name, field in cls.model_fields.items()}
            assert entry.telling in keys | {"as"}, entry.kind
            assert entry.starter["box"] in ("map", entry.kind)


def test_functions_of_the_network_are_among_the_functions() -> None:
    network = Network("n")
    network.function("far", "somewhere:far", returns="boolean")
    found = {one.name: one for one in functions(network)}
    assert found["far"].kind == "python"
    assert found["sum"].kind == "aggregate"
    assert found["upper"].signature == "upper(a)"


@pytest.mark.parametrize("starter", starters(), ids=lambda starter: starter.name)
def test_starters_give_results(starter: object) -> None:
    document = copy.deepcopy(starter.network)  # type: ignore[attr-defined]
    network = Network.parse(document)
    assert network.check()
    assert not network.check().warnings
    for stream in document["streams"].values():  # all at once, and then no more
        stream["source"] |= {"rows_per_second": 1e9, "rows": 2000}
    with make_engine(Network.parse(document)) as engine:
        engine.drain()
        given = {name: engine.dequeue(name).num_rows for name in network.outputs}
        given |= {name: engine.dequeue(name).num_rows for name in network.queries}
    assert all(given.values()), given
    assert starter.title and starter.description  # type: ignore[attr-defined]  # noqa: PT018
