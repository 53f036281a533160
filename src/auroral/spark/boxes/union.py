"""Union on Spark: the lanes of all inputs, ranked where they can meet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from auroral.network.types import Schema
from auroral.spark.plans.frame import Lane


def lower(
    inputs: Sequence[Sequence[Lane]], output: Schema, roots: Callable[[str], frozenset[str]]
) -> list[Lane]:
    """All lanes, their fields renamed to the output's.

    One moment can reach the union by several inputs only if they have a root in common; then
    the number of the input goes in front of the lane's rank.
    """
    sources = [{root for lane in lanes for root in roots(lane.source)} for lanes in inputs]
    shared = {
        source for group in sources for source in group if sum(source in g for g in sources) > 1
    }
    united: list[Lane] = []
    for number, lanes in enumerate(inputs):
        for lane in lanes:
            columns = dict(zip(output.names, lane.columns.values(), strict=True))
            rank = number.to_bytes(2, "big") + lane.rank if shared else lane.rank
            united.append(replace(lane, columns=columns, rank=rank))
    return united
