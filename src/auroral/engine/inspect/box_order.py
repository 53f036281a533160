"""Where boxes may change places, by assumed costs or those of an earlier run, in words."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from auroral.boxes import Map, Union
from auroral.catalog import CatalogSnapshot
from auroral.engine.lifecycle.epochs import MOVES
from auroral.network.box import Resolver
from auroral.network.check import CheckedNetwork, what_boxes_see
from auroral.optimizer import (
    SIFTING,
    Estimate,
    Move,
    Subnetworks,
    assumed,
    calls_functions,
    unread_fields,
)
from auroral.scheduling.costs import BoxCost
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


@dataclass(frozen=True)
class EarlierRun:
    """What a state directory tells of the boxes of a network."""

    costs: Mapping[str, BoxCost] = field(default_factory=dict)
    moves: Sequence[Move] = ()
    """What had changed places when it ran last."""

    @classmethod
    def of(cls, catalog: CatalogSnapshot) -> EarlierRun:
        """What the catalog of a state directory says."""
        return cls(catalog.costs, tuple(map(Move.parse, json.loads(catalog.meta.get(MOVES, "[]")))))

    def estimates(self, checked: CheckedNetwork, boxes: Collection[str]) -> dict[str, Estimate]:
        """What was measured of some boxes; what was not is left out.

        The time of a step is divided among its boxes by weights, so that boxes without Python
        functions are told apart less well than by the engine that runs them.
        """
        found: dict[str, Estimate] = {}
        for name in boxes:
            cost = self.costs.get(name, BoxCost())
            if cost.cost_s is not None and cost.selectivity is not None:
                passes_all = isinstance(checked.network.boxes[name], Map | Union)
                found[name] = Estimate(cost.cost_s, 1.0 if passes_all else cost.selectivity)
        return found

    def moves_within(self, boxes: Collection[str]) -> tuple[Move, ...]:
        """The moves of some boxes, if nothing but them had a part in them."""
        own = [move for move in self.moves if move.box in boxes]
        return tuple(own) if all(move.past in boxes for move in own) else ()


def explained_order(
    checked: CheckedNetwork,
    fixed: Collection[str],
    resolver: Resolver | None = None,
    earlier: EarlierRun | None = None,
) -> list[str]:
    """The boxes that commute: as declared, as they would run with known costs, and why.

    `fixed` arcs are delivered, kept, or read by queries. Costs are those of an `earlier` run, or
    assumed where it has measured none.
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
        declared = [name for name in checked.order if name in boxes]
        lines += ["", f"boxes that may change places: {' → '.join(declared)}"]
        measured = earlier.estimates(checked, boxes) if earlier is not None else {}
        moves = subnetworks.best(boxes, measured or known)
        if earlier is not None and measured:
            lines += [f"  measured of {n}: {measured[n]}" for n in declared if n in measured]
            unknown = [name for name in declared if name not in measured]
            lines += [f"  not measured yet, so they stay: {', '.join(unknown)}"] if unknown else []
            ran = subnetworks.steps(boxes, earlier.moves_within(boxes))
            lines.append(f"  it ran last as: {' → '.join(ran)}")
        kind = "measured" if measured else "assumed"
        if not moves:
            lines.append(f"  with {kind} costs they stay; measured costs decide while it runs")
            continue
        runs = subnetworks.steps(boxes, moves)
        lines.append(f"  with {kind} costs: {' → '.join(runs)}; measured costs decide")
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
