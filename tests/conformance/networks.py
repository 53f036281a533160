"""Random networks, random rows, and random ways to run them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

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
        "true",
    ],
    NARROW: ["n > 0", "n % 3 = 1", "w IS NOT NULL", "w < 'b'"],
}
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
"""Computed fields that keep the schema."""
NARROWING = [
    {"n": "x", "w": "upper(s)"},
    {"n": "x + k", "w": "CAST(d AS string)"},
    {"n": "CAST(v AS bigint)", "w": "s"},
]

_TIMES = [datetime(2024, 1, 1, hour, tzinfo=UTC) for hour in (0, 11, 12, 13)]
ROWS = st.fixed_dictionaries(
    {
        "k": st.none() | st.integers(-2, 4),
        "x": st.none() | st.integers(-5, 5) | st.just(2**62),
        "v": st.none() | st.sampled_from([math.nan, math.inf, -0.0, 0.0, 0.5, 0.75, -3.5, 1e300]),
        "s": st.none() | st.sampled_from(["", "a", "ab", "B", "é😀"]),
        "t": st.none() | st.sampled_from([*_TIMES, datetime(1969, 12, 31, 23, tzinfo=UTC)]),
        "d": st.none() | st.sampled_from([Decimal("1.50"), Decimal("-0.01"), Decimal("99999.99")]),
    }
)
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
    """Rows given to `enqueue` together; None among them is a row that does not fit."""

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


def ways(*, crashing: bool) -> st.SearchStrategy[Way]:
    return st.builds(
        Way,
        train=st.sampled_from([3, 5, 8, None]),
        reuse_plans=st.booleans(),
        driver_bytes=st.sampled_from([0, 1 << 20, 1 << 20]),
        split_rows=st.sampled_from([2, 100_000]),
        partition_bytes=st.sampled_from([None, 2_500]),
        crashes=st.frozensets(st.integers(0, 25), min_size=1, max_size=3)
        if crashing
        else st.just(frozenset()),
        positions=st.booleans(),
    )


@st.composite
def networks(draw: st.DrawFn, most_boxes: int = 8) -> Network:
    """Up to eight boxes over one to three streams; up to three outputs, of streams too."""
    net = Network("random")
    arcs: dict[str, list[Arc]] = {WIDE: [], NARROW: []}
    for name in "abc"[: draw(st.integers(1, 3))]:
        progress = draw(st.sampled_from(PROGRESS))
        arcs[WIDE].append(net.stream(name, schema=WIDE, progress=progress))
    for number in range(draw(st.integers(1, most_boxes))):
        schema = draw(st.sampled_from([s for s in (WIDE, NARROW) if arcs[s]]))
        kind = draw(st.sampled_from(["where", "routes", "map", "narrow", "union", "union"]))
        _add(draw, net, f"{kind}{number}", kind, schema, arcs)
    every = [arc for held in arcs.values() for arc in held]
    # The newest arcs most often: they have the most boxes behind them.
    chosen = [every[-1], *draw(st.lists(st.sampled_from(every), max_size=2, unique_by=str))]
    for number, arc in enumerate(chosen):
        net.output(f"o{number}", arc)
    return net


def _add(
    draw: st.DrawFn, net: Network, name: str, kind: str, schema: str, arcs: dict[str, list[Arc]]
) -> None:
    inputs = st.sampled_from(arcs[schema])
    predicates = st.sampled_from(PREDICATES[schema])
    if kind == "where":
        kept = draw(inputs).filter(draw(predicates), name=name)
        arcs[schema] += [kept.rest, kept]
    elif kind == "routes":
        routes = {"p": draw(predicates), "q": draw(predicates)}
        split = draw(inputs).filter(routes=routes, name=name)
        arcs[schema] += [split.port(port) for port in ("p", "q", "rest")]
    elif kind == "map":
        arcs[schema].append(draw(inputs).map(keep="*", name=name, **draw(_one(SAME[schema]))))
    elif kind == "narrow":
        arc = draw(st.sampled_from(arcs[WIDE]))
        arcs[NARROW].append(arc.map(name=name, **draw(_one(NARROWING))))
    else:
        chosen = draw(st.lists(inputs, min_size=2, max_size=3))
        arcs[schema].append(net.union(*chosen, name=name))


def _one(choices: list[dict[str, str]]) -> st.SearchStrategy[dict[str, str]]:
    return st.sampled_from(choices)


@st.composite
def scripts(draw: st.DrawFn, net: Network, most_batches: int = 5) -> list[Batch]:
    """Batches for a network's streams; punctuations where it is declared, a bad row at times."""
    batches = []
    for _ in range(draw(st.integers(1, most_batches))):
        stream = draw(st.sampled_from(sorted(net.streams)))
        progress = net.streams[stream].progress
        rows = ROWS | ROWS | st.just(BAD)
        if progress and progress.punctuated:
            rows |= st.sampled_from([-1.0, 0.5, 2.0]).map(punctuation)
        drawn = draw(st.lists(rows, max_size=6))
        batches.append(Batch(stream, tuple(drawn), draw(st.booleans())))
    return batches
