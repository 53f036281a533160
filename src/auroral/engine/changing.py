"""Changing the queries of a running network: when it is done, and what is done before it."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from auroral.engine.ingest import Ingest
from auroral.engine.loop import Loop
from auroral.engine.queries import Queries
from auroral.engine.works import rebuild


class Changing:
    """Adds and removes queries, one call after the other.

    Most changes are true from the next tuple on, and nobody waits. If boxes come or go, or a sink
    has still to get what a query gave, everything that has arrived is processed first.
    """

    def __init__(self, queries: Queries, ingest: Ingest, loop: Loop):
        self._queries = queries
        self._ingest = ingest
        self._loop = loop
        self.lock = threading.RLock()
        """Held during a change."""

    def change(
        self, add: Mapping[str, Any], remove: Sequence[str], *, declared: bool = False
    ) -> None:
        """Make a change; `declared` if it is the network that says so."""
        with self.lock:
            self._loop.require_going()
            with self._loop.failing():
                self._queries.tidy()
            done = self._try(add, remove, declared)
        if not done:
            self._loop.require_going()  # threads that change and change would keep it from ending
            with self._loop.busy, self.lock, self._ingest.at_moment() as moment:
                self._loop.require_going()
                self._try(add, remove, declared, self._settled(moment))

    def _settled(self, moment: int) -> int:
        """Process what came before a moment; a later one if sinks changed queries meanwhile."""
        with self._loop.failing():
            self._loop.settle(moment)
            while self._queries.changed > moment:
                moment = self._ingest.next_moment
                self._loop.settle(moment)
        return moment

    def _try(
        self,
        add: Mapping[str, Any],
        remove: Sequence[str],
        declared: bool,
        settled: int | None = None,
    ) -> bool:
        """Make a change; False if there must be a moment before which everything is settled."""
        outputs = self._loop.works.outputs
        wanted = self._queries.read(add, remove)
        wanted.by_network = declared
        outputs.require_fit({n: add[n] for n in remove if n in add}, self._queries.schema)
        structural = self._queries.is_structural(wanted)
        if settled is None:
            if structural or outputs.reads(remove):
                return False
            with self._loop.failing():
                self._queries.prepare(wanted)
                with self._queries.lock:  # nobody reads in between
                    self._queries.apply(wanted, self._ingest.at_moment)
                    outputs.forget(remove)
                outputs.close_gone()
            return True
        with self._loop.failing():
            self._queries.prepare(wanted)
            self._queries.apply(wanted, lambda: nullcontext(settled), renew=not structural)
            outputs.forget(remove)  # before others read under the same names
            if structural:
                self._loop.works = rebuild(self._loop.works, settled)
            self._loop.works.outputs.close_gone()
        return True
