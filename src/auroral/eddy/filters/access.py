"""Access predicates: each selective query is filed under its most selective clause.

The work per tuple then depends on the number of queries it matches, not on the number of all
queries. The lookup gives candidate pairs of tuples and queries; the queries' other clauses are
verified for these pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from auroral.eddy.bitmap import Ids, Pairs, distinct
from auroral.eddy.filters.arms import Arm
from auroral.eddy.filters.keys import Mask
from auroral.eddy.filters.portion import Portion
from auroral.eddy.filters.selections import Disjunction
from auroral.eddy.filters.tally import At, Errors, VisitTally, add_errors
from auroral.eddy.filters.verification import Verifier


@dataclass(frozen=True)
class Access:
    """Queries of one selection, filed."""

    kind: str
    ids: Ids
    arms: tuple[Arm, ...]
    """A clause over several attributes has one for each; they may find a query twice."""
    verifier: Verifier

    def run(
        self,
        portion: Portion,
        tally: VisitTally,
        removed: Ids | None,
        own: Mask | None,
        errors: Errors,
    ) -> list[Pairs]:
        """Rows and query ids of all matches among these tuples (None: all tuples)."""
        found: list[Pairs] = []
        failures = _Failures()
        clauses = self._ordered(tally.order)
        for arm in self.arms:
            tally.routed(arm.name, None if own is None else np.flatnonzero(own))
            started = perf_counter()
            for rows, queries in arm.candidates(portion):
                if removed is not None and len(removed):
                    stay = ~np.isin(self.ids[queries], removed)
                    rows, queries = rows[stay], queries[stay]
                if own is not None:
                    rows, queries = rows[own[rows]], queries[own[rows]]
                tally.returned(arm.name, rows)
                tally.spend(arm.name, perf_counter() - started)
                rows, queries = self._verified(clauses, portion, tally, (rows, queries), failures)
                found.append((rows << 32) | self.ids[queries])
                started = perf_counter()
            tally.spend(arm.name, perf_counter() - started)
        failures.report(self.kind, self.ids, errors)
        return found

    def _ordered(self, order: Sequence[str]) -> list[Disjunction]:
        """The clauses to verify, in the order of operators; those that hold constants last."""
        place = {name: at for at, name in enumerate(order)}

        def key(clause: Disjunction) -> tuple[bool, int]:
            places = [place.get(text, len(order)) for text, _ in clause.domains]
            return clause.in_pairs, max(places, default=0)

        return sorted(self.verifier.clauses, key=key)

    def _verified(
        self,
        clauses: list[Disjunction],
        portion: Portion,
        tally: VisitTally,
        pairs: tuple[At, At],
        failures: _Failures,
    ) -> tuple[At, At]:
        rows, queries = pairs
        at_fault = np.zeros(len(rows), bool)
        for clause in clauses:
            started = perf_counter()
            names = [text for text, _ in clause.domains if text in tally.order]
            for name in names:
                tally.routed(name, rows)
            true, failed, reason = self.verifier.decide(clause, portion, rows, queries)
            if failed is not None:
                at_fault |= failed
                true |= failed
                failures.reason = failures.reason or reason or ""
            rows, queries, at_fault = rows[true], queries[true], at_fault[true]
            for name in names:
                tally.returned(name, rows)
                tally.spend(name, (perf_counter() - started) / len(names))
        if not at_fault.any():
            return rows, queries
        failures.pairs.append((rows[at_fault] << 32) | queries[at_fault])
        return rows[~at_fault], queries[~at_fault]


class _Failures:
    """Pairs that fail because a value could not be computed; each counts once, even if several arms
    find it."""

    def __init__(self) -> None:
        self.pairs: list[Pairs] = []
        self.reason = ""

    def report(self, kind: str, ids: Ids, errors: Errors) -> None:
        if self.pairs:
            pairs = distinct(np.concatenate(self.pairs))
            queries, counts = np.unique(pairs & 0x7FFFFFFF, return_counts=True)
            add_errors(errors, kind, ids[queries], counts, self.reason)
