"""Which fields of arcs nobody reads: they are not computed, and NULL where they are written (pure).

Outputs, connection points, views and queries have all fields. So do boxes that keep tuples or pass
them on later: somebody may read these behind them when the network has changed. An arc whose
readers are filters, maps, unions and aggregates has the fields that these need.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from auroral.boxes import Aggregate, Filter, Map, Union
from auroral.ids import QueryBoxId, is_eddy
from auroral.network.box import Scope
from auroral.network.check import CheckedNetwork
from auroral.optimizer.rules import calls_functions

Fields = frozenset[str]


def unread_fields(
    checked: CheckedNetwork,
    fixed: Collection[str],
    scope: Scope,
    progressing: Mapping[str, Collection[str]] | None = None,
) -> dict[str, Fields]:
    """By arc that a box writes, the fields that nobody reads; arcs without any are left out.

    `fixed` arcs are delivered, kept, or read by queries; `progressing` are the fields by which
    progress is made and judged.
    """
    needed = _Needed(checked, fixed, scope)
    found: dict[str, Fields] = {}
    for arc, typed in checked.arcs.items():
        if typed.producer in checked.network.boxes:
            kept = needed.of(arc) | frozenset((progressing or {}).get(arc, ()))
            unread = frozenset(typed.schema.names) - kept
            if unread:
                found[arc] = unread
    return found


class _Needed:
    """The fields of each arc that its readers need, filled from the end of the flow."""

    def __init__(self, checked: CheckedNetwork, fixed: Collection[str], scope: Scope):
        self._checked = checked
        self._scope = scope
        self._functions = {name.lower() for name in checked.network.functions}
        self._fields: dict[str, set[str]] = {}
        for arc in fixed:
            self._add(arc, self._all(arc))
        for name in reversed(checked.order):
            for arc, fields in self._read(name).items():
                self._add(arc, fields)

    def of(self, arc: str) -> Fields:
        """The fields that are needed; all, if no box reads the arc."""
        return frozenset(self._fields.get(arc, self._all(arc)))

    def _add(self, arc: str, fields: Collection[str]) -> None:
        self._fields.setdefault(arc, set()).update(fields)

    def _all(self, arc: str) -> Fields:
        known = self._checked.arcs.get(arc)
        return frozenset(known.schema.names) if known is not None else frozenset()

    def _behind(self, name: str) -> set[str]:
        """The fields that are needed of a box's arcs, by their names there."""
        arcs = [arc.name for arc in self._checked.outputs_of(name)]
        read = [arc for arc in arcs if arc in self._fields] or arcs[:1]
        return {field for arc in read for field in self.of(arc)}

    def _read(self, name: str) -> dict[str, Collection[str]]:
        """By arc that a box reads, what it needs for what is needed of it."""
        box = self._checked.network.boxes[name]
        sources = [arc.name for arc in self._checked.inputs_of(name)]
        own = QueryBoxId.query_of(name) is None and not is_eddy(name)
        if not own or calls_functions(box, self._functions):  # dead letters show whole tuples
            return {arc: self._all(arc) for arc in sources}
        schemas = self._checked.schemas_of(name)
        if isinstance(box, Filter):
            (reads,) = box.reads(schemas, self._scope)
            return {sources[0]: reads | self._behind(name)}
        if isinstance(box, Map):
            behind, made = self._behind(name), box.calls(schemas[0], self._scope).expressions
            found = {field for field in box.kept(schemas[0]) if field in behind}
            for field, one in zip(box.texts, made, strict=True):
                found |= set(one.fields) if field in behind else set()
            return {sources[0]: found}
        if isinstance(box, Union):
            behind = self._behind(name)
            at = [n for n, f in enumerate(self._checked.arcs[name].schema.names) if f in behind]
            read: dict[str, Collection[str]] = {}
            for arc in sources:
                names = self._checked.arcs[arc].schema.names
                read[arc] = {*read.get(arc, ()), *(names[n] for n in at)}
            return read
        late = [arc.name for arc in self._checked.outputs_of(name) if arc.port]
        if isinstance(box, Aggregate) and not any(arc in self._fields for arc in late):
            return {sources[0]: box.reads(schemas, self._scope)[0]}
        return {arc: self._all(arc) for arc in sources}
