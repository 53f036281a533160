"""Expressions over pairs of tuples, computed for many pairs at once."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from auroral.continuous.sharing.template import Attribute
from auroral.eddy.vectors.evaluation import TupleColumns
from auroral.network.types import Type


@dataclass(frozen=True)
class PairExpression:
    """An expression over `left.x` and fields of the right.

    `left` and `right` are the columns it needs, each with the name that the expression has for it.

    >>> made = PairExpression("v * left.w", Type("bigint"), (("f0", "left.w"),), (("f1", "v"),))
    >>> made.compute(pa.table({"left.w": [2, 3], "v": [5, None]})).to_pylist()
    [10, None]
    """

    text: str
    type: Type
    left: tuple[tuple[str, str], ...]
    right: tuple[tuple[str, str], ...]

    def compute(self, pairs: pa.Table) -> pa.Array:
        """The values of the expression for each pair."""
        return TupleColumns(pairs).evaluate(Attribute(self.text, self.type)).values
