"""Choose the clause that each query is filed under, and file the queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auroral.eddy.filters.access import Access
from auroral.eddy.filters.arms import Arm, Fused, filed_equal, filed_ranges, lists
from auroral.eddy.filters.domains import Domain
from auroral.eddy.filters.selections import (
    Constants,
    Disjunction,
    Selection,
    Statistics,
    Test,
    constants_of,
)
from auroral.eddy.filters.selectivity import Fractions, Sample, may_pay, pays, variety
from auroral.eddy.filters.tally import At
from auroral.eddy.filters.verification import Verifier

_LOWER = (">", ">=")
_UPPER = ("<", "<=")


@dataclass(frozen=True)
class FilingPlan:
    """A way to file queries, and for each the fraction of tuples that will look at it."""

    fractions: Fractions
    equal: Disjunction | None
    ranges: tuple[Test, ...]
    """A lower and an upper bound on one attribute, if there is no equality."""
    fused: Disjunction | None
    """The bound that orders the queries of a list."""
    constants: int
    """How many different ones there are, at most."""


def plan(
    selection: Selection, clauses: Sequence[Disjunction], statistics: Statistics
) -> tuple[FilingPlan | None, NDArray[np.bool_]]:
    """The best way to file a selection, and for which of its queries it pays."""
    nobody = np.zeros(len(selection.ids), bool)
    if not may_pay(len(selection.ids)):
        return None, nobody
    weigh = _Weigh(selection, statistics)
    usable = [c for c in clauses if all(_usable(test) for test in c.tests) and c.tests]
    bounds = [c for c in usable if len(c.tests) == 1 and c.tests[0].atom.op in (*_LOWER, *_UPPER)]
    bounds = [c for c in bounds if _is_number(c.tests[0])]
    fused = min(bounds, key=lambda c: float(weigh(c.tests[0]).mean()), default=None)
    plans: list[FilingPlan] = []
    for clause in usable:
        if all(test.atom.op in ("=", "in") for test in clause.tests):
            fractions = np.minimum(sum((weigh(t) for t in clause.tests), np.zeros(1)), 1.0)
            if fused is not None:
                fractions = fractions * weigh(fused.tests[0])
            count = max(weigh.variety(test) for test in clause.tests)
            plans.append(FilingPlan(fractions, clause, (), fused, count))
    for lower in bounds:
        for upper in bounds:
            low, high = lower.tests[0], upper.tests[0]
            if low.atom.op in _LOWER and high.atom.op in _UPPER and low.domain == high.domain:
                plans.append(
                    FilingPlan(
                        weigh.between(low, high), None, (low, high), lower, len(selection.ids)
                    )
                )
    if fused is not None:
        plans.append(FilingPlan(weigh(fused.tests[0]), None, (), fused, len(selection.ids)))
    if not plans:
        return None, nobody
    best = min(plans, key=lambda p: float(p.fractions.mean()))
    return best, pays(best.fractions, best.constants)


def filed(selection: Selection, clauses: Sequence[Disjunction], how: FilingPlan) -> Access:
    """File the queries of a selection."""
    constants = Prepared(selection)
    decided: list[Disjunction] = []
    entries: list[tuple[Test, Domain | None, At, At]] = []
    if how.equal is not None:
        decided.append(how.equal)
        for test in how.equal.tests:
            assert test.scale is not None
            entries.append((test, *filed_equal(constants(test), test.scale)))
    elif how.ranges:
        low, high = how.ranges
        assert low.scale is not None
        entries.append((low, *filed_ranges(constants(low), constants(high), low.scale)))
    else:
        assert how.fused is not None
        everyone = np.arange(len(selection.ids))
        entries.append((how.fused.tests[0], None, np.zeros_like(everyone), everyone))
    if how.fused is not None:
        decided.append(how.fused)
    alone = len(entries) == 1 and how.equal is not None and how.equal.tests[0].atom.op == "="
    alone = alone or (how.equal is None and not how.ranges)
    arms = [
        _arm(test, domain, region, owner, how.fused, constants)
        for test, domain, region, owner in entries
    ]
    if alone:
        # A query is one entry: calling queries by entry spares a look at whose it is.
        queries = arms[0].queries
        assert queries is not None
        selection = selection.take(queries.astype(np.intp))
        arms = [Arm(a.attribute, a.domain, a.starts, None, a.fused) for a in arms]
    rest = [clause for clause in clauses if clause not in decided]
    return Access(selection.kind, selection.ids, tuple(arms), Verifier(rest, selection))


def _arm(
    test: Test,
    domain: Domain | None,
    region: At,
    owner: At,
    fused: Disjunction | None,
    constants: Prepared,
) -> Arm:
    attribute = test.atom.attribute
    regions = 1 if domain is None else domain.regions
    if fused is None:
        starts, _, queries = lists(region, owner, regions, None)
        return Arm(attribute, domain, starts, queries.astype(np.int32), None)
    bound = fused.tests[0]
    assert bound.scale is not None
    made = constants(bound)
    there = ~made.never[owner]
    region, owner = region[there], owner[there]
    keys = made.keys.data[owner]
    starts, order, queries = lists(region, owner, regions, keys)
    second = Fused(bound.atom.attribute, bound.scale, bound.atom.op, keys[order])
    return Arm(attribute, domain, starts, queries.astype(np.int32), second)


def _usable(test: Test) -> bool:
    return not test.in_pairs and not test.atom.attribute.costly


def _is_number(test: Test) -> bool:
    scale = test.scale or "bytes"
    return scale in ("int", "float", "time") or scale.startswith("decimal")


class Prepared:
    """The constants of tests, computed once."""

    def __init__(self, selection: Selection):
        self._selection = selection
        self._made: dict[Test, Constants] = {}

    def __call__(self, test: Test) -> Constants:
        if test not in self._made:
            atom = test.atom
            assert atom.slot is not None
            assert test.scale is not None
            values = self._selection.constant(atom.slot)
            self._made[test] = constants_of(values, atom.op, test.scale)
        return self._made[test]


class _Weigh:
    """The fraction of tuples that satisfy tests, from the statistics."""

    def __init__(self, selection: Selection, statistics: Statistics):
        self._constants = Prepared(selection)
        self._statistics = statistics
        self._samples: dict[tuple[str, str], Sample] = {}

    def __call__(self, test: Test) -> Fractions:
        return self._sample(test).fraction(test.atom.op, self._constants(test))

    def variety(self, test: Test) -> int:
        """How many different constants a test has."""
        return variety(self._constants(test).keys)

    def between(self, low: Test, high: Test) -> Fractions:
        """The fraction that satisfies both bounds."""
        return self._sample(low).between(self._constants(low).keys, self._constants(high).keys)

    def _sample(self, test: Test) -> Sample:
        if test.domain not in self._samples:
            assert test.scale is not None
            attribute = test.atom.attribute
            values = self._statistics.samples.get(attribute.text)
            self._samples[test.domain] = Sample(values, test.scale)
        return self._samples[test.domain]
