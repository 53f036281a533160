"""User window functions: init, incr for each row in order of arrival, final."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from auroral.kernels.accumulators.columns import Ints
from auroral.kernels.accumulators.lists import appended, empty_lists
from auroral.kernels.accumulators.spec import CallSpec
from auroral.kernels.calling import described
from auroral.kernels.shelter import Done, attempted
from auroral.network.function import NOTHING, fitted_value, load_named

State = Sequence[pa.Array]
NO_RESULT = ""
"""In place of a reason: the function did not fail, but wants no tuple for the window."""


class WindowFunction:
    """Keeps the arguments of every row; the function itself runs when the window closes."""

    def __init__(self, spec: CallSpec):
        self._spec = spec
        # A struct has at least one field, also for a function without arguments.
        types = spec.arguments or (pa.bool_(),)
        self._element = pa.struct([(f"a{at}", type) for at, type in enumerate(types)])
        self.types = (pa.list_(self._element),)

    def fresh(self, n: int) -> list[pa.Array]:
        return [empty_lists(n, self._element)]

    def fold(self, state: State, columns: State, slot: Ints) -> list[pa.Array]:
        given = columns or [pa.nulls(len(slot), pa.bool_())]
        rows = pa.StructArray.from_arrays(list(given), fields=list(self._element))
        return [appended(state[0], rows, slot)]

    def final(self, state: State) -> pa.Array:
        return self.attempt(state)[0]

    def attempt(self, state: State) -> Done:
        """The values, NULL where the function failed, and by window the reason why it failed."""
        cls, width, returns = self._load(), len(self._spec.arguments), self._spec.returns

        def work(first: int, last: int) -> Done:
            values: list[pa.Array] = [pa.array([], returns)]
            failures: dict[int, str] = {}
            for at, window in enumerate(state[0].slice(first, last - first)):
                try:
                    rows = (tuple(row.values())[:width] for row in _python(window))
                    found = run_window(cls, rows)
                    if found is NOTHING:
                        failures[at] = NO_RESULT
                    values.append(fitted_value(None if found is NOTHING else found, returns))
                except BaseException as error:  # sys.exit() is no more than another mistake
                    failures[at] = described(error)
                    values.append(pa.nulls(1, returns))
            return pa.concat_arrays(values), failures

        return attempted(id(cls), len(state[0]), returns, work)

    def _load(self) -> Any:
        function, directory = self._spec.function, self._spec.directory
        if not isinstance(function, str):
            return function
        return load_named(function, Path(directory) if directory else None)


def run_window(cls: Any, rows: Iterable[tuple[Any, ...]]) -> Any:
    """Run a window function over rows; an `incr` that returns None has changed its state."""
    function = cls()
    state = function.init()
    for row in rows:
        new = function.incr(state, *row)
        state = state if new is None else new
    return function.final(state)


def _python(window: pa.ListScalar) -> list[dict[str, Any]]:
    return list(window.as_py(maps_as_pydicts="lossy"))
