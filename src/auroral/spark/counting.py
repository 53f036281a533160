"""How many tuples each arc carried: from the result where it tells, by `observe` where not.

Observing every row costs about as much as filtering it (docs/adr/0004), so a count that follows
from others is not observed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from auroral.network.check import CheckedNetwork
from auroral.scheduling.superboxes import Superbox
from auroral.spark.frame import Frame, Lane


@dataclass(frozen=True)
class Counting:
    """What must be observed on each source's frame: arc name to condition."""

    observed: Mapping[str, Mapping[str, str]]
    """Source → key → condition."""
    keys: Mapping[str, tuple[tuple[str, str], ...]]
    """Arc → the (source, key) whose observed counts add up to its count."""
    whole: Mapping[str, tuple[str, ...]]
    """Arc → the sources of which it carries every tuple; added to the observed."""

    def observe(self, frame: Frame, source: str) -> DataFrame:
        metrics = self.observed.get(source)
        if not metrics:
            return frame.data
        counts = [F.expr(f"count_if({sql})").alias(key) for key, sql in metrics.items()]
        return frame.data.observe(f"counts_{source}", *counts)


def plan_counts(
    superbox: Superbox, checked: CheckedNetwork, arcs: Mapping[str, list[Lane]]
) -> Counting:
    """Decide how each inner arc of a superbox is counted; terminals are counted by their rows."""
    observed: dict[str, dict[str, str]] = {}
    keys: dict[str, tuple[tuple[str, str], ...]] = {}
    whole: dict[str, tuple[str, ...]] = {}
    for arc in inner_arcs(superbox, checked):
        needs: list[tuple[str, str]] = []
        passing: list[str] = []
        for lane in arcs.get(arc, []):
            condition = lane.condition_sql()
            if condition == "true":
                passing.append(lane.source)
                continue
            metrics = observed.setdefault(lane.source, {})
            key = next((k for k, sql in metrics.items() if sql == condition), f"n{len(metrics)}")
            metrics[key] = condition
            needs.append((lane.source, key))
        keys[arc], whole[arc] = tuple(needs), tuple(passing)
    return Counting(observed, keys, whole)


def inner_arcs(superbox: Superbox, checked: CheckedNetwork) -> list[str]:
    """Arcs between boxes of the superbox that are not written out and that something reads."""
    read = {arc.name for box in superbox.boxes for arc in checked.inputs_of(box)}
    return [
        arc.name
        for box in superbox.boxes
        for arc in checked.outputs_of(box)
        if arc.name in read and arc.name not in superbox.terminals
    ]
