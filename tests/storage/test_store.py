"""Segment logs: cursors, retention, compaction, the manifest, the journal."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from auroral.disk import disk_errors
from auroral.errors import RunError, StateError, UsageError
from auroral.storage import HELD, Change, Journal, Store, UnwrittenSegment
from auroral.storage.compaction import FAN_IN, SMALL_ROWS, runs_to_merge
from auroral.storage.segment import MAX_FILE_BYTES, Segment
from tests.effort import operations


@contextmanager
def opened(directory: Path, **options: Any) -> Iterator[Store]:
    """A store for the length of a block."""
    store = Store(directory, **options)
    try:
        yield store
    finally:
        store.close()


def table(first: int, count: int) -> pa.Table:
    moments = np.arange(first, first + count)
    return pa.table({"_seq": moments, "_ts": np.zeros(count, np.int64), "a": moments * 2})


def fill(store: Store, batches: int, rows: int = 3, log: str = "s") -> None:
    for number in range(batches):
        first = store.next_moment
        fresh = UnwrittenSegment(log, table(first, rows), first + rows)
        store.commit(
            Change(
                fresh=[fresh], next_moment=first + rows, heads={(log, "c"): 0} if not number else {}
            )
        )


def values(store: Store, log: str = "s") -> list[int]:
    return [v for s in store.segments(log) for v in store.table(s)["a"].to_pylist()]


def test_what_is_committed_is_there_after_reopening(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        fill(store, 3)
        before = values(store)
    with opened(tmp_path) as store:
        assert values(store) == before == [2 * i for i in range(9)]
        assert store.next_moment == 9


def test_a_failed_commit_leaves_nothing(tmp_path: Path) -> None:
    class Crash(BaseException):
        pass

    def crash_at(armed: str) -> Callable[[str], None]:
        def fault(point: str) -> None:
            if point == armed:
                raise Crash

        return fault

    for point in ("written", "before-commit"):
        store = Store(tmp_path, fault=crash_at(point))
        with pytest.raises(Crash):
            fill(store, 1)
        store.close()
    with opened(tmp_path) as store:
        assert store.segments("s") == []
        assert store.next_moment == 0
        assert list(store.segments_directory.iterdir()) == [], "orphans are removed"


def test_large_batches_are_split_and_read_back_in_order(tmp_path: Path) -> None:
    with opened(tmp_path, cores=2) as store:
        fill(store, 1, rows=250_001)
        segments = store.segments("s")
        assert len(segments) == 2
        assert [s.rows for s in segments] == [125_001, 125_000]
        assert values(store) == [2 * i for i in range(250_001)]
        assert all(s.bytes <= MAX_FILE_BYTES for s in segments)


def test_segments_are_deleted_once_every_consumer_is_past_them(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        fill(store, 4)
        store.commit(Change(heads={("s", "other"): 0}))
        store.commit(Change(heads={("s", "c"): 12}))
        assert len(store.segments("s")) == 4, "the other consumer still needs them"
        store.commit(Change(heads={("s", "other"): 6}))
        assert [s.first for s in store.segments("s")] == [6, 9]
        assert len(list(store.segments_directory.iterdir())) == 2


def test_compaction_keeps_rows_order_and_punctuations(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        fill(store, 2 * FAN_IN)
        first = store.next_moment
        noted = ((first, 7, ()),)
        empty = UnwrittenSegment("s", table(first, 0), first + 1, noted)
        store.commit(Change(fresh=[empty], next_moment=first + 1))
        before = values_with_punctuations(store)
        assert store.compact("s") == 2 * FAN_IN - 1
        assert values_with_punctuations(store) == before
        assert len(list(store.segments_directory.iterdir())) == 1
    with opened(tmp_path) as store:
        assert values_with_punctuations(store) == before


def values_with_punctuations(store: Store) -> Any:
    rows = [v for s in store.segments("s") if s.file for v in store.table(s)["a"].to_pylist()]
    return rows, [p for s in store.segments("s") for p in s.punctuations]


def test_only_long_runs_of_small_segments_are_merged() -> None:
    small = [Segment(i, "s", f"{i}.parquet", 10, 100, 0, i, i, i + 1) for i in range(FAN_IN)]
    large = Segment(99, "s", "99.parquet", SMALL_ROWS, 100, 0, 99, 99, 100)
    assert runs_to_merge(small[:-1]) == []
    assert runs_to_merge([*small[:10], large, *small[10:]]) == []
    assert runs_to_merge([large, *small]) == [small]
    grown = replace(small[0], rows=FAN_IN * FAN_IN)
    assert runs_to_merge([grown, *small[1:]]) == [], "what was merged is not merged with new ones"


def test_a_damaged_segment_is_named(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        fill(store, 2)
        path = store.path_of(store.segments("s")[1])
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(StateError) as caught:
        Store(tmp_path)
    assert caught.value.code == "SEGMENT_DAMAGED"
    assert path.name in str(caught.value)
    assert "checksum" in str(caught.value)


def test_a_missing_and_a_short_segment_are_named(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        fill(store, 1)
        path = store.path_of(store.segments("s")[0])
    whole = path.read_bytes()
    path.write_bytes(whole[:-10])
    with pytest.raises(StateError, match="bytes, expected"):
        Store(tmp_path)
    path.unlink()
    with pytest.raises(StateError, match="missing"):
        Store(tmp_path)
    path.write_bytes(whole)
    Store(tmp_path).close()


def test_two_stores_cannot_share_a_directory(tmp_path: Path) -> None:
    with opened(tmp_path):
        with pytest.raises(StateError) as caught:
            Store(tmp_path)
        assert caught.value.code == "STATE_IN_USE"
    Store(tmp_path).close()


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    Store(tmp_path).close()
    database = sqlite3.connect(tmp_path / "manifest.db")
    database.execute("UPDATE meta SET value = '99' WHERE key = 'format'")
    database.commit()
    database.close()
    with pytest.raises(StateError) as caught:
        Store(tmp_path)
    assert caught.value.code == "STATE_TOO_NEW"
    with pytest.raises(StateError, match="STATE_TOO_NEW"):
        Store(tmp_path)  # and the lock was released


def test_a_broken_manifest_is_named(tmp_path: Path) -> None:
    Store(tmp_path).close()
    for name in ("manifest.db-wal", "manifest.db-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    (tmp_path / "manifest.db").write_bytes(b"not a database" * 1000)
    with pytest.raises(StateError) as caught:
        Store(tmp_path)
    assert caught.value.code == "MANIFEST_DAMAGED"


def test_a_state_directory_belongs_to_one_network(tmp_path: Path) -> None:
    one = {"network": "n", "boxes": {"f": {"where": "a > 1"}}}
    with opened(tmp_path) as store:
        store.bind_network(one)
    with opened(tmp_path) as store:
        assert not store.bind_network(one)
        assert store.bind_network({"network": "n", "boxes": {"f": {"where": "a > 2"}}})
        with pytest.raises(StateError, match="the network n, not m"):
            store.bind_network({"network": "m"})


def test_an_unwritable_directory_is_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(RunError) as caught:
        Store(file / "state")
    assert caught.value.code == "CANNOT_WRITE"
    assert "space" not in str(caught.value)
    with pytest.raises(UsageError, match=r"BAD_OPTION: .*file: state is a directory, not a file"):
        Store(file)


def test_a_full_disk_wants_space(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="free some space"), disk_errors(tmp_path):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_the_journal_gives_back_whole_entries_only(tmp_path: Path) -> None:
    schema = table(0, 1).schema
    journal = Journal(tmp_path / "journal")
    for first in (0, 2, 4):
        journal.append("s", first, table(first, 2).to_batches()[0])
    journal.close()
    data = journal.path.read_bytes()
    for cut in (len(data) - 1, len(data) - 100):
        journal.path.write_bytes(data[:cut])
        found = list(journal.entries({"s": schema}))
        assert [first for _, first, _ in found] == [0, 2]
        assert found[1][2].to_pydict()["a"] == [4, 6]
    journal.clear()
    assert list(journal.entries({"s": schema})) == []


def test_a_reader_that_moves_on_does_not_look_at_others() -> None:
    def effort(readers: int) -> int:
        store = Store()
        names = [f"reader {n}" for n in range(readers)]
        fill(store, 1)
        store.commit(Change(heads={("s", name): 1 for name in [HELD, *names]}))
        made = operations(lambda: store.commit(Change(heads={("s", names[0]): 2})))
        store.close()
        return made

    assert effort(500) == effort(5)


def test_consumers_are_found_by_name(tmp_path: Path) -> None:
    places = [("s", "a"), ("t", "a"), ("s", "a[1]"), ("s", "a[2]"), ("s", "ab"), ("s", "b[1]")]
    with opened(tmp_path) as store:
        store.commit(Change(heads=dict.fromkeys(places, 0)))
    with opened(tmp_path) as store:
        assert sorted(store.readers("a")) == sorted(places[:4])
        assert store.readers("a[1]") == [("s", "a[1]")]
        store.forget([], [("s", "a"), ("s", "a[1]"), ("s", "never")])
        assert sorted(store.readers("a")) == [("s", "a[2]"), ("t", "a")]
        assert sorted(store.names()[1]) == sorted([*places[1:2], *places[3:]])
