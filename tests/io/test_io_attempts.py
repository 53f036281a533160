"""Sources that fail: named, retried after growing pauses, or the end of the run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from auroral.errors import RunError, UsageError
from auroral.io.chunk import Chunk
from auroral.io.rows import RowReader
from auroral.io.sources.attempts import LONGEST_PAUSE_S, MOST_RETRIES
from auroral.io.sources.interleave import Interleaver
from auroral.io.sources.iterable import IterableSource
from auroral.network.types import Schema

SCHEMA = Schema.parse("n int")


class Flaky:
    """Gives the numbers in turn; raises as often as told before each."""

    def __init__(self, failures: list[int], *, finite: bool = True, stream: str = "s"):
        self.stream = stream
        self.finite = finite
        self.failures = failures
        self.at = 0
        self.reader = RowReader(stream, SCHEMA)

    def poll(self, limit: int) -> Chunk | None:
        if self.failures[self.at]:
            self.failures[self.at] -= 1
            raise ConnectionError("no broker")
        self.at += 1
        return self.reader.read([(self.at,)], skip=self.at - 1)

    @property
    def exhausted(self) -> bool:
        return self.at >= len(self.failures)

    def retryable(self, error: Exception) -> bool:
        return isinstance(error, ConnectionError)

    def seek(self, offset: Any) -> None: ...

    def close(self) -> None: ...


def taken(merged: Interleaver) -> list[tuple[str, int]]:
    return [
        (part.stream, n) for part in merged.next(10) for n in part.chunk.tuples["n"].to_pylist()
    ]


def test_a_failure_is_retried_after_a_pause() -> None:
    clock = [0.0]
    merged = Interleaver([Flaky([2, 0])], now=lambda: clock[0])
    assert taken(merged) == []
    assert merged.pause_s == 0.5
    clock[0] = 0.4
    assert taken(merged) == []
    assert merged.retries == {"s": 1}, "not asked before the pause is over"
    clock[0] = 0.5
    assert taken(merged) == []
    assert merged.pause_s == 1.0
    clock[0] = 1.5
    assert taken(merged) == [("s", 1)]
    assert merged.pause_s == 0
    assert not merged.exhausted
    assert taken(merged) == [("s", 2)]
    assert merged.exhausted
    assert merged.retries == {"s": 2}


def test_pauses_grow_to_a_bound_and_then_it_fails() -> None:
    clock = [0.0]
    merged = Interleaver([Flaky([99])], now=lambda: clock[0])
    pauses = []
    for _ in range(MOST_RETRIES):
        assert taken(merged) == []
        pauses.append(merged.pause_s)
        clock[0] += merged.pause_s
    with pytest.raises(RunError) as failure:
        merged.next(10)
    assert pauses == sorted(pauses)
    assert pauses[-1] == LONGEST_PAUSE_S
    assert failure.value.code == "SOURCE_FAILED"
    assert failure.value.where == "stream s, source Flaky"
    assert failure.value.message == "ConnectionError: no broker, after 10 retries"


def test_success_begins_anew() -> None:
    clock = [0.0]
    merged = Interleaver([Flaky([MOST_RETRIES] * 3)], now=lambda: clock[0])
    found = []
    while not merged.exhausted:
        found += taken(merged)
        clock[0] += merged.pause_s
    assert found == [("s", 1), ("s", 2), ("s", 3)]


def test_the_order_of_what_ends_does_not_depend_on_failures() -> None:
    def order(failures: list[int]) -> list[tuple[str, int]]:
        clock = [0.0]
        sources = [Flaky(failures), Flaky([0, 0, 0], stream="t")]
        merged = Interleaver(sources, now=lambda: clock[0])
        found = []
        while not merged.exhausted:
            found += taken(merged)
            clock[0] += merged.pause_s
        return found

    assert order([1, 3, 0]) == order([0, 0, 0])


def test_a_source_without_an_end_that_fails_holds_up_no_other() -> None:
    sources = [Flaky([1], finite=False), Flaky([0], stream="t")]
    assert taken(Interleaver(sources, now=lambda: 0.0)) == [("t", 1)]


def numbers(error: Exception) -> Iterator[Any]:
    yield (1,)
    yield None
    raise error


def test_what_is_not_retryable_is_named() -> None:
    merged = Interleaver([IterableSource("s", numbers(KeyError("x")), "n int")])
    assert taken(merged) == [("s", 1)]
    with pytest.raises(RunError, match="KeyError: 'x'") as failure:
        merged.next(10)
    assert failure.value.code == "SOURCE_FAILED"
    assert failure.value.where == "stream s, source IterableSource"
    assert isinstance(failure.value.__cause__, KeyError)


def test_an_error_in_words_keeps_its_code() -> None:
    merged = Interleaver([IterableSource("s", numbers(UsageError("CODE", "why")), "n int")])
    merged.next(10)
    with pytest.raises(UsageError, match="CODE: why"):
        merged.next(10)
