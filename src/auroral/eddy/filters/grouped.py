"""Grouped filters for queries that many tuples satisfy (Madden et al. 2002, section 3.2.6).

Queries are bits. For each attribute a block of queries has a table with a row per region of the
domain: the queries whose predicates on the attribute a value in that region satisfies. The
lineage of a tuple is the AND of one row of each table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from auroral.continuous.sharing.template import Attribute
from auroral.eddy.bitmap import Ids, distinct, mask_of
from auroral.eddy.filters.domains import Domain
from auroral.eddy.filters.keys import Rows
from auroral.eddy.filters.regions import Accepted, AttributePredicates, parts_of, queries_of
from auroral.eddy.filters.selections import Disjunction, Selection
from auroral.eddy.filters.verification import Verifier

Words = NDArray[np.uint64]

_MANY = 2048
_FEW = 512
_REGIONS = 4096
"""With more regions than this a block is smaller: its tables grow with the square of its size."""
_DIRECT = 1 << 16
"""Tables that would not be larger than this have a row for every code."""


@dataclass(frozen=True)
class AttributeFilter:
    """The predicates of a block of queries on one attribute, compared on one scale."""

    attribute: Attribute
    domain: Domain
    starts: Rows | None
    """The first code of each row of the tables, if codes are many."""
    rows: Rows | None
    """The row of each code, if they are few; with neither, every code has a row of its own."""
    table: Words | None
    """By row the queries whose clauses on this attribute alone are true; None if there are none."""
    mask: Words
    """The queries with such clauses."""
    planes: Mapping[int, tuple[Words, Words]]
    """By disjunction over several attributes the queries for which this one makes it true, by
    row; and the queries that have it look here."""

    def rows_of(self, codes: Rows) -> Rows:
        """The rows of the tables for values with those codes."""
        if self.rows is not None:
            return self.rows.take(codes)
        if self.starts is not None:
            return np.searchsorted(self.starts, codes, side="right") - 1
        return codes


@dataclass(frozen=True, eq=False)
class QueryBlock:
    """Queries of one kind whose lineage is kept as bits."""

    kind: str
    ids: Ids
    filters: Mapping[str, tuple[AttributeFilter, ...]]
    """By attribute's text."""
    absent: tuple[Words, ...]
    """For each plane the queries that have no such disjunction."""
    residues: tuple[tuple[int, int, Verifier], ...]
    """Queries from one number to another (exclusive) have clauses that only pairs can decide."""

    @property
    def every(self) -> Words:
        """All queries as bits."""
        return mask_of(np.ones(len(self.ids), bool), -(-len(self.ids) // 64))


@dataclass(frozen=True)
class _Dense:
    """A selection to be laid out, and the clauses by how they are decided."""

    selection: Selection
    single: tuple[Disjunction, ...]
    several: tuple[Disjunction, ...]
    paired: tuple[Disjunction, ...]


def blocks(
    selections: Sequence[tuple[Selection, tuple[Disjunction, ...]]],
) -> tuple[QueryBlock, ...]:
    """Lay out queries in blocks."""
    dense = [_sorted_out(selection, clauses) for selection, clauses in selections]
    dense = _neighbours(dense)
    collected: dict[tuple[str, str], AttributePredicates] = {}
    start = 0
    for one in dense:
        queries = np.arange(start, start + len(one.selection.ids), dtype=np.int64)
        start += len(queries)
        for number, clause in enumerate(one.single):
            _collect(collected, clause, one.selection, queries, number)
        for plane, clause in enumerate(one.several):
            _collect(collected, clause, one.selection, queries, -1 - plane)
    finished = [(each.attribute, *each.finish()) for each in collected.values()]
    most = max((domain.regions for _, domain, _ in finished), default=0)
    bounds = _bounds(dense, _MANY if most <= _REGIONS else _FEW)
    ends = np.cumsum([len(one.selection.ids) for one in dense], dtype=np.int64)
    return tuple(_block(dense, ends, finished, low, high) for low, high in bounds)


def _sorted_out(selection: Selection, clauses: tuple[Disjunction, ...]) -> _Dense:
    paired = tuple(c for c in clauses if c.in_pairs)
    others = [c for c in clauses if not c.in_pairs]
    single = tuple(c for c in others if len(c.domains) == 1)
    return _Dense(selection, single, tuple(c for c in others if len(c.domains) != 1), paired)


def _neighbours(dense: list[_Dense]) -> list[_Dense]:
    """Selections in an order that leaves blocks with few attributes and few planes.

    Those that ask for least come first: they show soonest that a tuple has queries left.
    """
    often: dict[str, int] = {}
    for one in dense:
        for text in _texts(one):
            often[text] = often.get(text, 0) + len(one.selection.ids)
    rank = {text: at for at, text in enumerate(sorted(often, key=lambda t: (-often[t], t)))}

    def key(one: _Dense) -> tuple[str, bool, int, int]:
        asked = sum(1 << (len(rank) - rank[text]) for text in _texts(one))
        return one.selection.kind, bool(one.paired), len(one.several), asked

    return sorted(dense, key=key)


def _texts(one: _Dense) -> set[str]:
    return {text for clause in (*one.single, *one.several) for text, _ in clause.domains}


def _collect(
    collected: dict[tuple[str, str], AttributePredicates],
    clause: Disjunction,
    selection: Selection,
    queries: NDArray[np.int64],
    part: int,
) -> None:
    for test in clause.tests:
        assert test.scale is not None
        each = collected.setdefault(
            test.domain, AttributePredicates(test.atom.attribute, test.scale)
        )
        slot = test.atom.slot
        constants = None if slot is None else selection.constant(slot)
        each.add(queries, part, test.atom.op, constants)


def _bounds(dense: list[_Dense], most: int) -> list[tuple[int, int]]:
    """Where blocks begin and end: none holds two kinds."""
    bounds: list[tuple[int, int]] = []
    start = 0
    sizes: dict[str, int] = {}
    for one in dense:
        sizes[one.selection.kind] = sizes.get(one.selection.kind, 0) + len(one.selection.ids)
    for size in sizes.values():
        # Blocks of like size, in whole words.
        count = -(-size // most)
        step = -(-size // (count * 64)) * 64
        bounds += [(start + at, start + min(at + step, size)) for at in range(0, size, step)]
        start += size
    return bounds


def _block(
    dense: list[_Dense],
    ends: NDArray[np.int64],
    finished: list[tuple[Attribute, Domain, Accepted]],
    low: int,
    high: int,
) -> QueryBlock:
    kind = ""
    ids: list[Ids] = []
    residues: list[tuple[int, int, Verifier]] = []
    planes = np.zeros(high - low, np.int64)
    first, last = np.searchsorted(ends, [low, high - 1], side="right")
    for one, end in zip(dense[first : last + 1], ends[first : last + 1], strict=True):
        start = int(end) - len(one.selection.ids)
        begin, stop = max(start, low), min(int(end), high)
        kind = one.selection.kind
        ids.append(one.selection.ids[begin - start : stop - start])
        planes[begin - low : stop - low] = len(one.several)
        if one.paired:
            part = one.selection.take(np.arange(begin - start, stop - start))
            residues.append((begin - low, stop - low, Verifier(one.paired, part)))
    filters: dict[str, list[AttributeFilter]] = {}
    for attribute, domain, accepted in finished:
        made = _filter(attribute, domain, accepted, low, high)
        if made is not None:
            filters.setdefault(attribute.text, []).append(made)
    width = -(-(high - low) // 64)
    absent = tuple(mask_of(planes <= plane, width) for plane in range(int(planes.max())))
    frozen = {text: tuple(made) for text, made in filters.items()}
    return QueryBlock(kind, np.concatenate(ids), frozen, absent, tuple(residues))


def _filter(
    attribute: Attribute, domain: Domain, accepted: Accepted, low: int, high: int
) -> AttributeFilter | None:
    """The tables of queries `low` to `high` for one attribute."""
    owners = queries_of(accepted.columns)
    first, last = np.searchsorted(owners, [low, high])
    columns = accepted.columns[first:last]
    if not len(columns):
        return None
    begin = np.searchsorted(accepted.owner, columns[0])
    end = np.searchsorted(accepted.owner, columns[-1], side="right")
    lows, highs = accepted.low[begin:end], accepted.high[begin:end]
    starts = distinct(np.concatenate([[0, domain.null], lows, highs]))
    starts = starts[starts < domain.regions]
    sums = np.zeros((len(starts) + 1, len(columns)), np.int16)
    at = np.searchsorted(columns, accepted.owner[begin:end])
    weight = accepted.weight[begin:end]
    np.add.at(sums, (np.searchsorted(starts, lows), at), weight)
    np.add.at(sums, (np.searchsorted(starts, highs), at), -weight)
    true = np.cumsum(sums[:-1], axis=0, dtype=np.int16) > 0
    queries, parts = owners[first:last] - low, parts_of(columns)
    size = high - low
    table, mask = _conjunction(true, queries, parts >= 0, size)
    planes: dict[int, tuple[Words, Words]] = {}
    for plane in range(int(-parts.min()) if len(parts) else 0):
        chosen = parts == -1 - plane
        if chosen.any():
            bits = np.zeros((len(starts), size), bool)
            bits[:, queries[chosen]] = true[:, chosen]
            planes[plane] = _packed(bits), _packed(_at(queries[chosen], size))[0]
    made = AttributeFilter(attribute, domain, starts, None, table, mask, planes)
    return _by_code(made) if domain.mapped else made


def _by_code(filter: AttributeFilter) -> AttributeFilter:
    """The same, with the row of each code at hand, or the tables' rows themselves."""
    assert filter.starts is not None
    regions = filter.domain.decoded(np.arange(filter.domain.codes))
    rows = np.searchsorted(filter.starts, regions, side="right") - 1
    if len(rows) * filter.mask.nbytes > _DIRECT:
        return replace(filter, starts=None, rows=rows)
    table = None if filter.table is None else filter.table[rows]
    planes = {plane: (true[rows], looked) for plane, (true, looked) in filter.planes.items()}
    return replace(filter, starts=None, table=table, planes=planes)


def _conjunction(
    true: NDArray[np.bool_], queries: NDArray[np.int64], chosen: NDArray[np.bool_], size: int
) -> tuple[Words | None, Words]:
    """By row the queries all of whose clauses are true there, and the queries that have any."""
    at = np.flatnonzero(chosen)
    mask = _packed(_at(queries[at], size))[0]
    if not len(at):
        return None, mask
    bits = np.ones((len(true), size), bool)
    owner = queries[at]
    # Columns of one query lie together: take the first of each, then the second, …
    fresh = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]])
    order = np.arange(len(at)) - np.repeat(fresh, np.diff(np.r_[fresh, len(at)]))
    for turn in range(int(order.max()) + 1):
        these = order == turn
        bits[:, owner[these]] &= true[:, at[these]]
    return _packed(bits), mask


def _at(queries: NDArray[np.int64], size: int) -> NDArray[np.bool_]:
    found = np.zeros((1, size), bool)
    found[0, queries] = True
    return found


def _packed(bits: NDArray[np.bool_]) -> Words:
    padded = np.zeros((len(bits), -(-bits.shape[1] // 64) * 8), np.uint8)
    packed = np.packbits(bits, axis=1, bitorder="little")
    padded[:, : packed.shape[1]] = packed
    return padded.view(np.uint64)
