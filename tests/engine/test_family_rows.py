"""Rows of families in the manifest: small pieces become one, removed members keep their place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from auroral.engine.queries.family_values import FamilyValues, gone_of
from auroral.network.queries import Family, Query
from auroral.storage import Change, QueryRow, Store

DOCUMENT = '{"sql": "SELECT x FROM s WHERE x > :p", "results": "keep", "key": "rule"}'


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path)
    yield made
    made.close()


def keep(store: Store, *pieces: tuple[int, str, list[int]], since: int = 0) -> list[QueryRow]:
    """Rows of members with these keys, by the id of the first and the name of the piece."""
    values = FamilyValues(store)
    rows = []
    for first, name, keys in pieces:
        file = values.write(str(first), pa.table({"rule": keys, "p": keys}))
        rows.append(QueryRow(first, len(keys), name, DOCUMENT, file, None, since))
    store.commit(Change(queries=rows))
    return rows


def keys(store: Store, row: QueryRow) -> list[int]:
    query = FamilyValues(store).query_of(row)
    assert isinstance(query, Family)
    return [int(key) for key in query.table()["rule"].to_pylist()]


def test_pieces_in_a_row_become_one_and_keep_their_ids(store: Store) -> None:
    rows = keep(store, (1, "f", [1, 2]), (3, "f+1", [3]), (4, "f+2", [4, 5]), (6, "f+3", [6]))
    found = FamilyValues(store).put_together(rows, head=9)
    assert [(row.first, row.count, row.name) for row in found] == [(1, 2, "f"), (3, 4, "f+1")]
    assert keys(store, found[1]) == [3, 4, 5, 6]
    assert [row.first for row in store.manifest.queries()] == [1, 3]


def test_what_is_still_to_be_seen_by_tuples_that_wait_stays_apart(store: Store) -> None:
    rows = keep(store, (1, "f", [1]), (2, "f+1", [2]), (3, "f+2", [3]), since=7)
    assert FamilyValues(store).put_together(rows, head=5) == rows


def test_pieces_with_a_gap_or_a_key_twice_stay_apart(store: Store) -> None:
    rows = keep(store, (1, "f", [1]), (2, "f+1", [2]), (4, "f+2", [3]), (5, "f+3", [3]))
    assert FamilyValues(store).put_together(rows, head=9) == rows


def test_files_of_families_that_are_no_more_are_swept_away(store: Store) -> None:
    rows = keep(store, (1, "f", [1]), (2, "g", [2]))
    values = FamilyValues(store)
    values.sweep([rows[1].file])
    there = [path.name for path in (store.directory / "queries").iterdir()]
    assert there == [rows[1].file]
    values.drop([rows[1].file, None])
    assert list((store.directory / "queries").iterdir()) == []


def test_a_query_has_no_values(store: Store) -> None:
    row = QueryRow(1, 1, "q", '{"sql": "SELECT x FROM s", "results": "count"}', None, None, 0)
    assert FamilyValues(store).query_of(row) == Query("SELECT x FROM s", results="count")


def test_removed_members_are_found_by_their_place(store: Store) -> None:
    rows = keep(store, (1, "f", [1, 2]), (5, "g", [1, 2, 3]))
    gone = {2: 10, 5: 11, 7: 12, 3: 99, 0: 99, 8: 99}
    assert gone_of(rows, gone) == {1: {1: 10}, 5: {0: 11, 2: 12}}


def test_without_a_state_directory_nothing_is_written() -> None:
    store = Store(None)
    try:
        assert FamilyValues(store).write("1", pa.table({"rule": [1]})) is None
    finally:
        store.close()
