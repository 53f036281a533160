"""Delivery: from output logs to sinks and to `dequeue`, each tuple once and in order."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from threading import current_thread, main_thread
from typing import Any

import pyarrow as pa

from auroral.engine.batches import NOTHING, moment, steps_of, visible
from auroral.engine.queries import Queries
from auroral.engine.readers import ALL, OUTPUT, Readers, consumer
from auroral.engine.train import cut
from auroral.engine.views import View
from auroral.errors import AuroralError, RunError, StateError, UsageError, closest, known
from auroral.io.sinks.csv import CsvSink
from auroral.io.sinks.sink import Delivery, Sink
from auroral.network.check import CheckedNetwork
from auroral.network.network import Network
from auroral.network.types import Schema
from auroral.spark.plan import in_order
from auroral.storage import HELD, Change, Store

_MOST_WAITING = 64


class Outputs:
    """The outputs of a network: which arc each reads, and its sink if it has one."""

    def __init__(
        self,
        checked: CheckedNetwork,
        store: Store,
        arcs: Mapping[str, str],
        now_us: Callable[[], int],
        emitted_before: Callable[[str], int],
        queries: Queries,
    ):
        self._store = store
        self._queries = queries
        self._sources = dict(arcs)
        """What each output delivers: an arc, or a query."""
        self._whole = {
            arc: View(arc, checked.schema_of(arc).arrow(), 0, lambda table: table)
            for arc in arcs.values()
            if arc in checked.arcs
        }
        self._sinks: dict[str, Sink] = {}
        """Changed between rounds alone; whoever looks at other times looks at a copy."""
        self._sunk = {
            output
            for output, saved in store.manifest.sinks().items()
            if isinstance(saved, dict) and not saved.get("closed")  # dead letters have a number
        }
        """Outputs that have a sink, or had one in an earlier run and may have it again."""
        self._readers = self._all_readers()
        self._called: set[str] = set()
        """Those whose sinks are being called."""
        self._over = False
        """Whether others have taken over."""
        self._now_us = now_us
        self._emitted_before = emitted_before
        self.lag_s: dict[str, float] = {}
        """How old the newest tuple of an output was when it was delivered."""

    def bind(self, output: str, sink: Sink) -> None:
        """Give an output its sink, which goes on where the manifest says."""
        self.require(output)
        if output in self._sinks:
            raise UsageError("HAS_SINK", f"the output {output} has a sink already")
        target = _target(sink)
        saved = self._store.manifest.sink(output)
        if saved is not None and saved["to"] != target and saved.get("closed"):
            saved = None  # it was another query's
        if saved is not None and saved.get("empty"):
            saved = None
        if saved is not None and saved["to"] != target:
            raise StateError(
                "SINK_CHANGED",
                f"this state has delivered {output} to {saved['to']}, not to {target}",
                hint="use the same sink, or another state directory",
            )
        sink.open(None if saved is None else saved["at"])
        if saved is None and hasattr(sink, "path"):  # what others wrote there is no more
            self._store.forget_sinks(target)
        if saved is None or saved.get("closed"):
            self._begin(self._view(output), consumer(output))
            at = {"at": None, "empty": True} if saved is None else {"at": saved["at"]}
            self._store.commit(Change(sinks={output: {"to": target, **at}}))
        with self._queries.lock:
            self._sinks[output] = sink
            self._sunk.add(output)
            self._readers.look_again()

    @property
    def sinks(self) -> Mapping[str, Sink]:
        """The sinks that are open."""
        return self._sinks

    def bind_all(self, sinks: Mapping[str, Sink], network: Network) -> None:
        """Give outputs their sinks that have none yet; not those of queries that were removed."""
        for output, sink in sinks.items():
            declared = network.outputs.get(output)
            query = output if declared is None else declared.from_
            there = query not in network.queries or self._found(output) is not None
            if output not in self._sinks and there:
                self.bind(output, sink)

    def _begin(self, view: View, reader: str) -> None:
        """Let a new reader begin after what others took together with it."""
        head = self._head(view, reader)
        if head > self._store.head(view.log, reader):
            self._store.commit(Change(heads={(view.log, reader): head}))

    def reads(self, removed: Collection[str]) -> bool:
        """Whether a sink gets what queries give that are to be removed."""
        return any(self._reads(output, removed) for output in list(self._sinks))

    def _reads(self, output: str, queries: Collection[str]) -> bool:
        source = self._sources.get(output, output)
        return source in queries or source.partition("[")[0] in queries

    def require_fit(
        self, replaced: Mapping[str, Any], schema_of: Callable[[str, Any], Schema]
    ) -> None:
        """Refuse queries with other fields than the header of a file that goes on with them."""
        for output, sink in list(self._sinks.items()):
            query = self._readers.query_of(output)
            if query in replaced and isinstance(sink, CsvSink):
                names = schema_of(query, replaced[query]).names
                if "[" in output:
                    names = names[1:]  # a member gives no key
                if names != sink.fields:
                    raise UsageError(
                        "SINK_FIELDS",
                        f"{sink.path} has the fields {', '.join(sink.fields)}, the new {query}"
                        f" has {', '.join(names)}",
                        hint="give the query another name, or remove the old one before",
                    )

    def close_gone(self) -> None:
        """Let go of the sinks of queries that are no more; they have got everything."""
        for output in [output for output in self._sunk if self._found(output) is None]:
            self._sunk.discard(output)
            sink = self._sinks.pop(output, None)
            if sink is not None:
                sink.close()
            saved = self._store.manifest.sink(output)
            if saved is not None:
                self._store.commit(Change(sinks={output: {**saved, "closed": True}}))

    def forget(self, removed: Collection[str]) -> None:
        """Drop what is remembered of who read queries that are no more, and how much."""
        gone = {n for n in removed if self._sources.get(n, n).partition("#")[0] == n}
        if not gone:
            return
        readers = [place for name in gone for place in self._store.readers(consumer(name))]
        names = gone | {reader.removeprefix(OUTPUT) for _, reader in readers}
        counted = [(name, "out") for name in names if (name, "out") in self._store.counters]
        if readers or counted:
            self._store.forget([], readers, counters=counted)
        with self._queries.lock:
            for name in names:
                self.lag_s.pop(name, None)
                self._readers.forget(name)

    def take_over(self, before: Outputs) -> None:
        """Go on with the sinks of outputs as they were before boxes came or went."""
        self._sinks, self._sunk, self._called = before._sinks, before._sunk, before._called
        self._readers = self._all_readers()
        self.lag_s = before.lag_s
        before._over = True

    def _all_readers(self) -> Readers:
        catalogue = self._queries.catalogue
        return Readers(self._store, catalogue, self._sources, self._sinks, self._sunk)

    def deliver(self) -> int:
        """Hand everything new to the sinks; returns the number of tuples.

        A sink may be a function that changes queries. So it may be called while another is, but
        not again before it has returned, and there may be other outputs then.
        """
        delivered = 0
        for output in list(self._sinks):
            sink = self._sinks.get(output)
            if sink is not None and output not in self._called and not self._over:
                self._called.add(output)
                try:
                    delivered += self._deliver(output, sink)
                finally:
                    self._called.discard(output)
        return delivered

    def _deliver(self, output: str, sink: Sink) -> int:
        delivered = 0
        view = self._view(output)
        for sealed, table in self._batches(view, consumer(output)):
            change = Change(heads={(view.log, consumer(output)): sealed})
            if table.num_rows:
                position = self._written(output, sink, table, view)
                change.sinks = {output: {"to": _target(sink), "at": position}}
                change.counts = {(output, "out"): table.num_rows}
                delivered += table.num_rows
            self._commit(change, view.log)
            if self._over or self._sinks.get(output) is not sink:
                break
        return delivered

    def dequeue(self, output: str, limit: int | None = None) -> pa.Table:
        """What came since the last call; whole steps, so perhaps some more than `limit`."""
        view = self._view(output)
        if output in self._sinks:
            raise UsageError("HAS_SINK", f"the output {output} is delivered to its sink already")
        self._require_own(output)
        return self._taken(output, view, [consumer(output)], limit)

    def _require_own(self, output: str) -> None:
        """Refuse to give what others get: nothing is kept for a query or member then."""
        with self._queries.lock:
            query = self._readers.query_of(output)
            others = self._readers.outputs_of(query)
            if output in others or not self._readers.is_apart(query):
                return
        if others:
            problem = f"the results of {query} are read by {', '.join(sorted(others))}"
            raise UsageError("HAS_OUTPUT", problem, hint="dequeue the output, or give it a sink")
        raise UsageError("HAS_SINK", f"the results of {query} are delivered to a sink already")

    def dequeue_all(self, name: str | None = None, limit: int | None = None) -> pa.Table:
        """The results of many queries since the last call, each tuple once."""
        readers = self._readers
        view, of_all = self._queries.catalogue.together(name, readers.taken_by, readers.is_apart)
        if not of_all:
            return self._taken(str(name), view, [consumer(str(name))], limit)
        return self._taken(name or "*", view, [ALL, *readers.unbound(view.log)], limit)

    def _taken(self, name: str, view: View, readers: list[str], limit: int | None) -> pa.Table:
        if limit is not None and not (isinstance(limit, int) and limit >= 0):
            raise UsageError("BAD_CALL", f"limit is a number of rows, not {limit!r}")
        parts: list[pa.Table] = []
        head: int | None = None
        for sealed, table in self._batches(view, *readers):
            parts.append(table)
            head = sealed
            if limit is not None and sum(p.num_rows for p in parts) >= limit:
                break
        rows = [visible(part).cast(view.schema) for part in parts if part.num_rows]
        table = view.finish(pa.concat_tables(rows) if rows else view.schema.empty_table())
        if head is not None:
            counts = {(name, "out"): table.num_rows}
            heads = {(view.log, r): max(head, self._store.head(view.log, r)) for r in readers}
            self._commit(Change(heads=heads, counts=counts), view.log)
        self._note_lag(name, parts)
        return table

    def compact(self) -> None:
        """Merge small segments of outputs that nobody has read; drop what nobody can read."""
        for arc in self._whole:
            if len(self._store.segments(arc)) > _MOST_WAITING:
                self._store.compact(arc)
        there = self._queries.logs()
        for log in self._store.held():
            if log not in there:  # its queries are no more
                self._hold(log, self._emitted_before(log))
            elif self._store.segments(log):
                self._let_go(log)

    def _commit(self, change: Change, log: str) -> None:
        """Remember how far readers of a log have come, and let go of what everybody has."""
        self._store.commit(change)
        further: dict[tuple[str, str], int] = {}
        with self._queries.lock:
            for _, reader in change.heads:
                found = self._readers.by_all_members(reader.removeprefix(OUTPUT))
                if found is not None and found[1] > self._store.head(log, consumer(found[0])):
                    further[log, consumer(found[0])] = found[1]
        query = self._queries.owner(log)
        others = self._readers.outputs_of(query) if query and query not in self._sunk else ()
        if others:  # it is not read by itself
            further[log, consumer(query)] = min(self._store.head(log, consumer(o)) for o in others)
        if further:
            self._store.commit(Change(heads=further))
        self._let_go(log)

    def _let_go(self, log: str) -> None:
        """Keep of results of queries what not everybody has."""
        with self._queries.lock:
            taken = self._readers.taken(log)
        if taken is not None:
            self._hold(log, taken)

    def _hold(self, log: str, moment: int) -> None:
        """Keep results from a moment on."""
        if moment > self._store.head(log, HELD):
            self._store.commit(Change(heads={(log, HELD): moment}))

    def waiting(self, output: str) -> int | None:
        """Tuples not delivered yet, of a query those in its log; None if that was removed."""
        view = self._found(output)
        if view is None:
            return None
        return self._store.rows_since(view.log, self._head(view, consumer(output)))

    @property
    def delivered(self) -> bool:
        """Whether every sink has got everything, and has returned."""
        views = [(self._found(output), consumer(output)) for output in list(self._sinks)]
        waiting = any(v and self._store.segments(v.log, self._head(v, c)) for v, c in views)
        return not waiting and not self._called

    def require(self, output: str) -> None:
        """Refuse what is no output."""
        self._view(output)

    def _view(self, output: str) -> View:
        """What there is to read under a name."""
        source = self._sources.get(output, output)
        view = self._whole.get(source) or self._queries.catalogue.view(source)
        if view is not None:
            return view
        if source != output:
            problem = f"the output {output} reads {source}, which was removed"
            raise UsageError("UNKNOWN_OUTPUT", problem)
        names = list(dict.fromkeys([*self._sources, *self._queries.catalogue.names()]))
        raise UsageError(
            "UNKNOWN_OUTPUT",
            f"there is no output {output}; {known(names)}",
            hint=closest(output, names),
        )

    def _found(self, output: str) -> View | None:
        """The same, None if the query was removed."""
        try:
            return self._view(output)
        except UsageError:
            return None

    def _head(self, view: View, reader: str) -> int:
        """The first moment of which a reader has not everything."""
        if reader == ALL:
            return max(self._store.head(view.log, ALL), view.since)
        with self._queries.lock:
            return max(self._readers.head(reader.removeprefix(OUTPUT), view.log), view.since)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(filter(self._found, dict.fromkeys([*self._sources, *self._sinks])))

    def close(self) -> None:
        for sink in self._sinks.values():
            sink.close()

    def _batches(self, view: View, *readers: str) -> Iterator[tuple[int, pa.Table]]:
        """New tuples, step by step, with the moment before which they lie."""
        head = min(self._head(view, reader) for reader in readers)
        complete = self._emitted_before(view.log)
        for sealed, group in steps_of(self._store.segments(view.log, head)):
            last = min(sealed, complete)
            if last <= head:
                return
            # Compaction may have put what was delivered together with what was not.
            tables = [view.rows(cut(self._store.table(s), head, last)) for s in group if s.file]
            whole = pa.concat_tables(tables, promote_options="default") if tables else NOTHING
            yield last, in_order(whole)

    def _written(self, output: str, sink: Sink, table: pa.Table, view: View) -> Any:
        try:
            return sink.write(self._delivery(output, table, view))
        except AuroralError as error:
            raise error.at(f"output {output}") from error
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) and current_thread() is main_thread():
                raise  # somebody does not want to wait
            reason = f"{type(error).__name__}: {error}"
            raise RunError("SINK_FAILED", reason, where=f"output {output}") from error

    def _delivery(self, output: str, table: pa.Table, view: View) -> Delivery:
        self._note_lag(output, [table])
        rows = visible(table).cast(view.schema)
        return Delivery(output, rows, moment(table, 0), moment(table, -1))

    def _note_lag(self, output: str, tables: list[pa.Table]) -> None:
        for table in tables:
            if table.num_rows:
                age_us = self._now_us() - table["_ts"][-1].as_py()
                self.lag_s[output] = round(age_us / 1e6, 3)


def _target(sink: Sink) -> str:
    """What a position in a sink is a position of."""
    path = getattr(sink, "path", None)
    return type(sink).__name__ if path is None else os.path.abspath(path)
