"""What queries leave behind that are no more, until nothing is left that concerns them."""

from __future__ import annotations

import json
from collections.abc import Callable

from auroral.eddy.families import family_of
from auroral.eddy.query_index import QueryIndex
from auroral.eddy.registered import RegisteredQuery
from auroral.engine.lifecycle.pending import PendingDeliveries
from auroral.engine.queries.tally import MatchTally
from auroral.storage import HELD, Change, Forgotten, QueryRow

_OFTEN = 64
"""So many are forgotten at a time."""


class RetiredQueryCollector:
    """Queries that were removed, and entries of families that have no members any more.

    Members are removed one by one, and their ids are not given again. An entry goes with the last
    of its members: of a family whose rows come and go, some times as many are stored as there are.
    """

    def __init__(
        self,
        head: Callable[[str, str], int],
        query_index: QueryIndex,
        tally: MatchTally,
        pending: PendingDeliveries,
        rows: dict[str, QueryRow],
    ):
        self._head = head
        self._query_index = query_index
        self._tally = tally
        self._pending = pending
        self._rows = rows
        """The last of each name."""
        self.ended: list[QueryRow] = []
        """As long as tuples may wait that came before."""
        self.emptied: list[RegisteredQuery] = []
        """As long as results may wait, too."""
        self._due = _OFTEN

    def tidy(self, reached: int | None, epoch_start: int) -> tuple[Change, list[QueryRow]] | None:
        """Forget what ended before a moment; None: whatever ended.

        Boxes are there up to where all was settled last. Returns what to remember, and the rows
        whose values nobody needs after that; None if it is too early.
        """
        if len(self.ended) + len(self.emptied) < self._due:
            return None
        needed = self._pending.needs(self.ended)
        left = [row for row in self.ended if row.first not in needed]
        ended = [row for row in left if _is_over(row, epoch_start if is_boxed(row) else reached)]
        emptied = [entry for entry in self.emptied if self._may_go(entry, reached)]
        rows = [*ended, *(self._rows[entry.name] for entry in emptied)]
        for row in rows:
            if row.name in self._rows and self._rows[row.name].first == row.first:
                del self._rows[row.name]
        self._query_index.change(emptied, drafts={})
        counters = self._tally.forget([(row.first, row.count) for row in rows])
        over = {row.first for row in rows}
        self.ended = [row for row in self.ended if row.first not in over]
        self.emptied = [entry for entry in self.emptied if self._is_there(entry)]
        self._due = len(self.ended) + len(self.emptied) + _OFTEN  # others have to wait longer
        return Change(forgotten=Forgotten(counters=counters, queries=rows)), rows

    def _may_go(self, entry: RegisteredQuery, reached: int | None) -> bool:
        family = self._query_index.families.get(family_of(entry.name))
        if not self._is_there(entry) or family is None:
            return False
        if next(reversed(family.entries)) == entry.name:  # the next one is called after it
            return False
        last = max(entry.gone.values())
        taken = not entry.kept or last <= self._head(entry.log, HELD)
        return taken and (reached is None or last <= reached)

    def _is_there(self, entry: RegisteredQuery) -> bool:
        return self._query_index.entries.get(entry.name) is entry


def is_boxed(row: QueryRow) -> bool:
    """Whether a query runs as boxes."""
    return not json.loads(row.document)["shared"]


def _is_over(row: QueryRow, reached: int | None) -> bool:
    """Whether a removed query may be forgotten: one that the network declares stays away by it."""
    assert row.until is not None
    return row.declared is None and (reached is None or row.until <= reached)
