"""The predicate index of an arc: which queries each tuple satisfies.

Queries that many tuples satisfy are bits of grouped filters, selective ones are filed under an
access predicate; statistics decide which.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from auroral.continuous.sharing.template import Attribute
from auroral.eddy import positional
from auroral.eddy.bitmap import BitmapBlock, Ids, Pairs, distinct, mask_of
from auroral.eddy.filters import grouped
from auroral.eddy.filters.access import Access
from auroral.eddy.filters.filing import filed, plan
from auroral.eddy.filters.filtering import Passage, Words
from auroral.eddy.filters.keys import Mask
from auroral.eddy.filters.portion import BatchReader, Portion
from auroral.eddy.filters.selections import Disjunction, Selection, Statistics, disjunctions, merged
from auroral.eddy.filters.tally import Counts, Errors, VisitTally, add_visits
from auroral.eddy.lineage import Lineage
from auroral.eddy.routes.routing import CHUNK, RoutedOperator, Visit
from auroral.eddy.vectors.evaluation import TupleColumns

__all__ = [
    "CHUNK",
    "CompiledQueries",
    "Matched",
    "Selection",
    "Statistics",
    "build",
    "match",
    "operators",
    "sampled",
]

_SAMPLE = 500


@dataclass(frozen=True)
class CompiledQueries:
    """Compiled queries; read-only."""

    kinds: tuple[str, ...]
    blocks: tuple[grouped.QueryBlock, ...]
    accesses: tuple[Access, ...]
    attributes: Mapping[str, Attribute]
    """By text those that tuples are sent to."""
    predicates: Mapping[str, int]
    """By attribute's text how many there are."""


@dataclass(frozen=True)
class Matched:
    """The queries that the tuples of a batch satisfy."""

    lineages: dict[str, Lineage]
    """By kind, but for those that are only counted."""
    counts: dict[str, Counts]
    """By kind that is only counted, queries and how many tuples satisfy them."""
    visits: dict[str, Visit]
    """By operator."""
    errors: Errors


def build(selections: Sequence[Selection], statistics: Statistics) -> CompiledQueries:
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
    return CompiledQueries(kinds, grouped.blocks(dense), tuple(accesses), attributes, predicates)


def operators(parts: Sequence[CompiledQueries]) -> tuple[RoutedOperator, ...]:
    """The operators that tuples visit, cheap ones first."""
    predicates: dict[str, int] = {}
    costly: dict[str, bool] = {}
    for part in parts:
        for text, count in part.predicates.items():
            predicates[text] = predicates.get(text, 0) + count
            costly[text] = part.attributes[text].costly
    found = [RoutedOperator(text, count, costly[text]) for text, count in predicates.items()]
    return tuple(sorted(found, key=lambda o: (o.costly, o.name)))


def match(
    parts: Sequence[CompiledQueries],
    removed: Mapping[str, Ids],
    tuples: TupleColumns,
    orders: Sequence[Sequence[str]] = (),
    *,
    own: Mapping[str, Mask] | None = None,
    counted: Collection[str] = (),
) -> Matched:
    """Find the queries each tuple satisfies; `orders` has an order of operators per chunk.

    Orders repeat if there are fewer than chunks, and what they do not name comes last. `own` are
    by kind the tuples that are looked at, if not all; of `counted` kinds there is no lineage.
    """
    work = _LineageWork(parts, removed, tuples.rows, own or {}, counted)
    reader = BatchReader(tuples)
    names = [operator.name for operator in operators(parts)]
    for number, start in enumerate(range(0, tuples.rows, CHUNK)):
        order = list(orders[number % len(orders)]) if orders else []
        order = [name for name in dict.fromkeys((*order, *names)) if name in names]
        work.chunk(Portion(reader, start, min(start + CHUNK, tuples.rows)), order)
    kinds = dict.fromkeys(kind for part in parts for kind in part.kinds)
    return Matched(
        {kind: work.lineage(kind) for kind in kinds if kind not in counted},
        {kind: work.counts(kind) for kind in kinds if kind in counted},
        work.visits,
        work.errors,
    )


class _Bits:
    """The lineage of a block of queries as chunks come; or only counts of it."""

    def __init__(self, block: grouped.QueryBlock, removed: Ids | None, rows: int, counted: bool):
        self.block = block
        self.live = block.every
        """The queries that were not removed."""
        if removed is not None:
            self.live = mask_of(~np.isin(block.ids, removed), len(self.live))
        width = len(self.live)
        self.words = np.empty((min(rows, CHUNK) if counted else rows, width), np.uint64)
        self._counter = positional.Counter(width) if counted else None
        """Counts each chunk when the next one comes, so that it is still in the cache."""
        self._filled = 0

    def next(self, rows: int) -> Words:
        """Where the lineage of the next tuples goes."""
        if self._counter is not None:
            self._count()
        self._filled += rows
        return self.words[self._filled - rows : self._filled]

    def _count(self) -> None:
        assert self._counter is not None
        self._counter.add(self.words[: self._filled])
        self._filled = 0

    def counts(self) -> Counts:
        """Queries and how many tuples satisfy them."""
        self._count()
        assert self._counter is not None
        return self.block.ids, self._counter.total()[: len(self.block.ids)]


class _LineageWork:
    """The lineages of a batch as they are found."""

    def __init__(
        self,
        parts: Sequence[CompiledQueries],
        removed: Mapping[str, Ids],
        rows: int,
        own: Mapping[str, Mask],
        counted: Collection[str],
    ):
        self._parts = parts
        self._removed = {kind: distinct(ids).astype(np.int32) for kind, ids in removed.items()}
        self._rows = rows
        self._own = {kind: mask for kind, mask in own.items() if not mask.all()}
        self._blocks = [
            _Bits(block, self._removed.get(block.kind), rows, block.kind in counted)
            for part in parts
            for block in part.blocks
        ]
        self._pairs: dict[str, list[Pairs]] = {}
        self._seconds: dict[str, float] = {}
        self.visits: dict[str, Visit] = {}
        self.errors: Errors = {}

    def chunk(self, portion: Portion, order: Sequence[str]) -> None:
        """Take the tuples of a chunk through all operators."""
        own = {kind: mask[portion.slice] for kind, mask in self._own.items()}
        tally = VisitTally(portion.rows, order, self._seconds)
        for bits in self._blocks:
            out = bits.next(portion.rows)
            mine = own.get(bits.block.kind)
            Passage(bits.block, portion, tally, bits.live, out, mine).run(self.errors)
        for part in self._parts:
            for access in part.accesses:
                found = access.run(
                    portion,
                    tally,
                    self._removed.get(access.kind),
                    own.get(access.kind),
                    self.errors,
                )
                pairs = self._pairs.setdefault(access.kind, [])
                pairs += [each + (portion.start << 32) for each in found]
        add_visits(self.visits, tally.visits(), self._seconds)

    def lineage(self, kind: str) -> Lineage:
        """The queries of a kind that tuples satisfy."""
        blocks = tuple(
            BitmapBlock.of_words(bits.block.ids, bits.words)
            for bits in self._blocks
            if bits.block.kind == kind
        )
        filed = self._filed(kind)
        return Lineage(self._rows, blocks, filed.offsets, filed.ids)

    def counts(self, kind: str) -> Counts:
        """How many tuples satisfy each query of a kind that some tuple satisfies."""
        made = [bits.counts() for bits in self._blocks if bits.block.kind == kind]
        made.append(self._filed(kind).counts())
        ids = np.concatenate([ids for ids, _ in made])
        counts = np.concatenate([counts for _, counts in made])
        used = np.flatnonzero(counts)
        return ids[used], counts[used]

    def _filed(self, kind: str) -> Lineage:
        """The same of queries filed under access predicates alone."""
        pairs = np.concatenate([np.empty(0, np.int64), *self._pairs.get(kind, ())])
        ids = (pairs & 0x7FFFFFFF).astype(np.int32)
        return Lineage.from_pairs(self._rows, pairs >> 32, ids)


def sampled(parts: Sequence[CompiledQueries], tuples: TupleColumns) -> dict[str, pa.Array]:
    """A sample of each attribute's values, evenly spread over a batch."""
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
