"""The tally: how often each continuous query matched, counted exactly once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from auroral.eddy.filters.tally import Counts
from auroral.eddy.registered import NEVER
from auroral.eddy.report import Report, packed, unpacked
from auroral.storage import Change, Store

_FOLD_EVERY = 64
_QUERY, _ERRORS = "query ", "errors"


class MatchTally:
    """Matches and errors by the id of the query; kept in the manifest step by step."""

    def __init__(self, store: Store):
        self._matches = np.zeros(0, np.int64)
        self._errors: dict[int, int] = {}
        self._reasons: dict[int, str] = {}
        self.late: dict[int, dict[str, int]] = {}
        """By query and reason, how many tuples were in no window of it."""
        self._entered: list[Counts] = []
        self._kept = 0
        for ids, counts in store.manifest.tallies():
            self._add(unpacked(ids, counts))
            self._kept += 1
        for (entity, query), value in store.counters.items():
            if entity == _QUERY + _ERRORS:
                self._errors[int(query)] = value
            elif entity.startswith(_QUERY):
                self.late.setdefault(int(query), {})[entity.removeprefix(_QUERY)] = value

    def enter(self, change: Change, report: Report) -> None:
        """Put what a step counted into what it changes; it holds once that is committed."""
        counts = report.totals()
        self._entered = [counts]
        if len(counts[0]):
            self._kept += 1
            change.tally_instead = self._kept > _FOLD_EVERY
            change.tally = packed(self._all(counts) if change.tally_instead else counts)
            self._kept = 1 if change.tally_instead else self._kept
        errors = {(_QUERY + _ERRORS, str(query)): n for query, (n, _) in report.errors.items()}
        late = {(_QUERY + reason, str(query)): n for (query, reason), n in report.late.items()}
        change.counts = {**change.counts, **errors, **late}
        self._reported = report

    def committed(self) -> None:
        """What was entered last is true."""
        for counts in self._entered:
            self._add(counts)
        for query, (tuples, reason) in self._reported.errors.items():
            self._errors[query] = self._errors.get(query, 0) + tuples
            self._reasons[query] = reason
        for (query, reason), tuples in self._reported.late.items():
            held = self.late.setdefault(query, {})
            held[reason] = held.get(reason, 0) + tuples
        self._entered = []

    def forget(self, queries: Sequence[tuple[int, int]]) -> list[tuple[str, str]]:
        """Drop what was counted from ids on, of so many each; the counters the manifest has."""
        spans = sorted(queries)
        for first, count in spans:
            self._matches[first : first + count] = 0

        def is_among(query: int) -> bool:
            at = bisect_right(spans, (query, NEVER)) - 1
            return at >= 0 and query < sum(spans[at])

        found = [(_QUERY + _ERRORS, str(query)) for query in list(self._errors) if is_among(query)]
        for query in filter(is_among, list(self.late)):
            found += [(_QUERY + reason, str(query)) for reason in self.late.pop(query)]
        for gone in {int(text) for _, text in found}:
            self._errors.pop(gone, None)
            self._reasons.pop(gone, None)
        return found

    def matches(self, ids: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
        """The matches of some queries."""
        found = np.zeros(len(ids), np.int64)
        there = ids < len(self._matches)
        found[there] = self._matches[ids[there]]
        return found

    def of_one(self, query: int) -> int:
        """The matches of one query."""
        return int(self._matches[query]) if query < len(self._matches) else 0

    def errors(self, query: int) -> tuple[int, str | None]:
        """On how many tuples a query failed, and a reason."""
        return self._errors.get(query, 0), self._reasons.get(query)

    @property
    def failed(self) -> dict[int, int]:
        """The queries that failed, and on how many tuples."""
        return self._errors

    def _add(self, counts: Counts) -> None:
        ids, more = counts
        if len(ids):
            self._reach(int(ids.max()))
            np.add.at(self._matches, ids, more)

    def _reach(self, last: int) -> None:
        if last >= len(self._matches):
            grown = np.zeros(max(last + 1, 2 * len(self._matches)), np.int64)
            grown[: len(self._matches)] = self._matches
            self._matches = grown

    def _all(self, counts: Counts) -> Counts:
        """Everything so far and a step more."""
        ids, more = counts
        total = np.zeros(max(len(self._matches), int(ids.max(initial=-1)) + 1), np.int64)
        total[: len(self._matches)] = self._matches
        np.add.at(total, ids, more)
        used = np.flatnonzero(total)
        return used.astype(np.int32), total[used]
