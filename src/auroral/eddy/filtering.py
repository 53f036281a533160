"""Tuples of a chunk on their way through the grouped filters of a block of queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from auroral.eddy import positional
from auroral.eddy.bitmap import any_bit
from auroral.eddy.grouped import Block, Filter
from auroral.eddy.keys import Mask
from auroral.eddy.portion import Portion
from auroral.eddy.residue import settle
from auroral.eddy.tally import At, Errors, Tally, add_errors

Words = NDArray[np.uint64]

_SPARSE = 0.5
"""Work goes on with the rows that need it alone if they are fewer than this part of all."""

_LOOK = 128
"""How many rows are looked at to guess how many need more work."""


class Passage:
    """Tuples of a chunk and which queries of a block each may still satisfy.

    Predicates that could not be evaluated leave their query alive but at fault: it is decided at
    the end, so that errors are the same whatever the order of operators.
    """

    def __init__(self, block: Block, portion: Portion, tally: Tally, live: Words, out: Words):
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
        self.fresh = True
        """Whether no row was written yet: every query lives in every row."""
        self.planes: list[Words | None] = [None] * len(block.absent)
        """Of each disjunction over several attributes the queries for which it is true."""
        self.at_fault: Words | None = None
        self.doubtful: dict[int, Words] = {}
        """By plane the queries of whose disjunction some part could not be evaluated."""
        self.reason = ""

    def run(self, errors: Errors) -> None:
        """Visit the operators in order and write the lineage."""
        order = self.tally.order
        filters = self.block.filters
        ahead = _ahead(order, filters, len(self.block.absent))
        for position, name in enumerate(order):
            started = perf_counter()
            if name in filters:
                self._visit(name)
                further = dict(ahead[position].planes)
                for plane in {plane for each in filters[name] for plane in each.planes}:
                    self._complete(plane, further.get(plane))
            elif self.tally.all_returned(name):
                continue
            self._after(name, ahead[position])
            self.tally.spend(name, perf_counter() - started)
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
            self.at_fault, self.reason = settle(
                self.block, self.portion, self.out, self.at_fault, self.reason
            )
        self._blame(errors)

    def _begin(self) -> None:
        if self.fresh:
            self.state[:] = self.live
            self.fresh = False

    def _visit(self, name: str) -> None:
        """Send the tuples to an operator for which they have a live query."""
        filters = self.block.filters[name]
        mask = np.bitwise_or.reduce([each.mask for each in filters])
        planes = [(plane, looked) for each in filters for plane, (_, looked) in each.planes.items()]
        computed = filters[0].attribute.field is None
        at: At | None = None
        if self.fresh:
            wanted = mask.copy()
            for _, looked in planes:
                wanted |= looked
            if not (self.live & wanted).any():
                return
        elif computed or not self.tally.all_routed(name):
            wanting = self._wanting(mask, planes)
            at = np.flatnonzero(wanting)
            if len(at) == len(wanting):
                at = None
            elif not len(at):
                return
        self.tally.routed(name, self._tuples(at))
        if not computed and at is not None and len(at) > _SPARSE * len(self.state):
            at = None
        for each in filters:
            self._apply(each, at)

    def _apply(self, filter: Filter, at: At | None) -> None:
        regions, failed = self.portion.regions(filter.attribute, filter.domain, self._tuples(at))
        rows = filter.rows_of(regions)
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

    def _fail(self, filter: Filter, at: At) -> None:
        """Predicates could not be evaluated in those rows."""
        self._begin()
        text = filter.attribute.text
        self.reason = self.reason or self.portion.reasons.get(text, "")
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
        """Queries are out whose disjunction is false and that look for it no further."""
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

    def _wanting(self, mask: Words, planes: list[tuple[int, Words]]) -> Mask:
        """Which rows have a live query with a clause to be decided there."""
        found = any_bit(self.state, mask)
        for plane, looked in planes:
            left = np.flatnonzero(~found)
            if not len(left):
                break
            open_ = self.state[left] & ~self._plane(plane)[left]
            found[left] = any_bit(open_, looked)
        return found

    def _after(self, name: str, ahead: _Ahead) -> None:
        """Note which tuples have queries left to decide; go on with them if they are few."""
        counted = not self.tally.all_returned(name)
        if self.fresh:
            wanted = ahead.own.copy()
            for _, looked in ahead.own_planes:
                wanted |= looked
            if counted and (self.live & wanted).any():
                self.tally.returned(name, None)
            return
        if not len(self.state):
            return
        if not counted:
            # Other queries hold on to every tuple: a look at some rows tells whether it is worth
            # the time to find out which this block could leave.
            some = any_bit(self.state[:: max(1, len(self.state) // _LOOK)], ahead.mask)
            if np.count_nonzero(some) > _SPARSE * len(some):
                return
        wanting = self._wanting(ahead.mask, ahead.planes)
        if counted:
            own = self._wanting(ahead.own, ahead.own_planes)
            self.tally.returned(name, self._tuples(None if own.all() else np.flatnonzero(own)))
        at = np.flatnonzero(wanting)
        if len(at) <= _SPARSE * len(wanting):
            self._compress(at)

    def _compress(self, at: At) -> None:
        """Go on with some rows; what is known of the others is final."""
        if self.at_fault is not None:
            # Rows at fault are few, and not final before the end: keep all.
            return
        if self.rows is not None:
            self.out[self.rows] = self.state
        self.rows = at if self.rows is None else self.rows[at]
        self.state = self.state[at]
        self.planes = [None if plane is None else plane[at] for plane in self.planes]
        self.doubtful = {plane: bits[at] for plane, bits in self.doubtful.items()}

    def _tuples(self, at: At | None) -> At | None:
        """The tuples of rows of the state; None if they are all of the chunk."""
        if self.rows is None:
            return at
        return self.rows if at is None else self.rows[at]

    def _blame(self, errors: Errors) -> None:
        if self.at_fault is None:
            return
        bad = self.out & self.at_fault
        counts = positional.counts(bad)[: len(self.block.ids)]
        add_errors(errors, self.block.kind, self.block.ids, counts, self.reason)
        self.out &= ~self.at_fault


@dataclass(frozen=True)
class _Ahead:
    """Queries that matter after an operator: that look there, or have clauses further on.

    Disjunctions further on are apart: of them only those count that are not true yet. `own` leaves
    out what is further on and concerns none of the operator's queries: that it cannot spare.
    """

    mask: Words
    planes: list[tuple[int, Words]]
    own: Words
    own_planes: list[tuple[int, Words]]


def _ahead(
    order: Sequence[str], filters: Mapping[str, tuple[Filter, ...]], planes: int
) -> list[_Ahead]:
    """What matters after each operator of the order."""
    width = next((len(each.mask) for made in filters.values() for each in made), 1)
    mask = np.zeros(width, np.uint64)
    looked = [np.zeros(width, np.uint64) for _ in range(planes)]
    later: list[tuple[Words, Mapping[int, Words]]] = []
    found: list[_Ahead] = []
    for name in reversed(order):
        here, plain = mask, np.zeros(width, np.uint64)
        mine = np.zeros(width, np.uint64)
        looks: dict[int, Words] = {}
        further = [(plane, look) for plane, look in enumerate(looked) if look.any()]
        for each in filters.get(name, ()):
            mask = mask | each.mask
            here, plain, mine = here | each.mask, plain | each.mask, mine | each.mask
            for plane, (_, look) in each.planes.items():
                looked[plane] = looked[plane] | look
                looks[plane] = looks.get(plane, np.zeros(width, np.uint64)) | look
                here, mine = here | look, mine | look
        own, own_planes = mine, []
        for filtered, seen in later:
            every = filtered
            for look in seen.values():
                every = every | look
            if (every & mine).any():
                own = own | filtered
                own_planes += list(seen.items())
        found.append(_Ahead(here, further, own, own_planes))
        later.append((plain, looks))
    return found[::-1]
