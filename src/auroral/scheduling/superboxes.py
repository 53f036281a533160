"""Superboxes: which boxes run as one step (pure)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from auroral.boxes import Filter, Map
from auroral.boxes.table_write import TableWrite
from auroral.ids import ArcId, QueryBoxId, is_eddy
from auroral.network.check import CheckedNetwork
from auroral.scheduling.fusion import Fusion
from auroral.scheduling.table_stages import connected_boxes, table_stages, tables_of
from auroral.sql.expressions.function_calls import called_of


@dataclass(frozen=True)
class Superbox:
    """Boxes that run as one Spark job over one train.

    `sources` are the arcs it reads from logs, `terminals` those it writes to logs; `boxes` are
    in flow order. A box that remembers tuples is the last one of its superbox: `stateful`. Boxes
    that use the same `tables` and do not wait for each other run together, and with no others.
    """

    name: str
    sources: tuple[str, ...]
    boxes: tuple[str, ...]
    terminals: tuple[str, ...]
    stateful: str | None = None
    tables: tuple[str, ...] = ()

    def having(self, some: Collection[str]) -> Superbox:
        """The same with some of its boxes only; it reads what it read, and keeps its name."""
        boxes = tuple(box for box in self.boxes if box in some)
        if self.stateful is not None and self.stateful not in boxes:
            return replace(self, boxes=(), terminals=(), stateful=None)
        terminals = tuple(arc for arc in self.terminals if ArcId.parse(arc).producer in some)
        return replace(self, boxes=boxes, terminals=terminals)


def superboxes(
    checked: CheckedNetwork,
    wanted: Iterable[str],
    fusion: Fusion | None = None,
    *,
    beside: Collection[str] = (),
    apart: Collection[str] = (),
) -> tuple[Superbox, ...]:
    """Fuse the boxes that lead to the `wanted` arcs, in flow order; others are left out.

    Order-agnostic boxes that are connected or share a source run together, so that each log is
    scanned once, if they lead to outputs of the same worth. A stateful box runs with the boxes
    before it if they serve nobody else; otherwise what it reads is written to a log. Boxes that
    change tables run whether or not anybody reads them.

    Arcs `beside` are wanted, but do not keep a stateful box from running with the boxes before it:
    the superbox writes them, too, unless its stateful box is `apart`.
    """
    boxes = checked.network.boxes
    fusion = Fusion.of(checked.network) if fusion is None else fusion
    outputs = [arc for arc in dict.fromkeys(wanted) if checked.arcs[arc].producer in boxes]
    writes = [name for name in checked.order if isinstance(boxes[name], TableWrite)]
    needed = [name for name in checked.order if name in _upstream(checked, [*outputs, *writes])]
    own = {
        name: ()
        if fusion.mode == "box"
        else _private(checked, name, needed, _ends(outputs, name, beside, apart))
        for name in needed
        if boxes[name].stateful
    }
    taken = {box for held in own.values() for box in held}
    using = [name for name in needed if boxes[name].uses_tables]
    plain = [name for name in needed if name not in own and name not in taken | {*using}]
    groups: list[tuple[tuple[str, ...], str | None]] = []
    if fusion.mode == "box":
        groups += [((name,), None) for name in plain]
    else:
        classes = fusion.classes(checked, checked.order, set(outputs) - {*beside})
        groups += [(tuple(group), None) for group in _connected(checked, plain, classes)]
    groups += [((*held, name), name) for name, held in own.items()]
    groups += [(stage, None) for stage in table_stages(checked, using)]
    groups = _acyclic(checked, groups) if using else groups
    crossing = {
        arc.name
        for group, _ in groups
        for box in group
        for arc in checked.inputs_of(box)
        if arc.producer not in group
    }
    terminals = list(dict.fromkeys([*outputs, *(arc for arc in checked.arcs if arc in crossing)]))
    found = [_superbox(checked, group, terminals, stateful) for group, stateful in groups]
    return tuple(_in_flow_order(found))


def _holds(checked: CheckedNetwork, name: str) -> bool:
    """Whether a box keeps groups of order-agnostic boxes apart."""
    box = checked.network.boxes[name]
    return box.stateful or box.uses_tables


def _ends(
    outputs: Sequence[str], stateful: str, beside: Collection[str], apart: Collection[str]
) -> list[str]:
    """The arcs before which no box can run with a stateful one."""
    # A query may fail, and its boxes go; an eddy has tasks that read a part of the train each.
    if stateful in apart or QueryBoxId.query_of(stateful) is not None or is_eddy(stateful):
        return list(outputs)
    return [arc for arc in outputs if arc not in beside]


def _private(
    checked: CheckedNetwork, stateful: str, needed: Sequence[str], outputs: Sequence[str]
) -> tuple[str, ...]:
    """The order-agnostic boxes before a stateful one that can run with it."""
    before: set[str] = set()
    stack = [arc.producer for arc in checked.inputs_of(stateful)]
    while stack:
        box = stack.pop()
        if box in checked.network.boxes and box not in before and not _holds(checked, box):
            before.add(box)
            stack += [arc.producer for arc in checked.inputs_of(box)]
    readers = {
        box: {r for r in needed if any(a.producer == box for a in checked.inputs_of(r))}
        for box in before
    }
    given = {checked.arcs[arc].producer for arc in outputs}
    alone = all(
        readers[box] <= before | {stateful} and box not in given and not _calls(checked, box)
        for box in before
    )
    return tuple(box for box in checked.order if box in before) if alone else ()


def _calls(checked: CheckedNetwork, name: str) -> bool:
    """Whether a box calls Python functions, whose failures must be told once."""
    box = checked.network.boxes[name]
    functions = {declared.lower() for declared in checked.network.functions}
    if isinstance(box, Map) and box.functions():
        return True
    texts = box.texts if isinstance(box, Map) else {}
    texts = box.predicates if isinstance(box, Filter) else texts
    return any(called_of(text, functions) for text in texts.values())


def _connected(
    checked: CheckedNetwork, boxes: Sequence[str], classes: Mapping[str, frozenset[int]]
) -> list[list[str]]:
    parent: dict[tuple[str, frozenset[int]], tuple[str, frozenset[int]]] = {}

    def root(name: tuple[str, frozenset[int]]) -> tuple[str, frozenset[int]]:
        while parent.setdefault(name, name) != name:
            name = parent[name]
        return name

    for box in boxes:
        for arc in checked.inputs_of(box):
            # A stateful box between two groups keeps them apart: it runs in between.
            inner = arc.producer in boxes or arc.producer in checked.network.streams
            source = arc.producer if inner else arc.name
            parent[root((source, classes[box]))] = root((box, classes[box]))
    groups: dict[tuple[str, frozenset[int]], list[str]] = {}
    for box in boxes:
        groups.setdefault(root((box, classes[box])), []).append(box)
    return [part for group in groups.values() for part in _layered(checked, group)]


def _layered(checked: CheckedNetwork, group: Sequence[str]) -> list[list[str]]:
    """A group split so that none of its boxes waits for a stateful box that waits for another."""
    depth: dict[str, int] = {}
    for name in checked.order:
        inputs = [depth.get(arc.producer, 0) for arc in checked.inputs_of(name)]
        depth[name] = max(inputs, default=0) + (1 if _holds(checked, name) else 0)
    layers: dict[int, list[str]] = {}
    for box in group:
        layers.setdefault(depth[box], []).append(box)
    return [layers[level] for level in sorted(layers)]


def _acyclic(
    checked: CheckedNetwork, groups: list[tuple[tuple[str, ...], str | None]]
) -> list[tuple[tuple[str, ...], str | None]]:
    """The groups, those split into single boxes that would wait for each other in a circle.

    Groups that use the same tables wait for each other in flow order. Single boxes never wait in
    a circle, because that order is one in which data can flow.
    """
    while circle := _circle(_waits(checked, [boxes for boxes, _ in groups])):
        split = {at for at in circle if len(groups[at][0]) > 1 and groups[at][1] is None}
        assert split
        groups = [
            part
            for at, (boxes, stateful) in enumerate(groups)
            for part in ([((box,), None) for box in boxes] if at in split else [(boxes, stateful)])
        ]
    return groups


def _waits(checked: CheckedNetwork, groups: Sequence[Sequence[str]]) -> list[set[int]]:
    """For each group those that it waits for: what it reads, and who uses its tables before it."""
    place = {box: at for at, boxes in enumerate(groups) for box in boxes}
    waits = [
        {place[a.producer] for box in boxes for a in checked.inputs_of(box) if a.producer in place}
        for boxes in groups
    ]
    using = [box for box in place if checked.network.boxes[box].uses_tables]
    for boxes in connected_boxes(checked, using):
        for before, after in pairwise(boxes):
            waits[place[after]].add(place[before])
    return [those - {at} for at, those in enumerate(waits)]


def _circle(waits: Sequence[set[int]]) -> set[int]:
    """Those that wait for each other; empty if none do."""
    left = set(range(len(waits)))
    while free := {at for at in left if not waits[at] & left}:
        left -= free
    while free := {at for at in left if not any(at in waits[other] for other in left)}:
        left -= free
    return left


def _superbox(
    checked: CheckedNetwork,
    boxes: tuple[str, ...],
    terminals: Sequence[str],
    stateful: str | None,
) -> Superbox:
    inputs = [arc for box in boxes for arc in checked.inputs_of(box)]
    sources = [arc.name for arc in inputs if arc.producer not in boxes]
    own = tuple(arc for arc in terminals if checked.arcs[arc].producer in boxes)
    name = stateful or boxes[0]
    tables = dict.fromkeys(
        table
        for box in boxes
        if checked.network.boxes[box].uses_tables
        for table in tables_of(checked, box)
    )
    return Superbox(name, tuple(dict.fromkeys(sources)), boxes, own, stateful, tuple(tables))


def _in_flow_order(found: Sequence[Superbox]) -> list[Superbox]:
    """Superboxes after those that write what they read."""
    writer = {arc: superbox.name for superbox in found for arc in superbox.terminals}
    named = {superbox.name: superbox for superbox in found}
    done: list[Superbox] = []

    def place(superbox: Superbox) -> None:
        if superbox not in done:
            for source in superbox.sources:
                if source in writer:
                    place(named[writer[source]])
            done.append(superbox)

    for superbox in found:
        place(superbox)
    return done


def _upstream(checked: CheckedNetwork, terminals: Iterable[str]) -> set[str]:
    needed: set[str] = set()
    stack = [checked.arcs[arc].producer for arc in terminals]
    while stack:
        box = stack.pop()
        if box in checked.network.boxes and box not in needed:
            needed.add(box)
            stack += [arc.producer for arc in checked.inputs_of(box)]
    return needed
