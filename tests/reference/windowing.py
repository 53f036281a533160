"""A stream, an aggregate over it, and what came out."""

from __future__ import annotations

from typing import Any

from auroral import Network, Order, Window
from auroral.testing import Results, run

Rows = list[tuple[Any, ...]]


def values(rows: list[dict[str, Any]]) -> Rows:
    return [tuple(row.values()) for row in rows]


def windowed(
    order: Order, window: Window, *, schema: str = "t int", progress: Any = None, **how: Any
) -> Network:
    net = Network("n")
    s = net.stream("s", schema=schema, progress=progress)
    given = {"all": "collect_list(t)"} | how
    net.output("o", s.aggregate(order, window, name="w", **given))
    return net


def counted(
    order: Order, window: Window, rows: list[Any], *, hold: bool = False, **how: Any
) -> Results:
    given = [row if isinstance(row, tuple | dict) else (row,) for row in rows]
    return run(windowed(order, window, **how), {"s": given}, hold=hold)


def shown(out: Results) -> tuple[Rows, list[Any], dict[str, int]]:
    """Windows, late values, and what was counted by which reason."""
    late = [row["t"] for row in out["w.late"]]
    return values(out["o"]), late, {reason: n for (_, reason), n in out.reference.late.items()}


def at(time: float, t: Any, **more: Any) -> dict[str, Any]:
    return {"t": t, "_at": time, **more}
