"""Superboxes: which boxes run as one step (pure)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from auroral.network.check import CheckedNetwork


@dataclass(frozen=True)
class Superbox:
    """Boxes that run as one Spark job over one train.

    `sources` are the arcs it reads from logs, `terminals` those it writes to logs; `boxes` are
    in flow order.
    """

    name: str
    sources: tuple[str, ...]
    boxes: tuple[str, ...]
    terminals: tuple[str, ...]


def superboxes(checked: CheckedNetwork, wanted: Iterable[str]) -> tuple[Superbox, ...]:
    """Fuse connected boxes that lead to the `wanted` arcs; what leads nowhere is left out.

    Boxes that share a source are connected too, so that each stream is scanned once.
    """
    terminals = [
        arc for arc in dict.fromkeys(wanted) if checked.arcs[arc].producer in _boxes(checked)
    ]
    needed = _upstream(checked, terminals)
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        while parent.setdefault(name, name) != name:
            name = parent[name]
        return name

    for box in needed:
        for arc in checked.inputs_of(box):
            parent[root(arc.producer)] = root(box)
    groups: dict[str, list[str]] = {}
    for box in checked.order:
        if box in needed:
            groups.setdefault(root(box), []).append(box)
    return tuple(_superbox(checked, tuple(boxes), terminals) for boxes in groups.values())


def _superbox(checked: CheckedNetwork, boxes: tuple[str, ...], terminals: list[str]) -> Superbox:
    inputs = [arc for box in boxes for arc in checked.inputs_of(box)]
    sources = [arc.name for arc in inputs if arc.producer not in boxes]
    own = tuple(arc for arc in terminals if checked.arcs[arc].producer in boxes)
    return Superbox(boxes[0], tuple(dict.fromkeys(sources)), boxes, own)


def _boxes(checked: CheckedNetwork) -> set[str]:
    return set(checked.network.boxes)


def _upstream(checked: CheckedNetwork, terminals: list[str]) -> set[str]:
    needed: set[str] = set()
    stack = [checked.arcs[arc].producer for arc in terminals]
    while stack:
        box = stack.pop()
        if box in checked.network.boxes and box not in needed:
            needed.add(box)
            stack += [arc.producer for arc in checked.inputs_of(box)]
    return needed
