"""How an eddy orders the probes of a join: tuples joined on the way, and time [5 §3.3.2]."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np
import pyarrow as pa

import auroral as au
from benchmarks.cacq.lab import feed
from benchmarks.cacq.routing import POLICIES
from benchmarks.lab import Lab
from benchmarks.report import Report

JOINS = "A join of three: tuples joined per new tuple, by order of probes"
_TRAIN = 20_000
_KEYS = 100
_MANY = 100
"""Partners of each tuple in one of the SteMs; in the other one tuple in a hundred has one."""
_QUERY = (
    "select a.x from A [rows 1000] as a, B [rows {rows}] as b, C [rows {rows}] as c"
    " where a.k = b.k and a.k = c.k"
)


def joins(report: Report, lab: Lab) -> None:
    """A stream meets two SteMs; half way, what each of them has for it is swapped."""
    section = report.section(JOINS, "policy", "joined_per_tuple", "tuples_per_s")
    count = lab.steps(20, 6)
    trains = [_probing(lab.rows(_TRAIN), _KEYS * (2 * n >= count)) for n in range(count)]
    tuples = sum(train.num_rows for train in trains)
    found = {}
    with ExitStack() as stack:
        engines = {
            policy: stack.enter_context(lab.engine(_network(policy), 2 * _KEYS * _MANY))
            for policy in POLICIES
        }
        for engine in engines.values():
            for stream, many in (("B", 0), ("C", _KEYS)):
                feed(engine, stream, _stored(many))
            feed(engine, "A", trains[0])
        before = {policy: _joined(engine) for policy, engine in engines.items()}
        seconds = dict.fromkeys(POLICIES, 0.0)
        for train in trains:  # in turn: what else the machine does concerns all of them
            for policy, engine in engines.items():
                seconds[policy] += feed(engine, "A", train)
        for policy, engine in engines.items():
            joined = (_joined(engine) - before[policy]) / tuples
            found[policy] = joined, tuples / seconds[policy]
            section.rows.append((policy, *found[policy]))
    (fewest, fast), (most, slow) = found["tickets"], found["random"]
    report.bar("join of three: tuples joined with tickets / in any order", fewest / most, most=0.4)
    report.bar("join of three: tuples/s with tickets / in any order", fast / slow, least=1.0)


def _network(policy: str) -> au.Network:
    net = au.Network("joins")
    net.engine = au.EngineOptions(routing=policy)
    for name in "ABC":
        net.stream(name, "k int, x int")
    net.query("q", _QUERY.format(rows=2 * _KEYS * _MANY), results="count")
    return net


def _stored(many: int) -> pa.Table:
    """Many tuples of each of some keys, and one of a single key among the others."""
    keys = np.repeat(np.arange(many, many + _KEYS), _MANY)
    keys = np.append(keys, _KEYS - many).astype(np.int32)
    return pa.table({"k": keys, "x": np.arange(len(keys), dtype=np.int32)})


def _probing(rows: int, first: int) -> pa.Table:
    """New tuples with any of the keys from `first` on."""
    numbers = np.arange(rows, dtype=np.int32)
    return pa.table({"k": (numbers % _KEYS + first).astype(np.int32), "x": numbers})


def _joined(engine: au.Engine) -> int:
    """How many tuples SteMs have returned so far, those of results included."""
    (eddy,) = engine.stats()["eddies"].values()
    (join,) = eddy["joins"].values()
    return sum(stem["matched"] for stem in join["A"]["stems"].values())
