"""The predicates of many queries on one attribute, as sets of regions of its domain."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from auroral.continuous.sharing.template import Attribute, Op
from auroral.eddy.bitmap import distinct
from auroral.eddy.filters.domains import Domain
from auroral.eddy.filters.keys import Keys, Scale
from auroral.eddy.filters.selections import LISTS, NEGATED, Constants, constants_of

Numbers = NDArray[np.int64]

_ORDERED = ("<", "<=", ">", ">=", "prefix", "not prefix")
_PARTS = 1 << 10
"""More than any query has clauses on one attribute, or disjunctions over several."""


@dataclass(frozen=True)
class Accepted:
    """For each query and part of it the regions it accepts, as spans that add up.

    A part below zero, -p, is what the attribute adds to the query's p-th disjunction over
    several attributes; any other is a clause on this attribute alone.
    """

    columns: Numbers
    """Query and part as one number, ascending; see `column`. Some accept no region at all."""
    owner: Numbers
    """Of each span its column, ascending."""
    low: Numbers
    high: Numbers
    """The first region past the span."""
    weight: NDArray[np.int16]
    """1, or -1 to take a region out again."""


def column(queries: Numbers, part: int) -> Numbers:
    """Query and part as one number."""
    return queries * (2 * _PARTS) + (part + _PARTS)


def queries_of(columns: Numbers) -> Numbers:
    return columns // (2 * _PARTS)


def parts_of(columns: Numbers) -> Numbers:
    return columns % (2 * _PARTS) - _PARTS


@dataclass
class AttributePredicates:
    """Predicates on one attribute, on one scale, as they are found."""

    attribute: Attribute
    scale: Scale
    _asked: list[tuple[Numbers, int, Op, pa.Array | None]] = field(default_factory=list)

    def add(self, queries: Numbers, part: int, op: Op, constants: pa.Array | None) -> None:
        """Add a predicate of each of these queries, with its constant."""
        self._asked.append((queries, part, op, constants))

    def finish(self) -> tuple[Domain, Accepted]:
        """The domain that all constants form, and the regions of it that each query accepts."""
        groups = self._grouped()
        prepared: list[tuple[Numbers, Op, Constants | None]] = [
            (columns, op, None if values is None else constants_of(values, op, self.scale))
            for columns, op, values in groups
        ]
        keys = [k for _, _, made in prepared if made is not None for k in (made.keys, made.above)]
        constants = _together([k for k in keys if k is not None], self.scale)
        ordered = any(op in _ORDERED for _, op, _ in prepared)
        domain = Domain(self.scale, constants, ordered)
        spans = [_spans(columns, op, made, domain) for columns, op, made in prepared]
        owner, low, high, weight = (np.concatenate(each) for each in zip(*spans, strict=True))
        order = np.argsort(owner, kind="stable")
        columns = distinct(np.concatenate([columns for columns, _, _ in prepared]))
        return domain, Accepted(columns, owner[order], low[order], high[order], weight[order])

    def _grouped(self) -> list[tuple[Numbers, Op, pa.Array | None]]:
        """Predicates with one operator together: there may be thousands of templates."""
        alike: dict[tuple[Op, str], list[tuple[Numbers, pa.Array | None]]] = {}
        for queries, part, op, constants in self._asked:
            key = op, "" if constants is None else str(constants.type)
            alike.setdefault(key, []).append((column(queries, part), constants))
        groups: list[tuple[Numbers, Op, pa.Array | None]] = []
        for (op, _), asked in alike.items():
            values = [v for _, v in asked if v is not None]
            whole = pa.concat_arrays(values) if values else None
            groups.append((np.concatenate([columns for columns, _ in asked]), op, whole))
        return groups


def _together(keys: list[Keys], scale: Scale) -> Keys:
    """All constants that are not NULL."""
    keys = [k if k.nulls is None else k.take(~k.nulls) for k in keys]
    if scale == "bytes":
        texts = [k.distinct.take(pa.array(k.data)) for k in keys if k.distinct is not None]
        whole = pa.concat_arrays([pa.array([], pa.binary()), *texts]).dictionary_encode()
        return Keys(whole.indices.to_numpy(), None, whole.dictionary)
    data = [k.data for k in keys]
    return Keys(np.concatenate(data) if data else np.empty(0, np.int64), None)


def _spans(
    columns: Numbers, op: Op, constants: Constants | None, domain: Domain
) -> tuple[Numbers, Numbers, Numbers, NDArray[np.int16]]:
    if constants is None:
        bounds = (domain.null, domain.regions) if op == "null" else (0, domain.null)
        return _same(columns, *bounds)
    wanted = ~constants.never
    if op in LISTS:
        owner, element, _ = constants.elements(np.flatnonzero(wanted))
        owner = np.flatnonzero(wanted)[owner]
        keys = constants.keys.take(element)
    else:
        owner = np.flatnonzero(wanted)
        keys = constants.keys.take(wanted)
    point = 2 * domain.places(keys) + 1
    low, high = point, point + 1
    if op in ("<", "<="):
        low, high = np.zeros_like(point), point if op == "<" else point + 1
    elif op in (">", ">="):
        low, high = point + 1 if op == ">" else point, np.full_like(point, domain.null)
    elif op in ("prefix", "not prefix"):
        assert constants.above is not None
        above = constants.above.take(wanted)
        high = 2 * domain.places(above) + 1
        if above.nulls is not None:
            high[above.nulls] = domain.null
    if op not in NEGATED:
        return columns[owner], low, high, np.ones(len(owner), np.int16)
    every = columns[wanted]
    return (
        np.concatenate([every, columns[owner]]),
        np.concatenate([np.zeros(len(every), np.int64), low]),
        np.concatenate([np.full(len(every), domain.null), high]),
        np.repeat(np.array([1, -1], np.int16), [len(every), len(owner)]),
    )


def _same(
    columns: Numbers, low: int, high: int
) -> tuple[Numbers, Numbers, Numbers, NDArray[np.int16]]:
    size = len(columns)
    return (
        columns,
        np.full(size, low),
        np.full(size, high),
        np.ones(size, np.int16),
    )
