"""Delivery: from output logs to sinks and to `dequeue`, each tuple once and in order."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from auroral.engine.train import cut
from auroral.errors import AuroralError, RunError, StateError, UsageError, closest, known
from auroral.io.sinks.sink import Delivery, Sink
from auroral.network.check import CheckedNetwork
from auroral.network.types import HIDDEN
from auroral.spark.plan import in_order
from auroral.storage import Change, Segment, Store

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
    ):
        self._store = store
        self._arcs = dict(arcs)
        self._schemas = {name: checked.schema_of(arc).arrow() for name, arc in arcs.items()}
        self._sinks: dict[str, Sink] = {}
        self._now_us = now_us
        self._emitted_before = emitted_before
        self.lag_s: dict[str, float] = {}
        """How old the newest tuple of an output was when it was delivered."""

    def bind(self, output: str, sink: Sink) -> None:
        """Give an output its sink, which goes on where the manifest says."""
        self.require(output)
        if output in self._sinks:
            self._sinks[output].close()
        target = _target(sink)
        saved = self._store.manifest.sink(output)
        if saved is not None and saved["to"] != target:
            raise StateError(
                "SINK_CHANGED",
                f"this state has delivered {output} to {saved['to']}, not to {target}",
                hint="use the same sink, or another state directory",
            )
        sink.open(None if saved is None else saved["at"])
        self._sinks[output] = sink

    def deliver(self) -> int:
        """Hand everything new to the sinks; returns the number of tuples."""
        delivered = 0
        for output, sink in self._sinks.items():
            arc = self._arcs[output]
            for sealed, table in self._batches(output):
                change = Change(heads={(arc, consumer(output)): sealed})
                if table.num_rows:
                    position = self._written(output, sink, table)
                    change.sinks = {output: {"to": _target(sink), "at": position}}
                    change.counts = {(output, "out"): table.num_rows}
                    delivered += table.num_rows
                self._store.commit(change)
        return delivered

    def dequeue(self, output: str, limit: int | None = None) -> pa.Table:
        """What came since the last call; whole steps, so perhaps some more than `limit`."""
        self.require(output)
        if output in self._sinks:
            raise UsageError("HAS_SINK", f"the output {output} is delivered to its sink already")
        parts: list[pa.Table] = []
        head: int | None = None
        for sealed, table in self._batches(output):
            parts.append(table)
            head = sealed
            if limit is not None and sum(p.num_rows for p in parts) >= limit:
                break
        schema = self._schemas[output]
        visible = [_visible(part).cast(schema) for part in parts if part.num_rows]
        table = pa.concat_tables(visible) if visible else schema.empty_table()
        if head is not None:
            key = (self._arcs[output], consumer(output))
            counts = {(output, "out"): table.num_rows}
            self._store.commit(Change(heads={key: head}, counts=counts))
        self._note_lag(output, parts)
        return table

    def compact(self) -> None:
        """Merge small segments of outputs that nobody has read for a while."""
        for arc in set(self._arcs.values()):
            if len(self._store.segments(arc)) > _MOST_WAITING:
                self._store.compact(arc)

    def waiting(self, output: str) -> int:
        """Tuples not delivered yet."""
        arc = self._arcs[output]
        return self._store.rows_since(arc, self._store.head(arc, consumer(output)))

    @property
    def delivered(self) -> bool:
        """Whether every sink has got everything."""
        arcs = [(self._arcs[output], consumer(output)) for output in self._sinks]
        return not any(self._store.segments(a, self._store.head(a, c)) for a, c in arcs)

    def require(self, output: str) -> None:
        if output not in self._arcs:
            raise UsageError(
                "UNKNOWN_OUTPUT",
                f"there is no output {output}; {known(self._arcs)}",
                hint=closest(output, self._arcs),
            )

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._arcs)

    def close(self) -> None:
        for sink in self._sinks.values():
            sink.close()

    def _batches(self, output: str) -> Iterator[tuple[int, pa.Table]]:
        """New tuples, step by step, with the moment before which they lie."""
        arc = self._arcs[output]
        head = self._store.head(arc, consumer(output))
        complete = self._emitted_before(arc)
        for sealed, group in _runs(self._store.segments(arc, head)):
            last = min(sealed, complete)
            if last <= head:
                return
            # Compaction may have put what was delivered together with what was not.
            tables = [cut(self._store.table(s), head, last) for s in group if s.file]
            whole = pa.concat_tables(tables, promote_options="default") if tables else _NOTHING
            yield last, in_order(whole)

    def _written(self, output: str, sink: Sink, table: pa.Table) -> Any:
        try:
            return sink.write(self._delivery(output, table))
        except AuroralError as error:
            raise error.at(f"output {output}") from error
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise RunError("SINK_FAILED", reason, where=f"output {output}") from error

    def _delivery(self, output: str, table: pa.Table) -> Delivery:
        self._note_lag(output, [table])
        visible = _visible(table).cast(self._schemas[output])
        return Delivery(output, visible, _moment(table, 0), _moment(table, -1))

    def _note_lag(self, output: str, tables: list[pa.Table]) -> None:
        for table in tables:
            if table.num_rows:
                age_us = self._now_us() - table["_ts"][-1].as_py()
                self.lag_s[output] = round(age_us / 1e6, 3)


_NOTHING = pa.table({"_seq": pa.array([], pa.int64()), "_ts": pa.array([], pa.int64())})


def _runs(segments: Sequence[Segment]) -> Iterator[tuple[int, list[Segment]]]:
    """Segments step by step; steps that emitted one moment together go together."""
    run: list[Segment] = []
    sealed = 0
    for segment in sorted(segments, key=lambda s: (s.sealed, s.first)):
        later = [s for s in segments if s.sealed >= segment.sealed]
        if run and segment.sealed > sealed and min(s.first for s in later) >= sealed:
            yield sealed, run
            run = []
        run.append(segment)
        sealed = segment.sealed
    if run:
        yield sealed, run


def consumer(output: str) -> str:
    """The name of an output among the consumers of a log."""
    return f"output {output}"


def _target(sink: Sink) -> str:
    """What a position in a sink is a position of."""
    path = getattr(sink, "path", None)
    return type(sink).__name__ if path is None else os.path.abspath(path)


def _visible(table: pa.Table) -> pa.Table:
    return table.drop_columns([name for name in HIDDEN if name in table.column_names])


def _moment(table: pa.Table, index: int) -> tuple[int, bytes]:
    sub: Any = table["_sub"][index].as_py() if "_sub" in table.column_names else None
    return table["_seq"][index].as_py(), sub or b""
