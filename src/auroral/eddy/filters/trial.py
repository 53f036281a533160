"""Try orders of operators on some tuples; only `optimal` routing uses the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from auroral.eddy.bitmap import Ids
from auroral.eddy.filters.index import CompiledQueries, match, operators
from auroral.eddy.filters.keys import Mask
from auroral.eddy.routes.optimal import Order, cheapest
from auroral.eddy.vectors.evaluation import TupleColumns

_TUPLES = 1_000


def tried(
    parts: Sequence[CompiledQueries],
    removed: Mapping[str, Ids],
    tuples: TupleColumns,
    own: Mapping[str, Mask],
    costs: Mapping[str, float],
) -> Order:
    """The order in which a sample of the tuples costs least; visits cost as much as told.

    Tuples really go each way, so it does not matter how predicates depend on each other and which
    queries share them.
    """
    count = min(_TUPLES, tuples.rows)
    drawn = np.random.default_rng(tuples.rows).choice(tuples.rows, count, replace=False)
    rows = np.sort(drawn)
    some = TupleColumns(tuples.table.take(pa.array(rows)), tuples.functions)
    for attribute in {text: a for part in parts for text, a in part.attributes.items()}.values():
        some.evaluate(attribute)  # once, not for each order
    mine = {kind: mask[rows] for kind, mask in own.items()}
    kinds = {kind for part in parts for kind in part.kinds}

    def cost(order: Order) -> float:
        visits = match(parts, removed, some, [order], own=mine, counted=kinds).visits
        return sum(visit.routed * costs.get(name, 1.0) for name, visit in visits.items())

    return cheapest([operator.name for operator in operators(parts)], cost)
