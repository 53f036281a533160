"""Queries that no eddy can run: each is boxes of its own."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from auroral.eddy.registered import NEVER
from auroral.engine.results.views import View
from auroral.ids import ArcId, QueryBoxId
from auroral.network.queries import Query
from auroral.network.types import Schema
from auroral.storage import Change

FAILED = "failed"
"""Under which the manifest keeps the queries whose boxes failed, and why."""


@dataclass(eq=False)
class StandaloneQuery:
    """A query that runs as boxes, from one moment up to another; it has an id as others have."""

    name: str
    query: Query
    arc: str
    """Where its results are."""
    schema: Schema
    late: Mapping[str, tuple[str, Schema]] = field(default_factory=dict)
    """By port, where tuples are that came too late."""
    first: int = 0
    since: int = 0
    until: int = NEVER

    def view(self) -> View:
        """How its results look, which are as its boxes write them."""
        return self._plain(self.arc, self.schema)

    def late_view(self, port: str) -> View | None:
        """How tuples look that came too late; None if there is no such port."""
        return self._plain(*self.late[port]) if port in self.late else None

    def source(self, arc: str) -> str:
        """What outputs that read an arc of it are said to read: `q`, or `q.late`."""
        late = (port for port, (own, _) in self.late.items() if own == arc)
        port = next(late, None)
        return self.name if port is None else str(ArcId(self.name, port))

    def _plain(self, arc: str, schema: Schema) -> View:
        return View(arc, schema.arrow(), self.since, lambda table: table)


@dataclass(frozen=True)
class ActiveStandalone:
    """The queries whose boxes there are at a time."""

    queries: Mapping[str, StandaloneQuery]
    failed: Mapping[str, str]
    """Those of them that do nothing more, and why."""

    def without(self, names: Collection[str]) -> ActiveStandalone:
        """The same without some of them."""
        queries = {name: query for name, query in self.queries.items() if name not in names}
        return ActiveStandalone(queries, self.failed)

    def owner(self, box: str) -> str:
        """The query that a box, or an arc of it, is of; empty if it is the network's."""
        name = QueryBoxId.query_of(box) or box
        return name if name in self.queries else ""

    def source(self, arc: str) -> str:
        """What outputs that read an arc are said to read: a query, its late arc, or the arc."""
        owner = self.owner(arc)
        return self.queries[owner].source(arc) if owner else arc

    def began(self, box: str) -> int:
        """The moment from which a box is there: one of a query, since that was registered."""
        owner = self.owner(box)
        return self.queries[owner].since if owner else 0

    def is_same(self, other: ActiveStandalone, box: str) -> bool:
        """Whether a box is the same as another of its name was: it may be another query's."""
        owner = self.owner(box)
        return self.queries.get(owner) is other.queries.get(other.owner(box))


class StandaloneQueries:
    """Those that are registered, and those whose boxes run now.

    Boxes come and go when everything before their moment is processed; a query of the same name
    may be registered already when the boxes of another still run.
    """

    def __init__(self, failed: Mapping[str, str]):
        """`failed` are those that an earlier run has found to fail, and why."""
        self.registered: dict[str, StandaloneQuery] = {}
        """By name."""
        self._failed = dict(failed)
        self._known: list[StandaloneQuery] = []
        """All that run, or are to."""
        self.running = ActiveStandalone({}, {})

    def add(self, query: StandaloneQuery) -> None:
        self._known.append(query)
        if query.until == NEVER:
            self.registered[query.name] = query

    def remove(self, name: str, moment: int) -> None:
        """Let a query be there up to a moment."""
        self.registered.pop(name).until = moment

    def restore(self, moment: int) -> None:
        """After a restart, let those run whose boxes there were from a moment on."""
        self.running = ActiveStandalone(self._at(moment), self._failed)
        self._known = [query for query in self._known if query.until > moment]

    def at(self, moment: int) -> ActiveStandalone:
        """Those whose boxes there are to be from a moment on."""
        queries, now = self._at(moment), self.running
        stays = [name for name, query in queries.items() if now.queries.get(name) is query]
        return ActiveStandalone(queries, {n: now.failed[n] for n in stays if n in now.failed})

    @property
    def latest(self) -> ActiveStandalone:
        """Those whose boxes there are to be when all changes are made."""
        return self.at(NEVER - 1)

    def _at(self, moment: int) -> dict[str, StandaloneQuery]:
        return {query.name: query for query in self._known if query.since <= moment < query.until}

    def run(self, moment: int) -> Change:
        """Let those run; all before the moment is done."""
        self.running = self.at(moment)
        self._known = [query for query in self._known if query.until > moment]
        return Change(meta={FAILED: json.dumps(self.running.failed)})

    def ending(self, moment: int) -> list[StandaloneQuery]:
        """Those whose boxes run until a moment."""
        return [query for query in self._known if query.until <= moment]

    def fail(self, culprits: Mapping[str, str]) -> Change:
        """Let queries do nothing more; what they have given stays."""
        self.running = replace(self.running, failed={**self.running.failed, **culprits})
        return Change(meta={FAILED: json.dumps(self.running.failed)})

    def why_stopped(self, name: str) -> str | None:
        """Why a registered query does nothing more, if so."""
        runs = self.running.queries.get(name) is self.registered.get(name)
        return self.running.failed.get(name) if runs else None
