"""Whose network a state directory is: order counts where it means something."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import auroral as au
from auroral.engine.lifecycle.epochs import DeclaredNetwork
from auroral.engine.lifecycle.stored_qos import with_graphs
from auroral.engine.topology.identity import identity, remembered, restored
from auroral.storage import Store
from auroral.storage.identity import canonical, difference

NETWORK: dict[str, Any] = {
    "network": "n",
    "streams": {
        "s": {
            "schema": {"a": "int", "b": "int"},
            "progress": {"on": "a", "delay": 1},
            "source": {"format": "kafka", "topic": "t", "servers": "h:1", "password": "secret"},
        },
        "u": {"schema": {"a": "int", "b": "int"}},
    },
    "tables": {"t": {"schema": {"a": "int"}, "store": "postgresql://me:secret@h/db"}},
    "boxes": {
        "b": {"box": "filter", "input": "s", "routes": {"x": "a > 1", "y": "b > 1"}},
        "c": {"box": "map", "input": "s", "compute": {"p": "a", "q": "b"}, "keep": ["a", "b"]},
        "d": {"box": "union", "inputs": ["s", "u"]},
        "e": {
            "box": "aggregate",
            "input": "s",
            "order": {"on": "a", "by": ["b"]},
            "window": {"size": 10},
            "compute": {"n": "count(*)", "m": "max(a)"},
        },
    },
    "groups": {"g": ["b", "c"]},
    "outputs": {
        "o": {
            "from": "d",
            "qos": {"latency": [[0, 1], [2, 0]]},
            "sink": {"format": "csv", "path": "x.csv"},
        }
    },
    "engine": {"train": 10, "flush": "lazy"},
}


def edited(*path: str, to: Any) -> dict[str, Any]:
    """The network with one part of it replaced."""
    if not path:
        return to  # type: ignore[no-any-return]
    document = NETWORK
    changed = copied = dict(document)
    for key in path[:-1]:
        document = document[key]
        copied[key] = dict(document)
        copied = copied[key]
    copied[path[-1]] = to
    return changed


def turned(*path: str) -> dict[str, Any]:
    """The network with one mapping or list of it in reverse order."""
    part: Any = NETWORK
    for key in path:
        part = part[key]
    if isinstance(part, list):
        return edited(*path, to=part[::-1])
    return edited(*path, to=dict(reversed(part.items())))


def bind(directory: Path, document: dict[str, Any]) -> bool:
    """Whether a state directory finds that its network has changed."""
    store = Store(directory)
    try:
        return store.bind_network(identity(au.Network.parse(document), ()))
    finally:
        store.close()


@pytest.mark.parametrize(
    ("document", "what"),
    [
        (turned("boxes", "b", "routes"), "boxes.b: the order of routes"),
        (turned("boxes", "c", "compute"), "boxes.c: the order of compute"),
        (turned("boxes", "e", "compute"), "boxes.e: the order of compute"),
        (turned("streams", "s", "schema"), "streams.s: the order of schema"),
        (turned("boxes", "c", "keep"), "boxes.c: keep"),
        (turned("boxes", "d", "inputs"), "boxes.d: inputs"),
        (edited("boxes", "b", "routes", "x", to="a > 2"), "boxes.b: routes"),
        (edited("streams", "s", "source", "topic", to="z"), "streams.s: source"),
        (edited("outputs", "o", "sink", "path", to="z.csv"), "outputs.o: sink"),
        (edited("tables", "t", "store", to="postgresql://me@h/other"), "tables.t: store"),
        (edited("engine", "flush", to="eager"), "engine.flush"),
        (edited("streams", "w", to={"schema": {"a": "int"}}), "streams.w: added now"),
    ],
)
def test_what_counts(tmp_path: Path, document: dict[str, Any], what: str) -> None:
    bind(tmp_path, NETWORK)
    assert bind(tmp_path, document)
    before, after = (canonical(identity(au.Network.parse(d), ())) for d in (NETWORK, document))
    assert difference(before, after) == f"another version of n; what differs is {what}"


@pytest.mark.parametrize(
    "document",
    [
        turned(),
        turned("boxes"),
        turned("streams"),
        turned("boxes", "b"),
        turned("boxes", "e", "order"),
        turned("streams", "s", "source"),
        edited("streams", "s", "source", "servers", to="other:1"),
        edited("streams", "s", "source", "password", to="changed"),
        edited("tables", "t", "store", to="postgresql://you:changed@h/db"),
        edited("outputs", "o", "sink", "durable", to=True),
        edited("outputs", "o", "qos", to={"latency": [[0, 1], [5, 0]]}),
        edited("engine", "train", to=99),
        edited("groups", to={}),
    ],
)
def test_what_does_not_count(tmp_path: Path, document: dict[str, Any]) -> None:
    bind(tmp_path, NETWORK)
    bind(tmp_path, document)


def test_no_password_is_stored(tmp_path: Path) -> None:
    bind(tmp_path, NETWORK)
    assert not any(b"secret" in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_a_network_whose_graphs_were_set_can_reach_its_sinks() -> None:
    """What is remembered has no passwords; the file has them, though with other graphs."""
    sink = {"format": "kafka", "topic": "t", "servers": "h:1", "password": "secret"}
    given = au.Network.parse(edited("outputs", "o", "sink", to=sink))
    document = remembered(DeclaredNetwork(with_graphs(given, {"o": None})))
    assert "secret" not in str(document)
    found = restored(document, given).network.outputs["o"]
    assert found.sink == given.outputs["o"].sink
    assert found.qos is None
    elsewhere = au.Network.parse(edited("outputs", "o", "sink", to={**sink, "topic": "u"}))
    assert restored(document, elsewhere).network.outputs["o"].sink != elsewhere.outputs["o"].sink
