"""Which segments are in memory: never too many, the most urgent first, and not to and fro."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from auroral.scheduling.residency import QueuedSegment, ResidencyPlanner, WaitingQueue


def queue(
    reader: str, sizes: Sequence[int], priority: float | None = None, log: str | None = None
) -> WaitingQueue:
    """A queue of segments of its own log, named after it, the oldest first."""
    log = log or reader
    segments = [QueuedSegment(f"{log}{n}", log, size, first=n) for n, size in enumerate(sizes)]
    return WaitingQueue(reader, log, segments, priority)


def settled(planner: ResidencyPlanner, queues: Sequence[WaitingQueue], now_s: float) -> set[str]:
    """What is in memory when nothing changes any more."""
    for n in range(100):
        planner.plan(queues, (), now_s + 10 * n)
    return {s.name for q in queues for s in q.segments if s.name in planner}


def test_the_most_urgent_queue_is_in_memory_first() -> None:
    queues = [queue("low", [10] * 4, 1.0), queue("high", [10] * 4, 5.0), queue("none", [10] * 4)]
    assert settled(ResidencyPlanner(60), queues, 0.0) == {
        *(f"high{n}" for n in range(4)),
        "low0",
        "low1",
    }


def test_of_a_long_queue_the_oldest_are_kept() -> None:
    planner = ResidencyPlanner(35)
    for segment in queue("q", [10] * 6).segments:
        planner.admit(segment, now_s=0.0)
    assert [n for n in range(6) if f"q{n}" in planner] == [0, 1, 2]
    assert settled(planner, [queue("q", [10] * 6)], 5.0) == {"q0", "q1", "q2"}


def test_a_log_that_several_read_counts_for_the_most_urgent_of_them() -> None:
    shared = [queue("first", [10] * 2, 1.0, "log"), queue("second", [10] * 2, 9.0, "log")]
    assert settled(ResidencyPlanner(20), [queue("other", [10] * 2, 5.0), *shared], 0.0) == {
        "log0",
        "log1",
    }


def test_what_a_step_reads_is_not_evicted() -> None:
    planner = ResidencyPlanner(20)
    low, high = queue("low", [10] * 2, 1.0), queue("high", [10] * 2, 9.0)
    for segment in low.segments:
        planner.admit(segment, now_s=0.0)
    for n in range(5):
        planner.plan([low, high], ["low0"], 10.0 * n)
    assert ("low0" in planner, "low1" in planner, "high0" in planner) == (True, False, True)
    planner.pin(["high0"])
    urgent = QueuedSegment("urgent", "urgent", 20, 0)
    assert planner.admit(urgent, now_s=100.0) is None


def test_segments_that_nobody_waits_for_any_more_go() -> None:
    planner = ResidencyPlanner(100)
    waiting = queue("q", [10] * 2)
    for segment in waiting.segments:
        planner.admit(segment, now_s=0.0)
    moves = planner.plan([WaitingQueue("q", "q", waiting.segments[1:])], (), 5.0)
    assert (moves.passed, moves.evict, planner.used) == (("q0",), (), 10)


def test_a_segment_that_is_yet_to_be_committed_stays_for_a_while() -> None:
    planner = ResidencyPlanner(100)
    planner.admit(QueuedSegment("new", "q", 10, 0), now_s=4.9)
    assert planner.plan([], (), 5.0).passed == ()
    assert planner.plan([], (), 9.0).passed == ("new",)


def test_what_is_read_next_comes_before_any_priority() -> None:
    planner = ResidencyPlanner(10)
    urgent, next_ = queue("urgent", [10], 1e9), queue("next", [10], math.inf)
    assert settled(planner, [urgent], 0.0) == {"urgent0"}
    assert settled(planner, [urgent, next_], 2000.0) == {"next0"}


def test_a_smaller_budget_evicts_the_least_urgent() -> None:
    planner = ResidencyPlanner(60)
    queues = [queue("low", [10] * 3, 1.0), queue("high", [10] * 3, 5.0)]
    assert len(settled(planner, queues, 0.0)) == 6
    planner.budget = 40
    assert planner.plan(queues, (), 2000.0).evict == ("low2", "low1")


def test_a_segment_that_is_larger_in_memory_than_there_is_room_does_not_stay() -> None:
    planner = ResidencyPlanner(30)
    for segment in queue("q", [10] * 2).segments:
        planner.admit(segment, now_s=0.0)
    assert planner.resize("q0", 15)
    assert not planner.resize("q1", 20)
    assert (planner.used, "q1" in planner) == (15, False)


def test_priorities_within_the_margin_move_nothing() -> None:
    planner = ResidencyPlanner(20, margin=0.1)
    settled(planner, [queue("a", [10] * 2, 1.0), queue("b", [10] * 2, 0.95)], 0.0)
    moved = 0
    for n in range(50):
        swapped = [queue("a", [10] * 2, 1.0), queue("b", [10] * 2, 1.05 if n % 2 else 0.95)]
        moved += len(planner.plan(swapped, (), 2000.0 + 10 * n).load)
    assert moved == 0


def test_alternating_priorities_do_not_move_segments_to_and_fro() -> None:
    planner = ResidencyPlanner(100, least_stay_s=1.0)
    loads = 0
    for n in range(1000):  # ten seconds
        high, low = (9.0, 1.0) if n % 2 else (1.0, 9.0)
        queues = [queue("a", [10] * 10, high), queue("b", [10] * 10, low)]
        loads += len(planner.plan(queues, (), n / 100).load)
    assert loads <= 10 + 10 * 10  # each place changes its segment once per second at most


def test_few_segments_are_loaded_per_second() -> None:
    planner = ResidencyPlanner(10_000, loads_per_s=20.0)
    waiting = [queue("q", [10] * 1000)]
    planner.plan(waiting, (), 0.0)
    loads = [len(planner.plan(waiting, (), n / 10).load) for n in range(1, 51)]
    assert sum(loads) == 20 + 5 * 20 - 2
    assert max(loads[1:]) <= 3


PRIORITIES = st.one_of(st.none(), st.floats(-10, 10), st.just(math.inf))


@st.composite
def scripts(draw: st.DrawFn) -> list[tuple[str, object]]:
    """Plans with any priorities, arrivals, readers that go on, and budgets that change."""
    script: list[tuple[str, object]] = []
    for _ in range(draw(st.integers(1, 12))):
        kind = draw(st.sampled_from(["plan", "admit", "pass", "budget"]))
        if kind == "plan":
            script.append((kind, draw(st.lists(PRIORITIES, min_size=3, max_size=3))))
        elif kind == "admit":
            script.append((kind, (draw(st.integers(0, 2)), draw(st.integers(1, 60)))))
        elif kind == "pass":
            script.append((kind, draw(st.integers(0, 2))))
        else:
            script.append((kind, draw(st.integers(1, 150))))
    return script


def carried_out(script: list[tuple[str, object]]) -> list[object]:
    """Everything that a planner has decided; the budget is looked at after each decision."""
    planner = ResidencyPlanner(100, least_stay_s=1.0)
    logs: list[list[QueuedSegment]] = [[], [], []]
    decided: list[object] = []
    pinned: list[str] = []
    for n, (kind, what) in enumerate(script):
        now_s = 0.7 * n
        if kind == "plan":
            assert isinstance(what, list)
            queues = [
                WaitingQueue(str(i), str(i), list(log), priority)
                for i, (log, priority) in enumerate(zip(logs, what, strict=True))
            ]
            pinned = [log[0].name for log in logs[:1] if log]
            decided.append(planner.plan(queues, pinned, now_s))
        elif kind == "admit":
            assert isinstance(what, tuple)
            segment = QueuedSegment(f"s{n}", str(what[0]), what[1], first=n)
            logs[what[0]].append(segment)
            decided.append(planner.admit(segment, now_s))
        elif kind == "pass":
            assert isinstance(what, int)
            logs[what][:1] = []
        else:
            assert isinstance(what, int)
            planner.budget = what
            continue
        held = [s for log in logs for s in log if s.name in planner]
        if kind == "plan":
            kept = sum(s.bytes for s in held if s.name in pinned)
            assert planner.used <= max(planner.budget, kept)
        assert planner.used >= sum(s.bytes for s in held)
    return decided


@given(scripts())
def test_never_more_than_the_budget_and_always_the_same(script: list[tuple[str, object]]) -> None:
    assert carried_out(script) == carried_out(script)


@given(
    st.lists(st.tuples(st.floats(-5, 5), st.integers(0, 8)), min_size=1, max_size=5),
    st.integers(0, 30),
)
def test_what_settles_is_the_top_of_the_order(drawn: list[tuple[float, int]], places: int) -> None:
    queues = [queue(chr(97 + n), [10] * size, p) for n, (p, size) in enumerate(drawn)]
    planner = ResidencyPlanner(10 * places, margin=0.0)
    for one in reversed(queues):  # in memory from the beginning, in another order
        for segment in one.segments:
            planner.admit(segment, now_s=0.0)
    found = settled(planner, queues, 10.0)
    ranked = sorted((-(q.priority or 0.0), s.first, s.name) for q in queues for s in q.segments)
    kept = [rank[:2] for rank in ranked if rank[2] in found]
    assert kept == [rank[:2] for rank in ranked[:places]]
