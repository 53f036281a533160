"""Queries Q1–Q9 of the paper on out-of-order processing, and the streams they are about.

As printed, but for misprints: `M1.destIP and M2.srcIP` is an equality, and the
band n of Q7 is a number.
"""

from __future__ import annotations

from typing import Any

import auroral as au
from auroral.continuous.boxing.compiler import CompiledQuery, compile_query
from auroral.continuous.boxing.expansion import expanded
from auroral.network.types import Schema
from auroral.testing import run

PACKET = "srcIP bigint, destIP bigint, srcPort int, destPort int, ts bigint, flag string"
STREAMS = ["A", "B", "C", "Control", "D", "M", "M1", "M2", "Main1", "Main2", "S0", "S1"]
ARCS = dict.fromkeys(STREAMS, Schema.parse(PACKET))
PROGRESS = dict.fromkeys(STREAMS, ("ts",))

PRINTED = {
    "Q1": """
        SELECT count (*) FROM Control union Main1 union Main2
        [RANGE 1 minute, SLIDE 1 minute, WA ts]
    """,
    "Q2": """
        SELECT * FROM Main1 [WA ts, RANGE 3 min], Main2 [WA ts, RANGE 2 min]
        WHERE Main1.srcIP = Main2.destIP;
    """,
    "Q3": """
        SELECT S0.ts, S1.ts, count(*)
        FROM S0 [WA ts, RANGE 2 min],
        S1 [WA ts, RANGE 2 min]
        WHERE S0.destIP = S1.srcIP AND S0.destPort = S1.srcPort
        AND S0.flag = SYN and S1.flag = SYN_ACK
        AND S0.ts < S1.ts
        GROUP BY S0.ts, S1.ts;
    """,
    "Q4": """
        SELECT srcIP, destIP, count(*) FROM M [WA ts, RANGE 1 min, SLIDE 1 min]
        GROUP BY srcIP, destIP
    """,
    "Q5": """
        SELECT srcIP, destIP, count(*)
        FROM M1 UNION M2
        [RANGE 1 min, SLIDE 1 min, WA ts]
        GROUP BY srcIP, destIP
    """,
    "Q6": """
        SELECT M1.srcIP, M1.destIP, M1.ts
        FROM A UNION B as M1, C UNION D as M2
        WHERE M1.ts/10 = M2.ts/10 and M1.srcIP = M2.destIP and
        M1.destIP = M2.srcIP and M1.srcPort = M2.destPort and
        M1.destPort = M2.srcPort
    """,
    "Q7": """
        SELECT count(*)
        [RANGE 1 min, SLIDE 1 min, WA M1.ts] FROM M1, M2
        WHERE M1.ts >= M2.ts - 5 and M1.ts <= M2.ts + 5 and M1.srcIP = M2.destIP
        and M1.destIP = M2.srcIP and M1.srcPort = M2.destPort and M1.destPort = M2.srcPort
    """,
    "Q8": """
        SELECT M1.srcIP, M1.destIP, M1.ts
        FROM M1, M2 Union C as M3
        WHERE M1.ts = M3.ts and M1.srcIP = M3.destIP and M1.destIP = M3.srcIP
        and M1.srcPort = M3.destPort and M1.destPort = M3.srcPort
    """,
    "Q9": "SELECT count(*) [RANGE 5 min, SLIDE 1 min, WA ts] FROM M1 UNION M2 UNION C",
}


def compiled(sql: str) -> CompiledQuery:
    """A query over the packet streams."""
    return compile_query("q", sql, ARCS, PROGRESS)


def boxes(sql: str) -> list[dict[str, Any]]:
    """The boxes of a query over the packet streams, as a network file has them."""
    return [{"box": box.kind, **box.document()} for box in compiled(sql).boxes.values()]


def results(sql: str, *, hold: bool = False, **rows: list[Any]) -> list[dict[str, Any]]:
    """What a query over the packet streams gives, one tuple at a time."""
    net = au.Network("packets")
    for name in STREAMS:
        net.stream(name, PACKET, progress=au.Ordered("ts"))
    net.query("q", sql)
    inputs = {name: rows.get(name, []) for name in STREAMS}
    return run(expanded(net), inputs, hold=hold)["q"]


def packet(ts: int, flag: str | None = None, source: int = 1) -> tuple[Any, ...]:
    """A packet from host 1 (or `source`), port 10, to host 2, port 20."""
    return (source, 2, 10, 20, ts, flag)


def answer(ts: int, flag: str | None = None) -> tuple[Any, ...]:
    """A packet the other way."""
    return (2, 1, 20, 10, ts, flag)
