"""The continuous queries of a running network: registered, changed and kept across restarts."""

from __future__ import annotations

import json
import threading
from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any

from auroral.eddy.families import FamilyMembers, family_of
from auroral.eddy.query_index import QueryIndex
from auroral.eddy.registered import NEVER, RegisteredQuery
from auroral.engine.lifecycle.epochs import DeclaredNetwork
from auroral.engine.lifecycle.fates import NetworkChange
from auroral.engine.lifecycle.machine import Lifecycle
from auroral.engine.lifecycle.pending import Origin, SinkDetachment
from auroral.engine.lifecycle.retired import RetiredQueryCollector, is_boxed
from auroral.engine.lifecycle.standalone import StandaloneQuery
from auroral.engine.locks import ReentrantLock
from auroral.engine.queries.catalogue import Catalogue
from auroral.engine.queries.eddy_versions import EddyVersions
from auroral.engine.queries.family_values import FamilyValues, gone_of
from auroral.engine.queries.modification import Modification, ModificationReader
from auroral.engine.queries.registrar import Registrar
from auroral.engine.queries.tally import MatchTally
from auroral.engine.results.views import View, family_view, query_view
from auroral.ids import is_eddy
from auroral.network.network import Network
from auroral.network.queries import Family, Query
from auroral.network.types import Schema
from auroral.optimizer import Move
from auroral.storage import HELD, Change, Forgotten, QueryRow, Store

NEXT = "next_query"
"""Under which the manifest keeps the next id: none is ever given twice."""


class QueryRegistry:
    """Which queries there are, and what each eddy has to do at which moments."""

    def __init__(
        self,
        store: Store,
        declared: DeclaredNetwork,
        registrar: Registrar,
        lock: ReentrantLock | None = None,
        restored: Callable[[Mapping[str, Any]], DeclaredNetwork] | None = None,
    ):
        """`restored` makes networks that are planned from what an earlier run has written."""
        self._store = store
        self._network = declared.network
        self._registrar = registrar
        self.lock = lock or threading.RLock()
        self._values = FamilyValues(store)
        self.query_index = QueryIndex(store.directory / "filters")
        self.lifecycle = Lifecycle(store, store.manifest.meta, declared, restored)
        self.epochs = self.lifecycle.epochs
        self.standalone = self.lifecycle.standalone
        self.pending = self.lifecycle.pending
        self._rows: dict[str, QueryRow] = {}
        self.eddies = EddyVersions(self.epochs, self.query_index, self.lock)
        self.tally = MatchTally(store)
        self.catalogue = Catalogue(self.query_index, self.standalone, self.tally, self.lock)
        registered = self.standalone.registered
        self._reader = ModificationReader(self.query_index, registered, self.catalogue, registrar)
        self._declared: dict[str, QueryRow] = {}
        """The queries as the network said them last, also those that somebody has removed since."""
        self._retired = RetiredQueryCollector(
            store.head, self.query_index, self.tally, self.pending, self._rows
        )
        self._next = 1
        self.changed = 0  # the moment of the last change
        self.changes = 0
        """How many changes were made; who holds the lock can tell whether there was another."""

    def logs(self) -> set[str]:
        """The logs of results that queries have, or that somebody has still to get."""
        with self.lock:
            return self.query_index.kept.keys() | self.pending.logs()

    def enter_epoch(
        self,
        progress: Mapping[str, Any],
        changed: NetworkChange | None,
        arcs: Mapping[str, str],
        sunk: Sequence[str],
        stopped: Collection[str] = (),
    ) -> None:
        """Let those eddies and boxes be there that come next; all before their moment is done.

        `progress` is what was promised up to that moment, `changed` what becomes of the network,
        whose outputs read `arcs`; those that are `sunk` have sinks, which have everything.
        `stopped` boxes run no more.
        """
        with self.lock:
            change = self.lifecycle.epoch_reached(progress, changed, arcs, sunk, stopped)
            self._store.commit(change)
            self.eddies.enter(self.epochs.current.start)

    def fail(self, culprits: Mapping[str, str]) -> None:
        """Let queries whose boxes failed do nothing more."""
        with self.lock:
            self._store.commit(self.lifecycle.queries_failed(culprits))

    # ── after a restart ──

    def restore(self) -> None:
        """Register what an earlier run had, as far as it is still needed.

        Tuples may wait that came when other queries were there: from the first of them on, each
        eddy gets the versions it would have had.
        """
        with self.lock:
            reached = self._store.least_head(is_eddy)
            starts = [epoch.start for epoch in self.epochs.planned]
            # Until others come, the eddies there are serve what was there before.
            bounds = [*([] if reached is None else [reached]), *starts]
            head = min([*bounds, *(start - 1 for start in starts)], default=0)
            rows = self._store.manifest.queries()
            self._next = int(self._store.manifest.meta(NEXT) or 1)
            ended = {row.first: row.until for row in rows if row.until is not None}
            left = self._store.manifest.gone()
            since = [row.since for row in rows]
            self.changed = max([0, *starts, *since, *ended.values(), *left.values()])
            # Without any eddy there is nothing left that one would have to see.
            over = {f for f, until in ended.items() if not bounds or until <= min(bounds)}
            epoch_start = self.epochs.current.start
            over -= {
                r.first
                for r in rows
                if is_boxed(r) and r.until is not None and r.until > epoch_start
            }
            self._declared = {row.name: row for row in rows if row.declared is not None}
            # What the network declares and somebody has removed must not come back.
            declaration_fingerprint = {
                r.first for n, r in self._declared.items() if n in self._network.queries
            }
            needed = self.pending.needs(rows)
            dropped = [r for r in rows if r.first in over - declaration_fingerprint - needed]
            self._store.commit(Change(forgotten=Forgotten(queries=dropped)))
            kept = [row for row in rows if row.first in over & needed]
            rows = self._values.put_together([row for row in rows if row.first not in over], head)
            self._values.sweep(row.file for row in [*rows, *kept])
            gone = gone_of(rows, left)
            held = [self._restored(row) for row in rows]
            entries = [entry for entry in held if entry is not None]
            moments = {*starts, *(m for entry in entries for m in (entry.since, entry.until))}
            moments.update(moment for members in gone.values() for moment in members.values())
            for moment in [head, *sorted(m for m in moments if head < m < NEVER)]:
                self._replay(entries, gone, moment, first=moment == head)
            self._retired.ended += [row for row in [*rows, *kept] if row.until is not None]
            self._retired.emptied += [e for e in self.query_index.entries.values() if e.is_empty]
            self.standalone.restore(epoch_start)
            every = sorted([*rows, *kept], key=lambda row: row.first)
            self._store.commit(self.pending.restore(partial(self._view_of, every)))

    def _restored(self, row: QueryRow) -> RegisteredQuery | None:
        self._rows[row.name] = row
        if is_boxed(row):
            self.standalone.add(self._boxed_of(row))
            return None
        return self._entry_of(row)

    def _boxed_of(self, row: QueryRow) -> StandaloneQuery:
        standalone = self._registrar.standalone(row.name, self._values.query_of(row))
        until = NEVER if row.until is None else row.until
        return replace(standalone, first=row.first, since=row.since, until=until)

    def _entry_of(self, row: QueryRow) -> RegisteredQuery:
        entry = self._registrar.entry(row.name, self._values.query_of(row))
        entry.first, entry.since = row.first, row.since
        entry.until = NEVER if row.until is None else row.until
        return entry

    def _view_of(self, rows: Sequence[QueryRow], origin: Origin) -> View:
        """How the results of what an earlier run has removed look."""
        ids, of_member = origin
        firsts = [row.first for row in rows]
        found = [rows[bisect_right(firsts, query) - 1] for query in ids]
        if is_boxed(found[0]):
            return self._boxed_of(found[0]).view()
        entries = [self._entry_of(row) for row in found]
        if of_member:
            return query_view(entries[0], ids[0] - entries[0].first)
        query = entries[0].query
        if not isinstance(query, Family):
            return query_view(entries[0])
        family = FamilyMembers()
        for entry in entries:
            family.add(entry)
        return family_view(entries, family.runs(), query.key)

    def _replay(
        self,
        entries: Sequence[RegisteredQuery],
        gone: Mapping[int, Mapping[int, int]],
        moment: int,
        *,
        first: bool,
    ) -> None:
        """Make the changes of one moment, or all up to it, again."""
        there = [entry for entry in entries if self.query_index.entries.get(entry.name) is entry]
        ended = [entry for entry in there if entry.until == moment]
        due = [e for e in entries if e.since <= moment if first or e.since == moment]
        self.query_index.change(
            removed=ended, added=[entry for entry in due if entry.until > moment]
        )
        touched = [*ended, *due]
        for entry in entries:
            members = gone.get(entry.first, {})
            left = {n: m for n, m in members.items() if (m <= moment if first else m == moment)}
            if left and self.query_index.entries.get(entry.name) is entry:
                self.query_index.change(members={entry.name: list(left)})
                entry.gone |= left
                touched.append(entry)
        changed = {arc for entry in touched for arc in entry.arcs}
        self.eddies.add_version(changed, moment, always=first)

    def declared(self, *, restore: bool = False) -> tuple[dict[str, Query], list[str]]:
        """What the network says otherwise than it did when this state was left: to add, remove.

        With `restore` also those queries that somebody has removed since.
        """
        add: dict[str, Query] = {}
        remove: list[str] = []
        live = {
            family_of(name) for name in [*self.query_index.entries, *self.standalone.registered]
        }
        for name, query in self._network.queries.items():
            before = self._declared.get(name)
            same = self._registrar.declaration_fingerprint(query)
            gone = restore and name not in live
            if before is None or before.declared != same or gone:
                add[name] = query
                remove += [name] if name in live else []
        # What somebody has put in its place since stays.
        dropped = [name for name in self._declared if name not in self._network.queries]
        remove += [n for n in dropped if n in live and self._rows[n].declared is not None]
        return add, remove

    def undeclared(self, network: Network) -> list[str]:
        """Queries that a network declares no more, or otherwise, than the one there is."""
        fingerprint = self._registrar.declaration_fingerprint
        return [
            name
            for name, row in self._declared.items()
            if name not in network.queries or row.declared != fingerprint(network.queries[name])
        ]

    # ── changing ──

    def tidy(self) -> None:
        """Forget queries and members that are no more; no change may be under way."""
        with self.lock:
            heads = (self._store.least_head(is_eddy), self.epochs.next_start)
            reached = min((moment for moment in heads if moment is not None), default=None)
            found = self._retired.tidy(reached, self.epochs.current.start)
            if found is not None:
                change, rows = found
                self._store.commit(change)
                self._values.drop(row.file for row in rows)

    def change_network(
        self,
        moment: int,
        declared: DeclaredNetwork,
        document: Mapping[str, Any],
        drained: Sequence[str],
        more: Change,
    ) -> None:
        """Let another network be there from a moment on; queries are read against it from now."""
        with self.lock:
            change = self.lifecycle.network_changed(moment, declared, document, drained)
            self._store.commit(change | more)
            self._registrar.serve(declared.network)
            self._network = declared.network
            self.changed = max(self.changed, moment)
            self.changes += 1

    def change_order(self, moment: int, moves: Sequence[Move]) -> None:
        """Let boxes have changed places from a moment on."""
        with self.lock:
            self._store.commit(self.lifecycle.order_changed(moment, moves))
            self.changed = max(self.changed, moment)

    def schema(self, name: str, given: Any) -> Schema:
        """The fields of a query that may come."""
        return self._registrar.schema(name, given)

    def read(self, add: Mapping[str, Any], remove: Sequence[str]) -> Modification:
        """Read and check a modification; there is one at a time, and eddies go on meanwhile."""
        return self._reader.read(add, remove)

    def prepare(self, wanted: Modification) -> None:
        """Compile predicates and keep values of families, while eddies go on."""
        with self.lock:
            self.query_index.drafting = True
        for entry in wanted.entries:
            entry.first = self._next
            self._next = entry.after
        going = self.query_index.going(wanted.removed, wanted.members)
        wanted.drafts = self.query_index.draft(going, wanted.entries)
        wanted.files = {entry.name: self._write_values(entry) for entry in wanted.entries}

    def apply(
        self,
        wanted: Modification,
        leaving: Sequence[SinkDetachment],
        at: Callable[[], AbstractContextManager[int]],
    ) -> None:
        """Make what is prepared true from the moment that `at` gives on; sinks get the rest."""
        with self.lock:
            self.query_index.change(
                wanted.removed, wanted.members, wanted.entries, drafts=wanted.drafts
            )
            with at() as moment:
                self._commit(wanted, moment, leaving)
                members = [self.query_index.entries[name] for name in wanted.members]
                entries = [*wanted.entries, *wanted.removed, *members]
                self.eddies.add_version({arc for entry in entries for arc in entry.arcs}, moment)

    def _commit(self, wanted: Modification, moment: int, leaving: Sequence[SinkDetachment]) -> None:
        rows = []
        for entry in wanted.entries:
            entry.since = moment
            rows.append(self._row(entry.name, entry.query, wanted, moment, entry))
        for standalone in wanted.standalone:
            standalone.since = moment
            rows.append(self._row(standalone.name, standalone.query, wanted, moment))
            standalone.first = rows[-1].first
        fits = self.eddies.serves(wanted.entries) and not wanted.changes_boxes
        change = self.lifecycle.queries_changed(
            moment,
            flows=None if fits else self.query_index.flows(),
            added=wanted.standalone,
            removed=wanted.unboxed,
            leaving=leaving,
        )
        self.eddies.follow()
        ended = {self._rows[name].first: moment for name in wanted.unboxed}
        ended |= {entry.first: moment for entry in wanted.removed}
        gone = {
            self.query_index.entries[name].first + member: moment
            for name, members in wanted.members.items()
            for member in members
        }
        logs = {entry.log for entry in wanted.entries if entry.kept}
        heads = {(log, HELD): moment for log in logs if not self._store.has_cursor(log, HELD)}
        undeclared: list[int] = []
        if wanted.by_network:  # whatever it does not say any more, here or gone
            dropped = [r.first for n, r in self._declared.items() if n not in self._network.queries]
            undeclared = list({*ended, *dropped})
        self._store.commit(
            change
            | Change(
                queries=rows,
                ended=ended,
                undeclared=undeclared,
                gone=gone,
                heads=heads,
                meta={NEXT: str(self._next)},
            )
        )
        gone_rows = [self._rows[n] for n in [*wanted.unboxed, *(e.name for e in wanted.removed)]]
        self._retired.ended += [replace(row, until=moment) for row in gone_rows]
        self._rows.update({row.name: row for row in rows})
        if wanted.by_network:
            said = {n: row for n, row in self._declared.items() if n in self._network.queries}
            self._declared = said | {row.name: row for row in rows if row.declared is not None}
        self.changed = max(self.changed, moment)
        self.changes += 1
        for name, members in wanted.members.items():
            entry = self.query_index.entries[name]
            entry.gone |= dict.fromkeys(members, moment)
            self._retired.emptied += [entry] if entry.is_empty else []

    def _row(
        self,
        name: str,
        query: Query,
        wanted: Modification,
        moment: int,
        entry: RegisteredQuery | None = None,
    ) -> QueryRow:
        first, count = (entry.first, entry.count) if entry else (self._next, 1)
        self._next = max(self._next, first + 1)
        document = {"sql": query.sql, "results": query.results, "shared": entry is not None}
        if isinstance(query, Family):
            document["key"] = query.key
        declaration_fingerprint = (
            self._registrar.declaration_fingerprint(query) if wanted.by_network else None
        )
        file = wanted.files.get(name)
        return QueryRow(
            first, count, name, json.dumps(document), file, declaration_fingerprint, moment
        )

    def _write_values(self, entry: RegisteredQuery) -> str | None:
        """Keep the values of a family where a restart finds them."""
        if not isinstance(entry.query, Family):
            return None
        return self._values.write(str(entry.first), entry.query.table(self._network.directory))
