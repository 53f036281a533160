"""A market of ticks and news, and what queries over it should find."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pyarrow as pa

import auroral as au

Row = dict[str, Any]


def ticks() -> au.Network:
    net = au.Network("market")
    net.stream("ticks", "n bigint, sym string, price double")
    net.stream("news", "sym string, text string")
    return net


def tick(n: int) -> Row:
    return {"n": n, "sym": "ABC"[n % 3], "price": float(n * 7 % 20) if n % 11 else None}


def batch(start: int, stop: int) -> list[Row]:
    return [tick(n) for n in range(start, stop)]


def numbers(table: pa.Table) -> list[int]:
    return list(table["n"].to_pylist())


def above(limit: float, *spans: tuple[int, int]) -> list[int]:
    """The ticks of some spans with a price above a limit."""
    found = (tick(n) for span in spans for n in range(*span))
    return [row["n"] for row in found if row["price"] is not None and row["price"] > limit]


RULES = [
    {"rule": 1, "sym": "A", "limit": 5.0},
    {"rule": 2, "sym": "B", "limit": 15.0},
    {"rule": 3, "sym": "A", "limit": 0.0},
    {"rule": 4, "sym": "C", "limit": None},
]
ALERTS = "SELECT n, price, :limit AS over FROM ticks WHERE sym = :sym AND price > :limit"


def alerts(rules: list[Row], span: tuple[int, int]) -> list[tuple[int, int]]:
    """Rule and tick of every alert, in order."""
    return [
        (rule["rule"], n)
        for n in range(*span)
        for rule in rules
        if rule["limit"] is not None
        and n in above(rule["limit"], (n, n + 1))
        and tick(n)["sym"] == rule["sym"]
    ]


def all_ticks() -> au.Network:
    """With a query that gives every tick."""
    net = ticks()
    net.query("all", "SELECT n FROM ticks")
    return net


PAIRS = "SELECT ticks.n, text FROM ticks [ROWS 9], news [ROWS 9] WHERE ticks.sym = news.sym"
NEWS = [{"sym": sym, "text": sym.lower()} for sym in "ABC"]
BOXED = "SELECT count(*) AS n FROM ticks [ROWS 1]"
"""What no eddy can run."""
SUMS = "SELECT sum(n) AS n FROM ticks [ROWS 1]"
"""Every tick, by boxes."""


def going_ticks(going: str = "SELECT n FROM ticks") -> au.Network:
    """With a query that is to go, too."""
    net = all_ticks()
    net.query("going", going)
    return net


def in_thread(call: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=call)
    thread.start()
    return thread
