"""Where the tuples of a name are: an arc, an output, a query, a connection point."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from auroral.continuous.boxing.gates import running_names
from auroral.eddy.vectors.vector import type_of
from auroral.engine.debug.preview import NetworkPreview, is_previewed
from auroral.engine.results.views import View
from auroral.engine.topology.execution import Execution
from auroral.engine.topology.superboxes import running_arc
from auroral.errors import UsageError, closest, list_existing, require_name
from auroral.ids import ArcId
from auroral.network.check import CheckedNetwork
from auroral.network.point_names import point_arcs
from auroral.network.types import Field, Schema


@dataclass(frozen=True)
class Place:
    """Where tuples are found: the logs, and what makes them of what the logs have."""

    name: str
    logs: tuple[str, ...]
    schema: pa.Schema
    fields: Schema
    arc: str | None = None
    """The arc; None for the results of a shared or attached query."""
    path: tuple[str, ...] = ()
    """The boxes between the logs and the arc, in flow order."""
    view: View | None = None

    @property
    def is_log(self) -> bool:
        """Whether the tuples are written as they are."""
        return not self.path and self.view is None


class PlaceFinder:
    """Finds places in one execution."""

    def __init__(self, execution: Execution):
        self.execution = execution
        self.checked: CheckedNetwork = execution.unmoved
        self.preview = NetworkPreview(self.checked)
        running = {arc for superbox in execution.superboxes for arc in superbox.terminals}
        streams = set(running_names(self.checked.network).values())
        self._unread = execution.checked.unread
        self.written = (running | streams | {*self.checked.network.streams}) - {
            *execution.checked.displaced,
            *filter(self._is_lean, self._unread),
        }
        """The arcs whose tuples are in logs, as they are declared."""

    def _is_lean(self, arc: str) -> bool:
        """Whether an arc is written without some fields, and can be made of others with them."""
        box = self.checked.network.boxes.get(ArcId.parse(arc).producer)
        return box is not None and is_previewed(box)

    def find(self, name: str, *, before: bool = False) -> Place:
        """Where the tuples of a stream, box, port, output, query or point are.

        With `before` it is where they are before the step that writes them, if that can be.
        """
        require_name(name, "an arc, an output, a query or a connection point")
        arc = self._arc(name)
        if arc is not None:
            return self._of_arc(name, arc, before=before)
        view = self.execution.outputs.found(name)
        if view is not None:
            fields = tuple(Field(f.name, type_of(f.type)) for f in view.schema)
            return Place(name, (view.log,), view.schema, Schema(fields), view=view)
        raise self._unknown(name)

    def _arc(self, name: str) -> str | None:
        checked, network = self.checked, self.checked.network
        points = {**point_arcs(network), **{n: v.from_ for n, v in network.views.items()}}
        points |= {n: p.arc for n, p in self.execution.context.history.points.items()}
        found = self.execution.plan.arcs.get(name, name)
        found = points.get(found, found)
        found = running_arc(checked, found)
        return found if found in checked.arcs else None

    def _of_arc(self, name: str, arc: str, *, before: bool) -> Place:
        schema = self.checked.arcs[arc].schema
        logs = self._roots(arc, before=before)
        if not logs:
            raise UsageError(
                "ARC_NOT_WRITTEN",
                f"nothing is written of {name}, because no output or query needs it",
                hint="give it an output",
            )
        path = tuple(self.preview.between(logs, arc))
        if any(log in self._unread for log in logs):
            # Fields that nobody reads are not there: the pairs of a join are made without them.
            left_out = self._unread.get(arc, frozenset())
            schema = Schema(tuple(field for field in schema if field.name not in left_out))
        return Place(name, logs, schema.arrow(), schema, arc, path)

    def _roots(self, arc: str, *, before: bool) -> tuple[str, ...]:
        """The nearest arcs that are in logs and make an arc; none if it cannot be made of them."""
        found: dict[str, None] = {}
        inner = self._beside(self.checked.arcs[arc].producer) if before else frozenset()
        stack, seen = [arc], set[str]()
        while stack:
            name = stack.pop()
            if name in seen:
                continue
            seen.add(name)
            producer = self.checked.arcs[name].producer
            box = self.checked.network.boxes.get(producer)
            made = producer in inner and is_previewed(box)
            if box is None or (name in self.written and not made):
                found[name] = None
            elif not is_previewed(box):
                return ()
            else:
                stack += [a.name for a in self.checked.inputs_of(producer)]
        return tuple(found)

    def _beside(self, box: str) -> frozenset[str]:
        """The boxes that run as one step with a box, as they are declared."""
        origin = self.execution.checked.origin
        for superbox in self.execution.superboxes:
            boxes = frozenset(map(origin, superbox.boxes))
            if box in boxes:
                return boxes
        return frozenset()

    def _unknown(self, name: str) -> UsageError:
        arcs = [arc for arc in self.checked.arcs if "@" not in arc]
        outputs = self.execution.outputs.names
        names = list(dict.fromkeys([*arcs, *outputs, *self.execution.context.history.points]))
        return UsageError(
            "UNKNOWN_ENTITY",
            f"there is no {name}; {list_existing(names)}",
            hint=closest(name, names),
        )
