"""The progress plane against the naive marks: any types, any network, any cut, any restart."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from auroral import Delayed, Network, Ordered, Punctuated
from auroral.engine.runtime.watermarks import WatermarkTracker, group_key
from auroral.network.types import Type
from auroral.progress.lowwater import GroupedLowWater, LowWater
from auroral.progress.values import to_mark
from auroral.reference import Reference

VALUES: dict[str, list[Any]] = {
    "bigint": [0, 3, 7, -(2**63), 2**63 - 1],
    "int": [-5, 0, 1, 4, 90],
    "double": [math.nan, -math.inf, -0.0, 0.1, 0.25, 1e17, math.inf],
    "float": [math.nan, 0.5, 2.5, 16777216.0],
    "decimal(10,2)": [Decimal("-0.01"), Decimal("0.50"), Decimal("12.34")],
    "decimal(38,18)": [Decimal("0.5"), Decimal("12345678901234567890.123456789012345678")],
    "date": [date(1, 1, 1), date(1969, 12, 31), date(1970, 1, 9), date(9999, 12, 31)],
    "timestamp": [datetime(1970, 1, 1, 0, 0, s, 500, tzinfo=UTC) for s in (0, 9, 30)],
    "timestamp_ntz": [datetime(1, 1, 1), datetime(1970, 1, 1, 1), datetime(2024, 2, 29)],
}
DELAYS: dict[str, list[Any]] = {
    "double": [0.1, 2],
    "float": [0.5],
    "date": [3, "48 hours"],
    "timestamp": ["4 s", 2.5],
    "timestamp_ntz": ["1 h"],
}
GROUPS = [None, "x", "y"]
TIMES_S = [0.0, 1.5, 12.25, 100_000.75]


def declared(rng: Random, kind: str, grouped: bool) -> Any:
    by = ("g",) if grouped else ()
    heartbeat = rng.choice([None, 2.5])
    if rng.random() < 0.3:
        return Punctuated("n", heartbeat=heartbeat, by=by)
    if rng.random() < 0.3:
        return Ordered("n", heartbeat=heartbeat, by=by)
    delay = rng.choice(DELAYS.get(kind, [0, 2]))
    return Delayed("n", delay, heartbeat=heartbeat, by=by)


def random_network(rng: Random, kind: str) -> Network:
    net = Network("marks")
    grouped = rng.random() < 0.4
    arcs = []
    for name in "ab":
        progress = declared(rng, kind, grouped and rng.random() < 0.8)
        arcs.append(net.stream(name, schema=f"g string, n {kind}", progress=progress))
    arcs.append(arcs[0].filter("g = 'x'", name="f").rest)
    arcs.append(arcs[1].map(N="n", G="g", name="copied").map(g="g", n="n", name="back"))
    arcs.append(arcs[0].map(keep=["G", "N"], name="kept"))
    arcs[0].map(m="n", n="CAST(NULL AS int)", name="moved")
    arcs.append(net.union(*rng.choices(arcs, k=2), name="u"))
    net.union(*rng.choices(arcs, k=3), name="v")
    return net


class Planes:
    """The plane fed in trains, and the reference tuple by tuple."""

    def __init__(self, net: Network, kind: str):
        self.net, self.kind = net, Type.parse(kind)
        self.checked = net.check()
        self.watermarks = WatermarkTracker(self.checked)
        self.reference = Reference(net)
        self.moment = 0

    def train(self, events: list[tuple[str, str, Any, Any]]) -> None:
        """Take events in one train: (stream, kind, value, group or time)."""
        tuples: dict[str, list[tuple[int, Any, Any]]] = {"a": [], "b": []}
        noted: dict[str, list[tuple[int, Any, tuple[Any, ...]]]] = {"a": [], "b": []}
        times: list[tuple[int, int]] = []
        for stream, what, value, more in events:
            if what == "time":
                times.append((self.moment, round(more * 1e6)))
                self.reference.push(stream, {"n": None}, at=more)
                tuples[stream].append((self.moment, None, None))
            elif what == "punctuation":
                by = self.net.streams[stream].progress.by  # type: ignore[union-attr]
                group = (more,) if by else ()
                self.reference.punctuate(stream, value, group)
                noted[stream].append((self.moment, to_mark(value, self.kind.scale), group))
            else:
                self.reference.push(stream, {"g": more, "n": value})
                tuples[stream].append((self.moment, more, value))
            self.moment += 1
        if times and self.watermarks.uses_clock:
            moments, when = (np.array(column) for column in zip(*times, strict=True))
            self.watermarks.tick(moments, when)
        for stream, rows in tuples.items():
            table = pa.table(
                {
                    "_seq": pa.array([r[0] for r in rows], pa.int64()),
                    "g": pa.array([r[1] for r in rows], pa.string()),
                    "n": pa.array([r[2] for r in rows], self.kind.arrow()),
                }
            )
            self.watermarks.advance(stream, table, noted[stream])
            self.watermarks.forget_before(self.moment)

    def restart(self) -> None:
        saved = self.watermarks.saved(self.moment)
        self.watermarks = WatermarkTracker(self.checked, json.loads(json.dumps(saved)))

    def compare(self) -> None:
        for arc, marks in self.watermarks.arcs().items():
            promises = self.reference.promises(arc)
            assert set(marks) == set(promises), arc
            for attribute, mark in marks.items():
                expected = dict(promises[attribute].marks)
                found: dict[Any, Any] = {}
                if isinstance(mark, GroupedLowWater):
                    assert mark.by == promises[attribute].by
                    found = {group: one.latest for group, one in mark.groups.items()}
                    assert mark.others.latest == promises[attribute].others
                else:
                    assert isinstance(mark, LowWater)
                    found = {(): mark.latest}
                assert found == expected, (arc, attribute)


@settings(max_examples=250)
@given(st.integers(0, 10**9), st.sampled_from(sorted(VALUES)))
def test_the_plane_promises_what_the_reference_does(seed: int, kind: str) -> None:
    # A seed varies more than what Hypothesis would vary in so few examples.
    rng = Random(seed)
    net = random_network(rng, kind)
    planes = Planes(net, kind)
    for _ in range(rng.randint(1, 4)):
        events = []
        for _ in range(rng.randint(0, 4)):
            value = rng.choice([None, *VALUES[kind], *VALUES[kind]])
            more: Any = rng.choice(GROUPS)
            what = rng.choice(["tuple", "tuple", "tuple", "punctuation", "time"])
            if what == "time":
                more = rng.choice(TIMES_S)
            if what == "punctuation" and (value is None or value != value):
                what = "tuple"
            events.append((rng.choice("ab"), what, value, more))
        planes.train(events)
        planes.compare()
        if rng.random() < 0.3:
            planes.restart()
            planes.compare()
    planes.watermarks.end(planes.moment)
    planes.reference.end()
    planes.compare()
    planes.restart()
    planes.watermarks.end(planes.moment)
    planes.compare()


def test_nan_is_one_group() -> None:
    assert len({group_key((float("nan"),)), group_key((float("nan"),))}) == 1
