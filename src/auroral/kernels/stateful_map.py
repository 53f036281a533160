"""Map with state on one bucket: a Python class is called with each tuple, in order of arrival.

The state of a group is stored as a pickle: it may be any Python value, and loading it runs code,
as loading the class itself does.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from auroral.kernels.calling import described
from auroral.kernels.grouping import Ids, first_rows, match_groups
from auroral.kernels.kernel import Context, Emitted
from auroral.kernels.shelter import in_turn
from auroral.kernels.stored import conformed, newest_rows, renewed, stored_schema, with_sub
from auroral.network.function import fitted_value, load_named, require_row

_WHOLE = {
    pa.int8(): 2**7,
    pa.int16(): 2**15,
    pa.int32(): 2**31,
    pa.int64(): 2**63,
}
"""Integer types, and the first number that is too large for each."""


@dataclass(frozen=True)
class StatefulMapKernel:
    """Give each tuple to the function with the state of its group."""

    function: str | Callable[..., Any]
    by: tuple[str, ...]
    fields: tuple[str, ...]
    names: tuple[str, ...]
    """What rows call the fields."""
    kept: tuple[str, ...]
    returns: tuple[tuple[str, pa.DataType], ...]
    types: tuple[tuple[str, pa.DataType], ...]
    directory: str | None = None

    def tables(self) -> Mapping[str, pa.Schema]:
        kinds = dict(self.types)
        columns = [*((name, kinds[name]) for name in self.by), ("state", pa.binary())]
        return {"states": stored_schema(columns, hidden=False)}

    def step(
        self, inputs: Sequence[pa.Table], state: Mapping[str, pa.Table], _context: Context
    ) -> Emitted:
        new = with_sub(inputs[0])
        old = conformed(state["states"], self.tables()["states"])
        group, known, count = match_groups(
            new.select(self.by).columns, new.num_rows, old.select(self.by).columns, old.num_rows
        )
        latest = newest_rows(known, old, count)
        if not new.num_rows:
            return Emitted(held=int((latest >= 0).sum()))
        calls = _StepCalls(self, new, group, old["state"], latest)
        in_turn(id(calls.make), new.num_rows, calls)
        live = np.zeros(old.num_rows, bool)
        live[latest[latest >= 0]] = True
        replaced = latest[np.array([*calls.stored], np.int64)]
        live[replaced[replaced >= 0]] = False
        changed = renewed(old, live, calls.states(first_rows(group, count)))
        return Emitted(
            {"": calls.emitted()},
            {} if changed is None else {"states": changed},
            dead=calls.dead(),
            held=int(live.sum()) + len(calls.stored),
        )

    def load(self) -> Callable[..., Any]:
        """The class."""
        if not isinstance(self.function, str):
            return self.function
        return load_named(self.function, Path(self.directory) if self.directory else None)


@dataclass
class _Group:
    """The state of a group; what it was at some tuple, as bytes, and the tuples taken since."""

    state: Any
    saved: bytes | None
    since: list[int] = field(default_factory=list)


@dataclass
class _Run:
    """The result of a run of tuples, in a form that can be sent from another process."""

    rows: list[int] = field(default_factory=list)
    values: list[list[Any]] = field(default_factory=list)
    failures: dict[int, str] = field(default_factory=dict)
    states: dict[int, bytes] = field(default_factory=dict)


class _StepCalls:
    """The calls of one step."""

    def __init__(
        self,
        kernel: StatefulMapKernel,
        tuples: pa.Table,
        group: Ids,
        states: pa.ChunkedArray,
        latest: Ids,
    ):
        self._kernel, self._tuples = kernel, tuples
        self._group: list[int] = group.tolist()
        self._states, self._latest = states, latest
        self.make = kernel.load()
        self._columns = _python(tuples.select(kernel.fields))
        self._fit = [_fitting(type) for _, type in kernel.returns]
        self._names = [name for name, _ in kernel.returns]
        self.stored: dict[int, bytes] = {}
        """The states of groups that this step has changed."""
        self._made = _Run(values=[[] for _ in kernel.returns])

    # ── calling ──

    def work(self, first: int, last: int) -> _Run:
        """Call the function for some tuples."""
        run = _Run(values=[[] for _ in self._fit])
        groups: dict[int, _Group] = {}
        rows = zip(*(column[first:last] for column in self._columns), strict=True)
        names = self._kernel.names
        for row, values in enumerate(rows, first):
            id = self._group[row]
            saved = None if id in groups else self._saved(id)
            if saved is not None:
                groups[id] = _Group(self._unpickled(saved), saved)
            try:
                if id not in groups:
                    groups[id] = _Group(self._initial(), None)
                group = groups[id]
                made = self._called(group, dict(zip(names, values, strict=True)))
            except BaseException as error:  # sys.exit() is no more than another mistake
                run.failures[row] = described(error)
                if id in groups:
                    groups[id] = self._as_before(groups[id])
                continue
            group.since.append(row)
            if made is not None:
                run.rows.append(row)
                for column, value in zip(run.values, made, strict=True):
                    column.append(value)
        for id, group in groups.items():
            saved = self._pickled(group.state) if group.since else group.saved
            if saved is not None:
                run.states[id] = saved
        return run

    def take(self, run: _Run) -> None:
        """Receive the result of a run; the next run continues with its states."""
        self.stored |= run.states
        self._made.failures |= run.failures
        self._made.rows += run.rows
        for column, more in zip(self._made.values, run.values, strict=True):
            column += more

    def failed(self, first: int, last: int, why: str) -> None:
        self._made.failures |= dict.fromkeys(range(first, last), why)

    def _saved(self, id: int) -> bytes | None:
        """The state of a group before this run; None if the group is new."""
        saved: bytes | None = self.stored.get(id)
        if saved is None and self._latest[id] >= 0:
            saved = self._states[int(self._latest[id])].as_py()
        return saved

    def _called(self, group: _Group, row: dict[str, Any]) -> list[Any] | None:
        """One call. An instance serves one tuple: what is to last is in the state."""
        state, made = self.make().step(group.state, row)
        values = None
        if made is not None:
            require_row(made, self._names)
            values = [fit(made.get(name)) for name, fit in zip(self._names, self._fit, strict=True)]
        group.state = state
        return values

    def _as_before(self, group: _Group) -> _Group:
        """Restore a group's state to before the failed call, which may have changed it."""
        saved = group.saved
        again = _Group(self._initial() if saved is None else self._unpickled(saved), saved)
        names = self._kernel.names
        for row in group.since:
            values = [column[0] for column in _python(self._row(row))]
            self._called(again, dict(zip(names, values, strict=True)))
        # Saved anew, so that the next failure need not repeat the same calls.
        return _Group(again.state, self._pickled(again.state) if group.since else saved)

    def _initial(self) -> Any:
        """The first state of a group: a copy, as `init` may give the same object to all groups."""
        return self._unpickled(self._pickled(self.make().init()))

    def _pickled(self, state: Any) -> bytes:
        try:
            return pickle.dumps(state)
        except Exception as error:
            why = f"{self._label} returned a state that cannot be stored: {described(error)}"
            raise TypeError(why) from error

    def _unpickled(self, saved: bytes) -> Any:
        try:
            return pickle.loads(saved)
        except Exception as error:
            why = f"a state that {self._label} returned cannot be read back: {described(error)}"
            raise TypeError(why) from error

    @property
    def _label(self) -> str:
        return getattr(self.make, "__qualname__", str(self._kernel.function))

    # ── what came of it ──

    def emitted(self) -> pa.Table:
        """The tuples that leave, each with the moment of the tuple it was made of."""
        taken = self._tuples.take(pa.array(self._made.rows, pa.int64()))
        columns = {name: taken[name] for name in ("_seq", "_ts", "_sub", *self._kernel.kept)}
        for (name, type), values in zip(self._kernel.returns, self._made.values, strict=True):
            columns[made_column(name)] = pa.array(values, type)
        return pa.table(columns)

    def states(self, first: Ids) -> pa.Table:
        """The states that changed, each with its group; `first` is where a group first appears."""
        rows = pa.array(first[np.array([*self.stored], np.int64)])
        columns = {name: self._tuples[name].take(rows) for name in self._kernel.by}
        return pa.table(columns | {"state": pa.array([*self.stored.values()], pa.binary())})

    def dead(self) -> list[tuple[str, str]]:
        """The tuples for which the function failed, in order of arrival."""
        found = []
        for row, why in sorted(self._made.failures.items()):
            values = [column[0] for column in _python(self._row(row))]
            shown = dict(zip(self._kernel.names, values, strict=True))
            found.append((why, json.dumps(shown, default=str, ensure_ascii=False)))
        return found

    def _row(self, row: int) -> pa.Table:
        return self._tuples.select(self._kernel.fields).slice(row, 1)


def made_column(name: str) -> str:
    """The column of a field that the function returned."""
    return f"m_{name}"


def _python(table: pa.Table) -> list[list[Any]]:
    return [column.to_pylist(maps_as_pydicts="lossy") for column in table.columns]


def _fitting(type: pa.DataType) -> Callable[[Any], Any]:
    """Turns what a function returned for a field into a value that the field holds, or raises.

    A list or a dict is copied, as the function may keep and change it. What mostly comes is
    let through without asking Arrow.
    """

    def fit(value: Any) -> Any:
        return fitted_value(value, type).to_pylist(maps_as_pydicts="lossy")[0]

    if type in _WHOLE:
        limit = _WHOLE[type]

        def fit_whole(value: Any) -> Any:
            plain = value.__class__ is int and -limit <= value < limit
            return value if plain or value is None else fit(value)

        return fit_whole
    if pa.types.is_string(type):

        def fit_text(value: Any) -> Any:
            plain = value.__class__ is str and value.isascii()
            return value if plain or value is None else fit(value)

        return fit_text
    if pa.types.is_float64(type) or pa.types.is_boolean(type):
        expected = float if pa.types.is_float64(type) else bool

        def fit_plain(value: Any) -> Any:
            return value if value.__class__ is expected or value is None else fit(value)

        return fit_plain
    return fit
