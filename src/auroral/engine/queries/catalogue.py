"""What can be asked about the continuous queries that are registered."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from auroral.eddy.families import MemberRun, family_of
from auroral.eddy.query_index import QueryIndex
from auroral.eddy.registered import RegisteredQuery
from auroral.engine.lifecycle.standalone import StandaloneQueries
from auroral.engine.locks import ReentrantLock
from auroral.engine.queries.tally import MatchTally
from auroral.engine.results.together import together_view
from auroral.engine.results.views import View, family_view, query_view
from auroral.errors import UsageError, closest, list_existing, require_name
from auroral.ids import ArcId, MemberId, ResultsLogId
from auroral.network.queries import Family, parameter_types
from auroral.network.types import Schema


class Catalogue:
    """Names, results and matches of queries and families."""

    def __init__(
        self,
        query_index: QueryIndex,
        standalone: StandaloneQueries,
        tally: MatchTally,
        lock: ReentrantLock,
    ):
        self._query_index = query_index
        self._standalone = standalone
        self._tally = tally
        self._lock = lock

    def arcs_read(self) -> dict[str, set[str]]:
        """The arcs that queries read which eddies run, by query or family."""
        with self._lock:
            found: dict[str, set[str]] = {}
            for entry in self._query_index.entries.values():
                found.setdefault(family_of(entry.name), set()).update(entry.arcs)
            return found

    def names(self) -> list[str]:
        """Queries and families by name."""
        return list(
            dict.fromkeys(
                [*map(family_of, self._query_index.entries), *self._standalone.registered]
            )
        )

    def chunks(self, name: str) -> list[RegisteredQuery]:
        """A query, or a family with all that was added to it later."""
        family = self._query_index.families.get(name)
        if family is not None:
            return list(family.entries.values())
        entry = self._query_index.entries.get(name)
        return [entry] if entry is not None and entry.keys is None else []

    def _runs(self, family: str) -> list[MemberRun]:
        held = self._query_index.families.get(family)
        return held.runs() if held is not None else []

    def origin(self, name: str) -> tuple[list[int], bool]:
        """The first ids of what gives results under a name; or the id of a member, and True."""
        with self._lock:
            standalone = self._standalone.registered.get(name)
            if standalone is not None:
                return [standalone.first], False
            chunks = self.chunks(name)
            if chunks:
                return [entry.first for entry in chunks], False
            entry, number = self.member(name)
            return [entry.first + number], True

    def view(self, name: str) -> View | None:
        """How the results of a query look, or of a member of a family; or `q.late`."""
        with self._lock:
            standalone = self._standalone.registered.get(name)
            if standalone is not None:
                return standalone.view()
            arc = ArcId.parse(name)
            if arc.producer in self._standalone.registered:
                return self._standalone.registered[arc.producer].late_view(arc.port)
            chunks = self.chunks(name)
            if not chunks:
                found = MemberId.parse(name)
                if found.key is None or self._query_index.families.get(found.family) is None:
                    return None
                entry, member = self.member(name)
                self._require_kept(name, entry)
                return query_view(entry, member)
            self._require_kept(name, chunks[0])
            query = chunks[0].query
            if isinstance(query, Family):
                return family_view(chunks, self._runs(name), query.key)
            return query_view(chunks[0])

    def schema(self, name: str) -> Schema | None:
        """The fields of a query's results, those of a family behind its key."""
        with self._lock:
            chunks = self.chunks(name)
            if not chunks:
                arc = ArcId.parse(name)
                standalone = self._standalone.registered.get(arc.producer)
                if standalone is None or not arc.port:
                    return None if standalone is None else standalone.schema
                return standalone.late[arc.port][1] if arc.port in standalone.late else None
            fields = chunks[0].schema()
            query, keys = chunks[0].query, chunks[0].keys
            if not isinstance(query, Family) or keys is None:
                return fields
            key = parameter_types(pa.table({query.key: keys})).fields
            return Schema((*key, *fields.fields))

    def together(
        self,
        name: str | None,
        taken: Callable[[RegisteredQuery], int],
        is_apart: Callable[[str], bool],
    ) -> tuple[View, bool]:
        """How the results of many queries look; and whether these are all that share a log.

        Those that sinks or outputs get are left out.
        """
        with self._lock:
            found = self._those(name)
            chunks = [entry for entry in found if not is_apart(family_of(entry.name))]
            if not chunks:
                names = list(dict.fromkeys(family_of(entry.name) for entry in found))
                problem = f"sinks or outputs get the results of {', '.join(names)}"
                raise UsageError("HAS_SINK", problem)
            whole = len(found) == self.count(found[0].log)
            return together_view(chunks, self._namer(chunks), taken), whole

    def reading(self, log: str, after: int = 0) -> list[RegisteredQuery]:
        """The entries whose results are in a log; or those that came after one, by its id."""
        with self._lock:
            newest_first = reversed(self._query_index.kept.get(log, {}).values())
            return list(takewhile(lambda entry: entry.first > after, newest_first))

    def count(self, log: str) -> int:
        """How many entries have their results in a log."""
        with self._lock:
            return len(self._query_index.kept.get(log, ()))

    def has(self, entry: RegisteredQuery) -> bool:
        """Whether an entry has not been removed."""
        return self._query_index.entries.get(entry.name) is entry

    def _those(self, name: str | None) -> list[RegisteredQuery]:
        self._require_shared(name)
        chunks = self.chunks(name) if name else []
        if chunks:
            self._require_kept(str(name), chunks[0])
            return chunks
        kept = [entry for entry in self._query_index.entries.values() if entry.kept]
        by_log: dict[str, list[RegisteredQuery]] = {}
        for entry in kept:
            joined = "+".join(entry.arcs)
            alone = len(entry.arcs) == 1 and entry.log != str(ResultsLogId(joined))
            if name is None or (joined == name and not alone):
                by_log.setdefault(entry.log, []).append(entry)
        if len(by_log) == 1:
            return next(iter(by_log.values()))
        names = sorted({"+".join(entry.arcs) for entry in kept} | set(self.names()))
        if not by_log:
            message = f"there is no query, family or stream with queries {name or ''}".strip()
            raise UsageError("UNKNOWN_QUERY", f"{message}; {list_existing(names)}")
        raise UsageError(
            "SEVERAL_RESULTS",
            "queries read several streams or join them, their results differ in fields",
            hint=f"name a stream, a family or a query: {list_existing(names)}",
        )

    def _require_kept(self, name: str, entry: RegisteredQuery) -> None:
        if not entry.kept:
            raise UsageError(
                "ONLY_COUNTED",
                f"the results of {name} are counted, not kept",
                hint="look at engine.matches(), or register it with results: keep",
            )

    def names_of(self, ids: Any) -> pa.Array:
        """The names of queries by id."""
        return _names(list(self._query_index.entries.values()), self._runs, ids)

    def _namer(self, chunks: Sequence[RegisteredQuery]) -> Callable[[Any], pa.Array]:
        """The names of some queries by id, also when these have been removed meanwhile."""
        families = dict.fromkeys(family_of(e.name) for e in chunks if e.keys is not None)
        runs = {family: self._runs(family) for family in families}
        return lambda ids: _names(chunks, runs.__getitem__, ids)

    def statistics(self) -> dict[str, dict[str, Any]]:
        """Queries and families with their matches and errors."""
        with self._lock:
            found: dict[str, dict[str, Any]] = {}
            failed, late = self._by_name(self._tally.failed), self._by_name(self._tally.late)
            for name in self.names():
                chunks = self.chunks(name)
                if not chunks:
                    found[name] = {
                        "sql": self._standalone.registered[name].query.sql,
                        "shared": False,
                    }
                    why = self._standalone.why_stopped(name)
                    found[name] |= {"stopped": True, "error": why} if why else {}
                    continue
                found[name] = {
                    "sql": chunks[0].query.sql,
                    "shared": True,
                    "matches": sum(self._matches(entry) for entry in chunks),
                    "errors": sum(self._tally.failed[n] for n in failed.get(name, ())),
                    "late": summed([self._tally.late[n] for n in late.get(name, ())]),
                }
                if name in failed:
                    found[name]["error"] = self._tally.errors(failed[name][-1])[1]
                if chunks[0].keys is not None:
                    found[name]["members"] = sum(e.count - len(e.gone) for e in chunks)
            return found

    def _matches(self, entry: RegisteredQuery) -> int:
        """How often the queries of an entry that are left have matched."""
        if entry.count == 1 and not entry.gone:
            return self._tally.of_one(entry.first)
        return int(self._tally.matches(_live(entry)).sum())

    def _by_name(self, counted: Mapping[int, object]) -> dict[str, list[int]]:
        """Ids of queries, in their order, by the names of those that are registered."""
        found: dict[str, list[int]] = {}
        ids = list(counted)
        entries = (
            sorted(self._query_index.entries.values(), key=lambda entry: entry.first) if ids else []
        )
        for query in ids:
            at = bisect_right(entries, query, key=lambda entry: entry.first) - 1
            if at >= 0 and query < entries[at].first + entries[at].count:
                found.setdefault(family_of(entries[at].name), []).append(query)
        return found

    def matches(self, name: str | None = None) -> pa.Table:
        """How often each query matched, and on how many tuples it failed."""
        if name is not None:
            require_name(name, "a query")
        with self._lock:
            entries = self.chunks(name) if name else list(self._query_index.entries.values())
            if name and not entries:
                entry, member = self.member(name)
                ids = np.array([entry.first + member], np.int32)
            else:
                ids = np.concatenate([np.zeros(0, np.int32), *map(_live, entries)])
            failed = self._tally.failed
            errors = np.array([failed.get(int(i), 0) for i in ids]) if failed else 0 * ids
            return pa.table(
                {
                    "query": self.names_of(ids),
                    "matches": pa.array(self._tally.matches(ids)),
                    "errors": pa.array(errors, pa.int64()),
                }
            )

    def match_count(self, name: str) -> int:
        """How often a query, or all members of a family, matched; 0 if no eddy runs it."""
        with self._lock:
            ids = [np.zeros(0, np.int32), *map(_live, self.chunks(name))]
            return int(self._tally.matches(np.concatenate(ids)).sum())

    def id_spans(self, name: str) -> list[tuple[int, int]]:
        """The ids of a query or of all members of a family, as ranges; empty if no eddy runs it."""
        with self._lock:
            return [(entry.first, entry.first + entry.count) for entry in self.chunks(name)]

    def arcs_of(self, name: str) -> set[str]:
        """The arcs that a query or family reads; empty if no eddy runs it."""
        with self._lock:
            return {arc for entry in self.chunks(name) for arc in entry.arcs}

    def member(self, name: str) -> tuple[RegisteredQuery, int]:
        """The entry of a member by its name, and its number there."""
        return self.members([name])[name]

    def members(self, names: Sequence[str]) -> dict[str, tuple[RegisteredQuery, int]]:
        """The same for many; it is an error if one is not there."""
        asked: dict[str, dict[str, str]] = {}
        for name in names:
            asked_for = MemberId.parse(name)
            family = asked_for.family if asked_for.key is not None else ""
            asked.setdefault(family, {})[asked_for.key or ""] = name
        found: dict[str, tuple[RegisteredQuery, int]] = {}
        for family, by_key in asked.items():
            held = self._query_index.families.get(family)
            members = held.find(list(by_key)) if held else {}
            found |= {by_key[key]: member for key, member in members.items()}
        for name in names:
            if name not in found:
                raise self._unknown(name)
        return found

    def _unknown(self, name: str) -> UsageError:
        """Why there is no such query; who asked for a member is not led to the whole family."""
        self._require_shared(name)
        asked = MemberId.parse(name)
        family = asked.family if asked.key is not None else ""
        if family and self._query_index.families.get(family) is not None:
            problem = f"there is no query {name}: the family {family} has no member {asked.key}"
            return UsageError("UNKNOWN_QUERY", problem)
        return UsageError(
            "UNKNOWN_QUERY",
            f"there is no query {name}; {list_existing(self.names())}",
            hint=None if family else closest(name, self.names()),
        )

    def _require_shared(self, name: str | None) -> None:
        if name in self._standalone.registered:
            raise UsageError(
                "NOT_SHARED",
                f"the query {name} runs as boxes of its own, and is neither counted nor read"
                " together with others",
                hint="read its results with engine.dequeue, or give it a sink",
            )


def _names(
    queries: Sequence[RegisteredQuery], runs: Callable[[str], Sequence[MemberRun]], ids: Any
) -> pa.Array:
    """The names of queries by id; `runs` are the members of a family."""
    entries = sorted(queries, key=lambda entry: entry.first)
    firsts = np.array([entry.first for entry in entries])
    at = np.searchsorted(firsts, ids, side="right") - 1
    named = pa.array([family_of(entry.name) for entry in entries], pa.string())
    plain = np.array([entry.keys is None for entry in entries], bool)
    places = [np.flatnonzero(plain[at])]
    parts = [named.take(pa.array(at[places[0]]))]
    others = np.unique(at[~plain[at]])
    for family in dict.fromkeys(family_of(entries[place].name) for place in others):
        for run in runs(family):
            here, members = run.of(ids)
            key = run.keys.take(pa.array(members)).cast(pa.string()).combine_chunks()
            parts.append(pc.binary_join_element_wise(f"{family}[", key, "]", ""))
            places.append(here)
    order = np.argsort(np.concatenate(places), kind="stable")
    return pa.concat_arrays(parts).take(pa.array(order))


def summed(counts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Counts by reason as one."""
    total: Counter[str] = Counter()
    for by_reason in counts:
        total.update(by_reason)
    return dict(sorted(total.items()))


def _live(entry: RegisteredQuery) -> Any:
    ids = entry.ids
    return np.delete(ids, list(entry.gone)) if entry.gone else ids
