"""The same with sinks: some queries are given one, and others take over its place."""

from __future__ import annotations

from typing import Any

from auroral import Query
from auroral.engine import Engine
from auroral.io.sinks.sink import Delivery, Sink

from .driving import Drive
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
        self.rows.extend(delivery.table.to_pylist())
        return len(self.rows)

    def close(self) -> None:
        self.closed = True


class DeliveringDrive(Drive):
    """Gives sinks to queries when their results have been looked at, and then reads those."""

    def __init__(self, *given: Any):
        super().__init__(*given)
        self.sinks: dict[str, Lasting] = {}
        self._before: dict[str, list[Any]] = {}
        """What was taken of a query before it had a sink."""
        self._skipped: dict[str, int] = {}
        """How many rows of a sink are those of another query before."""

    def _begin(self, engine: Engine) -> None:
        there = engine.list_entities()["queries"]
        for name, sink in self.sinks.items():
            if name in there:
                engine.bind_sink(name, sink)

    def _forget(self, change: Modify) -> None:
        super()._forget(change)
        for name in change.remove:
            family, _, key = name.partition("[")
            if key:
                held = self._before.get(family, [])
                self._before[family] = [entry for entry in held if entry[0] != name]
            elif name in self.sinks:
                self._replace(name, change.add.get(name))

    def _replace(self, name: str, by: Query | None) -> None:
        """A query that takes the place of another keeps its sink."""
        sink = self.sinks[name]
        if by is not None and by.results == "keep":
            self._before[name] = []
            self._skipped[name] = len(sink.rows)
        else:
            assert sink.closed or self.starts > 1, f"the sink of {name} is still open"
            del self.sinks[name]

    def _take(self, engine: Engine, name: str) -> None:
        if name in self.sinks:
            engine.drain()
            rows = self.sinks[name].rows[self._skipped[name] :]
            self._taken[name] = self._before[name] + self._by_query(name, rows)
            return
        super()._take(engine, name)
        if self._model.alone[name][0].query.results == "keep" and self._rng.random() < 0.5:
            self._before[name] = list(self._taken[name])
            self._skipped[name] = 0
            self.sinks[name] = Lasting()
            engine.bind_sink(name, self.sinks[name])

    def _take_together(self, engine: Engine, stream: str) -> None:
        if not self.sinks:  # what sinks have got is nobody else's to take
            super()._take_together(engine, stream)
