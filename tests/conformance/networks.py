"""Random networks, random rows, and random ways to run them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

from auroral import Delayed, Network, Ordered, Progress, Punctuated
from auroral.network.arc import Arc
from auroral.testing import punctuation

WIDE = "k int, x bigint, v double, s string, t timestamp, d decimal(10,2)"
NARROW = "n bigint, w string"

PREDICATES = {
    WIDE: [
        "k > 1",
        "k IS NULL",
        "v > 0.5",
        "v = v",
        "isnan(v) OR s IS NULL",
        "x % 2 = 0",
        "s LIKE 'a%'",
        "length(s) > 1 AND k < 3",
        "t < timestamp'2024-01-01 12:00:00'",
        "d >= 1.5",
        "k IN (1, 2, NULL)",
        "CAST(NULL AS boolean)",
    ],
    NARROW: ["n > 0", "n % 3 = 1", "w IS NOT NULL", "w < 'b'"],
}
CALLING = {
    WIDE: ["picky(x) > 0", "k > 1 AND NOT picky(x + k) = picky(coalesce(x, 1))", "odd(picky(x))"],
    NARROW: ["odd(n)", "odd(n) OR w LIKE 'a%'"],
}
"""Predicates that call Python functions, which fail for some tuples."""
SAME: dict[str, list[dict[str, str]]] = {
    WIDE: [
        {"x": "x * 2 + k"},
        {"v": "v / k", "s": "concat(s, '!')"},
        {"d": "CAST(d * 2 - 1 AS decimal(10,2))", "k": "k + 1"},
        {"t": "t + INTERVAL 1 HOUR", "v": "-v"},
        {"s": "coalesce(upper(s), 'none')", "k": "CASE WHEN k > 1 THEN k ELSE NULL END"},
        {"x": "CAST(v AS bigint)"},
    ],
    NARROW: [{"n": "n - 1"}, {"w": "concat(w, w)"}],
}
SAME_CALLING = {
    WIDE: [{"x": "picky(x) + 1", "k": "CASE WHEN odd(x) THEN k ELSE -1 END"}],
    NARROW: [{"n": "picky(n)"}],
}
"""Computed fields that keep the schema."""
NARROWING = [
    {"n": "x", "w": "upper(s)"},
    {"n": "x + k", "w": "CAST(d AS string)"},
    {"n": "CAST(v AS bigint)", "w": "s"},
]

_TIMES = [datetime(2024, 1, 1, hour, tzinfo=UTC) for hour in (0, 11, 12, 13)]
VALUES: dict[str, list[Any]] = {
    "k": [None, -2, 0, 1, 2, 3],
    "x": [None, -5, 0, 1, 2, 3, 4, 2**62, -(2**63)],
    "v": [None, math.nan, math.inf, -0.0, 0.0, 0.5, 0.75, -3.5, 1e300],
    "s": [None, "", "a", "ab", "B", "é😀"],
    "t": [None, *_TIMES, datetime(1969, 12, 31, 23, tzinfo=UTC)],
    "d": [None, Decimal("1.50"), Decimal("-0.01"), Decimal("99999.99")],
}
BAD: dict[str, Any] = {"k": "no number"}
PROGRESS: list[Progress | None] = [
    None,
    Ordered("t"),
    Delayed("x", 2),
    Delayed("d", 0.5, by=("k",)),
    Punctuated("v"),
]


@dataclass(frozen=True)
class Batch:
    """Rows given to `enqueue` together; `BAD` among them does not fit."""

    stream: str
    rows: tuple[dict[str, Any], ...]
    drain: bool


@dataclass(frozen=True)
class Way:
    """One way to run a network: none of this may show in the result."""

    train: int | None
    reuse_plans: bool
    driver_bytes: int
    split_rows: int
    """Batches of this size are written as two files."""
    partition_bytes: int | None
    crashes: frozenset[int] = field(default_factory=frozenset)
    """At which of the points where a crash is survivable the process dies."""
    positions: bool = True
    """Whether batches carry positions; else the journal keeps what was acknowledged."""
    buckets: int = 2
    """How many parts the state of a box has."""
    parallel_rows: int = 100_000
    """Trains larger than this are spread over tasks by bucket."""
    flush_rows: int = 65_536
    """How many closed windows a box that is slow to flush holds back."""


def way(rng: Random, *, crashing: bool) -> Way:
    return Way(
        train=rng.choice([3, 5, 8, None]),
        reuse_plans=rng.random() < 0.5,
        driver_bytes=rng.choice([0, 1 << 20, 1 << 20]),
        split_rows=rng.choice([2, 100_000]),
        partition_bytes=rng.choice([None, 2_500]),
        crashes=frozenset(rng.sample(range(30), rng.randint(1, 3))) if crashing else frozenset(),
        positions=rng.random() < 0.5,
        buckets=rng.choice([1, 2, 3]),
        parallel_rows=rng.choice([0, 0, 100_000]),
        flush_rows=rng.choice([1, 3]),
    )


def network(rng: Random, most_boxes: int = 8) -> Network:
    """Up to eight boxes over one to three streams; up to three outputs, of streams too."""
    net = Network("random", directory=Path(__file__).parent)
    for name, returns in (("picky", "bigint"), ("odd", "boolean")):
        net.function(name, f"plain_functions:{name}", returns=returns)
    arcs: dict[str, list[Arc]] = {WIDE: [], NARROW: []}
    for name in "abc"[: rng.randint(1, 3)]:
        arcs[WIDE].append(net.stream(name, schema=WIDE, progress=rng.choice(PROGRESS)))
    for number in range(rng.randint(2, most_boxes)):
        schema = rng.choice([s for s in (WIDE, WIDE, NARROW) if arcs[s]])
        kind = rng.choice(["where", "routes", "map", "narrow", "union", "union"])
        _add(rng, net, f"{kind}{number}", kind, schema, arcs)
    every = [arc for held in arcs.values() for arc in held]
    # One of the newest arcs always: they have the most boxes behind them.
    chosen = [rng.choice(every[-3:]), *rng.choices(every, k=rng.randint(0, 2))]
    for number, arc in enumerate(chosen):
        net.output(f"o{number}", arc)
    return net


def _add(
    rng: Random, net: Network, name: str, kind: str, schema: str, arcs: dict[str, list[Arc]]
) -> None:
    arc, calling = rng.choice(arcs[schema]), rng.random() < 0.3
    predicates = [*PREDICATES[schema], *(CALLING[schema] if calling else [])]
    predicates = CALLING[schema] if calling and kind == "where" else predicates
    if kind == "where":
        kept = arc.filter(rng.choice(predicates), name=name)
        arcs[schema] += [kept.rest, kept]
    elif kind == "routes":
        routes = {"p": rng.choice(predicates), "q": rng.choice(predicates)}
        split = arc.filter(routes=routes, name=name)
        arcs[schema] += [split.port(port) for port in ("p", "q", "rest")]
    elif kind == "map":
        same = SAME_CALLING[schema] if calling else SAME[schema]
        arcs[schema].append(arc.map(keep="*", name=name, **rng.choice(same)))
    elif kind == "narrow":
        wide = rng.choice(arcs[WIDE])
        arcs[NARROW].append(wide.map(name=name, **rng.choice(NARROWING)))
    else:
        others = rng.choices(arcs[schema], k=rng.randint(1, 2))
        arcs[schema].append(net.union(arc, *others, name=name))


def script(rng: Random, net: Network, most_batches: int = 5) -> list[Batch]:
    """Batches for a network's streams; punctuations where it is declared, a bad row at times."""
    batches = []
    for _ in range(rng.randint(2, most_batches)):
        stream = rng.choice(sorted(net.streams))
        rows = tuple(_row(rng, net.streams[stream].punctuated) for _ in range(rng.randint(0, 7)))
        batches.append(Batch(stream, rows, rng.random() < 0.5))
    return batches


def _row(rng: Random, progress: Progress | None) -> dict[str, Any]:
    if rng.random() < 0.05:
        return BAD
    if progress and progress.punctuated and rng.random() < 0.3:
        return punctuation(rng.choice([-1.0, 0.5, 2.0]))
    return {name: rng.choice(values) for name, values in VALUES.items()}
