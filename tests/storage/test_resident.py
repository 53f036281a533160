"""Segments in memory: tables for the driver, page cache for tasks, and threads that load."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import auroral.storage.resident as resident_module
from auroral.scheduling.residency import QueuedSegment, ResidencyPlanner, WaitingQueue
from auroral.storage import Change, Segment, Store, UnwrittenSegment
from auroral.storage.resident import ResidentSegments
from auroral.storage.segment import read


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Three segments of a log, 100 tuples each."""
    store = Store(tmp_path / "state")
    for first in range(0, 300, 100):
        moments = pa.array(range(first, first + 100), pa.int64())
        table = pa.table({"_seq": moments, "_ts": moments, "v": moments})
        store.commit(Change(fresh=[UnwrittenSegment("s", table, first + 100)]))
    store.commit(Change(heads={("s", "reader"): 0}))
    yield store
    store.close()


def _resident(budget: int, *, background: bool = False, cut_rows: int = 10) -> ResidentSegments:
    made = ResidentSegments(ResidencyPlanner(budget), background=background)
    made.serve(["s"], budget, cut_rows)
    return made


def _tend(store: Store, resident: ResidentSegments) -> None:
    """Look at the queue twice: what waits since the first time is loaded."""
    held = {s.file: s for s in store.segments("s") if s.file}
    segments = [QueuedSegment(f, "s", resident.size(s), s.first) for f, s in held.items()]
    for _ in range(2):
        resident.tend(
            [WaitingQueue("reader", "s", segments)],
            (),
            lambda file: (store.path_of(held[file]), held[file]),
        )


def _files(store: Store) -> list[str]:
    return [s.file for s in store.segments("s") if s.file]


def test_loaded_segments_are_what_is_on_the_disk(store: Store) -> None:
    resident = _resident(1 << 20)
    _tend(store, resident)
    for segment in store.segments("s"):
        table = resident.table(segment.file or "")
        assert table is not None
        assert table.equals(read(store.path_of(segment), segment))
    assert resident.counts.loads == 3
    assert resident.used == sum(resident.size(s) for s in store.segments("s"))


def test_segments_that_tasks_read_as_they_are_take_no_memory_of_the_driver(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resident_module, "SMALL_BYTES", 0)
    resident = _resident(1 << 20, cut_rows=1_000)
    _tend(store, resident)
    assert all(file in resident and resident.table(file) is None for file in _files(store))
    assert resident.share(store.segments("s")) == 1.0


def test_reads_are_counted_by_where_the_tuples_are(store: Store) -> None:
    first, *others = store.segments("s")
    resident = _resident(1 << 20)
    resident.offer(first, store.table(first))
    resident.note_read([first, *others])
    assert resident.counts.memory_bytes == first.bytes
    assert resident.counts.disk_bytes == sum(s.bytes for s in others)
    assert resident.share([first, *others]) == first.bytes / sum(s.bytes for s in [first, *others])


def test_a_segment_that_goes_while_it_is_loaded_is_not_held(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, goes_on = threading.Event(), threading.Event()

    def slow(path: Path, segment: Segment) -> pa.Table:
        begun.set()
        assert goes_on.wait(30)
        return read(path, segment)

    monkeypatch.setattr(resident_module, "read", slow)
    resident = _resident(1 << 20, background=True)
    _tend(store, resident)
    assert begun.wait(30)
    for file in _files(store):
        resident.drop(file)
    goes_on.set()
    resident.close()
    assert resident.used == 0
    assert all(resident.table(file) is None for file in _files(store))


def test_a_file_that_cannot_be_loaded_is_left_to_the_step_that_reads_it(store: Store) -> None:
    resident = _resident(1 << 20)
    broken = store.segments("s")[1]
    data = store.path_of(broken).read_bytes()
    store.path_of(broken).write_bytes(b"")
    _tend(store, resident)
    assert [file in resident for file in _files(store)] == [True, False, True]
    store.path_of(broken).write_bytes(data)


def test_segments_that_are_deleted_are_in_memory_no_more(store: Store) -> None:
    resident = store.resident = _resident(1 << 20)
    _tend(store, resident)
    first = _files(store)[0]
    assert first in resident
    store.commit(Change(heads={("s", "reader"): 100}))
    assert first not in resident
    assert resident.table(first) is None


def test_other_logs_are_not_held(store: Store) -> None:
    resident = store.resident = _resident(1 << 20)
    moments = pa.array([300], pa.int64())
    table = pa.table({"_seq": moments, "_ts": moments, "v": moments})
    for log in ("s", "other"):
        store.commit(Change(fresh=[UnwrittenSegment(log, table, 301)]))
    held = [(s.file or "") in resident for log in ("s", "other") for s in store.segments(log, 300)]
    assert held == [True, False]


def test_a_file_of_a_train_is_no_segment_though_its_name_is(store: Store, tmp_path: Path) -> None:
    segment = store.segments("s")[0]
    store.resident = _resident(1 << 20)
    store.resident.offer(segment, store.table(segment))
    path = store.path_of(segment)
    assert store.table_of_file(path) is not None
    assert store.table_of_file(tmp_path / path.name) is None
