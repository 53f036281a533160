"""What a state directory remembers of shedding."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

import auroral.storage.manifest
from auroral.storage import Change, ShedRow, Store
from auroral.storage.manifest import FORMAT


def test_rows_of_one_drop_box_that_continue_each_other_are_one(tmp_path: Path) -> None:
    store = Store(tmp_path)
    steps = [
        ShedRow("far", "s", 0, 5, "a", 2, 4),
        ShedRow("near", "s", 0, 9, "a", 1, 9),
        ShedRow("far", "s", 5, 9, "a", 3, 4),
        ShedRow("far", "s", 9, 10, "b", 1, 1),
        ShedRow("far", "s", 12, 13, "b", 1, 1),  # there was no drop box in between
    ]
    for row in steps:
        store.commit(Change(shed=[row]))
    store.close()
    assert Store(tmp_path).manifest.shed() == [
        ShedRow("far", "s", 0, 9, "a", 5, 8),
        ShedRow("near", "s", 0, 9, "a", 1, 9),
        ShedRow("far", "s", 9, 10, "b", 1, 1),
        ShedRow("far", "s", 12, 13, "b", 1, 1),
    ]


def test_the_oldest_rows_of_what_was_shed_are_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auroral.storage.manifest, "MOST_SHED", 3)
    store = Store(tmp_path)
    store.commit(Change(shed=[ShedRow("b", "s", n, n + 1, str(n), 1, 1) for n in range(5)]))
    assert [row.first for row in store.manifest.shed()] == [2, 3, 4]


def test_drop_boxes_are_recorded_with_a_step(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.record_step("far", 0, 9, "[1]")
    store.record_step("near", 0, 4)
    store.close()
    found = Store(tmp_path).manifest.open_steps()
    assert [(step.superbox, step.last, step.drops) for step in found] == [
        ("far", 9, "[1]"),
        ("near", 4, None),
    ]


def test_a_state_directory_of_the_format_before_is_taken_over(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.record_step("far", 0, 9)
    store.commit(Change(next_moment=9))
    store.close()
    database = sqlite3.connect(tmp_path / "manifest.db")
    database.executescript(
        "ALTER TABLE step DROP COLUMN drops; DROP TABLE shed;"
        "UPDATE meta SET value = '7' WHERE key = 'format'"
    )
    database.close()
    store = Store(tmp_path)
    assert (store.next_moment, store.manifest.meta("format")) == (9, str(FORMAT))
    assert [step.drops for step in store.manifest.open_steps()] == [None]
    store.commit(Change(shed=[ShedRow("far", "s", 0, 5, "a", 2, 4)]))
    store.close()
    assert len(Store(tmp_path).manifest.shed()) == 1
