"""How many tuples each arc carried: from the result where it tells, by `observe` where not.

Observing every row costs about as much as filtering it (docs/adr/0004), so a count that follows
from others is not observed: all tuples of a source, the rows of a terminal arc, what a filter
lets past if what it takes is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from auroral.network.check import CheckedNetwork
from auroral.scheduling.superboxes import Superbox
from auroral.spark.plans.frame import Frame, Lane, LaneCondition

Rows = tuple[str, tuple[LaneCondition, ...]]
"""A set of rows of a source: those for which all conditions hold."""


@dataclass(frozen=True)
class Counting:
    """Which rows of each frame are counted, and which make up each inner arc."""

    arcs: Mapping[str, tuple[Rows, ...]]
    observed: Mapping[str, tuple[Rows, ...]]
    """By source; the order is that of the observed metrics."""

    def observe(self, frame: Frame, source: str) -> DataFrame:
        """The frame's data, counting as it flows what cannot be told otherwise."""
        counts = [
            F.expr(f"count_if({_sql(rows)})").alias(f"n{number}")
            for number, rows in enumerate(self.observed.get(source, ()))
        ]
        return frame.data.observe(metric_name(source), *counts) if counts else frame.data

    def totals(self, known: Mapping[Rows, int]) -> dict[str, int]:
        """The count of each inner arc, given those of terminal lanes, sources and observations."""
        counts = dict(known)
        _deduce(counts, {rows for parts in self.arcs.values() for rows in parts})
        return {arc: sum(counts.get(rows, 0) for rows in parts) for arc, parts in self.arcs.items()}


def metric_name(source: str) -> str:
    return f"counts of {source}"


def rows_of(lane: Lane) -> Rows:
    return lane.source, lane.conditions


def plan_counts(
    superbox: Superbox, checked: CheckedNetwork, lanes: Mapping[str, list[Lane]]
) -> Counting:
    """Decide how each inner arc of a superbox is counted."""
    arcs = {
        arc: tuple(rows_of(lane) for lane in lanes.get(arc, []))
        for arc in inner_arcs(superbox, checked)
    }
    known: dict[Rows, int] = {(source, ()): 0 for source in superbox.sources}
    known |= {rows_of(lane): 0 for arc in superbox.terminals for lane in lanes.get(arc, [])}
    observed: dict[str, tuple[Rows, ...]] = {}
    wanted = [rows for parts in arcs.values() for rows in parts]
    _deduce(known, set(wanted))
    for rows in wanted:
        if rows not in known:
            observed[rows[0]] = (*observed.get(rows[0], ()), rows)
            known[rows] = 0
            _deduce(known, set(wanted))
    return Counting(arcs, observed)


def inner_arcs(superbox: Superbox, checked: CheckedNetwork) -> list[str]:
    """Arcs between boxes of the superbox that something reads and that are not written out."""
    read = {arc.name for box in superbox.boxes for arc in checked.inputs_of(box)}
    return [
        arc.name
        for box in superbox.boxes
        for arc in checked.outputs_of(box)
        if arc.name in read and arc.name not in superbox.terminals
    ]


def _deduce(counts: dict[Rows, int], wanted: Iterable[Rows]) -> None:
    """Add counts that follow: whole = with + without a last condition."""
    pending = True
    while pending:
        pending = False
        for source, conditions in {*wanted, *counts}:
            if not conditions:
                continue
            *before, last = conditions
            whole = (source, tuple(before))
            one = (source, conditions)
            other = (source, (*before, replace(last, holds=not last.holds)))
            if one not in counts and whole in counts and other in counts:
                counts[one] = counts[whole] - counts[other]
                pending = True


def _sql(rows: Rows) -> str:
    return " AND ".join(condition.sql() for condition in rows[1])
