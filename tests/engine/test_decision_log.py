"""The log of decisions: what goes on stays in the story, and memory is bounded."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from auroral.engine.inspect.stories import DecisionLog


def seen(log: DecisionLog, name: str) -> list[tuple[Any, Any]]:
    return [(entry["why"], entry["count"]) for entry in log.story(name)]


def test_a_decision_that_goes_on_is_not_forgotten() -> None:
    log = DecisionLog(lambda: 0, most=3)
    for number in range(10):
        log.note(["far"], "ran", "round robin")
        log.note([f"other {number}"], "ran", "round robin")
    assert seen(log, "far") == [("round robin", 10)]
    assert seen(log, "other 0") == []


def test_a_decision_that_was_forgotten_is_told_anew() -> None:
    log = DecisionLog(lambda: 0, most=3)
    log.note(["far"], "ran", "round robin")
    for number in range(3):
        log.note([f"other {number}"], "ran", "round robin")
    assert seen(log, "far") == []
    log.note(["far"], "ran", "round robin")
    assert seen(log, "far") == [("round robin", 1)]


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from(["x", "y"])), max_size=60))
def test_the_latest_decisions_are_there_and_no_more(made: list[tuple[str, str]]) -> None:
    now_us = iter(range(1000))
    log = DecisionLog(lambda: next(now_us), most=3)
    for name, why in made:
        log.note([name], "ran", why)
        assert seen(log, name)[-1][0] == why
    assert len(log.story(*"abcdef")) <= 3
    assert len(log._latest) <= 3
