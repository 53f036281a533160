"""What boxes that remember nothing make of given tuples, computed on the driver.

Steps do not write the arcs inside a superbox. By the law that results do not depend on how they are
computed, this gives the tuples that were on them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from typing import Any

import pyarrow as pa

from auroral.boxes import Filter, Map, Union
from auroral.ids import ArcId
from auroral.network.check import CheckedNetwork, what_boxes_see
from auroral.reference.network import operator_of
from auroral.reference.operator import Emission, Tuple
from auroral.scheduling.superboxes import Superbox
from auroral.spark.plans.column_boxes import columns_of_superbox
from auroral.spark.plans.plan import arc_schema, in_order
from auroral.spark.running.column_boxes import ColumnBoxes

Tables = dict[str, pa.Table]
MOST_ROWS = 1_000
"""So many tuples at most go through boxes that have to be computed tuple by tuple."""


def is_previewed(box: Any) -> bool:
    """Whether a box passes tuples one by one, so that what it makes can be computed anywhere."""
    return isinstance(box, Filter | Map | Union) and not box.stateful


class NetworkPreview:
    """Computes boxes of one network."""

    def __init__(self, checked: CheckedNetwork):
        self._checked = checked
        self._columns: dict[str, ColumnBoxes | None] = {}

    @cached_property
    def _scope(self) -> Any:
        return what_boxes_see(self._checked.network, None)

    def between(self, roots: Collection[str], arc: str) -> list[str]:
        """The boxes on the way from some arcs to another, in flow order."""
        checked, found = self._checked, set[str]()
        stack = [] if arc in roots else [checked.arcs[arc].producer]
        while stack:
            box = stack.pop()
            if box in checked.network.boxes and box not in found:
                found.add(box)
                inputs = [a for a in checked.inputs_of(box) if a.name not in roots]
                stack += [a.producer for a in inputs]
        return [box for box in checked.order if box in found]

    def run(self, boxes: Iterable[str], given: Mapping[str, pa.Table]) -> Tables:
        """All arcs that boxes in flow order make of given tuples, which have hidden columns."""
        arcs: Tables = dict(given)
        for name in boxes:
            if not is_previewed(self._checked.network.boxes[name]):
                continue
            columns = self._of(name)
            if columns is not None:
                arcs = columns.run(arcs)
            else:
                self._push(name, arcs)
        return arcs

    def _of(self, name: str) -> ColumnBoxes | None:
        """A box as a computation on whole columns; None if its tuples are computed one by one."""
        if name not in self._columns:
            checked = self._checked
            sources = tuple(dict.fromkeys(arc.name for arc in checked.inputs_of(name)))
            outputs = tuple(arc.name for arc in checked.outputs_of(name))
            alone = Superbox(name, sources, (name,), outputs)
            self._columns[name] = columns_of_superbox(checked, alone)
        return self._columns[name]

    def _push(self, name: str, arcs: Tables) -> None:
        """Let the reference interpreter do it."""
        checked = self._checked
        box = checked.network.boxes[name]
        operator = operator_of(name, box, checked.schemas_of(name), self._scope)
        made: dict[str, list[dict[str, Any]]] = {}
        for port, arc in enumerate(box.sources()):
            for row in arcs[arc][:MOST_ROWS].to_pylist() if arc in arcs else ():
                hidden = {n: row.pop(n) for n in ("_seq", "_ts", "_sub") if n in row}
                if isinstance(box, Union):
                    hidden["_sub"] = port.to_bytes(2, "big") + (hidden.get("_sub") or b"")
                for emitted in operator.push(port, Tuple(row)):
                    if isinstance(emitted, Emission) and emitted.port is not None:
                        arc_id = str(ArcId(name, emitted.port))
                        made.setdefault(arc_id, []).append({**hidden, **emitted.tuple.row})
        for out in checked.outputs_of(name):
            rows = made.get(out.name, [])
            schema = arc_schema(out.schema, any("_sub" in row for row in rows))
            columns = [pa.array([row.get(f.name) for row in rows], f.type) for f in schema]
            arcs[out.name] = in_order(pa.Table.from_arrays(columns, schema=schema))
