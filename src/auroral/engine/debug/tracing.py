"""Traces: what went into each box of a step, and what came out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from auroral.engine.debug.kept import PinnedTable, kept_rows, pin_state
from auroral.engine.debug.pins import PinnedSegment, pin, together
from auroral.engine.debug.preview import NetworkPreview
from auroral.engine.results.batches import visible
from auroral.engine.runtime.measuring import BoxWork
from auroral.engine.runtime.stateful_step import StatefulStep
from auroral.engine.runtime.stepping import CommittedStep
from auroral.engine.runtime.train import Train
from auroral.engine.topology.execution import Execution
from auroral.ids import StateLogId, is_eddy
from auroral.network.check import CheckedNetwork
from auroral.storage import Change, Store

MOST_ROWS = 100
"""So many tuples of an arc are in a trace."""
_LATE = "late: "


@dataclass
class TracedStep:
    """One step: the segments it has read and written."""

    train: Train
    read: Mapping[str, Sequence[PinnedSegment]]
    written: Mapping[str, Sequence[PinnedSegment]]
    seconds: float = 0.0
    work: Mapping[str, BoxWork] = field(default_factory=dict)
    counts: Mapping[tuple[str, str], int] = field(default_factory=dict)
    held: int | None = None
    state: Mapping[str, PinnedTable] = field(default_factory=dict)


class Tracer:
    """Collects the steps that are committed while it is `on`, and tells of them."""

    def __init__(self, store: Store):
        self._store = store
        self.on = False
        self._steps: list[TracedStep] = []
        self._step: TracedStep | None = None

    def committing(self, train: Train, change: Change) -> None:
        """Pin what a step has read and written, before it may be dropped."""
        read = {
            source: pin(self._store, held, train.first, train.last)
            for source, held in train.segments.items()
        }
        written: dict[str, list[PinnedSegment]] = {}
        for segment in change.written:
            if StateLogId.parse(segment.log) is None:
                written.setdefault(segment.log, []).extend(pin(self._store, [segment]))
        self._step = TracedStep(train, read, written, counts=dict(change.counts))

    def committed(self, step: CommittedStep, box: StatefulStep | None) -> None:
        """A step is true; `box` is its box with state, if it has one."""
        traced, self._step = self._step, None
        if traced is None:
            return
        traced.seconds, traced.work = step.seconds, step.work
        if box is not None:
            traced.held = box.held
            traced.state = pin_state(self._store, box.name, box.measure)
        self._steps.append(traced)

    def take(self, execution: Execution) -> list[dict[str, Any]]:
        """What happened in each box since the last call, in the order of the steps."""
        steps, self._steps = self._steps, []
        preview = NetworkPreview(execution.checked)
        return [entry for step in steps for entry in _entries(execution.checked, preview, step)]


def _entries(
    checked: CheckedNetwork, preview: NetworkPreview, step: TracedStep
) -> list[dict[str, Any]]:
    """One entry for each box of a superbox, in flow order."""
    superbox = step.train.superbox
    if not all(box in checked.network.boxes for box in superbox.boxes):
        return _of_other_network(step)
    arcs = {
        source: together([one.read() for one in pins], checked.arcs[source].schema.arrow())
        for source, pins in step.read.items()
        if source in checked.arcs
    }
    given = {source: table for source, table in arcs.items() if table.num_rows}
    written = {
        log: together([one.read() for one in pins], pa.schema([]))
        for log, pins in step.written.items()
    }
    arcs = {**arcs, **preview.run(superbox.boxes, given), **written}
    entries = []
    for box in superbox.boxes:
        inputs = [arc.name for arc in checked.inputs_of(box)]
        outputs = [arc.name for arc in checked.outputs_of(box)]
        if is_eddy(box):
            outputs = list(written)
        remembers = box == superbox.stateful
        entry = _entry(step, checked.origin(box), arcs, inputs, outputs, remembers=remembers)
        if remembers:
            entry["kept"] = kept_rows(checked, box, step.state)
        entries.append(entry)
    return entries


def _entry(
    step: TracedStep,
    box: str,
    arcs: Mapping[str, pa.Table],
    inputs: Sequence[str],
    outputs: Sequence[str],
    *,
    remembers: bool,
) -> dict[str, Any]:
    found = {arc: arcs[arc] for arc in [*inputs, *outputs] if arc in arcs}
    more = {arc: t.num_rows - MOST_ROWS for arc, t in found.items() if t.num_rows > MOST_ROWS}
    work = step.work.get(box)
    late = {
        name.removeprefix(_LATE): count
        for (owner, name), count in step.counts.items()
        if owner == box and name.startswith(_LATE)
    }
    return {
        "box": box,
        "superbox": step.train.superbox.name,
        "moments": [step.train.first, step.train.last],
        "in": {arc: _shown(arcs.get(arc)) for arc in inputs},
        "out": {arc: _shown(arcs[arc]) for arc in outputs if arc in arcs},
        "truncated": more,
        "held": step.held if remembers else None,
        "kept": {},
        "late": late,
        "seconds": round(work.seconds if work is not None else step.seconds, 6),
    }


def _of_other_network(step: TracedStep) -> list[dict[str, Any]]:
    """The steps of attached queries, and of boxes that are no more: logs alone."""
    arcs = {
        log: together([one.read() for one in pins], pa.schema([]))
        for log, pins in {**step.read, **step.written}.items()
    }
    box = step.train.superbox.boxes[-1]
    entry = _entry(step, box, arcs, list(step.read), list(step.written), remembers=True)
    return [entry]


def _shown(table: pa.Table | None) -> list[dict[str, Any]]:
    """The first tuples of a table as plain rows, without hidden columns and lineage."""
    if table is None or not table.num_rows:
        return []
    plain = visible(table.slice(0, MOST_ROWS))
    plain = plain.select([name for name in plain.column_names if not name.startswith("_")])
    rows: list[dict[str, Any]] = plain.to_pylist()
    return rows
