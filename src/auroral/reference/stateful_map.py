"""Map with state, one tuple at a time."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from auroral.boxes.stateful_map import StatefulMap
from auroral.network.box import Scope
from auroral.network.function import fitted_value, require_row
from auroral.network.types import Schema
from auroral.reference.operator import RAISED, Emission, Failed, Now, Row, Tuple
from auroral.reference.progress.marks import Group, group_key


class ReferenceStatefulMap:
    """Keeps the state of each group as it would be stored, so that a failure cannot touch it.

    >>> class Second:
    ...     def init(self):
    ...         return 0
    ...     def step(self, count, row):
    ...         return (0, {"n": row["n"]}) if count else (1, None)
    >>> box = StatefulMap(input="s", state=True, udf=Second, returns="n int")
    >>> every_second = ReferenceStatefulMap(box, [Schema.parse("n int")])
    >>> [made.tuple.row for n in (5, 6, 7, 8) for made in every_second.push(0, Tuple({"n": n}))]
    [{'n': 6}, {'n': 8}]
    """

    def __init__(self, box: StatefulMap, inputs: Sequence[Schema], directory: Path | None = None):
        self._make = box.function.load(directory)
        self._by = [inputs[0].field(name).name for name in box.by]
        self._kept = box.kept(inputs[0])
        self._returns = box.returned(Scope(directory=directory, imports=True))
        self._states: dict[Group, bytes] = {}

    def push(self, _port: int, arrived: Tuple) -> list[Emission | Failed]:
        group = group_key(tuple(arrived.row[name] for name in self._by))
        try:
            function = self._make()
            stored = self._states.get(group)
            state = pickle.loads(pickle.dumps(function.init()) if stored is None else stored)
            state, row = function.step(state, pickle.loads(pickle.dumps(arrived.row)))
            made = None if row is None else self._fitted(row)
        except RAISED as error:
            return [Failed(f"{type(error).__name__}: {error}"[:500], arrived.row)]
        self._states[group] = pickle.dumps(state)
        if made is None:
            return []
        kept = {name: arrived.row[name] for name in self._kept}
        return [Emission("", replace(arrived, row=kept | made))]

    def settle(self, _now: Now) -> list[Emission | Failed]:
        return []

    def held(self) -> int:
        return len(self._states)

    def _fitted(self, row: Mapping[str, Any]) -> Row:
        require_row(row, self._returns.names)
        return {
            field.name: fitted_value(row.get(field.name), field.type.arrow()).to_pylist(
                maps_as_pydicts="strict"
            )[0]
            for field in self._returns
        }
