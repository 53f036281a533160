"""Arcs that boxes make of streams of events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from auroral import Network, Order, Window


def remembering(net: Network, name: str, *, box: str, **parameters: Any) -> None:
    """Add a box that begins when the network does, not when somebody asks for it."""
    net.box(box, name, **parameters)
    net.output(name, name)


BOXES: dict[str, Callable[[Network, str, str], Any]] = {
    "M": lambda net, first, _: net.box("map", "M", input=first, keep="*"),
    "F": lambda net, _, last: net.box("filter", "F", input=last, where="k > 0"),
    "U": lambda net, first, last: net.box("union", "U", inputs=[first, last]),
    "D": lambda net, first, _: remembering(
        net, "D", box="dedup", input=first, keys=["k", "s"], order=Order("n")
    ),
    "G": lambda net, _, last: remembering(
        net,
        "G",
        box="aggregate",
        input=last,
        order=Order("n", by=("k",)),
        window=Window(size=3),
        compute={"u": "count(*)", "b": "bool_or(b)", **{f: f"max({f})" for f in "xfst"}},
    ),
}
"""By arc, the box that makes it of the first and the last stream."""
