"""The predicate index of an arc: which queries each tuple satisfies.

Queries that many tuples satisfy are bits of grouped filters, selective ones are filed under an
access predicate; statistics decide which.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from auroral.continuous.template import Attribute
from auroral.eddy import grouped
from auroral.eddy.access import Access
from auroral.eddy.bitmap import Block, Ids, Pairs, distinct, mask_of
from auroral.eddy.evaluation import Columns
from auroral.eddy.filing import filed, plan
from auroral.eddy.filtering import Passage, Words
from auroral.eddy.lineage import Lineage
from auroral.eddy.portion import Portion, Reader
from auroral.eddy.routing import Operator, Visit
from auroral.eddy.selections import Disjunction, Selection, Statistics, disjunctions, merged
from auroral.eddy.tally import Errors, Tally, add_visits

__all__ = ["CHUNK", "Matched", "Part", "Selection", "Statistics", "build", "match", "operators"]

CHUNK = 16_384
"""So many tuples take the same way."""
_SAMPLE = 500


@dataclass(frozen=True)
class Part:
    """Compiled queries; read-only."""

    kinds: tuple[str, ...]
    blocks: tuple[grouped.Block, ...]
    accesses: tuple[Access, ...]
    attributes: Mapping[str, Attribute]
    """By text those that tuples are sent to."""
    predicates: Mapping[str, int]
    """By attribute's text how many there are."""


@dataclass(frozen=True)
class Matched:
    """What a batch of tuples satisfies."""

    lineages: dict[str, Lineage]
    """By kind."""
    visits: dict[str, Visit]
    """By operator."""
    errors: Errors
    sample: dict[str, pa.Array]
    """Of each attribute some values, evenly spread over the batch."""


def build(selections: Sequence[Selection], statistics: Statistics) -> Part:
    """Compile queries."""
    dense: list[tuple[Selection, tuple[Disjunction, ...]]] = []
    accesses: list[Access] = []
    predicates: dict[str, int] = {}
    attributes: dict[str, Attribute] = {}
    for selection in merged(selections):
        clauses = disjunctions(selection)
        for test in (test for clause in clauses if not clause.in_pairs for test in clause.tests):
            text = test.atom.attribute.text
            attributes[text] = test.atom.attribute
            predicates[text] = predicates.get(text, 0) + len(selection.ids)
        how, selective = plan(selection, clauses, statistics)
        if how is not None and selective.any():
            chosen = selection.take(np.flatnonzero(selective))
            accesses.append(filed(chosen, clauses, how))
            selection = selection.take(np.flatnonzero(~selective))
        if len(selection.ids):
            dense.append((selection, clauses))
    kinds = tuple(sorted({selection.kind for selection in selections}))
    return Part(kinds, grouped.blocks(dense), tuple(accesses), attributes, predicates)


def operators(parts: Sequence[Part]) -> tuple[Operator, ...]:
    """What tuples are sent to; those that cost little come first."""
    predicates: dict[str, int] = {}
    costly: dict[str, bool] = {}
    for part in parts:
        for text, count in part.predicates.items():
            predicates[text] = predicates.get(text, 0) + count
            costly[text] = part.attributes[text].costly
    found = [Operator(text, count, costly[text]) for text, count in predicates.items()]
    return tuple(sorted(found, key=lambda o: (o.costly, o.name)))


def match(
    parts: Sequence[Part],
    removed: Mapping[str, Ids],
    tuples: Columns,
    orders: Sequence[Sequence[str]] = (),
) -> Matched:
    """Find the queries each tuple satisfies; `orders` has an order of operators per chunk.

    Orders repeat if there are fewer than chunks, and what they do not name comes last.
    """
    work = _Work(parts, removed, tuples.rows)
    reader = Reader(tuples)
    names = [operator.name for operator in operators(parts)]
    for number, start in enumerate(range(0, tuples.rows, CHUNK)):
        order = list(orders[number % len(orders)]) if orders else []
        order = [name for name in dict.fromkeys((*order, *names)) if name in names]
        work.chunk(Portion(reader, start, min(start + CHUNK, tuples.rows)), order)
    return Matched(work.lineages(), work.visits, work.errors, _sample(parts, tuples))


class _Work:
    """The lineages of a batch as they are found."""

    def __init__(self, parts: Sequence[Part], removed: Mapping[str, Ids], rows: int):
        self._parts = parts
        self._removed = {kind: distinct(ids).astype(np.int32) for kind, ids in removed.items()}
        self._rows = rows
        self._blocks: list[tuple[grouped.Block, Words, Words]] = []
        """With the queries that were not removed, and the lineage."""
        for part in parts:
            for block in part.blocks:
                live = block.every
                gone = self._removed.get(block.kind)
                if gone is not None:
                    live = mask_of(~np.isin(block.ids, gone), len(live))
                self._blocks.append((block, live, np.empty((rows, len(live)), np.uint64)))
        self._pairs: dict[str, list[Pairs]] = {}
        self._seconds: dict[str, float] = {}
        self.visits: dict[str, Visit] = {}
        self.errors: Errors = {}

    def chunk(self, portion: Portion, order: Sequence[str]) -> None:
        """Take the tuples of a chunk through all operators."""
        tally = Tally(portion.rows, order, self._seconds)
        for block, live, lineage in self._blocks:
            Passage(block, portion, tally, live, lineage[portion.slice]).run(self.errors)
        for part in self._parts:
            for access in part.accesses:
                gone = self._removed.get(access.kind)
                found = access.run(portion, tally, gone, self.errors)
                pairs = self._pairs.setdefault(access.kind, [])
                pairs += [each + (portion.start << 32) for each in found]
        add_visits(self.visits, tally.visits(), self._seconds)

    def lineages(self) -> dict[str, Lineage]:
        return {kind: self._lineage(kind) for part in self._parts for kind in part.kinds}

    def _lineage(self, kind: str) -> Lineage:
        blocks = tuple(
            Block.of_words(block.ids, lineage)
            for block, _, lineage in self._blocks
            if block.kind == kind
        )
        pairs = np.concatenate([np.empty(0, np.int64), *self._pairs.get(kind, ())])
        ids = (pairs & 0x7FFFFFFF).astype(np.int32)
        sparse = Lineage.from_pairs(self._rows, pairs >> 32, ids)
        return Lineage(self._rows, blocks, sparse.offsets, sparse.ids)


def _sample(parts: Sequence[Part], tuples: Columns) -> dict[str, pa.Array]:
    count = min(_SAMPLE, tuples.rows)
    rows = np.linspace(0, max(tuples.rows - 1, 0), count).astype(np.int64)
    found: dict[str, pa.Array] = {}
    for text, attribute in ((t, a) for part in parts for t, a in part.attributes.items()):
        if text in found or attribute.costly:
            continue
        if attribute.field is not None:
            found[text] = tuples.column(attribute.field).take(pa.array(rows))
        else:
            found[text] = tuples.evaluate(attribute, rows).values
    return found
