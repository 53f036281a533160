"""Results of many queries taken together: each tuple once, each name once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from auroral.engine.results import together
from tests.conformance import sparkless

from .market import ALERTS, RULES, above, alerts, batch, ticks


def _names(table: pa.Table) -> list[list[str]]:
    return [chunk.values.dictionary.to_pylist() for chunk in table["queries"].chunks]


def test_a_name_is_written_once_and_a_match_is_a_number() -> None:
    net = ticks()
    for n in range(50):
        net.query("q" * 98 + str(n), f"SELECT n FROM ticks WHERE n >= {n}")
    with sparkless.make_engine(net) as engine:
        engine.enqueue("ticks", batch(0, 1000))
        engine.drain()
        found = engine.dequeue_all("ticks")
        matches = sum(min(n + 1, 50) for n in range(1000))
        assert sum(map(len, found["queries"].to_pylist())) == matches
        assert found["queries"].nbytes < 4 * matches + 4 * 1001 + 50 * 110, "not 100 bytes a match"
        assert engine.dequeue_all("ticks")["queries"].type == found["queries"].type


def test_steps_and_members_that_came_again_have_one_dictionary(tmp_path: Path) -> None:
    """Pandas and files take no other."""
    net = ticks()
    net.family("alerts", ALERTS, RULES, "rule")
    with sparkless.make_engine(net) as engine:
        engine.enqueue("ticks", batch(0, 20))
        engine.drain()
        engine.modify(remove=["alerts[1]"], add={"dear": "SELECT n FROM ticks WHERE price > 10"})
        engine.modify(add={"alerts": RULES[:1]})
        engine.enqueue("ticks", batch(20, 40))
        engine.drain()
        found = engine.dequeue_all("ticks")
    expected: dict[int, list[str]] = {}
    for rule, n in alerts(RULES, (0, 40)):
        expected.setdefault(n, []).append(f"alerts[{rule}]")
    for n in above(10, (20, 40)):
        expected.setdefault(n, []).append("dear")
    got = {row["n"]: sorted(row["queries"]) for row in found.to_pylist()}
    assert got == {n: sorted(names) for n, names in expected.items()}
    assert {*map(tuple, _names(found))} == {tuple(_names(found)[0])}
    assert sorted(_names(found)[0]) == ["alerts[1]", "alerts[2]", "alerts[3]", "dear"]
    assert [list(names) for names in found.to_pandas()["queries"]] == found["queries"].to_pylist()
    pyarrow.parquet.write_table(found, tmp_path / "all.parquet")
    pyarrow.feather.write_feather(found, str(tmp_path / "all.arrow"))
    assert pyarrow.feather.read_table(tmp_path / "all.arrow").to_pylist() == found.to_pylist()


def test_names_are_made_of_members_that_matched() -> None:
    rules = [{"rule": n, "limit": n} for n in range(5000)]
    net = ticks()
    net.family("few", "SELECT n FROM ticks WHERE n = :limit", rules, "rule")
    with sparkless.make_engine(net) as engine:
        engine.enqueue("ticks", batch(4990, 4993))
        engine.drain()
        assert _names(engine.dequeue_all()) == [["few[4990]", "few[4991]", "few[4992]"]]


def test_lists_that_one_chunk_cannot_count_are_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together, "_MOST", 5)
    monkeypatch.setattr(together, "_ROWS", 7)
    net = ticks()
    for n in range(3):
        net.query(f"q{n}", f"SELECT n FROM ticks WHERE n >= {n}")
    with sparkless.make_engine(net) as engine:
        for start in range(0, 20, 10):
            engine.enqueue("ticks", batch(start, start + 10))
            engine.drain()
        assert engine.dequeue_all(limit=1).num_rows == 10, "steps are given whole"
        found = engine.dequeue_all()["queries"]
    assert found.to_pylist() == [["q0", "q1", "q2"]] * 10
    assert [len(chunk) for chunk in found.chunks] == [1] * 10


@pytest.mark.parametrize("dense", [0, 10**6])
def test_a_list_that_is_longer_than_a_chunk_stays_whole(
    monkeypatch: pytest.MonkeyPatch, dense: int
) -> None:
    monkeypatch.setattr(together, "_MOST", 2)
    monkeypatch.setattr(together, "_DENSE", dense)
    ids = [[5, 900_000], [], [5, 6, 7], [6], [7]]
    lists = pa.chunked_array([ids[:2], ids[2:]], pa.large_list(pa.int32())).slice(1)

    def names(used: np.ndarray) -> pa.Array:
        assert used.tolist() == [5, 6, 7], "of what is there alone"
        return pa.array([f"q{n}" for n in used])

    found = together.named(lists, names)
    assert found.to_pylist() == [[f"q{n}" for n in row] for row in ids[1:]]
    assert [len(chunk) for chunk in found.chunks] == [1, 1, 2]


@pytest.mark.parametrize("dense", [0, 10**6])
def test_what_each_query_has_taken_is_not_given_again(
    monkeypatch: pytest.MonkeyPatch, dense: int
) -> None:
    """Whichever way ids are looked up."""
    monkeypatch.setattr(together, "_DENSE", dense)
    net = ticks()
    for name in ("one", "gone", "two"):
        net.query(name, "SELECT n FROM ticks")
    net.query("counted", "SELECT n FROM ticks", results="count")
    with sparkless.make_engine(net) as engine:
        engine.enqueue("ticks", batch(0, 2))
        engine.drain()
        engine.dequeue("one")
        engine.modify(remove=["gone"], add={"late": "SELECT n FROM ticks"})
        engine.enqueue("ticks", batch(2, 3))
        engine.drain()
        got = engine.dequeue_all().to_pylist()
    assert [(row["n"], *row["queries"]) for row in got] == [
        (0, "two"),
        (1, "two"),
        (2, "one", "two", "late"),
    ]
