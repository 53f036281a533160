"""Which boxes that use tables run together, and in which order they must (pure).

All boxes that use one table, or tables that some statement names together, work in order of
moments, and within a moment in flow order: a box after those that lead to it, others by name. If
none of them waits for another, they run as one superbox, which keeps that order itself. If one
does, as in read → map → update of one table, they run in several stages, and a stage does not go
beyond what the others allow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from auroral.boxes import Read, Update
from auroral.boxes.table_write import TableWrite
from auroral.continuous.boxing.tables import with_lookups
from auroral.errors import Caution
from auroral.ids import ArcId, PartBoxId
from auroral.network.check import CheckedNetwork, type_arcs
from auroral.network.network import Network
from auroral.sql.queries.statements import TableStatement, table_statement


def flow_order(network: Network) -> tuple[str, ...]:
    """The boxes that use tables and all that lead to them, each after what leads to it.

    It depends on names and wiring alone, not on the order in which boxes were declared, nor on
    queries that come and go.

    >>> net = Network("tolls")
    >>> _ = net.table("accounts", "vid int, balance double", key=["vid"])
    >>> tolls = net.stream("tolls", "vid int")
    >>> few = tolls.filter("vid < 9", name="few")
    >>> _ = few.update("DELETE FROM accounts WHERE vid = :vid", name="closed", vid="vid")
    >>> _ = tolls.read("SELECT balance FROM accounts WHERE vid = :vid", name="balance")
    >>> flow_order(net)
    ('balance', 'few', 'closed')
    """
    using = [name for name, box in network.boxes.items() if box.uses_tables]
    found: dict[str, None] = {}

    def visit(name: str) -> None:
        if name in network.boxes and name not in found:
            for arc in network.boxes[name].sources():
                visit(ArcId.parse(arc).producer)
            found[name] = None

    for name in sorted(using, key=PartBoxId.owner):
        visit(name)
    return tuple(found)


def statement_of(checked: CheckedNetwork, name: str) -> TableStatement:
    """The statement of a box that uses tables."""
    box = checked.network.boxes[name]
    assert isinstance(box, Read | Update | TableWrite)
    return table_statement(box.sql, checked.network.tables)


def tables_of(checked: CheckedNetwork, name: str) -> tuple[str, ...]:
    """The tables that a box uses."""
    return statement_of(checked, name).tables


def connected_boxes(checked: CheckedNetwork, using: Sequence[str]) -> list[list[str]]:
    """Boxes that use the same tables, directly or through others; in flow order."""
    groups: list[tuple[set[str], list[str]]] = []
    for name in using:
        tables = set(tables_of(checked, name))
        touched = [group for group in groups if group[0] & tables]
        rest = [group for group in groups if not group[0] & tables]
        names = [box for _, boxes in touched for box in boxes]
        merged = tables.union(*(held for held, _ in touched))
        groups = [*rest, (merged, [*names, name])]
    order = flow_order(checked.network)
    return [[box for box in order if box in boxes] for _, boxes in groups]


def table_stages(checked: CheckedNetwork, using: Sequence[str]) -> list[tuple[str, ...]]:
    """The boxes that run together: each one is put into the stage before if it can be."""
    stages: list[tuple[str, ...]] = []
    for boxes in connected_boxes(checked, using):
        stage: list[str] = []
        for name in boxes:
            if stage and upstream_of(checked, name) & {*stage}:
                stages.append(tuple(stage))
                stage = []
            stage.append(name)
        stages.append(tuple(stage))
    return stages


def upstream_of(checked: CheckedNetwork, name: str) -> set[str]:
    """All boxes that lead to a box."""
    found: set[str] = set()
    stack = [name]
    while stack:
        for arc in checked.inputs_of(stack.pop()):
            if arc.producer in checked.network.boxes and arc.producer not in found:
                found.add(arc.producer)
                stack.append(arc.producer)
    return found


def taking_turns(network: Network) -> list[Caution]:
    """Boxes that change or read one table and wait for each other: each moment is a step."""
    network = with_lookups(network)
    if not any(box.uses_tables for box in network.boxes.values()):
        return []
    arcs, order = type_arcs(network, network.boxes)
    checked = CheckedNetwork(network, arcs, order)
    using = [name for name in order if network.boxes[name].uses_tables]
    stages = table_stages(checked, using)
    peers = stage_peers(checked, [(stage[0], stage) for stage in stages])
    cautions = []
    for stage in stages:
        for other in peers[stage[0]].before[-1:]:
            shared = {*tables_of(checked, other)} & {*tables_of(checked, stage[0])}
            names = ", ".join(sorted(shared or {*tables_of(checked, stage[0])}))
            message = (
                f"uses {names} as {PartBoxId.owner(other)} does, from which its input comes: they"
                " take turns, one moment at a time, which is slow (one statement may do it all)"
            )
            cautions.append(Caution("TABLE_TURNS", message, f"box {PartBoxId.owner(stage[0])}"))
    return cautions


@dataclass(frozen=True)
class StagePeers:
    """The superboxes whose work on the same tables must alternate with that of one."""

    before: tuple[str, ...] = ()
    """Those that come first within a moment."""
    after: tuple[str, ...] = ()


def stage_peers(
    checked: CheckedNetwork, stages: Sequence[tuple[str, tuple[str, ...]]]
) -> dict[str, StagePeers]:
    """By the name of a stage, those that use its tables too; two that only read are no peers."""
    using = [box for _, boxes in stages for box in boxes]
    together = [set(boxes) for boxes in connected_boxes(checked, using)]
    place = {name: at for at, name in enumerate(flow_order(checked.network))}
    writes = {
        name: any(statement_of(checked, box).writes for box in boxes) for name, boxes in stages
    }
    found: dict[str, StagePeers] = {}
    for name, boxes in stages:
        group = next(group for group in together if boxes[0] in group)
        others = [
            (other, place[theirs[0]] < place[boxes[0]])
            for other, theirs in stages
            if other != name and theirs[0] in group and (writes[name] or writes[other])
        ]
        found[name] = StagePeers(
            tuple(other for other, first in others if first),
            tuple(other for other, first in others if not first),
        )
    return found
