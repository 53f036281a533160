"""One order of arrival from several inputs, whatever the cuts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auroral.errors import UsageError
from auroral.io.chunk import Chunk
from auroral.io.rows import RowReader
from auroral.io.sources.files import FileSource
from auroral.io.sources.interleave import Interleaver
from auroral.network.types import Schema

SCHEMA = Schema.parse("n int")


class Given:
    """A finite source that cuts its chunks as told; a row None is a dead letter."""

    finite = True

    def __init__(self, stream: str, rows: list[dict[str, Any]], cut: int):
        self.stream = stream
        self.rows = rows
        self.cut = cut
        self.passed = 0
        self.reader = RowReader(stream, SCHEMA)

    def poll(self, limit: int) -> Chunk | None:
        start = self.passed
        self.passed = min(start + min(limit, self.cut), len(self.rows))
        return self.reader.read(self.rows[start : self.passed], skip=start)

    @property
    def exhausted(self) -> bool:
        return self.passed >= len(self.rows)

    def seek(self, offset: Any) -> None:
        self.passed = offset["skip"]

    def close(self) -> None: ...


def naive(inputs: list[list[dict[str, Any]]], timed: bool) -> list[tuple[int, int]]:
    """The law: by (_at, input, place), or one of each in turn."""
    good = [[(i, r) for r in rows if isinstance(r["n"], int)] for i, rows in enumerate(inputs)]
    if timed:
        ordered = sorted((row for rows in good for row in rows), key=lambda row: row[1]["_at"])
        return [(i, r["n"]) for i, r in ordered]
    depth = max(map(len, good), default=0)
    return [(rows[k][0], rows[k][1]["n"]) for k in range(depth) for rows in good if k < len(rows)]


def take(interleaver: Interleaver, limit: int) -> list[tuple[int, int]]:
    parts = interleaver.next(limit)
    train: dict[int, tuple[int, int]] = {}
    for part in parts:
        assert len(part.order) == part.chunk.count
        for place, row in zip(part.order.tolist(), part.chunk.tuples.to_pylist(), strict=True):
            train[place] = (int(part.stream), row["n"])
    assert len({part.stream for part in parts}) == len(parts)
    assert sorted(train) == list(range(len(train)))
    assert len(train) <= limit
    return [train[k] for k in range(len(train))]


INPUTS = st.lists(
    st.tuples(st.lists(st.tuples(st.integers(0, 4), st.booleans()), max_size=8), st.integers(1, 4)),
    min_size=1,
    max_size=4,
)


@given(INPUTS, st.booleans(), st.integers(1, 7), st.integers(0, 20))
@settings(max_examples=300, deadline=None)
def test_any_cut_gives_the_law(
    drawn: list[tuple[list[tuple[int, bool]], int]], timed: bool, limit: int, crash: int
) -> None:
    inputs: list[list[dict[str, Any]]] = []
    for rows, _ in drawn:
        made = [{"n": k if good else "bad"} for k, (_, good) in enumerate(rows)]
        if timed:
            for row, at in zip(made, sorted(at for at, _ in rows), strict=True):
                row["_at"] = at
        inputs.append(made)

    def start() -> Interleaver:
        return Interleaver([Given(str(i), r, drawn[i][1]) for i, r in enumerate(inputs)])

    interleaver, found = start(), []
    while not interleaver.exhausted:
        found += take(interleaver, limit)
        crash -= 1
        if crash == 0:
            offset = json.loads(json.dumps(interleaver.offset))
            interleaver = start()
            interleaver.seek(offset)
    assert found == naive(inputs, timed)


def test_mixed_arrival_is_refused() -> None:
    sources = [Given("a", [{"n": 1, "_at": 1}], 1), Given("b", [{"n": 1}], 1)]
    with pytest.raises(UsageError, match=r"MIXED_ARRIVAL.*a do, b do not"):
        Interleaver(sources).next(5)


def test_a_silent_source_takes_no_turn() -> None:
    class Silent(Given):
        def poll(self, limit: int) -> Chunk | None:
            return None

        @property
        def exhausted(self) -> bool:
            return False

    interleaver = Interleaver([Silent("0", [], 1), Given("1", [{"n": 1}, {"n": 2}], 2)])
    assert take(interleaver, 5) == [(1, 1), (1, 2)]
    assert interleaver.next(5) == []
    assert not interleaver.exhausted


def test_dead_letters_come_without_rows() -> None:
    interleaver = Interleaver([Given("0", [{"n": "x"}], 1)])
    (part,) = interleaver.next(3)
    assert (part.chunk.count, len(part.chunk.dead), len(part.order)) == (0, 1, 0)
    assert interleaver.exhausted


def test_no_sources() -> None:
    assert Interleaver([]).exhausted
    assert Interleaver([]).next(1) == []


def test_split_of_a_hand_made_chunk() -> None:
    chunk = Chunk.of_tuples(pa.table({"n": pa.array([1, 2, 3], pa.int32())}), base="b", skip=4)
    first, rest = chunk.split(2)
    assert (first.offset, rest.offset) == ({"base": "b", "skip": 6}, {"base": "b", "skip": 7})
    assert np.array_equal(rest.positions, [0])


def test_a_line_that_is_written_on_after_it_was_read_is_refused(tmp_path: Path) -> None:
    schema = Schema.parse("n int")
    for text, more, fine in (("n\n1\n2", "3\n", False), ("n\n1\n2", "\n3\n", True)):
        path = tmp_path / "s.csv"
        path.write_text(text)
        before = Interleaver([FileSource("s", path, schema)])
        while before.next(10):
            pass
        offset = before.offset
        path.write_text(text + more)
        after = Interleaver([FileSource("s", path, schema)])
        if fine:
            after.seek(offset)
            (part,) = after.next(10)
            assert part.chunk.tuples["n"].to_pylist() == [3]
        else:
            with pytest.raises(UsageError, match=r"SOURCE_CHANGED.*has been written on"):
                after.seek(offset)
