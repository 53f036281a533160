"""Laws of what arrivals promise, and of how promises pass through boxes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from auroral.progress.lowwater import END, GroupedLowWater, LowWater, Mark, as_values
from auroral.progress.propagation import passed, renamed, united
from auroral.progress.sources import SourceProgress, StreamArrivals

GROUPS = [("x",), ("y",), (None,)]
LEAST = -(2**63)


@dataclass(frozen=True)
class Event:
    """What one moment brings: a tuple, a punctuation or the time."""

    kind: str
    value: int
    group: tuple[Any, ...]


VALUES = st.integers(-10, 30) | st.just(LEAST)
EVENTS = st.lists(
    st.builds(
        Event,
        st.sampled_from(["tuple", "tuple", "punctuation", "time"]),
        VALUES,
        st.sampled_from(GROUPS),
    ),
    max_size=15,
)
SOURCES = st.builds(
    SourceProgress,
    delay=st.sampled_from([0, 3, 2.5]),
    punctuated=st.booleans(),
    heartbeat_lag=st.sampled_from([None, 4]),
)
GROUPED = st.builds(
    SourceProgress,
    delay=st.sampled_from([0, 3]),
    punctuated=st.booleans(),
    by=st.just(("g",)),
    mark=st.just(GroupedLowWater(("g",), {})),
)


def fold(source: SourceProgress, events: Sequence[Event], first: int = 0) -> SourceProgress:
    """One train of events."""
    numbered = list(enumerate(events, first))
    tuples = [(m, e) for m, e in numbered if e.kind == "tuple"]
    arrivals = StreamArrivals(
        np.array([m for m, _ in tuples], np.int64),
        as_values([e.value for _, e in tuples]),
        [e.group for _, e in tuples] if source.by else None,
        [(m, e.value, e.group) for m, e in numbered if e.kind == "punctuation"],
    )
    times = [(m, e.value) for m, e in numbered if e.kind == "time"]
    moments = np.array([m for m, _ in times], np.int64)
    # Times before the least integer are of no interest; punctuations are.
    clock = np.array([max(t, -10) for _, t in times], np.int64)
    return source.advance(arrivals).tick(moments, clock)


def naive(source: SourceProgress, events: Sequence[Event], group: Any = None) -> Any:
    """The greatest of what each event so far promises."""
    found: list[Any] = []
    for event in events:
        if event.kind == "time":
            if source.heartbeat_lag is not None:
                found.append(max(event.value, -10) - source.heartbeat_lag)
        elif group is not None and event.group != group:
            continue
        elif event.kind == "punctuation":
            found.append(event.value)
        elif not source.punctuated:
            found.append(event.value - source.delay)
    return max(found, default=None)


def at(mark: Mark, moment: int) -> Any:
    assert isinstance(mark, LowWater)
    return mark.at(moment)


@given(SOURCES, EVENTS)
def test_a_stream_promises_the_greatest_of_what_came(
    source: SourceProgress, events: list[Event]
) -> None:
    mark = fold(source, events).current()
    for moment in range(len(events)):
        assert at(mark, moment) == naive(source, events[: moment + 1])


@given(SOURCES, EVENTS, st.integers(0, 15), st.booleans())
def test_a_cut_changes_nothing(
    source: SourceProgress, events: list[Event], cut: int, forget: bool
) -> None:
    whole = fold(source, events).current()
    first = fold(source, events[:cut])
    first = first.since(cut) if forget else first
    both = fold(first, events[cut:], min(cut, len(events))).current()
    for moment in range(min(cut, len(events)) if forget else 0, len(events)):
        assert at(both, moment) == at(whole, moment)


@given(GROUPED, EVENTS)
def test_groups_are_each_group_alone(source: SourceProgress, events: list[Event]) -> None:
    mark = fold(source, events).current()
    assert isinstance(mark, GroupedLowWater)
    for moment in range(len(events)):
        for group in GROUPS:
            expected = naive(source, events[: moment + 1], group)
            assert mark.at(moment, group) == expected


@given(SOURCES, EVENTS)
def test_an_ended_stream_promises_everything(source: SourceProgress, events: list[Event]) -> None:
    mark = fold(source, events).end(len(events)).current()
    assert at(mark, len(events)) == END
    if events:
        assert at(mark, len(events) - 1) == naive(source, events)


def marks(events: Sequence[Event]) -> LowWater:
    found = fold(SourceProgress(delay=0), events).current()
    assert isinstance(found, LowWater)
    return found


@given(st.lists(EVENTS, min_size=2, max_size=3))
def test_a_union_promises_the_least_of_its_inputs(inputs: list[list[Event]]) -> None:
    progress = [{"n": marks(events)} for events in inputs]
    result = united(progress)["n"]
    for moment in range(16):
        values = [at(one["n"], moment) for one in progress]
        assert at(result, moment) == (None if None in values else min(values))
    assert united([*progress, {}]) == {}
    assert passed(progress[0]) is progress[0]


@given(EVENTS, EVENTS)
def test_a_union_of_groups_and_a_plain_promise_is_by_group(
    grouped: list[Event], plain: list[Event]
) -> None:
    source = SourceProgress(delay=0, by=("g",), mark=GroupedLowWater(("g",), {}))
    one, other = fold(source, grouped).current(), marks(plain)
    both = united([{"n": one}, {"N": other}])["n"]
    assert isinstance(both, GroupedLowWater)
    assert isinstance(one, GroupedLowWater)
    for moment in range(16):
        for group in GROUPS:
            values: list[Any] = [one.at(moment, group), other.at(moment)]
            assert both.at(moment, group) == (None if None in values else min(values))
    assert united([{"n": one}, {"n": GroupedLowWater(("h",), {})}]) == {}


def test_a_map_carries_promises_to_plain_copies() -> None:
    plain, grouped = LowWater.of([(0, 1)]), GroupedLowWater(("g",), {})
    progress: dict[str, Mark] = {"n": plain, "m": grouped}
    assert renamed(progress, {"n": ["a", "b"]}) == {"a": plain, "b": plain}
    assert renamed(progress, {"m": ["m"]}) == {}
    assert renamed(progress, {"m": ["m"], "g": ["h", "i"]}) == {"m": GroupedLowWater(("h",), {})}
