"""Latch, one tuple at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from auroral.boxes.latch import Latch
from auroral.network.types import Schema
from auroral.reference.operator import Emission, Failed, Now, Tuple
from auroral.reference.progress.marks import Group, group_key
from auroral.reference.windowing.windows import computation, shown


class ReferenceLatch:
    """Keeps all tuples of each key, and computes over all of them at each tuple.

    >>> box = Latch(input="s", by=("car",), compute={"paid": "sum(toll)"}, table="t")
    >>> latch = ReferenceLatch(box, [Schema.parse("car int, toll int")])
    >>> rows = [{"car": 1, "toll": 2}, {"car": 2, "toll": 5}, {"car": 1, "toll": 3}]
    >>> [made.tuple.row["paid"] for row in rows for made in latch.push(0, Tuple(row))]
    [2, 5, 5]
    """

    def __init__(self, box: Latch, inputs: Sequence[Schema], directory: Path | None = None):
        (schema,) = inputs
        self._by = [schema.field(name).name for name in box.by]
        self._compute = computation(box.compute, schema, directory)
        self._tuples: dict[Group, list[Tuple]] = {}

    def push(self, _port: int, arrived: Tuple) -> list[Emission | Failed]:
        key = {name: shown(arrived.row[name]) for name in self._by}
        mine = self._tuples.setdefault(group_key(tuple(key.values())), [])
        mine.append(arrived)
        return [Emission("", replace(arrived, row=key | self._compute(mine)))]

    def settle(self, _now: Now) -> list[Emission | Failed]:
        return []

    def held(self) -> int:
        return len(self._tuples)
