"""Clauses decided for pairs of a tuple and a query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from auroral.continuous.sharing.template import Op
from auroral.eddy.filters.keys import Keys, Mask, keys_of
from auroral.eddy.filters.portion import Portion
from auroral.eddy.filters.selections import (
    LISTS,
    NEGATED,
    Constants,
    Disjunction,
    Selection,
    Test,
    constants_of,
)

At = NDArray[np.intp]


class Verifier:
    """Some clauses of a selection with its constants as columns; queries are called by position."""

    def __init__(self, clauses: Sequence[Disjunction], selection: Selection):
        self.clauses = tuple(clauses)
        self._constants: dict[tuple[int, Op, str], Constants] = {}
        self._raw: dict[int, pa.Array] = {}
        for clause in self.clauses:
            for test in clause.tests:
                self._keep(test, selection)

    def _keep(self, test: Test, selection: Selection) -> None:
        atom = test.atom
        for slot in atom.attribute.slots:
            self._raw[slot] = selection.constant(slot)
        if atom.slot is not None and test.scale is not None:
            key = atom.slot, atom.op, test.scale
            self._constants[key] = constants_of(selection.constant(atom.slot), atom.op, test.scale)

    def decide(
        self, clause: Disjunction, portion: Portion, rows: At, queries: At
    ) -> tuple[Mask, Mask | None, str | None]:
        """For each pair whether a clause holds; whether its evaluation failed; and why."""
        true = np.zeros(len(rows), bool)
        failed: Mask | None = None
        reason: str | None = None
        for test in clause.tests:
            left = np.flatnonzero(~true) if true.any() else slice(None)
            holds, fails = self._test(test, portion, rows[left], queries[left])
            true[left] = holds
            if fails is not None:
                failed = np.zeros(len(rows), bool) if failed is None else failed
                failed[left] |= fails
                reason = reason or portion.reasons.get(test.atom.attribute.text)
        return true, None if failed is None else failed & ~true, reason

    def _test(
        self, test: Test, portion: Portion, rows: At, queries: At
    ) -> tuple[Mask, Mask | None]:
        atom = test.atom
        if test.in_pairs:
            raw = {n: self._raw[n].take(pa.array(queries)) for n in atom.attribute.slots}
            values, failed = portion.with_constants(atom.attribute, rows, raw)
            if test.scale is None:
                true = pc.fill_null(values, False).to_numpy(zero_copy_only=False)
                return np.asarray(true, bool), failed
            keys = keys_of(values, test.scale)
        else:
            assert test.scale is not None
            keys, failed = portion.keys(atom.attribute, test.scale, rows)
        nulls = np.zeros(len(rows), bool) if keys.nulls is None else keys.nulls
        if atom.slot is None:
            holds = nulls.copy() if atom.op == "null" else ~nulls
        else:
            assert test.scale is not None
            constants = self._constants[atom.slot, atom.op, test.scale]
            holds = _compared(keys, atom.op, constants, queries)
            holds &= ~(nulls | constants.never[queries])
        if failed is not None:
            holds &= ~failed
        return holds, failed


def _compared(keys: Keys, op: Op, constants: Constants, queries: At) -> Mask:
    """Compare values that are not NULL."""
    positive = NEGATED.get(op, op)
    if op in LISTS:
        owner, element, _ = constants.elements(queries)
        same = _compare(keys.take(owner), "=", constants.keys.take(element))
        holds = np.zeros(len(keys), bool)
        holds[owner[same]] = True
    elif positive == "prefix":
        assert constants.above is not None
        above = constants.above.take(queries)
        holds = _compare(keys, ">=", constants.keys.take(queries))
        below = _compare(keys, "<", above)
        holds &= below if above.nulls is None else below | above.nulls
    else:
        holds = _compare(keys, positive, constants.keys.take(queries))
    return ~holds if op in NEGATED else holds


def _compare(left: Keys, op: Op, right: Keys) -> Mask:
    if left.distinct is None or right.distinct is None:
        return np.asarray(_NUMBERS[op](left.data, right.data), bool)
    if not len(left.distinct) or not len(right.distinct):
        return np.zeros(len(left), bool)
    found = _TEXTS[op](_texts(left), _texts(right))
    return np.asarray(pc.fill_null(found, False).to_numpy(zero_copy_only=False), bool)


def _texts(keys: Keys) -> pa.Array:
    assert keys.distinct is not None
    return keys.distinct.take(pa.array(keys.data))


_NUMBERS: dict[str, Any] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "=": np.equal,
}
_TEXTS: dict[str, Any] = {
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
    "=": pc.equal,
}
