"""What a task tells the driver of an eddy's step, as text that travels in a note."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from auroral.eddy.filters.tally import Counts
from auroral.eddy.routes.routing import Visit


@dataclass
class Report:
    """Matches and errors by query, visits of filters by arc, samples of values."""

    matches: list[Counts] = field(default_factory=list)
    errors: dict[int, tuple[int, str]] = field(default_factory=dict)
    late: dict[int, int] = field(default_factory=dict)
    visits: dict[str, dict[str, Visit]] = field(default_factory=dict)
    tuples: dict[str, int] = field(default_factory=dict)
    samples: dict[str, dict[str, pa.Array]] = field(default_factory=dict)
    probes: dict[str, Visit] = field(default_factory=dict)
    held: dict[str, int] = field(default_factory=dict)

    def count(self, counts: Counts) -> None:
        self.matches.append(counts)

    def fail(self, query: int, tuples: int, reason: str) -> None:
        """Tuples on which a query could not be evaluated."""
        before = self.errors.get(query, (0, reason))
        self.errors[query] = (before[0] + tuples, before[1])

    def visit(self, arc: str, tuples: int, visits: Mapping[str, Visit]) -> None:
        self.tuples[arc] = self.tuples.get(arc, 0) + tuples
        known = self.visits.setdefault(arc, {})
        for name, visit in visits.items():
            known[name] = added(known.get(name), visit)

    def document(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {
            "matches": [[_packed(ids), _packed(counts)] for ids, counts in self.matches],
            "errors": [[query, *error] for query, error in self.errors.items()],
            "late": list(self.late.items()),
            "visits": {
                arc: {n: [v.routed, v.returned, v.seconds] for n, v in visits.items()}
                for arc, visits in self.visits.items()
            },
            "tuples": self.tuples,
            "samples": {
                arc: {name: _serialised(values) for name, values in samples.items()}
                for arc, samples in self.samples.items()
            },
            "probes": {n: [v.routed, v.returned, v.seconds] for n, v in self.probes.items()},
            "held": self.held,
        }

    def add(self, document: Mapping[str, Any]) -> None:
        """Add what another task told."""
        for ids, counts in document["matches"]:
            self.count((_unpacked(ids, np.int32), _unpacked(counts, np.int64)))
        for query, tuples, reason in document["errors"]:
            self.fail(query, tuples, reason)
        for query, tuples in document["late"]:
            self.late[query] = self.late.get(query, 0) + tuples
        for arc, visits in document["visits"].items():
            self.visit(arc, 0, {name: Visit(*visit) for name, visit in visits.items()})
        for arc, tuples in document["tuples"].items():
            self.tuples[arc] = self.tuples.get(arc, 0) + tuples
        for arc, samples in document["samples"].items():
            self.samples[arc] = {name: _deserialised(text) for name, text in samples.items()}
        for name, visit in document["probes"].items():
            self.probes[name] = added(self.probes.get(name), Visit(*visit))
        for name, held in document["held"].items():
            self.held[name] = self.held.get(name, 0) + held

    def totals(self) -> Counts:
        """Matches by query, each once."""
        if not self.matches:
            return np.zeros(0, np.int32), np.zeros(0, np.int64)
        ids = np.concatenate([ids for ids, _ in self.matches])
        counts = np.concatenate([counts for _, counts in self.matches])
        once, place = np.unique(ids, return_inverse=True)
        summed = np.zeros(len(once), np.int64)
        np.add.at(summed, place, counts)
        return once, summed


def added(one: Visit | None, other: Visit) -> Visit:
    """Two visits of one operator as one."""
    if one is None:
        return other
    return Visit(
        one.routed + other.routed, one.returned + other.returned, one.seconds + other.seconds
    )


def _packed(numbers: npt.NDArray[Any]) -> str:
    return base64.b64encode(np.ascontiguousarray(numbers).tobytes()).decode()


def _unpacked(text: str, kind: Any) -> npt.NDArray[Any]:
    return np.frombuffer(base64.b64decode(text), kind)


def _serialised(values: pa.Array) -> str:
    sink = pa.BufferOutputStream()
    batch = pa.record_batch([values], names=["v"])
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return base64.b64encode(sink.getvalue()).decode()


def _deserialised(text: str) -> pa.Array:
    with pa.ipc.open_stream(base64.b64decode(text)) as reader:
        return reader.read_all()["v"].combine_chunks()
