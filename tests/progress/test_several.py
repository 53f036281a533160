"""Streams of which several fields make progress."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from auroral import Delayed, Network, Order, Ordered, Punctuated, Window
from auroral.errors import NetworkError
from auroral.testing import Results, punctuation, run
from tests.conformance import sparkless

ENTRIES = [Ordered("a"), Delayed("b", 5)]


def network(progress: Any) -> Network:
    net = Network("several")
    s = net.stream("s", "a int, b int, g int", progress=progress)
    for field in ("a", "b"):
        windows = s.aggregate(Order(field), Window(size=10), n="count(*)", name=f"by_{field}")
        net.output(f"of_{field}", windows)
        net.output(f"late_{field}", windows.late)
    return net


def outputs(given: Results) -> dict[str, Any]:
    return {name: given[name] for name in ("of_a", "of_b", "late_a", "late_b")}


ROWS = [{"a": n, "b": 2 * n - (7 if n % 5 == 4 else 0), "g": n % 2} for n in range(30)]


def test_windows_over_each_field_close_by_its_own_mark() -> None:
    out = run(network(ENTRIES), {"s": ROWS}, hold=True)
    assert [row["a"] for row in out["of_a"]] == [0, 10]
    assert [row["b"] for row in out["of_b"]] == [0, 10, 20, 30, 40]
    assert out.reference.mark("s", "a") == 29
    assert out.reference.mark("s", "b") == 56 - 5


def test_a_file_keeps_the_list(tmp_path: Path) -> None:
    net = network(ENTRIES)
    net.save(tmp_path / "net.yaml")
    loaded = Network.load(tmp_path / "net.yaml")
    assert loaded == net
    assert loaded.streams["s"].progress == tuple(ENTRIES)
    assert loaded.document()["streams"]["s"]["progress"] == [
        {"on": "a", "ordered": True},
        {"on": "b", "delay": 5},
    ]
    assert loaded.check().warnings == ()


@pytest.mark.parametrize(
    ("progress", "said"),
    [
        ([Ordered("a"), Delayed("A", 5)], "a is declared to make progress twice"),
        ([Punctuated("a"), Punctuated("b")], "at most one entry with punctuated: true"),
        ([], "at least one entry"),
        ([Ordered("c")], "no field c"),
        ([Ordered("a"), {"on": "b"}], "progress on b needs exactly one of"),
        ([Ordered("a"), {"on": "b", "delai": 5}], "unknown key delai"),
    ],
)
def test_lists_that_cannot_be(progress: Any, said: str) -> None:
    with pytest.raises(NetworkError, match=said):
        network(progress)


def test_punctuations_in_the_data_speak_of_the_entry_that_says_so() -> None:
    net = network([Ordered("a"), Punctuated("b")])
    out = run(net, {"s": [*ROWS[:12], punctuation(30)]}, hold=True)
    assert [row["a"] for row in out["of_a"]] == [0]
    assert [row["b"] for row in out["of_b"]] == [0, 10, 20]
    first = run(network(ENTRIES), {"s": [*ROWS[:3], punctuation(30)]}, hold=True)
    assert first.reference.mark("s", "a") == 30


@pytest.mark.parametrize("seed", range(6))
def test_trains_and_restarts_change_nothing(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = Random(seed)
    kinds = [Ordered("a"), Delayed("b", 5), Punctuated("b"), Ordered("b", by=("g",))]
    second = rng.choice(kinds[1:])
    net = network([kinds[0], second])
    group = {"g": 1} if second.by else {}
    rows: list[Any] = list(ROWS)
    if second.punctuated:
        rows.insert(rng.randrange(30), punctuation(20, **group))
    expected = outputs(run(net, {"s": rows}, hold=True))
    taken: dict[str, list[Any]] = {name: [] for name in expected}
    for part in (rows[:13], rows[13:]):
        with sparkless.make_engine(net, train=rng.choice([1, 3, 9]), state=tmp_path) as engine:
            engine.enqueue("s", part)
            engine.drain()
            shown = engine.stats()["streams"]["s"]["progress"]
            for name, found in taken.items():
                found += engine.dequeue(name).to_pylist()
        assert set(shown) == {"a", "b"}
    assert taken == expected
