"""Queries that no eddy can run: each is boxes of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from auroral.eddy.entry import NEVER
from auroral.engine.views import View
from auroral.network.queries import Query
from auroral.network.types import Schema
from auroral.storage import Change, Store

UNBOXED = "unboxed"
"""Under which the manifest keeps the queries whose boxes are no more, until what they left goes."""
FAILED = "failed"
"""Under which it keeps the queries whose boxes failed, and why."""


@dataclass
class Boxed:
    """A query that runs as boxes, from one moment up to another; it has an id as others have."""

    name: str
    query: Query
    arc: str
    """Where its results are."""
    schema: Schema
    first: int = 0
    since: int = 0
    until: int = NEVER

    def view(self) -> View:
        """How its results look, which are as its boxes write them."""
        return View(self.arc, self.schema.arrow(), self.since, lambda table: table)


class BoxedQueries:
    """Those that are registered, and those whose boxes run now.

    Boxes come and go when everything before their moment is processed; a query of the same name
    may be registered already when the boxes of another still run.
    """

    def __init__(self, store: Store):
        self._store = store
        self.registered: dict[str, Boxed] = {}
        """By name."""
        self.running: dict[str, Boxed] = {}
        """Those whose boxes there are."""
        self.failed: dict[str, str] = json.loads(store.manifest.meta(FAILED) or "{}")
        """Those of the running ones that do nothing more, and why."""
        self._known: list[Boxed] = []
        """All that run, or are to."""

    def add(self, query: Boxed) -> None:
        self._known.append(query)
        if query.until == NEVER:
            self.registered[query.name] = query

    def remove(self, name: str, moment: int) -> None:
        """Let a query be there up to a moment."""
        self.registered.pop(name).until = moment

    def at(self, moment: int) -> dict[str, Boxed]:
        """Those whose boxes there are to be from a moment on."""
        return {q.name: q for q in self._known if q.since <= moment < q.until}

    def run(self, moment: int) -> None:
        """Let those boxes be there that are to be from a moment on; all before it is done."""
        self.failed = self._left(moment)
        self.restore(moment)

    def restore(self, moment: int) -> None:
        """The same after a restart."""
        self.running = self.at(moment)
        self._known = [query for query in self._known if query.until > moment]

    def noted(self, moment: int) -> dict[str, str]:
        """What to remember of that: whose boxes are no more, and which of the others failed."""
        gone = [query.name for query in self._known if query.until <= moment]
        return {UNBOXED: json.dumps(gone), FAILED: json.dumps(self._left(moment))}

    def _left(self, moment: int) -> dict[str, str]:
        """Those that failed and are still to run."""
        at = self.at(moment)
        stays = {name for name, query in self.running.items() if at.get(name) is query}
        return {name: why for name, why in self.failed.items() if name in stays}

    # ── boxes ──

    def owner(self, box: str) -> str:
        """The query that a box, or an arc of it, is of; empty if it is the network's."""
        name = box.partition("#")[0]
        return name if name in self.running else ""

    def began(self, box: str) -> int:
        """The moment from which a box is there: one of a query, since that was registered."""
        owner = self.owner(box)
        return self.running[owner].since if owner else 0

    def queries(self, moment: int | None = None) -> dict[str, Query]:
        """The texts of those that run, or are to from a moment on."""
        held = self.running if moment is None else self.at(moment)
        return {name: boxed.query for name, boxed in held.items()}

    def fail(self, culprits: Mapping[str, str]) -> None:
        """Let queries do nothing more, and remember why; what they have given stays."""
        self.failed = {**self.failed, **culprits}
        self._store.commit(Change(meta={FAILED: json.dumps(self.failed)}))

    def why_stopped(self, name: str) -> str | None:
        """Why a registered query does nothing more, if so."""
        runs = self.running.get(name) is self.registered.get(name)
        return self.failed.get(name) if runs else None
