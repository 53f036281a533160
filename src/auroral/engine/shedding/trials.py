"""Forward trial in a running engine: a sample of an arc, sent through boxes without state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from auroral.errors import AuroralError
from auroral.network.box import Box
from auroral.network.check import CheckedNetwork
from auroral.network.declarations import Stream
from auroral.network.network import Network
from auroral.network.types import HIDDEN, Schema
from auroral.reference.network import Reference
from auroral.shedding.trial import Row, TriedField, tried_field
from auroral.storage import Store

_SAMPLE = 300
_LEAST_SAMPLE = 30
_SAMPLED = "sample"
"""The stream that stands for the arc."""


class ValueTrials:
    """Finds the field of an arc by which an output's values can be told, by trial.

    Only boxes that treat each tuple by itself are tried: what they make of a tuple is computed
    once, by the reference interpreter, and every interval is judged by that.
    """

    def __init__(
        self, store: Store, checked: CheckedNetwork, values: Mapping[str, tuple[str, str]]
    ):
        self._store = store
        self._checked = checked
        self._values = values
        self.lacked_sample = False
        """Whether an answer was that no field tells them because too few tuples were there."""

    def __call__(self, output: str, arc: str) -> TriedField | None:
        """How an output's values are told on an arc; None if no field tells them."""
        target, field = self._values[output]
        boxes = self._between(arc, target)
        declared = self._checked.network.boxes
        if not boxes or any(declared[box].stateful or declared[box].uses_tables for box in boxes):
            return None
        rows = self._sample(arc)
        if len(rows) < _LEAST_SAMPLE:
            self.lacked_sample = True
            return None
        try:
            made = self._made(rows, arc, boxes, target, field)
        except AuroralError:
            return None
        known = sorted(value for values in made.values() for value in values)
        if not known:
            return None
        schema = self._checked.schema_of(arc)
        fields = [one.name for one in schema if one.type.is_numeric]
        return tried_field(
            rows,
            fields,
            lambda some: [value for row in some for value in made[id(row)]],
            known[0],
            known[len(known) // 2],
        )

    def _between(self, arc: str, target: str) -> list[str]:
        """The boxes between two arcs, in flow order."""
        reached, wanted = {arc}, {target}
        boxes = []
        for name in self._checked.order:
            if any(source.name in reached for source in self._checked.inputs_of(name)):
                reached |= {made.name for made in self._checked.outputs_of(name)}
                boxes.append(name)
        found = []
        for name in reversed(boxes):
            if any(made.name in wanted for made in self._checked.outputs_of(name)):
                wanted |= {source.name for source in self._checked.inputs_of(name)}
                found.append(name)
        return found[::-1]

    def _sample(self, arc: str) -> list[Row]:
        """Some of the latest tuples of an arc."""
        rows: list[Row] = []
        for segment in reversed(self._store.segments(arc)):
            if segment.file is not None and segment.rows:
                table = self._store.table(segment)
                shown = table.drop_columns([n for n in HIDDEN if n in table.column_names])
                # By chance, since every n-th tuple may be of a kind; the same each time.
                chosen = np.random.default_rng(0).permutation(table.num_rows)[:_SAMPLE]
                rows += shown.take(np.sort(chosen)).to_pylist()
            if len(rows) >= _SAMPLE:
                break
        return rows[:_SAMPLE]

    def _made(
        self, rows: Sequence[Row], arc: str, boxes: Sequence[str], target: str, field: str
    ) -> dict[int, list[float]]:
        """By tuple, the values that the output gets of it."""
        reference = Reference(self._part(arc, boxes))
        found: dict[int, list[float]] = {}
        before = 0
        for row in rows:
            reference.push(_SAMPLED, row)
            results = reference.collected(target)
            values = [result[field] for result in results[before:]]
            found[id(row)] = [float(value) for value in values if value is not None]
            before = len(results)
        return found

    def _part(self, arc: str, boxes: Sequence[str]) -> Network:
        """The boxes between two arcs as a network; what else they read is empty."""
        whole = self._checked.network
        part = Network("trial", directory=whole.directory)
        part.functions = dict(whole.functions)
        part.streams[_SAMPLED] = _stream(self._checked.schema_of(arc))
        renamed = {arc: _SAMPLED}
        made = {one.name for name in boxes for one in self._checked.outputs_of(name)}
        for name in boxes:
            for source in self._checked.inputs_of(name):
                if source.name not in made and source.name not in renamed:
                    renamed[source.name] = f"other{len(renamed)}"
                    part.streams[renamed[source.name]] = _stream(source.schema)
            part.boxes[name] = _reading(whole.boxes[name], renamed)
        return part


def _stream(schema: Schema) -> Stream:
    return Stream.model_validate({"schema": schema})


def _reading(box: Box, renamed: Mapping[str, str]) -> Box:
    """A box that reads arcs under other names."""
    update: dict[str, Any] = {}
    if hasattr(box, "input"):
        update["input"] = renamed.get(box.input, box.input)
    if hasattr(box, "inputs"):
        update["inputs"] = tuple(renamed.get(arc, arc) for arc in box.inputs)
    return box.model_copy(update=update)
