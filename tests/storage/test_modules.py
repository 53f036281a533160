"""The parts of a store by themselves: adoption, cache, changes, cursors, locks, contents."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auroral.disk import Operation, Unsynced, observed, sync_tree
from auroral.errors import StateError
from auroral.storage import HELD, Change, QueryRow, Store
from auroral.storage.adoption import adopt
from auroral.storage.cache import TableCache
from auroral.storage.compaction import merged
from auroral.storage.contents import has_state, mark_state, sweep
from auroral.storage.cursors import Cursors
from auroral.storage.lock import DirectoryLock
from auroral.storage.segment import bounds_of, encode, read_file, write_file
from tests.storage.failing_disk import FailingDisk, Recorder


def rows(first: int, count: int) -> pa.Table:
    moments = np.arange(first, first + count)
    return pa.table({"_seq": moments, "_ts": np.zeros(count, np.int64), "a": moments * 2})


# ── files that Spark wrote ──


def written_by_spark(place: Path) -> Path:
    place.mkdir(parents=True)
    pq.write_table(rows(5, 4), place / "part-00001.parquet")
    pq.write_table(rows(0, 5), place / "part-00000.parquet")
    pq.write_table(rows(0, 0), place / "part-00002.parquet")
    (place / "_SUCCESS").touch()
    return place


def test_files_that_spark_wrote_become_segments(tmp_path: Path) -> None:
    store = Store(tmp_path / "state")
    store.progressing = {"out": ["a"]}
    made = written_by_spark(store.directory / "slots" / "written-1")
    segments = adopt(store, "out", made, complete_before=9)
    assert [(s.first, s.last, s.rows, s.complete_before) for s in segments] == [
        (0, 4, 5, 9),
        (5, 8, 4, 9),
    ]
    assert [s.bounds for s in segments] == [{"a": (0, 8)}, {"a": (10, 16)}]
    assert not made.exists()
    store.commit(Change(written=segments, heads={("out", "c"): 0}))
    store.close()
    store = Store(tmp_path / "state")
    found = [v for s in store.segments("out") for v in store.table(s)["a"].to_pylist()]
    assert found == [2 * n for n in range(9)]
    store.close()


@pytest.mark.parametrize("synced", [True, False])
def test_adopted_files_survive_a_power_failure(
    synced: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "run"
    root.mkdir()
    record = Recorder(root)
    if not synced:
        monkeypatch.setattr(Unsynced, "sync", lambda _self: None)
    with record.recording(monkeypatch):
        store = Store(root / "state")
        made = written_by_spark(store.directory / "slots" / "written-1")
        segments = adopt(store, "out", made, complete_before=9)
        store.commit(Change(written=segments, heads={("out", "c"): 0}))
        committed = len(record.events)
        store.close()
    disk = FailingDisk()
    for event in record.events[:committed]:
        disk.apply(event)
    disk.fail(root, "dropped", Random(1))
    if synced:
        Store(root / "state").close()
    else:
        with pytest.raises(StateError, match="SEGMENT_DAMAGED"):
            Store(root / "state")


# ── the cache ──


def test_the_cache_forgets_the_oldest_tables() -> None:
    one = rows(0, 100)
    cache = TableCache(2 * one.nbytes)
    for name in "abc":
        cache.put(name, one)
    assert [cache.get(name) is not None for name in "abc"] == [False, True, True]
    cache.put("c", rows(5, 100))
    assert cache.get("b") is not None, "a table in place of another takes its room"
    cache.drop("b")
    cache.drop("never")
    cache.put("d", one)
    assert [cache.get(name) is not None for name in "bcd"] == [False, True, True]


# ── cursors ──

PLACES = st.tuples(st.sampled_from("st"), st.sampled_from(["a", "b", "a[1]", "a[2]", HELD]))
MOVES = st.lists(st.tuples(PLACES, st.one_of(st.none(), st.integers(0, 9))), max_size=20)


@given(MOVES)
def test_cursors_know_what_a_plain_dictionary_knows(
    moves: list[tuple[tuple[str, str], int | None]],
) -> None:
    cursors = Cursors({})
    plain: dict[tuple[str, str], int] = {}
    for place, head in moves:
        if head is None:
            cursors.drop(place)
            plain.pop(place, None)
        else:
            log, consumer = place
            expected = _oldest({**plain, place: head}, log)
            assert cursors.oldest(log, {consumer: head}) == expected, "before it moves"
            cursors.set(place, head, head)
            plain[place] = head
            assert cursors.oldest(log) == expected
    assert set(cursors) == set(plain)
    assert all(cursors.head(*place) == head for place, head in plain.items())
    assert all(cursors.oldest(log) == _oldest(plain, log) for log in "st")
    members = [place for place in plain if place[1] in ("a", "a[1]", "a[2]")]
    assert sorted(cursors.named("a")) == sorted(members)
    assert cursors.held() == {log for log, name in plain if name == HELD}


def _oldest(plain: dict[tuple[str, str], int], log: str) -> int:
    held = {name: head for (other, name), head in plain.items() if other == log}
    return held[HELD] if HELD in held else min(held.values(), default=0)


# ── changes ──


def test_everything_of_a_change_is_found_again(tmp_path: Path) -> None:
    row = QueryRow(4, 2, "alerts", "{}", None, None, 7)
    store = Store(tmp_path)
    step = store.record_step("box", 0, 9)
    store.commit(
        Change(
            next_moment=9,
            heads={("s", "c"): 3},
            progress={"mark": [1, 2]},
            sources={"s": {"at": 5}},
            sinks={"o": 17},
            counts={("s", "in"): 2},
            meta={"ended": "8"},
            finished_step=step,
            queries=[row],
            gone={5: 8},
            tally=(b"ids", b"counts"),
        )
    )
    store.commit(Change(ended={4: 9}, counts={("s", "in"): 3}, tally=(b"i", b"c")))
    store.close()
    store = Store(tmp_path)
    manifest = store.manifest
    assert (store.next_moment, store.head("s", "c"), store.counters) == (9, 3, {("s", "in"): 5})
    assert manifest.progress() == {"mark": [1, 2]}
    assert (manifest.source("s"), manifest.sink("o"), manifest.meta("ended")) == (
        {"at": 5},
        17,
        "8",
    )
    assert manifest.open_steps() == []
    assert [(found.name, found.until) for found in manifest.queries()] == [("alerts", 9)]
    assert manifest.gone() == {5: 8}
    assert manifest.tallies() == [(b"ids", b"counts"), (b"i", b"c")]
    store.commit(Change(tally=(b"x", b"y"), tally_instead=True))
    assert manifest.tallies() == [(b"x", b"y")]
    store.close()


# ── locks ──

HOLDING = """
import sys
from pathlib import Path
from auroral.storage.lock import DirectoryLock
lock = DirectoryLock(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def test_a_lock_goes_with_the_process_that_had_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDING, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(StateError, match=rf"STATE_IN_USE.*process {process.pid}"):
            DirectoryLock(tmp_path)
        process.kill()
    DirectoryLock(tmp_path).release()


# ── contents and segment files ──


def test_a_used_directory_is_known_by_its_mark_journal_or_segments(tmp_path: Path) -> None:
    (tmp_path / "segments").mkdir()
    assert not has_state(tmp_path)
    (tmp_path / "journal").touch()
    (tmp_path / "segments" / "mine.parquet").touch()
    assert not has_state(tmp_path), "an empty journal and the files of others say nothing"
    for sign in (tmp_path / "journal", tmp_path / "segments" / "1-0-5.parquet"):
        sign.write_bytes(b"x")
        assert has_state(tmp_path)
        sign.unlink()
    mark_state(tmp_path, sync=True)
    assert has_state(tmp_path)


def test_what_a_killed_run_left_in_the_state_is_swept(tmp_path: Path) -> None:
    for name in ("segments", "tables", f"frame-{'0' * 32}", "frame-mine"):
        (tmp_path / name).mkdir()
    (tmp_path / "tables" / "t.parquet.tmp").touch()
    (tmp_path / "tables" / "t.parquet").touch()
    for name in ("3-0-5.parquet", "4-5-9.parquet"):
        (tmp_path / "segments" / name).touch()
    assert sweep(tmp_path, {"3-0-5.parquet"}) == 4
    left = sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*"))
    assert left == [
        *("frame-mine", "segments", "segments/3-0-5.parquet", "tables", "tables/t.parquet"),
    ]


def test_segment_files_read_back_with_their_bounds(tmp_path: Path) -> None:
    table = rows(3, 4).append_column("x", pa.array([None, 2.5, float("nan"), -1.0]))
    size, _ = write_file(tmp_path / "f.parquet", encode(table), sync=False)
    assert size == (tmp_path / "f.parquet").stat().st_size
    found = read_file(str(tmp_path / "f.parquet"))
    assert found.drop_columns("x").equals(table.drop_columns("x").cast(found.schema.remove(3)))
    assert bounds_of(found, ["a", "x"]) == {"a": (6, 12), "x": (-1.0, 2.5)}
    assert os.listdir(tmp_path) == ["f.parquet"]


def test_merged_segments_are_in_order() -> None:
    assert merged([rows(5, 3), rows(0, 5)])["_seq"].to_pylist() == list(range(8))


def test_a_tree_is_synced_with_its_names(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "new").touch()
    (tmp_path / "a" / "b" / "old").touch()
    os.utime(tmp_path / "a" / "b" / "old", (10, 10))
    seen: list[Operation] = []
    with observed(seen.append):
        sync_tree(tmp_path / "a", since=20)
    assert [(o.kind, o.path.name) for o in seen] == [
        *(("sync", "new"), ("sync names", "a"), ("sync names", "b")),
    ]
