"""Taking results page by page, so that a request that fails loses none of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import pyarrow as pa

PAGE = 100_000
"""The most rows or names of one answer."""


class PageTaker:
    """Takes what one output gives; pages that a failed call has got are given by the next one.

    Turns are numbered: the server gives the rows of a turn again until a later one is asked for.
    """

    def __init__(self, ask: Callable[[int, int], pa.Table]):
        """`ask` gives the rows of a turn, given its number and how many rows are wanted."""
        self._ask = ask
        self._lock = threading.Lock()
        self._turn = 0
        self._asked: int | None = None
        """How many rows the turn wants that was asked for and has not been answered."""
        self._kept: list[pa.Table] = []

    def take(self, limit: int | None, page: int) -> pa.Table:
        """All that there is, or as much as is wanted; whole steps, so perhaps some more."""
        with self._lock:
            pages, full = self._kept, True
            while full and not _is_enough(pages, limit):
                if self._asked is None:
                    left = page if limit is None else limit - _rows(pages)
                    self._asked = min(left, page)
                pages.append(self._ask(self._turn, self._asked))
                # Results of one step stay together, so there may be some more than asked for.
                full = pages[-1].num_rows >= self._asked
                self._asked, self._turn = None, self._turn + 1
            count = _together(pages, limit)
            self._kept = pages[count:]
            return pages[0] if count == 1 else pa.concat_tables(pages[:count])


def _rows(pages: Sequence[pa.Table]) -> int:
    return sum(page.num_rows for page in pages)


def _is_enough(pages: Sequence[pa.Table], limit: int | None) -> bool:
    return bool(pages) and limit is not None and _rows(pages) >= limit


def _together(pages: Sequence[pa.Table], limit: int | None) -> int:
    """How many pages make the answer: of the same fields, and as many as are wanted."""
    count = 1
    while count < len(pages) and pages[count].schema == pages[0].schema:
        if _is_enough(pages[:count], limit):
            break
        count += 1
    return count
