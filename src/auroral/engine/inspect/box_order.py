"""Where boxes may change places, before anything was measured, in words."""

from __future__ import annotations

from collections.abc import Collection

from auroral.network.box import Resolver
from auroral.network.check import CheckedNetwork, what_boxes_see
from auroral.optimizer import SIFTING, Subnetworks, assumed, calls_functions, unread_fields
from auroral.spark.plans.column_boxes import in_columns


def explained_fields(
    checked: CheckedNetwork, fixed: Collection[str], resolver: Resolver | None = None
) -> list[str]:
    """The fields of arcs that nobody reads: they are not computed, and NULL where arcs are written.

    `fixed` arcs are delivered, kept, or read by queries.
    """
    if not checked.network.engine.optimize:
        return []
    found = unread_fields(checked, fixed, what_boxes_see(checked.network, resolver))
    main = {arc: fields for arc, fields in found.items() if not checked.arcs[arc].port}
    lines = [f"  {arc}: {', '.join(sorted(fields))}" for arc, fields in main.items()]
    return ["", "fields that nobody reads, left out:", *lines] if lines else []


def explained_order(
    checked: CheckedNetwork, fixed: Collection[str], resolver: Resolver | None = None
) -> list[str]:
    """The boxes that commute: as declared, as they would run with assumed costs, and why.

    `fixed` arcs are delivered, kept, or read by queries.
    """
    if not checked.network.engine.optimize:
        return ["", "boxes stay in the declared order: engine: {optimize: false}"]
    functions = {name.lower() for name in checked.network.functions}
    known = {
        name: assumed(box, calls_functions(box, functions))
        for name, box in checked.network.boxes.items()
    }
    subnetworks = Subnetworks(checked, fixed, resolver, in_columns=in_columns)
    lines: list[str] = []
    for boxes in subnetworks.all:
        moves = subnetworks.best(boxes, known)
        declared = [name for name in checked.order if name in boxes]
        lines += ["", f"boxes that may change places: {' → '.join(declared)}"]
        if not moves:
            lines.append("  with assumed costs they stay; measured costs decide while it runs")
            continue
        runs = subnetworks.steps(boxes, moves)
        lines.append(f"  with assumed costs: {' → '.join(runs)}; measured costs decide")
        for move in moves:
            if move.tactic == "sifted":
                inputs = f"the {move.side} input of {move.past}"
                lines.append(f"  {move.box} in front of {inputs} too, by {move.where}: {move.why}")
                lines.append(f"    a {SIFTING.before} may sift: {SIFTING.because}")
                continue
            pair = subnetworks.rules.pair(move.past, move.box)
            assert pair is not None
            lines.append(f"  {move.box} in front of {move.past}: {move.why}")
            lines.append(f"    a {pair.before} may be passed: {pair.because}")
    return lines
