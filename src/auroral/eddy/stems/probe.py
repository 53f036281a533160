"""Probing: new tuples meet the SteMs of the other sources, one after the other.

The last of a result's parts to arrive finds the result. Tuples arrive by moment; those of one
moment by place in FROM, then by `_sub`. After every probe, what no query wants any more
is dropped. The router chooses the order of probes; it affects the number of tuples visited, not
the results.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from auroral.eddy.lineage import Lineage
from auroral.eddy.routes.probing import Order, Orders, Prober, Probes
from auroral.eddy.routes.routing import CHUNK, Visit, added
from auroral.eddy.stems.group import JoinGroup, NewTuples
from auroral.eddy.stems.index import StemIndex, form_of, keyed
from auroral.eddy.stems.lineages import encoding, stacked
from auroral.eddy.stems.state import Stem, StemSegment
from auroral.kernels.grouping import Ids
from auroral.kernels.joining.pairs import expanded
from auroral.kernels.units import Mask, roomy
from auroral.progress.lowwater import Values

_AT_ONCE = 1 << 21
"""How many candidates are looked at together."""
_SAMPLE = 256
_TOO_MANY = 1_000
"""A SteM with so many partners of each tuple is not probed before a sample was asked."""


@dataclass(frozen=True)
class Partial:
    """Tuples joined so far: for each source bound, the row of its SteM."""

    prober: int
    """The source whose new tuples look for partners."""
    rows: Mapping[int, Ids]
    lineage: Lineage

    def __len__(self) -> int:
        return len(self.rows[self.prober])


@dataclass(frozen=True)
class _Reach:
    """A segment as a place of a join sees it."""

    segment: StemSegment
    base: int
    new: bool
    lineage: Lineage
    alive: Mask
    share: float


class JoinProbe:
    """One join group at work in a step."""

    def __init__(
        self,
        group: JoinGroup,
        stems: Mapping[str, Stem],
        arrived: Mapping[str, NewTuples],
        probes: dict[Prober, Probes],
        orders: Orders | None = None,
        first_chunk: int = 0,
    ):
        self.group = group
        self.stems = [stems[arc] for arc in group.shape.arcs]
        self.floats = has_floats(group, stems)
        self._arrived = [arrived.get(arc) for arc in group.shape.arcs]
        self._probes = probes
        self._orders = orders or {}
        self._first_chunk = first_chunk
        self._reach = self._reached()

    def results(self) -> list[Partial]:
        """All that is completed by tuples of this step, apart by source of the last tuple."""
        if not all(self._reach):
            return []
        found = [made for place in range(len(self.stems)) for made in self._completed(place)]
        return [partial for partial in found if len(partial)]

    def arrived_at(self, place: int, partial: Partial) -> Ids:
        """How many tuples of a source's arc had arrived when the prober did."""
        arrived = self._arrived[place]
        assert arrived is not None
        moments = arrived.moments
        if moments is None:
            moments = np.asarray(arrived.table["_seq"], np.int64)
        stem, side = self.stems[partial.prober], "right" if place < partial.prober else "left"
        seq = stem.seq(partial.rows[partial.prober])
        return np.searchsorted(moments, seq, side=side) + arrived.first_number  # type: ignore[call-overload,no-any-return]

    def on(self, place: int, partial: Partial) -> Values:
        """The ordered attribute of a part."""
        name = self.group.shape.on[place]
        return self.stems[place].on(name, self.floats, partial.rows[place])

    def _reached(self) -> list[list[_Reach]]:
        since, places = self.group.since, self.group.places
        lineages = [
            segment.lineage(place, since)
            for stem, place in zip(self.stems, places, strict=True)
            for segment in stem.segments
        ]
        like = encoding(lineages)
        reach = []
        for stem, place in zip(self.stems, places, strict=True):
            own = []
            for n, segment in enumerate(stem.segments):
                alive = segment.alive(place, since)
                share = float(alive.mean()) if len(alive) else 0.0
                if share:
                    lineage = segment.lineage_like(place, since, like)
                    new = n == len(stem.segments) - 1
                    own.append(_Reach(segment, int(stem.bases[n]), new, lineage, alive, share))
            reach.append(own)
        return reach

    def _completed(self, place: int) -> Iterator[Partial]:
        """Results whose last tuple is of that source, apart by the order of probes."""
        own = self._reach[place][-1]
        if not own.new:
            return
        alive = np.flatnonzero(own.alive)
        for order, rows in self._routed(place, alive):
            partial = Partial(place, {place: rows + own.base}, own.lineage.take(rows))
            yield self._sent(partial, order)

    def _routed(self, place: int, rows: Ids) -> Iterator[tuple[Order, Ids]]:
        """New tuples by the order that the router has chosen for their chunk."""
        orders = list(self._orders.get((self.group.name, place), ())) or [()]
        if len(orders) == 1:
            yield orders[0], rows
            return
        chunk = (self._first_chunk + np.arange(len(rows)) // CHUNK) % len(orders)
        for order in dict.fromkeys(orders):
            chosen = [n for n, own in enumerate(orders) if own == order]
            some = rows[np.isin(chunk, chosen)]
            if len(some):
                yield order, some

    def _sent(self, partial: Partial, preferred: Order) -> Partial:
        """Let tuples probe the SteMs of all other sources."""
        tuples, went = len(partial), []
        left = [place for place in range(len(self.stems)) if place != partial.prober]
        while left:
            chosen = self._chosen(partial, left, preferred)
            left.remove(chosen)
            went.append(chosen)
            if len(partial):
                partial = self._probe(partial, chosen)
            else:
                partial = replace(partial, rows={**partial.rows, chosen: np.zeros(0, np.int64)})
        orders = self._told(partial.prober).orders
        orders[tuple(went)] = orders.get(tuple(went), 0) + tuples
        return partial

    def _told(self, prober: int) -> Probes:
        return self._probes.setdefault((self.group.name, prober), Probes())

    def _chosen(self, partial: Partial, left: Sequence[int], preferred: Order) -> int:
        """The next SteM: the first preferred one that can be, or the one that a sample chooses."""
        legal = self.group.reachable(partial.rows, left) if preferred else left
        if len(legal) == 1 or not len(partial):
            return legal[0]
        some, every = self._sample(partial)
        for place in preferred:
            if place in legal:
                expected = every * self._expected(some, place)
                if expected <= max(_AT_ONCE, _TOO_MANY * len(partial)):
                    return place
                break
        return min(left, key=lambda place: (self._expected(some, place), place))

    def _sample(self, partial: Partial) -> tuple[Partial, int]:
        """Some of the tuples, without lineage, and for how many each of them stands."""
        step = -(-len(partial) // _SAMPLE)
        rows = {place: own[::step] for place, own in partial.rows.items()}
        return Partial(partial.prober, rows, Lineage.none(0)), step

    def _expected(self, some: Partial, place: int) -> float:
        """About how many partners tuples have in a SteM."""
        found = ((reach, self._lookup(some, place, reach)) for reach in self._reach[place])
        return sum(reach.share * float((end - begin).sum()) for reach, (_, begin, end) in found)

    def _probe(self, partial: Partial, place: int) -> Partial:
        """Bind one more source."""
        started = time.perf_counter()
        found = [
            piece for reach in self._reach[place] for piece in self._matches(partial, place, reach)
        ]
        at = np.concatenate([np.zeros(0, np.int64), *(at for at, _, _ in found)])
        rows = {bound: own[at] for bound, own in partial.rows.items()}
        rows[place] = np.concatenate([np.zeros(0, np.int64), *(own for _, own, _ in found)])
        made = Partial(partial.prober, rows, stacked([lineage for _, _, lineage in found]))
        stems = self._told(partial.prober).stems
        visit = Visit(len(partial), len(made), time.perf_counter() - started)
        stems[place] = added(stems.get(place), visit)
        return made

    def _matches(
        self, partial: Partial, place: int, reach: _Reach
    ) -> Iterator[tuple[Ids, Ids, Lineage]]:
        """Tuples that have partners in a segment, the partners, and the lineage of each pair."""
        index, begin, end = self._lookup(partial, place, reach)
        for start, stop in _slices(end - begin):
            at, found = expanded(begin[start:stop], end[start:stop])
            at, own = at + start, index.rows[found]
            for kept in self._tests(partial, place, reach):
                chosen = kept(at, own)
                at, own = at[chosen], own[chosen]
            if not len(at):
                continue
            lineage = partial.lineage.take(at).intersect(reach.lineage.take(own))
            alive = lineage.alive()
            if not alive.all():
                left = np.flatnonzero(alive)
                at, own, lineage = at[left], own[left], lineage.take(left)
            yield at, own + reach.base, lineage

    def _lookup(self, partial: Partial, place: int, reach: _Reach) -> tuple[StemIndex, Ids, Ids]:
        """Where in an index of a segment the candidates of each tuple are."""
        stem, shape = self.stems[place], self.group.shape
        compared = []
        for i, one, j, other in shape.equal:
            for own, name, bound, theirs in ((i, one, j, other), (j, other, i, one)):
                if own == place and bound in partial.rows:
                    form = form_of(stem.type_of(name), self.stems[bound].type_of(theirs))
                    compared.append((name, form, bound, theirs))
        compared.sort(key=lambda each: (each[0], str(each[1])))
        keys = tuple((name, form) for name, form, _, _ in compared)
        on = None if shape.kind == "rows" else shape.on[place]
        wanted = [
            keyed(self.stems[bound].column(theirs, partial.rows[bound]), form)
            for _, form, bound, theirs in compared
        ]
        index = reach.segment.index(keys, on, self.floats, wanted)
        return index, *index.find(index.codes(wanted), *self._bounds(partial, place))

    def _bounds(self, partial: Partial, place: int) -> tuple[Values, Values]:
        """The bounds of the partners' numbers of arrival, or of their values."""
        if self.group.shape.kind == "rows":
            arrived = self.arrived_at(place, partial)
            return arrived - self.group.rows[place] + 1, arrived
        bands = self.group.bands
        low, high = [], []
        for bound in partial.rows:
            before, after = bands[place][bound], bands[bound][place]
            (on,) = roomy([self.on(bound, partial)], [before, after])
            room: Any = 0
            if self.floats:
                # Sums are rounded: look around, the exact test comes later.
                room = 4 * np.finfo(np.float64).eps * (np.abs(on) + abs(before) + abs(after))
            low.append(on - before - room)
            high.append(on + after + room)
        return _most(low, np.maximum), _most(high, np.minimum)

    def _tests(self, partial: Partial, place: int, reach: _Reach) -> Iterator[Any]:
        """The conditions that candidates from the index must also satisfy."""
        yield lambda _, own: reach.alive[own]
        if self.group.shape.kind == "rows":
            return
        if reach.new:
            prober = partial.prober
            seq = self.stems[prober].seq(partial.rows[prober])
            earlier = np.less_equal if place < prober else np.less
            yield lambda at, own: earlier(reach.segment.seq[own], seq[at])
        if self.floats:
            theirs = reach.segment.on(self.group.shape.on[place], True)[0]
            for bound in partial.rows:
                on = self.on(bound, partial)
                yield lambda at, own, on=on, bound=bound: self._near(
                    bound, on[at], place, theirs[own]
                )

    def _near(self, one: int, on: Values, other: int, theirs: Values) -> Mask:
        """Whether values lie in the band, as a join of two has it: counted from the first."""
        if one > other:
            one, on, other, theirs = other, theirs, one, on
        bands = self.group.bands
        return np.asarray((on - bands[other][one] <= theirs) & (theirs <= on + bands[one][other]))


def has_floats(group: JoinGroup, stems: Mapping[str, Stem]) -> bool:
    """Whether a band lies on floats: then all values are compared as such."""
    pairs = zip(group.shape.arcs, group.shape.on, strict=False)
    return any(pa.types.is_floating(stems[arc].type_of(on)) for arc, on in pairs)


def _most(values: Sequence[Values], of: Any) -> Values:
    made = values[0]
    for more in values[1:]:
        made = of(made, more)
    return made


def _slices(counts: Ids) -> Iterator[tuple[int, int]]:
    """Ranges that have not too many candidates together."""
    ends = np.cumsum(counts)
    if not len(counts) or not ends[-1]:
        return
    start = 0
    while start < len(counts):
        before = int(ends[start - 1]) if start else 0
        stop = max(int(np.searchsorted(ends, before + _AT_ONCE, side="right")), start + 1)
        yield start, stop
        start = stop
