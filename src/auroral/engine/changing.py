"""Changing the queries of a running network: when it is done, and what is done before it."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, nullcontext
from itertools import count
from typing import Any

from auroral.engine.ingest import Ingest
from auroral.engine.loop import Loop
from auroral.engine.modification import Modification
from auroral.engine.queries import Queries
from auroral.engine.works import rebuild, rehearse

_PATIENCE = 3
"""So often a change that has to wait lets others come before it."""


class Changing:
    """Adds and removes queries, one change after the other.

    Most changes are true from the next tuple on, and nobody waits. If a query comes or goes that
    runs as boxes of its own, or a sink has still to get what one gave, the call waits until all
    is processed that had arrived; tuples and other changes come meanwhile.
    """

    def __init__(self, queries: Queries, ingest: Ingest, loop: Loop):
        self._queries = queries
        self._ingest = ingest
        self._loop = loop
        self.lock = threading.RLock()
        """Held while a change is made."""

    def change(
        self, add: Mapping[str, Any], remove: Sequence[str], *, declared: bool = False
    ) -> None:
        """Make a change; `declared` if it is the network that says so."""
        with self.lock:
            self._loop.require_going()
            with self._loop.failing():
                self._queries.tidy()
            wanted = self._read(add, remove, declared)
            waits = wanted.changes_boxes or self._loop.works.outputs.reads(remove)
            if not waits:
                self._make(wanted, remove)
        if waits:
            if wanted.boxed and not declared and not self._loop.in_round:
                rehearse(self._loop.works, wanted)
            self._make_settled(add, remove, declared)

    def _make_settled(self, add: Mapping[str, Any], remove: Sequence[str], declared: bool) -> None:
        """Make a change when everything is processed and delivered that came before it.

        If queries have changed meanwhile, it comes after that; in the end others have to wait.
        """
        self._loop.require_going()  # threads that change and change would keep it from ending
        with self._loop.busy, ExitStack() as held:
            for attempt in count():
                if attempt == _PATIENCE:
                    held.enter_context(self.lock)
                if attempt == _PATIENCE + 1:  # sinks change queries whenever something comes
                    held.enter_context(self._ingest.at_moment())
                with self._ingest.at_moment() as moment:
                    pass
                with self._loop.failing():
                    self._loop.settle(moment)
                with self.lock:
                    wanted = self._read(add, remove, declared)
                    # Sinks may have made changes that were settled at later moments.
                    untouched = self._loop.works.stepper.furthest() <= moment
                    first = self._queries.changed <= moment or not wanted.changes_eddies
                    if untouched and first:
                        self._make(wanted, remove, moment)
                        return

    def _read(self, add: Mapping[str, Any], remove: Sequence[str], declared: bool) -> Modification:
        wanted = self._queries.read(add, remove)
        wanted.by_network = declared
        replaced = {name: add[name] for name in remove if name in add}
        self._loop.works.outputs.require_fit(replaced, self._queries.schema)
        return wanted

    def _make(
        self, wanted: Modification, remove: Sequence[str], settled: int | None = None
    ) -> None:
        """Make a change from a moment on before which all is done, or from the next one on."""
        at = self._ingest.at_moment if settled is None else lambda: nullcontext(settled)
        with self._loop.failing():
            self._queries.prepare(wanted)
            with self._queries.lock:  # nobody reads in between
                self._queries.apply(wanted, at)
                self._loop.works.outputs.forget(remove)  # before others read under the same names
            if settled is not None and wanted.changes_boxes:
                self._loop.works = rebuild(self._loop.works, settled)
            self._loop.works.outputs.close_gone()
            self._loop.move_on(blocking=False)
