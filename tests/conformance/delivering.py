"""The same with sinks: some queries are given one, and others take over its place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from auroral import Family, Query
from auroral.engine import Engine
from auroral.io.sinks.sink import Delivery, Sink

from .driving import Drive
from .running import plain
from .shared import Modify, Row


class Lasting(Sink):
    """Rows that a crash does not touch, as those in a file."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.closed = False

    def open(self, position: Any | None) -> None:
        del self.rows[position or 0 :]
        self.closed = False

    def write(self, delivery: Delivery) -> int:
        assert not self.closed
        self.rows.extend(delivery.table.to_pylist())
        return len(self.rows)

    def close(self) -> None:
        self.closed = True

    def column(self, name: str) -> list[Any]:
        """What it has got of one field."""
        return [row[name] for row in self.rows]


@dataclass
class _Bound:
    """A sink, and what it is to get of the query that has it."""

    sink: Lasting
    before: int
    """How many rows were taken of the query before it had the sink."""
    skipped: int = 0
    """How many rows of the sink are those of other queries before."""
    gone: int = 0
    """How many rows are those of members of a family that were removed."""


@dataclass
class _Ended:
    """The sink of a query that was removed."""

    name: str
    sink: Lasting
    count: int
    """So many rows it is to have."""
    last: list[Row] | None
    """The last of them, those of the query, unless it is a family."""


class DeliveringDrive(Drive):
    """Gives sinks to queries when their results have been looked at, and then reads those."""

    def __init__(self, *given: Any):
        super().__init__(*given)
        self.bound: dict[str, _Bound] = {}
        self._before: dict[str, list[Any]] = {}
        """What was taken of a query before it had a sink."""
        self._ended: list[_Ended] = []
        """Sinks of queries that were removed."""

    def _begin(self, engine: Engine) -> None:
        there, left = engine.list_entities()["queries"], engine.stats()["outputs"]
        for name, bound in self.bound.items():
            if name in there:
                engine.bind_sink(name, bound.sink)
        for ended in list(self._ended):
            name = ended.name
            if name not in self.bound and "left" in left.get(name, {}):
                engine.bind_sink(name, ended.sink)
                if name in there:  # another has come meanwhile, and goes on with it
                    self._ended.remove(ended)
                    self._before[name] = list(self._taken.get(name, []))
                    self.bound[name] = _Bound(ended.sink, len(self._before[name]), ended.count)

    def _forget(self, change: Modify) -> None:
        super()._forget(change)
        expected = self._model.queries()
        for name in change.remove:
            family, _, key = name.partition("[")
            if key:
                held = self._before.get(family, [])
                self._before[family] = [entry for entry in held if entry[0] != name]
                if family in self.bound:
                    self.bound[family].gone += len(expected[name])
        for name in change.remove:
            if name in self.bound:
                own = [name]
                if isinstance(self._model.alone[name][0].query, Family):
                    own = [member for chunk in self._model.alone[name] for member in chunk.names]
                    own = [member for member in own if member not in change.remove]
                bound = self.bound[name]
                given = bound.gone + sum(len(expected[member]) for member in own)
                rows = None
                if own == [name]:
                    rows = [row for _, row in expected[name]][bound.before :]
                count = bound.skipped + given - bound.before
                self._replace(_Ended(name, bound.sink, count, rows), change.add.get(name))

    def _replace(self, ended: _Ended, by: Query | None) -> None:
        """A query that takes the place of another keeps its sink."""
        del self.bound[ended.name]
        if by is not None and by.results == "keep":
            self._before[ended.name] = []
            self.bound[ended.name] = _Bound(ended.sink, 0, ended.count)
        else:
            self._ended.append(ended)

    def _take(self, engine: Engine, name: str) -> None:
        if name in self.bound:
            engine.drain()
            bound = self.bound[name]
            rows = bound.sink.rows[bound.skipped :]
            self._taken[name] = self._before[name] + self._by_query(name, rows)
            return
        super()._take(engine, name)
        if self._model.alone[name][0].query.results == "keep" and self._rng.random() < 0.5:
            self._before[name] = list(self._taken[name])
            bound = self.bound[name] = _Bound(Lasting(), len(self._before[name]))
            engine.bind_sink(name, bound.sink)

    def _take_together(self, engine: Engine, stream: str) -> None:
        if not self.bound:  # what sinks have got is nobody else's to take
            super()._take_together(engine, stream)

    def _compare(self, engine: Engine) -> None:
        super()._compare(engine)
        for ended in self._ended:
            closed = ended.sink.closed or self.starts > 1
            assert closed, f"the sink of {ended.name}, which was removed, is still open"
            rows = ended.sink.rows
            assert len(rows) == ended.count, f"the sink of {ended.name} has not its rest"
            if ended.last is not None:
                assert plain(rows[len(rows) - len(ended.last) :]) == plain(ended.last), ended.name
