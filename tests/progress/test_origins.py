"""Laws of a mark per origin: the least of the active ones, whatever the cuts."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from auroral.network.declarations import Stream
from auroral.progress.lowwater import LowWater, as_values
from auroral.progress.origins import ARRIVED, IDLE, OPENED, OriginRows
from auroral.progress.sources import SourceProgress, StreamArrivals
from auroral.reference.progress.marks import StreamMarks


@dataclass(frozen=True)
class Event:
    """What one moment brings: a tuple (None: of no value), a punctuation, or word of an origin."""

    kind: str
    origin: int
    value: int | None


EVENTS = st.lists(
    st.builds(
        Event,
        st.sampled_from(["tuple", "tuple", "tuple", "punctuation", "opened", "idle"]),
        st.sampled_from([0, 0, 1, 1, 2, -1]),
        st.none() | st.integers(-5, 20),
    ).map(
        lambda e: Event(
            "tuple" if e.origin < 0 and e.kind in ("opened", "idle") else e.kind,
            e.origin,
            3 if e.kind == "punctuation" and e.value is None else e.value,
        )
    ),
    max_size=25,
)
SOURCES = st.builds(
    SourceProgress, delay=st.sampled_from([0, 3]), punctuated=st.sampled_from([False, False, True])
)
_EVENT = {"tuple": ARRIVED, "punctuation": ARRIVED, "opened": OPENED, "idle": IDLE}


def fold(source: SourceProgress, events: Sequence[Event], first: int = 0) -> SourceProgress:
    """One train of events."""
    numbered = list(enumerate(events, first))
    tuples = [(m, e.value) for m, e in numbered if e.kind == "tuple" and e.value is not None]
    owned = [(m, e) for m, e in numbered if e.origin >= 0]
    rows = OriginRows(
        np.array([m for m, _ in owned], np.int64),
        np.array([e.origin for _, e in owned], np.int32),
        np.array([_EVENT[e.kind] for _, e in owned], np.int8),
    )
    arrivals = StreamArrivals(
        np.array([m for m, _ in tuples], np.int64),
        as_values([value for _, value in tuples]),
        None,
        [(m, e.value, ()) for m, e in numbered if e.kind == "punctuation"],
        rows,
    )
    return source.advance(arrivals)


def naive(source: SourceProgress, events: Sequence[Event]) -> list[Any]:
    """The mark after each event, by the reference, which keeps no history."""
    kind = {"punctuated": True} if source.punctuated else {"delay": source.delay}
    declared = Stream.model_validate({"schema": "n bigint", "progress": {"on": "n", **kind}})
    mark, found = StreamMarks(declared), []
    for event in events:
        origin = str(event.origin) if event.origin >= 0 else None
        if event.kind == "tuple":
            mark.take({"n": event.value}, origin)
        elif event.kind == "punctuation":
            mark.punctuate(event.value, (), origin)
        elif event.kind == "opened":
            mark.open(str(origin))
        else:
            mark.rest(str(origin))
        found.append(mark.promises()["n"].marks[()])
    return found


def at(source: SourceProgress, moment: int) -> Any:
    mark = source.current()
    assert isinstance(mark, LowWater)
    return mark.at(moment)


@given(SOURCES, EVENTS)
def test_the_mark_is_the_least_of_the_active_origins(
    source: SourceProgress, events: list[Event]
) -> None:
    folded = fold(source, events)
    assert [at(folded, m) for m in range(len(events))] == naive(source, events)


@given(SOURCES, EVENTS, st.lists(st.integers(0, 25), max_size=4), st.booleans())
def test_a_cut_changes_nothing(
    source: SourceProgress, events: list[Event], cuts: list[int], forget: bool
) -> None:
    expected = naive(source, events)
    bounds = sorted({0, len(events), *(min(cut, len(events)) for cut in cuts)})
    for first, last in itertools.pairwise(bounds):
        source = fold(source, events[first:last], first)
        assert [at(source, m) for m in range(first, last)] == expected[first:last]
        source = source.since(last - 1) if forget else source


def example(*events: tuple[str, int, int | None]) -> list[Any]:
    folded = fold(SourceProgress(delay=0), [Event(*event) for event in events])
    return [at(folded, m) for m in range(len(events))]


def test_a_partition_read_later_than_another_is_not_late() -> None:
    found = example(("opened", 0, None), ("opened", 1, None), ("tuple", 0, 9), ("tuple", 1, 4))
    assert found == [None, None, None, 4]


def test_an_idle_origin_holds_nothing_back_until_it_returns() -> None:
    found = example(
        ("tuple", 0, 1), ("opened", 1, None), ("tuple", 0, 7), ("idle", 1, None), ("tuple", 0, 9),
        ("tuple", 1, 2), ("tuple", 0, 11), ("tuple", 1, 10),
    )  # fmt: skip
    assert found == [1, 1, 1, 7, 9, 9, 9, 10]


def test_when_all_are_idle_the_greatest_counts() -> None:
    found = example(("tuple", 0, 7), ("tuple", 1, 3), ("idle", 0, None), ("idle", 1, None))
    assert found == [7, 7, 7, 7]
    found = example(
        ("opened", 0, None), ("opened", 1, None), ("tuple", 1, 3), ("tuple", 0, 7),
        ("idle", 0, None), ("idle", 1, None),
    )  # fmt: skip
    assert found == [None, None, None, 3, 3, 7]


def test_many_origins_are_folded_without_a_matrix() -> None:
    count, origins = 200_000, 64
    moments = np.arange(count, dtype=np.int64)
    codes = (moments % origins).astype(np.int32)
    rows = OriginRows(moments, codes, np.zeros(count, np.int8))
    folded = SourceProgress(delay=0).advance(StreamArrivals(moments, moments, None, (), rows))
    assert at(folded, count - 1) == count - origins
