"""Changing the queries of a running network: at the next moment, while everybody goes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from auroral.engine.ingest.ingest import Ingest
from auroral.engine.locks import ReentrantLock
from auroral.engine.queries.modification import Modification
from auroral.engine.queries.registry import QueryRegistry
from auroral.engine.runtime.loop import Loop
from auroral.engine.runtime.yielding import PROMPT_SWITCHING
from auroral.engine.sinks.delivery import DeliveryThread
from auroral.engine.sinks.headers import require_query_fields
from auroral.engine.sinks.sinks import Sinks
from auroral.errors import not_an_output


class QueryChanges:
    """Adds and removes queries, one change after the other.

    A change is true from the next tuple on, and nobody waits: neither for boxes that come and go
    when all before them is processed, nor for sinks, which get what is left to them.
    """

    def __init__(self, queries: QueryRegistry, ingest: Ingest, loop: Loop, lock: ReentrantLock):
        self._queries = queries
        self._ingest = ingest
        self._loop = loop
        self.lock = lock
        """Held while a change is made."""

    def change(
        self, add: Mapping[str, Any], remove: Sequence[str], *, declared: bool = False
    ) -> None:
        """Make a change; `declared` if it is the network that says so."""
        with self.lock, PROMPT_SWITCHING:
            self._loop.require_going()
            with self._loop.failing():
                self._queries.tidy()
            wanted = self._read(add, remove, declared)
            with self._loop.failing():
                released = self._make(wanted, remove)
        self._loop.execution.sinks.await_closed(released)

    def check(self, add: Mapping[str, Any], remove: Sequence[str]) -> None:
        """Refuse what cannot be changed; nothing happens."""
        with self.lock:
            self._loop.require_going()
            self._read(add, remove, False)

    def _read(self, add: Mapping[str, Any], remove: Sequence[str], declared: bool) -> Modification:
        wanted = self._queries.read(add, remove)
        wanted.by_network = declared
        replaced = {name: add[name] for name in remove if name in add}
        require_query_fields(self._loop.execution.sinks, replaced, self._queries.schema)
        return wanted

    def _make(self, wanted: Modification, remove: Sequence[str]) -> list[DeliveryThread]:
        sinks = self._loop.execution.sinks
        self._queries.prepare(wanted)
        with self._queries.lock:  # nobody reads in between
            leaving = sinks.leaving(remove, wanted)
            self._queries.apply(wanted, leaving, self._ingest.at_moment)
            released = sinks.leave(leaving)
            sinks.outputs.forget(remove)  # before others read under the same names
        self._loop.move_on()
        return released

    def await_ready_for(self, output: str) -> None:
        """Wait until the sink of a query that was removed has got everything."""
        if output in self._loop.execution.sinks.ending:
            self._loop.require_outside(
                f"give {output} a sink while another still gets what a query of that name gave"
            )
            self._loop.await_sink(output)

    def ready_for(self, output: str) -> Sinks:
        """The sinks, if another may come for an output now; rounds and changes are held up."""
        sinks = self._loop.execution.sinks
        there = sinks.has(output) or output in sinks.failed
        attached = self._loop.execution.context.attachments
        there = there or attached.view(output) is not None
        there = there or sinks.outputs.declares(output)
        if not there and self._queries.catalogue.view(output) is None:
            if output not in self._loop.execution.checked.arcs:
                sinks.outputs.require(output)
            raise not_an_output(output)
        return sinks
