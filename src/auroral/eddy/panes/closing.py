"""Close windows: merge the partial results of many queries' windows at once.

A partial result is expanded to the windows that hold it, first one for all queries with the same
windows, and merged; what is left is expanded to queries. Queries with the same windows that count
the same classes of tuples have the same results, which are computed once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from auroral.eddy.panes.group import Classes, PaneQueries, QueryIds, spread
from auroral.eddy.panes.merging import Partials
from auroral.kernels.grouping import Ids, group_ids
from auroral.kernels.units import Mask
from auroral.progress.lowwater import Values

_PAIRS = 2_000_000
"""How many partial results with their windows and queries are in memory at once."""


@dataclass(frozen=True)
class Panes:
    """Partial results: of tuples from `start` up to, not including, `end`, of a group and a class.

    They count in windows that end above `floor`: others had closed when the tuples came.
    """

    start: Values
    end: Values
    floor: Values
    floored: Mask
    """Whether there is a floor."""
    number: Ids
    """Their class."""
    oldest: Ids
    by: tuple[pa.Array, ...]
    states: Mapping[str, pa.Array]

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True)
class Passed:
    """Marks before a step and after it; None: nothing is promised yet."""

    before: Any
    after: Any
    everything: bool
    """Whether the end comes in this step."""


@dataclass(frozen=True)
class Closed:
    """Windows with their results."""

    start: Values
    end: Values
    oldest: Ids
    by: tuple[pa.Array, ...]
    results: list[pa.Array]
    rows: Ids
    """With `ids`: for which queries each window is."""
    ids: QueryIds


@dataclass(frozen=True)
class _Pairs:
    """Panes with windows (by number of their kind), those from `first` on, `count` of them."""

    pane: Ids
    window: Ids
    first: Values
    count: Ids

    def take(self, index: Ids) -> _Pairs:
        return _Pairs(self.pane[index], self.window[index], self.first[index], self.count[index])


@dataclass(frozen=True)
class _Alike:
    """Queries with the same results, numbered; by class and kind of window."""

    keys: Ids
    """class · windows + window, ascending."""
    alike: Ids
    """The number of queries alike that stands for, for each key."""
    ids: QueryIds
    """Queries by number."""
    offsets: Ids
    window: Ids


def close(
    panes: Panes, classes: Classes, queries: PaneQueries, functions: Partials, passed: Passed
) -> Iterator[Closed]:
    """The windows that close, as many at a time as memory allows."""
    pairs = _pairs(panes, classes, queries, passed)
    if not len(pairs.pane):
        return
    used, place = np.unique(panes.number[pairs.pane], return_inverse=True)
    alike = _alike(classes.take(used), queries)
    kinds = len(queries.sizes)
    low, high = (
        np.searchsorted(alike.keys, place * kinds + pairs.window, side=side)
        for side in ("left", "right")
    )
    group, _ = group_ids(panes.by, len(panes))
    weight = pairs.count * np.maximum(high - low, 1)
    for part in _parts(group[pairs.pane] * kinds + pairs.window, weight):
        chosen = pairs.take(part)
        yield _closed(panes, chosen, place[part], group[chosen.pane], alike, queries, functions)


def _pairs(panes: Panes, classes: Classes, queries: PaneQueries, passed: Passed) -> _Pairs:
    """Panes with their windows that close now."""
    if passed.everything:
        rows = np.arange(len(panes))
    elif passed.after is None:
        rows = np.empty(0, np.int64)
    else:
        rows = np.flatnonzero(np.asarray(panes.end <= passed.after, bool))
    row, window = classes.asked(panes.number[rows], queries)
    pane = rows[row]
    # As wide as the panes' bounds, so that 64 bits do where they are used.
    size, advance = (a[window].astype(panes.start.dtype) for a in (queries.sizes, queries.advances))
    above = np.maximum(panes.end - 1, np.where(panes.floored, panes.floor, panes.end - 1))[pane]
    if passed.before is not None:
        above = np.maximum(above, passed.before)
    first = (above - size) // advance + 1
    last = panes.start[pane] // advance
    if not passed.everything and passed.after is not None:
        last = np.minimum(last, (passed.after - size) // advance)
    count = np.maximum(last - first + 1, 0).astype(np.int64)
    return _Pairs(pane, window, first, count).take(np.flatnonzero(count))


def _alike(classes: Classes, queries: PaneQueries) -> _Alike:
    """Number the queries of some classes; those with the same windows and classes alike."""
    place = queries.places(classes.ids)
    owner = classes.owner
    order = np.argsort(place, kind="stable")
    mine, sizes = np.unique(place, return_counts=True)
    ends = np.concatenate([[0], np.cumsum(sizes)])
    member, _ = Classes(ends, owner[order].astype(np.int32)).numbered()
    number, first = group_ids([pa.array(member), pa.array(queries.window[mine])], len(mine))
    by_number = np.argsort(number, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(number, minlength=len(first)))])
    window = queries.window[mine[first]]
    of_entry = number[np.searchsorted(mine, place)]
    kinds, many = len(queries.sizes), len(first)
    pairs = np.unique((owner * kinds + window[of_entry]) * many + of_entry)
    ids = queries.ids[mine[by_number]]
    return _Alike(pairs // many, pairs % many, ids, offsets, window)


def _parts(keys: Ids, weight: Ids) -> Iterator[Ids]:
    """Cut pairs so that those of one key stay together."""
    total = int(weight.sum())
    if total <= _PAIRS:
        yield np.arange(len(keys))
        return
    order = np.argsort(keys, kind="stable")
    before = np.cumsum(weight[order]) - weight[order]
    starts = np.flatnonzero(np.concatenate([[True], np.diff(keys[order]) != 0]))
    part = before[starts] // _PAIRS
    cuts = starts[np.concatenate([[True], np.diff(part) != 0])]
    yield from np.split(order, cuts[1:])


def _closed(
    panes: Panes,
    pairs: _Pairs,
    place: Ids,
    group: Ids,
    alike: _Alike,
    queries: PaneQueries,
    functions: Partials,
) -> Closed:
    expand = np.repeat(np.arange(len(pairs.pane)), pairs.count)
    turn = pairs.first[expand] + spread(np.zeros_like(pairs.count), pairs.count)
    wanted = place * len(queries.sizes) + pairs.window
    groups = int(group.max()) + 1
    codes = pa.array((wanted * groups + group)[expand])
    slot, one = group_ids([codes, _codes(turn)], len(turn))
    pane = pairs.pane[expand]
    states, oldest = _merged(functions, panes.states, panes.oldest, pane, slot, one)
    turn, pane, expand = turn[one], pane[one], expand[one]
    window, wanted, group = pairs.window[expand], wanted[expand], group[expand]
    low = np.searchsorted(alike.keys, wanted)
    many = np.searchsorted(alike.keys, wanted, side="right") - low
    where, places = group_ids([_codes(turn), pa.array(group)], len(turn))
    expand = np.repeat(np.arange(len(wanted)), many)
    number = alike.alike[spread(low, many)]
    codes = pa.array(number * len(places) + where[expand])
    slot, one = group_ids([codes], len(expand))
    states, oldest = _merged(functions, states, oldest, expand, slot, one)
    first = expand[one]
    size, advance = queries.sizes[window[first]], queries.advances[window[first]]
    start = turn[first] * advance
    number = number[one]
    sizes = np.diff(alike.offsets)[number]
    return Closed(
        start,
        start + size,
        oldest,
        tuple(column.take(pa.array(pane[first])) for column in panes.by),
        functions.final(states),
        np.repeat(np.arange(len(one)), sizes),
        alike.ids[spread(alike.offsets[number], sizes)],
    )


def _codes(turn: Values) -> pa.Array:
    """Numbers of windows; where they may exceed 64 bits, ranks in their place."""
    return pa.array(np.unique(turn, return_inverse=True)[1] if turn.dtype == object else turn)


def _merged(
    functions: Partials, states: Mapping[str, pa.Array], oldest: Ids, row: Ids, slot: Ids, one: Ids
) -> tuple[dict[str, pa.Array], Ids]:
    """States of rows, those of one slot merged, and the oldest entry; `one` is one of each slot."""
    least = oldest[row[one]]
    if len(one) == len(slot):  # slots are numbered as they appear
        taken = pa.array(row)
        return {name: column.take(taken) for name, column in states.items()}, least
    np.minimum.at(least, slot, oldest[row])
    return functions.merge(states, row, slot, len(one)), least
