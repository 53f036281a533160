"""History by key: a lookup finds what a scan finds, whatever was merged, expired or cut short."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auroral.errors import RunError, StateError
from auroral.history import (
    HistoryMaintenance,
    Interval,
    KeptMoments,
    KeyedHistory,
    KeyPredicate,
    key_predicate,
)
from auroral.history.merging import merged_runs, sorted_by_key
from auroral.history.predicate import comparable
from auroral.history.run_file import expected_distinct, read_directory
from auroral.history.tiers import RunTiers
from auroral.ids import HistoryIndexId
from auroral.network.types import Schema
from auroral.storage import Change, Segment, Store, UnwrittenSegment
from tests.storage.failing_disk import FailingDisk, Mode, Recorder

TIERS = RunTiers(first_rows=6, fan_in=2)
HISTORY = "history@recent"


class Crash(BaseException):
    """The process is gone."""


@contextmanager
def opened(directory: Path, **options: Any) -> Iterator[Store]:
    store = Store(directory, **options)
    try:
        yield store
    finally:
        store.close()


def keyed(
    store: Store, schema: str = "k int, v int", key: str = "k", **options: Any
) -> KeyedHistory:
    given_tiers = {"tiers": TIERS, "group_rows": 3, **options}
    return KeyedHistory(store, "recent", "across", Schema.parse(schema), key, **given_tiers)


def rows(first: int, keys: list[Any], kind: pa.DataType | None = None) -> pa.Table:
    moments = np.arange(first, first + len(keys))
    columns = {"_seq": moments, "_ts": moments * 0, "k": pa.array(keys, kind or pa.int32())}
    return pa.table({**columns, "v": pa.array(moments, pa.int32())})


def append(store: Store, *tables: pa.Table) -> None:
    end = max(int(table["_seq"].to_numpy().max()) + 1 for table in tables)
    fresh = [UnwrittenSegment("across", table, end) for table in tables]
    heads = {} if store.has_cursor("across", HISTORY) else {("across", HISTORY): 0}
    store.commit(Change(fresh=fresh, next_moment=end, heads=heads))


def settle(history: KeyedHistory, oldest: int, complete: int) -> None:
    while history.work(KeptMoments(oldest, complete)):
        pass


def at(*values: Any) -> KeyPredicate:
    return KeyPredicate("k", tuple(Interval(value, value) for value in values))


def test_a_lookup_reads_little_of_what_is_kept(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        for number in range(16):
            append(store, rows(40 * number, [(7 * n) % 40 for n in range(40)]))
        history = keyed(store, tiers=RunTiers(first_rows=80, fan_in=4))
        settle(history, 0, 640)
        found = history.lookup(at(7), 0, 10**9)
        assert found.rows["v"].to_pylist() == [40 * n + 1 for n in range(16)]
        assert found.rows.column_names == ["_seq", "_ts", "k", "v"]
        assert found.kept.rows == 640
        assert found.read.rows < 60
        assert found.read.bytes < found.kept.bytes / 2
        stats = history.statistics()
        assert (stats.rows, stats.indexed_rows, stats.distinct_keys) == (640, 640, 40)
        assert (stats.lookups, stats.rows_read) == (1, found.read.rows)
        assert (stats.rows_kept, stats.bytes_kept) == (640, found.kept.bytes)
        planned = history.plan(at(7), 0, 10**9)
        assert planned.read == found.read
        assert history.scan(at(7), 0, 10**9).read.rows == 640


def test_what_is_not_complete_is_not_indexed(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        append(store, rows(0, [1] * 10))
        append(store, rows(10, [2] * 10))
        history = keyed(store)
        settle(history, 0, 15)
        assert history.statistics().indexed_rows == 10
        append(store, rows(14, [2]))  # a box that held it back
        settle(history, 0, 20)
        assert history.lookup(at(2), 0, 100).rows["_seq"].to_pylist() == sorted(
            [*range(10, 20), 14]
        )


def test_a_segment_that_is_indexed_in_part_gives_each_row_once(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        table = rows(0, [1] * 14)
        append(store, *(table.take(np.arange(n, 14, 2)) for n in (0, 1)))
        history = keyed(store)
        settle(history, 0, 14)
        assert history.statistics().indexed_rows == 13
        assert history.lookup(at(1), 0, 100).rows["_seq"].to_pylist() == [*range(14)]


def test_nan_is_found_although_statistics_leave_it_out(tmp_path: Path) -> None:
    schema = "k double, v int"
    keys = [1.0, math.nan, 0.5, math.nan, None, 0.25, 0.75, 1.25]
    with opened(tmp_path) as store:
        append(store, rows(0, keys, pa.float64()))
        history = keyed(store, schema)
        settle(history, 0, 8)
        above = KeyPredicate("k", (Interval(5.0, None),))
        assert history.lookup(above, 0, 100).rows["_seq"].to_pylist() == [1, 3]


def test_a_log_sorted_by_its_key_needs_no_runs(tmp_path: Path) -> None:
    schema = "k decimal(6,2), v int"
    with opened(tmp_path) as store:
        store.progressing = {"across": ["k"]}
        for number in range(8):
            keys = [Decimal(10 * number + n) / 4 for n in range(10)]
            append(store, rows(10 * number, keys, pa.decimal128(6, 2)))
        history = keyed(store, schema, indexed=False)
        settle(history, 0, 80)
        assert history.statistics().runs == 0
        predicate = key_predicate("k BETWEEN 2.5 AND 3.0", Schema.parse(schema), "k")
        assert predicate is not None
        found = history.lookup(predicate, 0, 100)
        assert found.rows["v"].to_pylist() == [10, 11, 12]
        assert found.read.rows == 10
        assert history.lookup(predicate, 11, 11).rows["v"].to_pylist() == [11]


def test_expired_rows_go_with_their_runs(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        for number in range(10):
            append(store, rows(6 * number, [number % 3] * 6))
        history = keyed(store)
        settle(history, 0, 60)
        files = {run.file for run in store.segments(str(history.id))}
        assert history.statistics().indexed_rows == 60
        store.commit(Change(heads={("across", HISTORY): 45}))
        settle(history, 45, 60)
        assert history.statistics().indexed_rows == 15
        assert history.lookup(at(1), 45, 100).rows["_seq"].to_pylist() == [45, 46, 47]
        left = {path.name for path in store.segments_directory.iterdir()}
        assert not files & left or history.statistics().runs


def test_an_index_outlives_a_restart_and_can_be_dropped(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        append(store, rows(0, list(range(20))))
        settle(keyed(store), 0, 20)
        runs = store.segments(str(keyed(store).id))
    with opened(tmp_path) as store:
        history = keyed(store)
        assert store.segments(str(history.id)) == runs
        assert not history.work(KeptMoments(0, 20))
        assert history.lookup(at(13), 0, 100).rows["v"].to_pylist() == [13]
        history.forget()
        assert not store.segments(str(history.id))
        assert history.lookup(at(13), 0, 100).rows["v"].to_pylist() == [13]
        names = [path.name for path in store.segments_directory.iterdir()]
        assert names == [s.file for s in store.segments("across")]


def test_a_power_failure_at_any_time_leaves_a_state_that_opens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "state"
    root.mkdir()
    record = Recorder(root)
    with record.recording(monkeypatch), opened(root) as store:
        for number in range(4):
            append(store, rows(6 * number, [number % 2] * 6))
        written = len(record.events)
        settle(keyed(store), 0, 24)
        store.commit(Change(heads={("across", HISTORY): 20}))
        settle(keyed(store), 20, 24)
    disk, tried = FailingDisk(), 0
    modes: tuple[Mode, ...] = ("dropped", "kept", "random")
    for number, event in enumerate(record.events):
        disk.apply(event)
        for mode in modes if number >= written else ():
            disk.fail(root, mode, Random(number))
            tried += 1
            with opened(root) as store:
                expected = [m for m in range(24) if m // 6 % 2 and m >= 20]
                found = keyed(store).lookup(at(1), 20, 100).rows["_seq"].to_pylist()
                assert found == expected, (number, event)
                settle(keyed(store), 20, 24)
                found = keyed(store).lookup(at(1), 20, 100).rows["_seq"].to_pylist()
                assert found == expected, (number, event)
    assert tried > 60


def test_a_damaged_run_is_told(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        append(store, rows(0, list(range(20))))
        history = keyed(store)
        settle(history, 0, 20)
        (run,) = store.segments(str(history.id))
        store.path_of(run).write_bytes(b"PAR1" + bytes(run.bytes - 4))
        with pytest.raises(StateError, match="SEGMENT_DAMAGED"):
            history.lookup(at(13), 0, 100)


def test_files_that_are_merged_during_a_lookup_are_looked_up_again(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        for number in range(4):
            append(store, rows(6 * number, [number % 2] * 6))
        history = keyed(store, tiers=RunTiers(first_rows=6, fan_in=100))
        settle(history, 0, 24)
        assert history.statistics().runs == 4
        seen = history._snapshot
        disturbed: list[bool] = []

        def disturbing(**options: Any) -> Any:
            snapshot = seen(**options)
            if not disturbed:
                disturbed.append(True)
                history._tiers = TIERS
                settle(history, 0, 24)
            return snapshot

        history._snapshot = disturbing  # type: ignore[method-assign]
        assert history.lookup(at(1), 0, 100).rows["v"].to_pylist() == [
            *range(6, 12),
            *range(18, 24),
        ]
        assert len(store.segments(str(history.id))) < 4


def test_what_somebody_else_holds_back_is_found_after_it_has_expired(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        for number in range(6):
            append(store, rows(6 * number, [number % 2] * 6))
        store.commit(Change(heads={("across", "attach@late"): 0}))
        history = keyed(store)
        settle(history, 0, 36)
        store.commit(Change(heads={("across", HISTORY): 32}))
        settle(history, 32, 36)
        assert history.statistics().indexed_rows == 4
        assert history.lookup(at(1), 0, 100).rows["_seq"].to_pylist() == [
            *range(6, 12),
            *range(18, 24),
            *range(30, 36),
        ]


def test_a_merge_can_be_cancelled(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        for number in range(2):
            append(store, rows(6 * number, [number] * 6))
        history = keyed(store)
        kept = KeptMoments(0, 12)
        assert history.work(kept)
        assert history.work(kept)
        assert history.statistics().runs == 2
        files = sorted(store.segments_directory.iterdir())
        assert not history.work(kept, lambda: True)
        assert sorted(store.segments_directory.iterdir()) == files
        assert history.work(kept)
        assert history.statistics().runs == 1


def test_maintenance_works_in_the_background(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        history = keyed(store)
        maintenance = HistoryMaintenance(
            lambda: {"recent": history}, lambda _: KeptMoments(0, store.next_moment)
        )
        maintenance.start()
        for number in range(10):
            append(store, rows(6 * number, [number] * 6))
            maintenance.wake()
        assert maintenance.settle(60)
        assert history.statistics().indexed_rows == 60
        assert not maintenance.failures
        maintenance.stop()


def test_a_full_disk_ends_the_indexing_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise RunError("CANNOT_WRITE", "cannot write: no space left on device")

    with opened(tmp_path) as store:
        append(store, rows(0, [1, 2] * 10))
        history = keyed(store)
        maintenance = HistoryMaintenance(lambda: {"recent": history}, lambda _: KeptMoments(0, 20))
        monkeypatch.setattr("auroral.history.index.write_run", full)
        assert not maintenance.work()
        assert "no space" in maintenance.failures["recent"]
        assert history.lookup(at(2), 0, 100).rows.num_rows == 10


# ── laws ──

KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "int": (pa.int32(), st.integers(-3, 3)),
    "string": (pa.string(), st.sampled_from(["", "a", "ab", "b", "\u20ac"])),
    "double": (
        pa.float64(),
        st.sampled_from([-1.5, -0.0, 0.0, 1.0, math.inf, -math.inf, math.nan]),
    ),
    "decimal(6,2)": (pa.decimal128(6, 2), st.integers(-300, 300).map(lambda n: Decimal(n) / 100)),
    "boolean": (pa.bool_(), st.booleans()),
    "date": (pa.date32(), st.dates()),
}


def sortable(value: Any) -> tuple[int, Any]:
    """Numbers, then NaN, then NULL."""
    if value is None:
        return (2, 0)
    return (1, 0) if value != value else (0, value)


@given(st.data(), st.sampled_from(sorted(KINDS)))
def test_merging_gives_what_sorting_gives(data: st.DataObject, kind: str) -> None:
    type, values = KINDS[kind]
    runs = data.draw(st.lists(st.lists(st.none() | values, max_size=8), min_size=1, max_size=4))
    number = iter(range(1000))
    tables = [
        rows(0, keys, type).set_column(3, "v", [[next(number) for _ in keys]]) for keys in runs
    ]
    tables = [
        table.set_column(3, "v", table["v"].cast(pa.int32()))
        if table.num_rows
        else rows(0, [], type)
        for table in tables
    ]

    def cut(table: pa.Table) -> Iterator[pa.Table]:
        size = data.draw(st.integers(1, 4))
        ordered = sorted_by_key(table, "k")
        for start in range(0, ordered.num_rows, size):
            yield ordered.slice(start, size)

    found = pa.concat_tables([rows(0, [], type), *merged_runs([cut(t) for t in tables], "k")])
    expected = sorted_by_key(pa.concat_tables(tables), "k")
    assert found["v"].to_pylist() == expected["v"].to_pylist()
    keys = [sortable(value) for value in found["k"].to_pylist()]
    assert keys == sorted(keys)


ACTIONS = ("append", "append", "work", "expire", "hold", "crash")


@dataclass
class Model:
    """All rows that were ever appended, in order of moments."""

    rows: list[tuple[int, Any]] = field(default_factory=list)
    oldest: int = 0
    held: int | None = None
    """From which moment on somebody else holds the log back."""

    @property
    def whole_from(self) -> int:
        return self.oldest if self.held is None else min(self.held, self.oldest)

    def moments(self, holds: Callable[[Any], bool], first: int, last: int) -> list[int]:
        return [m for m, key in self.rows if first <= m <= last and holds(key)]


def interval_of(low: Any, high: Any, closed_low: bool, closed_high: bool) -> Interval:
    if low is not None and high is not None and sortable(low) > sortable(high):
        low, high = high, low
    return Interval(low, high, closed_low, closed_high)


def is_in(key: Any, interval: Interval) -> bool:
    """Whether a key is in an interval of Python values."""
    if key is None:
        return False
    value, low, high = (sortable(each) for each in (key, interval.low, interval.high))
    above = interval.low is None or low < value or (low == value and interval.closed_low)
    below = interval.high is None or value < high or (value == high and interval.closed_high)
    return above and below


@settings(deadline=None, max_examples=60)
@given(st.data(), st.sampled_from(sorted(KINDS)), st.booleans())
def test_a_lookup_is_a_scan_and_a_filter(data: st.DataObject, kind: str, indexed: bool) -> None:
    """For random data, merges, expiries and crashes."""
    type, values = KINDS[kind]
    schema = f"k {kind}, v int"
    progresses = not indexed and kind in ("int", "double", "decimal(6,2)", "date")
    armed: list[str] = []

    def fault(point: str) -> None:
        if armed and point == armed[0]:
            armed.clear()
            raise Crash

    with tempfile.TemporaryDirectory() as place:

        def restart(old: Store | None) -> tuple[Store, KeyedHistory]:
            if old is not None:
                old.close()
            store = Store(Path(place), fault=fault, durability="process")
            store.progressing = {"across": ["k"]} if progresses else {}
            return store, keyed(store, schema, indexed=indexed)

        store, history = restart(None)
        model = Model()
        for _ in range(data.draw(st.integers(1, 12))):
            action = data.draw(st.sampled_from(ACTIONS))
            if action == "append":
                first = store.next_moment
                keys = data.draw(st.lists(st.none() | values, min_size=1, max_size=14))
                table = rows(first, keys, type)
                split = data.draw(st.booleans()) and len(keys) > 1
                # Buckets of a box write segments of the same moments.
                even = [table.take(np.arange(n, len(keys), 2)) for n in (0, 1)]
                append(store, *(even if split else [table]))
                model.rows += list(zip(range(first, first + len(keys)), keys, strict=True))
            elif action == "work":
                for _ in range(data.draw(st.integers(1, 6))):
                    history.work(KeptMoments(model.oldest, store.next_moment))
            elif action == "expire" and store.has_cursor("across", HISTORY):
                model.oldest = data.draw(st.integers(model.oldest, store.next_moment))
                store.commit(Change(heads={("across", HISTORY): model.oldest}))
            elif action == "hold" and model.held is None and model.rows:
                model.held = model.oldest
                store.commit(Change(heads={("across", "attach@late"): model.oldest}))
            elif action == "crash":
                armed[:] = [data.draw(st.sampled_from(["written", "before-commit", "committed"]))]
                with suppress(Crash):
                    while history.work(KeptMoments(model.oldest, store.next_moment)):
                        pass
                armed.clear()
                store, history = restart(store)
            closed = st.booleans()
            bounds = data.draw(st.tuples(st.none() | values, st.none() | values, closed, closed))
            points = data.draw(st.lists(values, max_size=2))
            intervals = data.draw(
                st.sampled_from(
                    [(interval_of(*bounds),), tuple(Interval(point, point) for point in points)]
                )
            )
            marked = tuple(
                replace(each, low=comparable(each.low), high=comparable(each.high))
                for each in intervals
            )
            predicate = KeyPredicate("k", marked)

            def holds(key: Any, intervals: tuple[Interval, ...] = intervals) -> bool:
                return any(is_in(key, interval) for interval in intervals)

            first = data.draw(st.integers(model.whole_from, store.next_moment + 1))
            last = data.draw(st.integers(first, store.next_moment + 1))
            expected = model.moments(holds, first, last)
            assert history.lookup(predicate, first, last).rows["_seq"].to_pylist() == expected
            assert history.scan(predicate, first, last).rows["_seq"].to_pylist() == expected
        store.close()


@given(st.lists(st.integers(1, 3_000), max_size=30), st.integers(0, 100))
def test_runs_are_few_and_merging_ends(sizes: list[int], expire: int) -> None:
    tiers = RunTiers(first_rows=10, fan_in=4, most_rows=5_000)
    starts = np.cumsum([0, *sizes]).tolist()
    runs = [
        Segment(0, "i", "f", size, 0, 0, start, start + size - 1, 0)
        for start, size in zip(starts, sizes, strict=False)
    ]
    oldest = starts[-1] * expire // 100
    runs = [run for run in runs if run.last >= oldest]
    for _ in range(200):
        group = tiers.to_merge(runs, oldest)
        if not group:
            break
        at = runs.index(group[0])
        assert runs[at : at + len(group)] == group
        first = max(group[0].first, oldest)
        count = group[-1].last - first + 1
        assert count <= tiers.most_rows
        made = Segment(0, "i", "f", count, 0, 0, first, group[-1].last, 0)
        runs[at : at + len(group)] = [made]
    else:
        pytest.fail("merging goes on and on")
    for start in range(len(runs) - tiers.fan_in + 1):
        group = runs[start : start + tiers.fan_in]
        alike = len({tiers.level(run) for run in group}) == 1
        assert not alike or sum(run.rows for run in group) > tiers.most_rows


def test_a_run_knows_how_many_keys_it_has(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        append(store, rows(0, [5, None, 5, 7, 5, 9, 7, None]))
        history = keyed(store)
        settle(history, 0, 8)
        (run,) = store.segments(str(history.id))
        directory = read_directory(store.path_of(run), "k")
        assert directory.distinct == 3
        assert [group.rows for group in directory.groups] == [3, 3, 2]
        assert directory.groups[2].all_null


@pytest.mark.parametrize(
    ("keys", "seen", "total"), [(1_000, 5_000, 50_000), (10_000, 5_000, 80_000)]
)
def test_distinct_keys_are_estimated_from_a_part(keys: int, seen: int, total: int) -> None:
    drawn = np.random.default_rng(3).integers(0, keys, total)
    estimate = expected_distinct(seen, len(np.unique(drawn[:seen])), total)
    assert estimate == pytest.approx(len(np.unique(drawn)), rel=0.1)


def test_names_of_indexes_can_be_read_back() -> None:
    id = HistoryIndexId("recent", "reports@in", "a by b")
    assert HistoryIndexId.parse(str(id)) == id
    assert HistoryIndexId.parse("crowd#windows/3") is None
