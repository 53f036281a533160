"""Damaged or foreign files in a state directory: told by name, nothing removed, nothing skipped."""

from __future__ import annotations

import shutil
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from auroral.errors import StateError
from auroral.storage import Change, Journal, Store, UnwrittenSegment
from auroral.storage.journal import _HEAD


def table(first: int, count: int, log: str = "s") -> pa.Table:
    moments = list(range(first, first + count))
    return pa.table({"_seq": moments, "_ts": [0] * count, "a": [7 * m for m in moments]})


def used(directory: Path) -> Path:
    """A state directory with two segments."""
    store = Store(directory)
    for first in (0, 3):
        fresh = UnwrittenSegment("s", table(first, 3), first + 3)
        store.commit(Change(fresh=[fresh], next_moment=first + 3, heads={("s", "c"): 0}))
    store.close()
    return directory


def contents(directory: Path) -> dict[str, bytes]:
    wanted = (p for p in directory.rglob("*") if p.is_file() and "manifest" not in p.name)
    return {str(p.relative_to(directory)): p.read_bytes() for p in wanted if p.name != "lock"}


def _without_tables(path: Path) -> None:
    path.unlink()
    sqlite3.connect(path).close()
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE other (x)")
    database.commit()
    database.close()


def _without_one_table(path: Path) -> None:
    _execute(path, "DROP TABLE cursor")


def _execute(path: Path, text: str) -> None:
    database = sqlite3.connect(path)
    database.execute(text)
    database.commit()
    database.close()


def _with_bad_page(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[4096 : 4096 + 64] = b"\xff" * 64
    path.write_bytes(bytes(data))


@pytest.mark.parametrize(
    "damage",
    [
        Path.unlink,
        lambda path: path.write_bytes(b""),
        _without_tables,
        _without_one_table,
        _with_bad_page,
        lambda path: path.write_bytes(b"not a database" * 1000),
        lambda path: path.write_bytes(path.read_bytes()[:5000]),
        lambda path: _execute(path, "DELETE FROM meta WHERE key = 'format'"),
        lambda path: _execute(path, "UPDATE segment SET bounds = '{'"),
        lambda path: _execute(path, "UPDATE meta SET value = 'x' WHERE key = 'next_moment'"),
        lambda path: _execute(path, "UPDATE meta SET value = 'x' WHERE key = 'commits'"),
    ],
    ids=[
        *("gone", "empty", "no tables", "one table less", "bad page", "no database", "cut"),
        *("no format", "bad JSON", "bad number", "bad count"),
    ],
)
@pytest.mark.parametrize("durability", ["power", "process"])
def test_a_damaged_manifest_is_named_and_nothing_is_removed(
    damage: Callable[[Path], Any], durability: str, tmp_path: Path
) -> None:
    directory = used(tmp_path / "state")
    before = contents(directory)
    damage(directory / "manifest.db")
    for _ in range(2):
        with pytest.raises(StateError) as caught:
            Store(directory, durability=durability)
        assert caught.value.code == "MANIFEST_DAMAGED"
        assert "manifest.db" in str(caught.value)
        assert contents(directory) == before


def crashed(directory: Path) -> Path:
    """A state directory as a process leaves it that dies after two commits: with a -wal file."""
    running = directory.with_name("running")
    store = Store(running)
    for first in (0, 3):
        if first:
            store.manifest.settle()
            shutil.copy(running / "manifest.db", directory.with_name("older.db"))
        fresh = UnwrittenSegment("s", table(first, 3), first + 3)
        store.commit(Change(fresh=[fresh], next_moment=first + 3, heads={("s", "c"): 0}))
    shutil.copytree(running, directory)
    store.close()
    return directory


@pytest.mark.parametrize("durability", ["power", "process"])
def test_a_manifest_that_forgot_commits_is_refused_and_nothing_is_removed(
    durability: str, tmp_path: Path
) -> None:
    directory = crashed(tmp_path / "state")
    (directory / "manifest.db-wal").unlink()
    before = contents(directory)
    for _ in range(2):
        with pytest.raises(StateError, match=r"MANIFEST_DAMAGED.*manifest.db-wal was removed"):
            Store(directory, durability=durability)
        assert contents(directory) == before


def test_an_older_copy_of_the_manifest_is_refused(tmp_path: Path) -> None:
    directory = crashed(tmp_path / "state")
    Store(directory).close()
    before = contents(directory)
    shutil.copy(tmp_path / "older.db", directory / "manifest.db")
    with pytest.raises(StateError, match=r"MANIFEST_DAMAGED.*replaced by an older one"):
        Store(directory)
    assert contents(directory) == before


@pytest.mark.parametrize("count", [None, b"", b"\xff" * 12, bytes(12)])
def test_a_count_of_commits_that_a_crash_tore_proves_nothing(
    count: bytes | None, tmp_path: Path
) -> None:
    directory = crashed(tmp_path / "state")
    assert (directory / "commits").stat().st_size == 12
    if count is None:
        (directory / "commits").unlink()
    else:
        (directory / "commits").write_bytes(count)
    store = Store(directory)
    assert [s.first for s in store.segments("s")] == [0, 3]
    store.commit(Change(next_moment=7))
    store.close()
    assert (directory / "commits").stat().st_size == 12
    Store(directory).close()


def test_a_transaction_that_fails_is_not_counted(tmp_path: Path) -> None:
    class CrashError(Exception):
        """A crash."""

    store = Store(used(tmp_path / "state"))
    before = (store.directory / "commits").read_bytes()
    with pytest.raises(CrashError), store.manifest.transaction():
        raise CrashError
    assert (store.directory / "commits").read_bytes() == before
    store.record_step("b", 0, 1)
    assert (store.directory / "commits").read_bytes() == before, "a failure may forget a step"
    store.close()
    Store(store.directory).close()


def test_a_manifest_is_missed_though_no_segment_is_left(tmp_path: Path) -> None:
    Store(tmp_path).close()
    (tmp_path / "manifest.db").unlink()
    with pytest.raises(StateError, match=r"MANIFEST_DAMAGED.*the file is missing"):
        Store(tmp_path)


def test_a_directory_in_which_nothing_was_committed_may_be_used(tmp_path: Path) -> None:
    (tmp_path / "segments").mkdir()
    (tmp_path / "manifest.db").touch()
    Store(tmp_path).close()


def test_what_is_not_ours_stays_in_the_segments(tmp_path: Path) -> None:
    segments = used(tmp_path / "state") / "segments"
    (segments / "backup").mkdir()
    (segments / "9-0-1.parquet").mkdir()
    for name in ("notes.txt", "1-2.parquet", "x-1-2.parquet"):
        (segments / name).write_text("mine")
    for name in ("7-0-1.parquet", "8-0-1.parquet.tmp", "5-0-3-1-windows-0123456789ab.parquet"):
        (segments / name).write_text("not committed")
    store = Store(segments.parent)
    left = {path.name for path in segments.iterdir()} - {s.file for s in store.segments("s")}
    assert left == {"backup", "9-0-1.parquet", "notes.txt", "1-2.parquet", "x-1-2.parquet"}
    assert store.new_number() == 10, "no name is given twice"
    store.close()


def test_a_directory_in_place_of_a_segment_is_damage(tmp_path: Path) -> None:
    path = next((used(tmp_path / "state") / "segments").iterdir())
    path.unlink()
    path.mkdir()
    with pytest.raises(StateError, match=r"SEGMENT_DAMAGED.*it is no file"):
        Store(tmp_path / "state")


def test_others_cannot_look_into_the_state(tmp_path: Path) -> None:
    directory = used(tmp_path / "state")
    journal = Journal(directory / "journal")
    journal.append("s", 6, table(6, 1).to_batches()[0])
    journal.close()
    temporary = Store()
    for path in (directory, directory / "segments", temporary.directory):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    for name in ("manifest.db", "journal"):
        assert stat.S_IMODE((directory / name).stat().st_mode) == 0o600
    temporary.close()


# ── the journal ──

ENTRIES = 4


def journal_of(path: Path, *, power: bool) -> Journal:
    journal = Journal(path, power=power)
    for first in range(0, 2 * ENTRIES, 2):
        journal.append("s", first, table(first, 2).to_batches()[0])
        journal.sync()
    journal.close()
    return Journal(path, power=power)


def read(journal: Journal) -> list[tuple[str, int, list[int]]]:
    schema = table(0, 1).schema
    found = journal.entries({"s": schema})
    rows = [(name, first, batch.to_pydict()["a"]) for name, first, batch in found]
    journal.close()
    return rows


WHOLE = [("s", first, [7 * first, 7 * first + 7]) for first in range(0, 2 * ENTRIES, 2)]


@pytest.mark.parametrize("power", [False, True])
def test_every_flipped_bit_of_the_journal_is_found(power: bool, tmp_path: Path) -> None:
    journal = journal_of(tmp_path / "journal", power=power)
    data = journal.path.read_bytes()
    assert read(journal) == WHOLE
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 1 << (place % 8)
        journal.path.write_bytes(bytes(changed))
        with pytest.raises(StateError) as caught:
            read(journal)
        entry = 1 + place * ENTRIES // len(data)
        assert caught.value.code == "JOURNAL_DAMAGED"
        assert f"entry {entry} of the journal" in str(caught.value)
        assert str(journal.path) in str(caught.value)
        assert journal.path.read_bytes() == bytes(changed), "nothing is cut off"


@pytest.mark.parametrize("power", [False, True])
def test_only_a_torn_last_entry_is_cut_off(power: bool, tmp_path: Path) -> None:
    journal = journal_of(tmp_path / "journal", power=power)
    data = journal.path.read_bytes()
    last = len(data) - len(data) // ENTRIES
    for cut in range(last, len(data)):
        journal.path.write_bytes(data[:cut])
        assert read(journal) == WHOLE[:-1]
        assert len(journal.path.read_bytes()) == last


def test_sectors_that_never_reached_the_disk_are_no_damage(tmp_path: Path) -> None:
    """The length of a file may be on the disk before its data are."""
    journal = journal_of(tmp_path / "journal", power=True)
    whole = journal.path.read_bytes()
    grown = Journal(journal.path, power=True)
    list(grown.entries({"s": table(0, 1).schema}))
    for first in (8, 408):  # not synced
        grown.append("s", first, table(first, 400).to_batches()[0])
    grown.close()
    data = journal.path.read_bytes()
    for sector in range(len(whole) // 512, len(data) // 512):
        changed = bytearray(data)
        start = max(512 * sector, len(whole))
        changed[start : 512 * (sector + 1)] = bytes(512 * (sector + 1) - start)
        journal.path.write_bytes(bytes(changed[: len(data)]))
        found = read(journal)
        assert found[:ENTRIES] == WHOLE
        assert len(found) < ENTRIES + 2


def test_a_hole_in_what_was_synced_is_damage(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal", power=True)
    for first in (0, 400):
        journal.append("s", first, table(first, 400).to_batches()[0])
        journal.sync()
    journal.close()
    data = bytearray(journal.path.read_bytes())
    data[1024:2048] = bytes(1024)
    journal.path.write_bytes(bytes(data))
    with pytest.raises(StateError, match=r"JOURNAL_DAMAGED.*entry 1 .*later entries are whole"):
        read(journal)


def test_an_entry_of_a_stream_that_is_not_there_is_told(tmp_path: Path) -> None:
    journal = journal_of(tmp_path / "journal", power=False)
    with pytest.raises(StateError, match=r"JOURNAL_DAMAGED.*entry 1 .*there is no stream s"):
        list(journal.entries({"t": table(0, 1).schema}))


def test_a_journal_goes_on_after_a_torn_end(tmp_path: Path) -> None:
    journal = journal_of(tmp_path / "journal", power=True)
    data = journal.path.read_bytes()
    journal.path.write_bytes(data[:-_HEAD])
    list(journal.entries({"s": table(0, 1).schema}))
    journal.append("s", 6, table(6, 2).to_batches()[0])
    journal.sync()
    journal.close()
    assert read(Journal(journal.path)) == WHOLE
