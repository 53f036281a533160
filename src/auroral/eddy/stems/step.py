"""SteMs: shared, indexed join state, one per arc [Madden et al. 2002, section 3.3].

Each arc's tuples are stored once for all joins. A step stores the new tuples that some query may
want and lets them probe the SteMs of the other sources of each join group, so that every result
is found once, by its last part, and by one join for all queries of the group.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from auroral.eddy.lineage import Lineage
from auroral.eddy.routes.probing import Orders
from auroral.eddy.stems.group import JoinGroup, NewTuples, StemStep
from auroral.eddy.stems.lineages import masked
from auroral.eddy.stems.probe import JoinProbe, has_floats
from auroral.eddy.stems.results import hidden_columns, joined_tuples
from auroral.eddy.stems.state import Stem, StemSegment, new_segment, segments
from auroral.kernels.arrivals import REASONS, InputOrder, OrderedArrivals, ended_at
from auroral.kernels.grouping import Ids
from auroral.kernels.joining.sides import has_keys
from auroral.kernels.kernel import NEVER, Context
from auroral.kernels.steps import Mark, least_at, passed
from auroral.kernels.units import Mask, roomy
from auroral.progress.lowwater import END, LowWater

__all__ = ["JoinGroup", "NewTuples", "StemStep", "state_name", "step_stems"]

Decide = Callable[[JoinGroup, pa.Table, Lineage], Lineage]
"""Given joined tuples and who may be satisfied by all of their parts: who is by the whole."""
Marks = Mapping[tuple[str, str], Mark]
"""The mark of an arc's attribute."""


def state_name(arc: str) -> str:
    """The state table of an arc's SteM."""
    return f"stem:{arc}"


def step_stems(
    groups: Sequence[JoinGroup],
    arrived: Mapping[str, NewTuples],
    state: Mapping[str, pa.Table],
    marks: Marks,
    context: Context,
    decide: Decide,
    *,
    orders: Orders | None = None,
    first_chunk: int = 0,
    cached_as: Hashable | None = None,
) -> StemStep:
    """Join what has arrived in a step with what is stored and with itself.

    `arrived` has all arcs of row windows, without tuples if there are none. `orders` are those of
    probes, used in turn from number `first_chunk` on. State that `cached_as` names stays indexed
    in this process from step to step.
    """
    return _StemStep(groups, arrived, state, marks, context, cached_as).run(
        decide, orders or {}, first_chunk
    )


class _StemStep:
    """One step over the SteMs of some arcs."""

    def __init__(
        self,
        groups: Sequence[JoinGroup],
        arrived: Mapping[str, NewTuples],
        state: Mapping[str, pa.Table],
        marks: Marks,
        context: Context,
        cached_as: Hashable | None,
    ):
        self._groups, self._arrived, self._state = groups, arrived, state
        self._marks, self._context = marks, context
        self._made = StemStep()
        self._judged: dict[tuple[str, str], OrderedArrivals] = {}
        self._late: dict[str, dict[str, Mask]] = {}
        uses: dict[str, list[tuple[JoinGroup, int]]] = {}
        for group in groups:
            for place, arc in enumerate(group.shape.arcs):
                uses.setdefault(arc, []).append((group, place))
        self._uses = uses
        self._stems = {
            arc: Stem(
                segments(
                    state.get(state_name(arc)), None if cached_as is None else (cached_as, arc)
                ),
                self._new(arc),
            )
            for arc in uses
        }

    def run(self, decide: Decide, orders: Orders, first_chunk: int) -> StemStep:
        for arc, reasons in self._late.items():
            counts = {why: int(mask.sum()) for why, mask in reasons.items() if mask.any()}
            if counts:
                self._made.late[arc] = counts
        for group in self._groups:
            made = self._made.probes
            join = JoinProbe(group, self._stems, self._arrived, made, orders, first_chunk)
            self._join(join, decide)
        for arc in self._uses:
            self._store(arc)
        for name, table in self._state.items():
            unused = name.startswith("stem:") and name.removeprefix("stem:") not in self._uses
            if unused and table.num_rows:
                self._made.state[name] = table.slice(0, 0)
        return self._made

    def _new(self, arc: str) -> StemSegment:
        """The tuples that arrived, with the lineage of those that can be joined."""
        fields = self._fields(arc)
        arrived = self._arrived.get(arc)
        if arrived is None:
            return _nothing()
        table = arrived.table
        at = np.arange(table.num_rows) if arrived.rows is None else arrived.rows
        lineages: dict[str, Lineage] = {}
        for group, place in self._uses[arc]:
            kind = group.places[place]
            lineage = arrived.lineages.get(kind)
            if lineage is None or not lineage.rows:
                continue
            fit = np.asarray(table["_seq"], np.int64) >= group.since
            if group.shape.kind == "range":
                fit &= self._in_order(arc, group.shape.on[place], lineage.alive() & fit)
            fit &= has_keys(table, group.keys(place))
            lineages[kind] = masked(lineage, fit)
        return new_segment(table, at + arrived.first_number + 1, fields, lineages)

    def _fields(self, arc: str) -> list[str]:
        return sorted({name for group, place in self._uses[arc] for name in group.stored(place)})

    def _in_order(self, arc: str, on: str, wanted: Mask) -> Mask:
        """Which tuples are not late; late ones that a query wanted are counted."""
        if (arc, on) not in self._judged:
            table = self._arrived[arc].table
            mark = self._marks.get((arc, on), LowWater())
            self._judged[arc, on] = OrderedArrivals.of(
                InputOrder(on), table, None, mark, self._context
            )
        judged = self._judged[arc, on]
        reasons = self._late.setdefault(arc, {})
        for number, why in enumerate(REASONS):
            if why and (judged.reason == number).any():
                late = wanted & (judged.reason == number)
                reasons[why] = reasons[why] | late if why in reasons else late
        return judged.counts

    def _join(self, join: JoinProbe, decide: Decide) -> None:
        group = join.group
        partials = join.results()
        if not partials:
            return
        table, lineage = joined_tuples(join, partials)
        lineage = decide(group, table, lineage)
        kept = np.flatnonzero(lineage.alive())
        if not len(kept):
            return
        names = [name for name in table.column_names if not name.startswith("#")]
        fields = table.select(names)
        if len(kept) < table.num_rows:
            fields, lineage = fields.take(pa.array(kept)), lineage.take(kept)
        columns = hidden_columns(join, partials, kept)
        columns |= {name: fields[name] for name in names}
        self._made.results[group.name] = pa.table(columns), lineage

    def _store(self, arc: str) -> None:
        stem = self._stems[arc]
        needed = [self._needed(arc, segment) for segment in stem.segments]
        places = list(dict.fromkeys(group.places[place] for group, place in self._uses[arc]))
        changed = stem.kept(needed, self._fields(arc), places)
        if changed is not None:
            self._made.state[state_name(arc)] = changed
        self._made.held[arc] = sum(int(mask.sum()) for mask in needed)

    def _needed(self, arc: str, segment: StemSegment) -> Mask:
        """Which tuples may still get a partner, by the largest window in use."""
        needed = np.zeros(segment.rows, bool)
        for group, place in self._uses[arc]:
            alive = segment.alive(group.places[place], group.since)
            if not alive.any():
                continue
            if group.shape.kind == "rows":
                needed |= alive & (segment.number > self._left(arc, group.rows[place]))
            else:
                needed |= alive & self._in_reach(group, place, segment)
        return needed

    def _left(self, arc: str, window: int) -> int:
        """The number of the last tuple that is not in the window any more."""
        arrived = self._arrived.get(arc)
        assert arrived is not None, f"row windows need to know how many tuples of {arc} there are"
        came: Ids | pa.Table = arrived.table if arrived.moments is None else arrived.moments
        over = ended_at(self._context) < NEVER
        return arrived.first_number + len(came) - (0 if over else window)

    def _in_reach(self, group: JoinGroup, place: int, segment: StemSegment) -> Mask:
        """Which tuples are within reach of tuples that may still arrive from another source."""
        shape, bands = group.shape, group.bands
        floats = has_floats(group, self._stems)
        on = segment.on(shape.on[place], floats)[0]
        gone = np.ones(segment.rows, bool)
        for other, arc in enumerate(shape.arcs):
            if other == place:
                continue
            mark = self._marks.get((arc, shape.on[other]), LowWater())
            value = least_at(mark, self._context.last - 1, self._context)
            band = bands[place][other]
            if place < other:
                (room,) = roomy([on], [band])
                gone &= passed(value, room + band)
            else:
                # As the band of a join of two has it, for floats round.
                below = value if value is None or value == END else value - band
                gone &= passed(below, on)
        return ~gone


def _nothing() -> StemSegment:
    none = pa.array([], pa.int64())
    table = pa.table({"_seq": none, "_ts": none})
    return new_segment(table, np.zeros(0, np.int64), (), {})
