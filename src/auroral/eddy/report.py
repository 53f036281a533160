"""A task's report to the driver about an eddy's step, serialised as text."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from auroral.eddy.filters.tally import Counts
from auroral.eddy.routes.probing import Prober, Probes
from auroral.eddy.routes.routing import Visit, added

_DENSE = 16
"""Up to so many ids for each that is counted, sums are by place; sorting takes longer."""


@dataclass
class Report:
    """Matches and errors by query, visits of filters by arc, samples of values."""

    matches: list[Counts] = field(default_factory=list)
    errors: dict[int, tuple[int, str]] = field(default_factory=dict)
    late: dict[tuple[int, str], int] = field(default_factory=dict)
    """Tuples in no window of an aggregate, by query and reason."""
    visits: dict[str, dict[str, Visit]] = field(default_factory=dict)
    tuples: dict[str, int] = field(default_factory=dict)
    arrived: dict[str, int] = field(default_factory=dict)
    """How many tuples came on each arc; `tuples` has those of joins and aggregates, too."""
    samples: dict[str, dict[str, pa.Array]] = field(default_factory=dict)
    routes: dict[str, tuple[int, list[str]]] = field(default_factory=dict)
    """By arc the order of operators that cost least, and of how many tuples."""
    probes: dict[str, Visit] = field(default_factory=dict)
    """By arc, what its SteM was asked."""
    joins: dict[Prober, Probes] = field(default_factory=dict)
    """The same of joins of three and more sources, by who asked, and in which orders."""
    held: dict[str, int] = field(default_factory=dict)

    def count(self, counts: Counts) -> None:
        self.matches.append(counts)

    def fail(self, query: int, tuples: int, reason: str) -> None:
        """Count tuples on which a query could not be evaluated."""
        before = self.errors.get(query, (0, reason))
        self.errors[query] = (before[0] + tuples, before[1])

    def leave(self, query: int, reason: str, tuples: int) -> None:
        """Count tuples that an aggregate left out, by reason."""
        self.late[query, reason] = self.late.get((query, reason), 0) + tuples

    def see(self, arc: str, tuples: int) -> None:
        """Count tuples that go through the filters of an arc, each once."""
        self.tuples[arc] = self.tuples.get(arc, 0) + tuples

    def visit(self, arc: str, visits: Mapping[str, Visit]) -> None:
        """Add the visits of an arc's filters."""
        known = self.visits.setdefault(arc, {})
        for name, visit in visits.items():
            known[name] = added(known.get(name), visit)

    def route(self, arc: str, tuples: int, order: Sequence[str]) -> None:
        """Record the best order found; the report that tried it on more tuples wins."""
        self.routes[arc] = max(self.routes.get(arc, (0, [])), (tuples, list(order)))

    def probe(self, arcs: Sequence[str], prober: Prober, probes: Probes) -> None:
        """New tuples of a source have probed SteMs; `arcs` are those of the join."""
        for place, visit in probes.stems.items():
            self.probes[arcs[place]] = added(self.probes.get(arcs[place]), visit)
        if len(arcs) > 2:
            self.joins.setdefault(prober, Probes()).add(probes)

    def document(self) -> dict[str, Any]:
        """The report as a JSON document."""
        return {
            "matches": [[_text(half) for half in packed(counts)] for counts in self.matches],
            "errors": [[query, *error] for query, error in self.errors.items()],
            "late": [[*whose, tuples] for whose, tuples in self.late.items()],
            "visits": {
                arc: {n: [v.routed, v.returned, v.seconds] for n, v in visits.items()}
                for arc, visits in self.visits.items()
            },
            "tuples": self.tuples,
            "arrived": self.arrived,
            "samples": {
                arc: {name: _serialised(values) for name, values in samples.items()}
                for arc, samples in self.samples.items()
            },
            "routes": self.routes,
            "probes": {n: [v.routed, v.returned, v.seconds] for n, v in self.probes.items()},
            "joins": [
                [
                    *prober,
                    [[n, v.routed, v.returned, v.seconds] for n, v in probes.stems.items()],
                    [[list(order), tuples] for order, tuples in probes.orders.items()],
                ]
                for prober, probes in self.joins.items()
            ],
            "held": self.held,
        }

    def add(self, document: Mapping[str, Any]) -> None:
        """Add the report of another task."""
        for ids, counts in document["matches"]:
            self.count(unpacked(base64.b64decode(ids), base64.b64decode(counts)))
        for query, tuples, reason in document["errors"]:
            self.fail(query, tuples, reason)
        for query, reason, tuples in document["late"]:
            self.leave(query, reason, tuples)
        for arc, visits in document["visits"].items():
            self.visit(arc, {name: Visit(*visit) for name, visit in visits.items()})
        for arc, tuples in document["tuples"].items():
            self.see(arc, tuples)
        for arc, tuples in document["arrived"].items():
            self.arrived[arc] = self.arrived.get(arc, 0) + tuples
        for arc, samples in document["samples"].items():
            self.samples[arc] = {name: _deserialised(text) for name, text in samples.items()}
        for arc, (tuples, order) in document["routes"].items():
            self.route(arc, tuples, order)
        for name, visit in document["probes"].items():
            self.probes[name] = added(self.probes.get(name), Visit(*visit))
        for group, place, stems, orders in document["joins"]:
            told = Probes(
                {at: Visit(*visit) for at, *visit in stems},
                {tuple(order): tuples for order, tuples in orders},
            )
            self.joins.setdefault((group, place), Probes()).add(told)
        for name, held in document["held"].items():
            self.held[name] = self.held.get(name, 0) + held

    def totals(self) -> Counts:
        """Matches by query, each once."""
        if not self.matches:
            return np.zeros(0, np.int32), np.zeros(0, np.int64)
        ids = np.concatenate([ids for ids, _ in self.matches])
        counts = np.concatenate([counts for _, counts in self.matches])
        last = int(ids.max(initial=-1))
        if last < _DENSE * len(ids):
            total = np.zeros(last + 1, np.int64)
            np.add.at(total, ids, counts)
            used = np.flatnonzero(total)
            return used.astype(np.int32), total[used]
        once, place = np.unique(ids, return_inverse=True)
        summed = np.zeros(len(once), np.int64)
        np.add.at(summed, place, counts)
        return once, summed


def packed(counts: Counts) -> tuple[bytes, bytes]:
    """Queries and numbers as bytes; numbers in as few as the greatest needs.

    >>> one = np.array([7], np.int32), np.array([300], np.int64)
    >>> [len(half) for half in packed(one)], unpacked(*packed(one)) == one
    ([4, 2], True)
    """
    ids, numbers = counts
    smallest = np.min_scalar_type(int(numbers.max(initial=0)))
    return ids.astype("<i4").tobytes(), numbers.astype(smallest.newbyteorder("<")).tobytes()


def unpacked(ids: bytes, numbers: bytes) -> Counts:
    """The inverse of `packed`."""
    queries = np.frombuffer(ids, "<i4").astype(np.int32, copy=False)
    width = len(numbers) // max(len(queries), 1) or 1
    return queries, np.frombuffer(numbers, f"<u{width}").astype(np.int64)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _serialised(values: pa.Array) -> str:
    sink = pa.BufferOutputStream()
    batch = pa.record_batch([values], names=["v"])
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return _text(sink.getvalue())


def _deserialised(text: str) -> pa.Array:
    with pa.ipc.open_stream(base64.b64decode(text)) as reader:
        return reader.read_all()["v"].combine_chunks()
