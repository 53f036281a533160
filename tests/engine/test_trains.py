"""The files of a train: segments as they are, or put together for want of a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from auroral.engine.runtime.train import next_train, train_files
from auroral.scheduling.superboxes import Superbox
from auroral.storage import Change, Store, UnwrittenSegment

_ROWS = 20_000
_SUPERBOX = Superbox("u", ("a", "b"), ("u",), ("u",))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Five segments of `a` and one of `b`, too large to be put together in any case."""
    store = Store(tmp_path / "state")
    for number in range(6):
        first = number * _ROWS
        moments = pa.array(range(first, first + _ROWS), pa.int64())
        table = pa.table({"_seq": moments, "_ts": moments, "v": moments})
        log = "b" if number == 2 else "a"
        store.commit(Change(fresh=[UnwrittenSegment(log, table, first + _ROWS)]))
    yield store
    store.close()


class _Room:
    """Says that there is a plan, and remembers for what."""

    def __init__(self) -> None:
        self.asked: list[Mapping[str, int]] = []

    def __call__(self, counts: Mapping[str, int]) -> bool:
        self.asked.append(counts)
        return True


def _rows(
    store: Store,
    place: Path,
    has_room: Callable[[Mapping[str, int]], bool] | None,
    last: int = 6 * _ROWS,
) -> dict[str, list[int]]:
    """How many tuples each file has, all of them once."""
    train = next_train(store, _SUPERBOX, last, last)
    assert train is not None
    place.mkdir()
    files = train_files(store, train, place, has_room=has_room)
    found = [
        n for held in files.values() for f in held for n in pq.read_table(f.path)["v"].to_pylist()
    ]
    assert sorted(found) == list(range(last))
    return {source: [file.rows for file in held] for source, held in files.items()}


def test_segments_are_files_as_they_are_if_there_is_a_plan(store: Store, tmp_path: Path) -> None:
    room = _Room()
    assert _rows(store, tmp_path / "cuts", room) == {"a": [_ROWS] * 5, "b": [_ROWS]}
    assert room.asked == [{"a": 5, "b": 1}]


def test_without_a_plan_they_come_in_one_file(store: Store, tmp_path: Path) -> None:
    found = _rows(store, tmp_path / "cuts", lambda _counts: False)
    assert found == {"a": [5 * _ROWS], "b": [_ROWS]}


def test_what_is_cut_counts_as_a_file(store: Store, tmp_path: Path) -> None:
    room = _Room()
    last = 4 * _ROWS + 7
    assert _rows(store, tmp_path / "cuts", room, last) == {"a": [_ROWS] * 3 + [7], "b": [_ROWS]}
    assert room.asked == [{"a": 4, "b": 1}]


def test_tasks_that_read_files_take_any_number(store: Store, tmp_path: Path) -> None:
    assert _rows(store, tmp_path / "cuts", None) == {"a": [_ROWS] * 5, "b": [_ROWS]}
