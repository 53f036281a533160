"""Send the tuples of a chunk through the grouped filters of a block of queries."""

from __future__ import annotations

from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from auroral.eddy import positional
from auroral.eddy.bitmap import BitmapSelection
from auroral.eddy.filters.grouped import AttributeFilter, QueryBlock
from auroral.eddy.filters.keys import Mask
from auroral.eddy.filters.portion import Portion
from auroral.eddy.filters.residue import settle
from auroral.eddy.filters.stops import Stop, Wanting, stops
from auroral.eddy.filters.tally import At, Errors, VisitTally, add_errors

Words = NDArray[np.uint64]

_ALL = slice(None)
_SPARSE = 0.5
"""Work goes on with the rows that need it alone if they are fewer than this part of all."""


class Passage:
    """Tuples of a chunk and the queries of a block that each may still satisfy.

    A predicate that could not be evaluated leaves its query alive but marked as failed. Failures
    are settled at the end, so that errors do not depend on the order of operators.
    """

    def __init__(
        self,
        block: QueryBlock,
        portion: Portion,
        tally: VisitTally,
        live: Words,
        out: Words,
        own: Mask | None = None,
    ):
        self.block = block
        self.portion = portion
        self.tally = tally
        self.live = live
        """The queries there are, as bits."""
        self.out = out
        """Takes the lineage, a row per tuple."""
        self.state = out
        self.rows: At | None = None
        """Which tuples the rows of `state` are; None: all of the chunk."""
        self.sample: At | slice = tally.sample
        """The rows of `state` that visits are told of; a guess at all of them, too."""
        if own is not None:
            out[:] = 0
            self.rows = np.flatnonzero(own)
            self.state = np.empty((len(self.rows), out.shape[1]), np.uint64)
            self._find_sample()
        self.fresh = True
        """Whether no row was written yet: every query lives in every row."""
        self.planes: list[Words | None] = [None] * len(block.absent)
        """Of each disjunction over several attributes the queries for which it is true."""
        self.at_fault: Words | None = None
        self.doubtful: dict[int, Words] = {}
        """By plane the queries of whose disjunction some part could not be evaluated."""
        self.reasons: list[tuple[Words, str]] = []
        """Why predicates could not be evaluated, and the queries that have them."""

    def run(self, errors: Errors) -> None:
        """Visit the operators in order and write the lineage."""
        for stop in stops(self.block, tuple(self.tally.order)):
            started = perf_counter()
            if stop.filters:
                self._visit(stop)
                further = dict(stop.after.planes)
                for plane, _ in stop.here.planes:
                    self._complete(plane, further.get(plane))
            elif self.tally.all_returned(stop.name):
                continue
            self._after(stop)
            self.tally.spend(stop.name, perf_counter() - started)
        self._begin()
        for plane, true in enumerate(self.planes):
            if true is None:
                self._complete(plane, None)
        if self.rows is not None:
            self.out[self.rows] = self.state
            if self.at_fault is not None:
                whole = np.zeros_like(self.out)
                whole[self.rows] = self.at_fault
                self.at_fault = whole
        if self.block.residues:
            self.at_fault = settle(self.block, self.portion, self.out, self.at_fault, self.reasons)
        self._blame(errors)

    def _begin(self) -> None:
        if self.fresh:
            self.state[:] = self.live
            self.fresh = False

    def _visit(self, stop: Stop) -> None:
        """Send the tuples to an operator for which they have a live query."""
        at: At | None = None
        if self.fresh:
            if not (self.live & stop.here.every).any():
                return
            self.tally.routed(stop.name, self.rows)
        elif stop.computed or not self.tally.all_routed(stop.name):
            some = self._wanting(stop.here, self.sample)
            self.tally.routed(stop.name, self._sampled(some))
            if stop.computed or np.count_nonzero(some) <= _SPARSE * len(some):
                at = np.flatnonzero(self._wanting(stop.here))
                if not len(at):
                    return
                most = len(self.state) - 1 if stop.computed else _SPARSE * len(self.state)
                at = None if len(at) > most else at
        for each in stop.filters:
            self._apply(each, at)

    def _apply(self, filter: AttributeFilter, at: At | None) -> None:
        codes, failed = self.portion.codes(filter.attribute, filter.domain, self._tuples(at))
        rows = filter.rows_of(codes)
        faulty = None if failed is None else np.flatnonzero(failed)
        if faulty is not None:
            self._fail(filter, faulty if at is None else at[faulty])
        if filter.table is not None:
            self._restrict(filter.table, rows, at, faulty)
        for plane, (table, _) in filter.planes.items():
            true = table.take(rows, axis=0)
            if faulty is not None:
                true[faulty] = 0
            kept = self._plane(plane)
            if at is None:
                kept |= true
            else:
                kept[at] |= true

    def _restrict(self, table: Words, rows: At, at: At | None, faulty: At | None) -> None:
        if self.fresh and faulty is None and at is None:
            # Nothing is known yet, so the rows of the table are the state.
            np.take(table, rows, axis=0, out=self.state, mode="clip")
            self.fresh = False
            if not np.array_equal(self.live, self.block.every):
                self.state &= self.live
            return
        self._begin()
        true = table.take(rows, axis=0, mode="clip")
        if faulty is not None:
            true[faulty] = ~np.uint64(0)
        if at is None:
            self.state &= true
        else:
            self.state[at] &= true

    def _fail(self, filter: AttributeFilter, at: At) -> None:
        """Mark queries whose predicates could not be evaluated in these rows."""
        self._begin()
        asking = np.bitwise_or.reduce([filter.mask, *(own for _, own in filter.planes.values())])
        self.reasons.append((asking, self.portion.reasons.get(filter.attribute.text, "")))
        if self.at_fault is None:
            self.at_fault = np.zeros_like(self.state)
        self.at_fault[at] |= self.state[at] & filter.mask
        for plane, (_, looked) in filter.planes.items():
            doubtful = self.doubtful.setdefault(plane, np.zeros_like(self.state))
            doubtful[at] |= looked

    def _plane(self, plane: int) -> Words:
        found = self.planes[plane]
        if found is None:
            self._begin()
            found = np.empty_like(self.state)
            found[:] = self.block.absent[plane]
            self.planes[plane] = found
        return found

    def _complete(self, plane: int, further: Words | None) -> None:
        """Remove queries whose disjunction is false and has no attribute left to decide it."""
        self._begin()
        true = self._plane(plane)
        if further is not None:
            true = true | further
        if plane in self.doubtful:
            doubtful = self.doubtful[plane] & ~true
            if self.at_fault is None:
                self.at_fault = np.zeros_like(self.state)
            self.at_fault |= self.state & doubtful
            true = true | doubtful
        self.state &= true

    def _wanting(self, wanting: Wanting, at: At | slice = _ALL) -> Mask:
        """Which of some rows have a live query with a clause to be decided there."""
        state = self.state[at]
        found = wanting.asked.any_bit(state)
        for plane, looked in wanting.planes:
            left = np.flatnonzero(~found)
            if not len(left):
                break
            open_ = state[left] & ~self._plane(plane)[at][left]
            found[left] = BitmapSelection.of(looked).any_bit(open_)
        return found

    def _after(self, stop: Stop) -> None:
        """Find the tuples with queries left to decide; continue with only these if they are few."""
        counted = not self.tally.all_returned(stop.name)
        if self.fresh:
            if counted and (self.live & stop.own.every).any():
                self.tally.returned(stop.name, self.rows)
            return
        some = self._wanting(stop.after, self.sample)
        if counted:
            own = some if stop.own is stop.after else self._wanting(stop.own, self.sample)
            self.tally.returned(stop.name, self._sampled(own))
        if np.count_nonzero(some) <= _SPARSE * len(some):
            wanting = self._wanting(stop.after)
            if np.count_nonzero(wanting) <= _SPARSE * len(wanting):
                self._compress(np.flatnonzero(wanting))

    def _compress(self, at: At) -> None:
        """Continue with some rows; the results of the others are final."""
        if self.at_fault is not None:
            # Rows at fault are few, and not final before the end: keep all.
            return
        if self.rows is not None:
            self.out[self.rows] = self.state
        self.rows = at if self.rows is None else self.rows[at]
        self.state = self.state[at]
        self.planes = [None if plane is None else plane[at] for plane in self.planes]
        self.doubtful = {plane: bits[at] for plane, bits in self.doubtful.items()}
        self._find_sample()

    def _find_sample(self) -> None:
        assert self.rows is not None
        self.sample = np.flatnonzero(self.rows % (self.tally.sample.step or 1) == 0)

    def _sampled(self, chosen: Mask) -> At | None:
        """The tuples of some rows of the sample; None if they are all of the chunk."""
        if self.rows is None and chosen.all():
            return None
        at = np.arange(len(self.state))[self.sample][chosen]
        return at if self.rows is None else self.rows[at]

    def _tuples(self, at: At | None) -> At | None:
        """The tuples of rows of the state; None if they are all of the chunk."""
        if self.rows is None:
            return at
        return self.rows if at is None else self.rows[at]

    def _blame(self, errors: Errors) -> None:
        if self.at_fault is None:
            return
        bad = self.out & self.at_fault
        ids = self.block.ids
        counts = positional.counts(bad)[: len(ids)]
        for asking, reason in self.reasons:
            mine = np.unpackbits(asking.view(np.uint8), bitorder="little")[: len(ids)]
            told = np.flatnonzero(mine & (counts > 0))
            add_errors(errors, self.block.kind, ids[told], counts[told], reason)
            counts[told] = 0
        self.out &= ~self.at_fault
