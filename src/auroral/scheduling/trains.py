"""Trains: how many tuples a box or superbox takes in one call [2 §4.2] (pure)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from auroral.scheduling.decisions import PlannedCall
from auroral.scheduling.flow import FlowBox, FlowModel
from auroral.scheduling.queues import BoxQueue
from auroral.scheduling.urgency import UrgencyGraph, output_paths

DEFAULT_TRAIN = 1_000_000
LARGEST_CALL_SHARE = 0.5
"""The share of a call that its fixed cost may take before latency shortens trains no further."""


FIRST_TRAINS = 2_000
"""So many tuples has a train of a box whose cost is not known, where latency graphs limit trains.

A box that is slow would otherwise take all that waits, and be busy for minutes before anybody can
know it.
"""


class SegmentRun(Protocol):
    """What is known of a segment."""

    @property
    def rows(self) -> int: ...
    @property
    def first(self) -> int: ...
    @property
    def last(self) -> int: ...
    @property
    def complete_before(self) -> int: ...


def train_end(waiting: Sequence[SegmentRun], head: int, complete: int, limit: int) -> int:
    """The moment before which a train ends: at most `limit` tuples from `head` on.

    Ends where segments end if it can, so that files need not be cut; every moment brings one
    tuple at most, so a cut at head + limit is never too long.
    """
    held: dict[int, int] = {complete: 0}
    for run in waiting:
        if run.last >= head:
            held[run.complete_before] = held.get(run.complete_before, 0) + run.rows
    end = head
    rows = 0
    for border in sorted(held):
        rows += held[border]
        if rows > limit:
            break
        end = border
    if end > head:
        return min(end, complete)
    start = min((run.first for run in waiting if run.last >= head), default=head)
    return min(max(start, head) + limit, complete)


@dataclass(frozen=True)
class TrainLimits:
    """What bounds a train: the least of all that are given."""

    tuples: int | None = None
    """So many tuples."""
    spread_s: float | None = None
    """The youngest tuple arrived at most so much later than the oldest."""
    cost_s: float | None = None
    """A call is expected to last at most so long."""
    bytes: int | None = None
    """So much memory."""
    room_s: float | None = None
    """How long a worker may be busy with one plan (`waiting_room_s`), for `train: auto`."""

    @property
    def is_open(self) -> bool:
        """Whether trains take all that waits."""
        return self == TrainLimits()


def train_size(box: FlowBox, queue: BoxQueue, limits: TrainLimits) -> int:
    """How many of the tuples that wait for a box one call takes, one at least; `room_s` aside.

    A queue knows when its tuples arrived on average and first; the spread of a part of it is
    estimated as if they had arrived at even intervals.

    >>> box = FlowBox("far", ("reports",), {"far": 0.5}, 0.001, call_s=0.02, tuple_bytes=50)
    >>> queue = BoxQueue("far", queued=1000, mean_arrival_s=5.0, oldest_arrival_s=0.0)
    >>> train_size(box, queue, TrainLimits(tuples=300))
    300
    >>> train_size(box, queue, TrainLimits(spread_s=2.5)), train_size(box, queue, TrainLimits())
    (250, 1000)
    >>> train_size(box, queue, TrainLimits(cost_s=0.1))
    80
    >>> train_size(box, queue, TrainLimits(bytes=4000))
    80
    """
    size: float = queue.queued
    if limits.tuples is not None:
        size = min(size, limits.tuples)
    if limits.spread_s is not None:
        spread_s = 2 * (queue.mean_arrival_s - queue.oldest_arrival_s)
        if spread_s > limits.spread_s:
            size = min(size, queue.queued * limits.spread_s / spread_s)
    if limits.cost_s is not None and box.cost_s > 0:
        size = min(size, (limits.cost_s - box.call_s) / box.cost_s)
    if limits.bytes is not None and box.tuple_bytes > 0:
        size = min(size, limits.bytes / box.tuple_bytes)
    return max(math.floor(size + 1e-9), min(queue.queued, 1))


def waiting_room_s(model: FlowModel) -> float | None:
    """How long a worker may be busy so that no output gets worse by it; None: any time.

    Tuples of an output may arrive just after the worker has begun. They wait until it ends, and
    then need their own way to the output: the end of the good zone less that way is the room of an
    output. If the way alone takes longer than that, as with graphs that fall from the start, the
    next point counts at which the graph changes: short trains could not save what is lost anyway,
    and would cost throughput. The tightest output decides for all, because they share the workers.
    Outputs without a latency graph leave any room.
    """
    rooms = [
        _room_s(path.graph, path.remaining_s(1))
        for paths in output_paths(model).values()
        for path in paths
        if path.output is not None and _has_latency(model, path.output)
    ]
    least = min(rooms, default=math.inf)
    return None if math.isinf(least) else max(least, 0.0)


def _room_s(graph: UrgencyGraph, way_s: float) -> float:
    """The time to the first point of a graph, at which it changes, that can be met."""
    return min((x - way_s for x in graph.critical if x > way_s), default=math.inf)


def _has_latency(model: FlowModel, output: str) -> bool:
    qos = model.outputs[output].qos
    return qos is not None and qos.latency is not None


def least_train(box: FlowBox) -> int:
    """The smallest train whose call does not spend more than a stated share on its fixed cost.

    >>> least_train(FlowBox("far", ("reports",), {"far": 0.5}, 0.001, call_s=0.02))
    20
    """
    if box.cost_s <= 0 or box.call_s <= 0:
        return 1
    return math.ceil(box.call_s / box.cost_s * (1 / LARGEST_CALL_SHARE - 1) - 1e-9)


def sized_calls(
    order: Sequence[str],
    boxes: Mapping[str, FlowBox],
    fed: Callable[[str], Iterable[tuple[str, float]]],
    queues: Mapping[str, BoxQueue],
    limits: TrainLimits,
) -> tuple[PlannedCall, ...]:
    """The calls of a plan, each with its train.

    `fed` says which boxes of the plan get tuples of a box, and how many for one. With `room_s`, all
    calls of the plan together are to fit into it: queues are cut in proportion. They are not
    cut so far that fixed costs dominate (`least_train`), nor below one tuple: where a
    graph asks for more than the machine can do, a growing backlog would cost more utility
    than a call that lasts a little too long. So trains are as large as latency graphs allow,
    and calls spend at most a stated share of their time on overhead unless queues are short.

    >>> boxes = {"far": FlowBox("far", ("reports",), {"far": 0.5}, 0.001, call_s=0.02)}
    >>> queues = {"far": BoxQueue("far", 5000)}
    >>> sized_calls(["far"], boxes, lambda box: [], queues, TrainLimits(room_s=1.02))
    (PlannedCall(box='far', tuples=1000),)
    """
    if limits.is_open:
        return tuple(PlannedCall(name) for name in order)
    own = {name: train_size(boxes[name], queues[name], limits) for name in dict.fromkeys(order)}
    if limits.room_s is not None:
        own = {n: k if boxes[n].is_measured else min(k, FIRST_TRAINS) for n, k in own.items()}
        calls_s = sum(boxes[name].call_s for name in order)
        expected = _expected_tuples(order, fed, own)
        tuples_s = sum(n * boxes[name].cost_s for name, n in zip(order, expected, strict=True))
        if calls_s + tuples_s > limits.room_s and tuples_s > 0:
            share = max(limits.room_s - calls_s, 0.0) / tuples_s
            for name, size in own.items():
                shorter = math.floor(size * share + 1e-9)
                own[name] = min(size, max(shorter, least_train(boxes[name]), 1))
    expected = _expected_tuples(order, fed, own)
    calls = []
    for name, count in zip(order, expected, strict=True):
        is_whole = own[name] >= queues[name].queued
        tuples = None if is_whole else max(math.ceil(count - 1e-9), 1)
        if limits.tuples is not None:
            tuples = limits.tuples if tuples is None else min(tuples, limits.tuples)
        calls.append(PlannedCall(name, tuples))
    return tuple(calls)


def _expected_tuples(
    order: Sequence[str],
    fed: Callable[[str], Iterable[tuple[str, float]]],
    own: Mapping[str, int],
) -> list[float]:
    """How many tuples each call of an order takes."""
    waiting: dict[str, float] = dict(own)
    taken = []
    for name in order:
        count = waiting.get(name, 0.0)
        waiting[name] = 0.0
        taken.append(count)
        for reader, share in fed(name):
            waiting[reader] = waiting.get(reader, 0.0) + count * share
    return taken
