"""Queries of one template as one source sees them, and how their predicates can be decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from auroral.continuous.sharing.template import Atom, Attribute, Clause, Op
from auroral.eddy.filters.keys import Keys, Mask, Scale, keys_of, scale_of
from auroral.network.types import Type

Ids = NDArray[np.int32]

LISTS = ("in", "not in")
NEGATED: Mapping[Op, Op] = {"!=": "=", "not in": "in", "not prefix": "prefix"}
_OPAQUE = ("<", "<=", ">", ">=", "=", "!=")


@dataclass(frozen=True)
class Statistics:
    """What is known of the values that arrive: by attribute a sample of recent ones."""

    samples: Mapping[str, pa.Array] = field(default_factory=dict)


@dataclass(frozen=True)
class Selection:
    """Queries of one template as one source sees them."""

    kind: str
    clauses: tuple[Clause, ...]
    """Predicates on this source alone; none: every tuple."""
    ids: Ids
    constants: pa.Table
    """Columns "0", "1", … by the template's slots, as far as the clauses use them; a row each."""

    def take(self, positions: NDArray[np.intp]) -> Selection:
        """Some of the queries."""
        return Selection(
            self.kind, self.clauses, self.ids[positions], self.constants.take(pa.array(positions))
        )

    def constant(self, slot: int) -> pa.Array:
        """The constants of a slot in one chunk."""
        column = self.constants.column(str(slot))
        return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


@dataclass(frozen=True)
class Test:
    """An atom, and the scale on which attribute and constant compare."""

    atom: Atom
    scale: Scale | None
    """None if there is none: the attribute is a predicate that has to be true."""
    in_pairs: bool = False
    """Whether the attribute can only be evaluated together with the query's constants."""

    @property
    def domain(self) -> tuple[str, str]:
        """Attribute and scale: tests with the same share constants and regions."""
        return self.atom.attribute.text, self.scale or ""


@dataclass(frozen=True)
class Disjunction:
    """A clause, sorted by how it can be decided."""

    tests: tuple[Test, ...]

    @cached_property
    def in_pairs(self) -> bool:
        """Whether it can only be decided for a tuple and a query together."""
        return any(test.in_pairs for test in self.tests)

    @cached_property
    def domains(self) -> tuple[tuple[str, str], ...]:
        return tuple(dict.fromkeys(test.domain for test in self.tests))


def disjunctions(selection: Selection) -> tuple[Disjunction, ...]:
    """The clauses of a selection as tests."""
    scales: dict[str, Scale] = {}
    for clause in selection.clauses:
        for atom in clause:
            scale = _scale(atom, selection)
            if scale is not None and scale != "null":
                scales.setdefault(atom.attribute.text, scale)
    return tuple(
        Disjunction(tuple(_test(atom, selection, scales) for atom in clause))
        for clause in selection.clauses
    )


def _test(atom: Atom, selection: Selection, scales: Mapping[str, Scale]) -> Test:
    scale = _scale(atom, selection)
    if scale is None:
        return Test(_opaque(atom), None, in_pairs=True)
    if scale == "null":
        scale = scales.get(atom.attribute.text, "null")
    return Test(atom, scale, in_pairs=bool(atom.attribute.slots))


def _scale(atom: Atom, selection: Selection) -> Scale | None:
    if atom.slot is None:
        return "null"
    type = selection.constants.schema.field(str(atom.slot)).type
    if atom.op in LISTS and not pa.types.is_list(type) and not pa.types.is_null(type):
        raise ValueError(f"{atom.attribute.text} {atom.op}: expected lists, found {type}")
    return scale_of(atom.attribute.type, type)


def _opaque(atom: Atom) -> Atom:
    """A comparison of values that no scale has, as an expression that is true or not."""
    attribute, slot = atom.attribute, atom.slot
    if slot is None or atom.op not in _OPAQUE:
        raise ValueError(f"no predicate {atom.op} on {attribute.text}, a {attribute.type}")
    slots = tuple(dict.fromkeys((*attribute.slots, slot)))
    text = f"({attribute.text}) {atom.op} :{slot}"
    whole = Attribute(text, Type("boolean"), None, attribute.fields, slots, attribute.costly)
    return Atom(whole, "not null")


@dataclass(frozen=True)
class Constants:
    """The constants of one slot as keys, one or a list for each query."""

    keys: Keys
    """Of lists all elements, without NULLs and each once per list."""
    offsets: NDArray[np.int64] | None
    """Of lists where each begins, and the end."""
    never: Mask
    """Queries whose constant satisfies nothing: NULL, or for `not in` a list that has NULL."""
    above: Keys | None = None
    """For prefixes the first text above all that begin so; NULL if there is none."""

    def take(self, positions: NDArray[np.intp]) -> Constants:
        """The constants of some of the queries."""
        above = None if self.above is None else self.above.take(positions)
        if self.offsets is None:
            return Constants(self.keys.take(positions), None, self.never[positions], above)
        _, element, offsets = self.elements(positions)
        return Constants(self.keys.take(element), offsets, self.never[positions], above)

    def elements(
        self, positions: NDArray[np.intp]
    ) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.int64]]:
        """For each element of those queries' lists: whose it is, where; and the lists' offsets."""
        assert self.offsets is not None
        starts = self.offsets[positions]
        sizes = self.offsets[1:][positions] - starts
        offsets = np.zeros(len(positions) + 1, np.int64)
        np.cumsum(sizes, out=offsets[1:])
        owner = np.repeat(np.arange(len(positions)), sizes)
        element = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], sizes)
        return owner, element, offsets


def constants_of(values: pa.Array, op: Op, scale: Scale) -> Constants:
    """Constants as keys, ready to be compared."""
    never = values.is_null().to_numpy(zero_copy_only=False)
    if op not in LISTS:
        keys = keys_of(values, scale)
        above = _above(keys) if op in ("prefix", "not prefix") else None
        return Constants(keys, None, never, above)
    if pa.types.is_null(values.type):
        values = values.cast(pa.list_(pa.int64()))
        values = pa.nulls(len(values), pa.list_(pa.binary())) if scale == "bytes" else values
    owner = pc.list_parent_indices(values).to_numpy(zero_copy_only=False).astype(np.int64)
    keys = keys_of(values.flatten(), scale)
    if keys.nulls is not None:
        if op == "not in":
            never[owner[keys.nulls]] = True
        owner, keys = owner[~keys.nulls], keys.take(~keys.nulls)
    order = np.lexsort((keys.data, owner))
    owner, keys = owner[order], Keys(keys.data[order], None, keys.distinct)
    if len(order):
        fresh = np.ones(len(order), bool)
        fresh[1:] = (owner[1:] != owner[:-1]) | (keys.data[1:] != keys.data[:-1])
        owner, keys = owner[fresh], keys.take(fresh)
    offsets = np.zeros(len(values) + 1, np.int64)
    np.cumsum(np.bincount(owner, minlength=len(values)), out=offsets[1:])
    return Constants(keys, offsets, never)


def _above(keys: Keys) -> Keys:
    assert keys.distinct is not None
    texts = [_next(text) for text in keys.distinct.to_pylist()]
    none = np.array([text is None for text in texts], bool)
    nulls = none[keys.data] if len(texts) else np.ones(len(keys), bool)
    if keys.nulls is not None:
        nulls = nulls | keys.nulls
    return Keys(keys.data, nulls, pa.array([text or b"" for text in texts], pa.binary()))


def _next(prefix: bytes) -> bytes | None:
    """The least text greater than all that begin with the prefix."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else None


def merged(selections: Sequence[Selection]) -> list[Selection]:
    """Selections that differ in nothing but constants as one."""
    alike: dict[tuple[object, ...], list[Selection]] = {}
    for selection in selections:
        if len(selection.ids):
            schema = tuple((f.name, f.type) for f in selection.constants.schema)
            alike.setdefault((selection.kind, selection.clauses, schema), []).append(selection)
    found: list[Selection] = []
    for same in alike.values():
        ids = np.concatenate([s.ids for s in same]).astype(np.int32, copy=False)
        rows = same[0].constants
        if len(same) > 1:
            rows = pa.concat_tables([s.constants for s in same])
        found.append(Selection(same[0].kind, same[0].clauses, ids, rows))
    return found
