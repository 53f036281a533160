"""What each continuous query would give if it were alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from auroral import Family, Query
from auroral.reference import Reference
from auroral.reference.network import _fitted

from .shared import Modify, Row, Scenario


@dataclass
class Alone:
    """A query, or some members of a family, in a network of its own."""

    query: Query
    reference: Reference
    names: list[str]
    """Of the queries that are still there."""
    start: int
    """The moment before the first it sees."""


@dataclass
class Model:
    """Every registered query alone, fed with what arrives while it is there."""

    scenario: Scenario
    alone: dict[str, list[Alone]] = field(default_factory=dict)
    history: list[tuple[str, Row]] = field(default_factory=list)

    def add(self, name: str, given: Any) -> None:
        if isinstance(given, list):
            old = self.alone[name][0].query
            assert isinstance(old, Family)
            given = Family(old.sql, given, old.key, results=old.results)
        net = self.scenario.streams()
        # Whether its results are counted or kept is nothing that a plain interpreter knows.
        net.queries[name] = given.model_copy(update={"results": "keep"})
        reference = Reference(net)
        for stream, row in self.history:
            # What a stream has promised it has promised to those who come later too.
            reference._marks[reference._streams[stream]].take(
                _fitted(row, net.streams[stream].schema_)
            )
        for mark in reference._marks.values():
            mark.number_anew()  # but it numbers its tuples from the first it sees
        reference._flow({})
        members = [name]
        if isinstance(given, Family):
            members = [f"{name}[{row['rule']}]" for row in given.values]
        mine = Alone(given, reference, members, len(self.history) - 1)
        self.alone.setdefault(name, []).append(mine)

    def remove(self, name: str) -> None:
        if name in self.alone:
            del self.alone[name]
            return
        family = name.partition("[")[0]
        for chunk in self.alone.get(family, ()):
            chunk.names = [each for each in chunk.names if each != name]

    def modify(self, change: Modify) -> None:
        for name in change.remove:
            self.remove(name)
        for name, given in change.add.items():
            self.add(name, given)

    def feed(self, stream: str, row: Row) -> None:
        self.history.append((stream, row))
        for chunks in self.alone.values():
            for alone in chunks:
                alone.reference.push(stream, row)

    def end(self) -> None:
        for chunks in self.alone.values():
            for alone in chunks:
                alone.reference.end()

    def queries(self) -> dict[str, list[tuple[int, Row]]]:
        """The results of every query and member so far, with the moments that made them."""
        return {
            name: [(a.start + t.moment, t.row) for t in a.reference.tuples(name)]
            for chunks in self.alone.values()
            for a in chunks
            for name in a.names
        }

    def errors(self) -> dict[str, int]:
        """On how many tuples the Python functions of each query failed so far."""
        return {
            name: a.reference.errors[name]
            for chunks in self.alone.values()
            for a in chunks
            for name in a.names
            if name in a.reference.errors
        }
