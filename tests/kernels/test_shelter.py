"""Work in processes of its own: what ends one has failed, and nothing else is lost."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auroral.kernels import shelter
from auroral.kernels.calling import called
from auroral.kernels.shelter import Done, attempted, sheltering
from auroral.network.types import Type

BIGINT = Type.parse("bigint")


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def leaving(bad: set[int], how: Callable[[], object]) -> Callable[[pa.Array], pa.Array]:
    def function(n: pa.Array) -> pa.Array:
        for each in n.to_pylist():
            if each in bad:
                how()
            elif each % 5 == 4:
                raise ValueError(each)
        return n

    return function


@settings(max_examples=15)
@given(st.integers(0, 40), st.sets(st.integers(0, 39), max_size=3), st.sampled_from([kill, None]))
def test_just_the_rows_that_end_it_fail(
    rows: int, bad: set[int], how: Callable[[], object] | None
) -> None:
    function = leaving(bad, how or (lambda: os._exit(3)))
    given = [pa.array(range(rows), pa.int64())]
    with sheltering(True):
        values, failures = called(function, BIGINT, given, rows)
    ended = f"the function ended its process ({'SIGKILL' if how else 'exit code 3'})"
    raised = {n: f"ValueError: {n}" for n in range(4, rows, 5)}
    expected = raised | {n: ended for n in bad if n < rows}
    assert failures == expected
    assert values.to_pylist() == [n if n not in expected else None for n in range(rows)]
    assert values.type == pa.int64()


def test_few_processes_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    forked = 0
    fork = os.fork

    def counted() -> int:
        nonlocal forked
        forked += 1
        return fork()

    monkeypatch.setattr(os, "fork", counted)
    given = [pa.array(range(1024), pa.int64())]
    with sheltering(True):
        _, failures = called(leaving({777}, kill), BIGINT, given, 1024)
        assert list(failures.values()).count("the function ended its process (SIGKILL)") == 1
    assert forked == 21  # one, then two for each of ten halvings


def test_a_function_that_always_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelter, "HOPELESS", 5)
    always, never = leaving(set(range(99)), kill), leaving(set(), kill)
    given = [pa.array(range(0, 60, 5), pa.int64())]
    with sheltering(True):
        values, failures = called(always, BIGINT, given, 12)
        assert values.null_count == len(failures) == 12
        assert list(failures.values()) == [
            *["the function ended its process (SIGKILL)"] * 5,
            *["not called: the function ended its process 5 times in a row"] * 7,
        ]
        assert called(never, BIGINT, given, 12)[1] == {}
        assert len(called(always, BIGINT, given[:1], 12)[1]) == 12
    with sheltering(True):  # the next step
        _, failures = called(always, BIGINT, given, 1)
        assert failures == {0: "the function ended its process (SIGKILL)"}


def test_a_child_of_the_child_is_not_waited_for() -> None:
    reading, writing = os.pipe()

    def leave_one_behind(n: pa.Array) -> pa.Array:
        if not os.fork():
            os.close(writing)
            os.read(reading, 1)  # until this test ends
            os._exit(0)
        return n

    with sheltering(True):
        values, failures = called(leave_one_behind, BIGINT, [pa.array([1, 2])], 2)
    os.close(writing)
    os.close(reading)
    assert (values.to_pylist(), failures) == ([1, 2], {})


def test_without_a_shelter_nothing_is_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fork", lambda: pytest.fail("forked"))

    def work(first: int, last: int) -> Done:
        return pa.array(range(first, last)), {}

    assert attempted("f", 3, pa.int64(), work)[0].to_pylist() == [0, 1, 2]
    with pytest.raises(KeyError), sheltering(True):
        raise KeyError
    assert attempted("f", 3, pa.int64(), work)[0].to_pylist() == [0, 1, 2]
