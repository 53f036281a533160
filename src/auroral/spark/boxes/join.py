"""Join on Spark: equal keys and the band in a kernel, the rest of the predicate as SQL."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import TypeVar

from auroral.boxes.join import SIDES, Join, SiftedJoin, equal_fields, is_equalities
from auroral.boxes.predicate import sided
from auroral.boxes.window import timeout_us
from auroral.kernels.join import JoinKernel
from auroral.network.types import Schema, Type
from auroral.spark.plans.physical import Given, KernelColumns, Physical, mark_fields, ordered_column
from auroral.sql.expressions.function_calls import FunctionCalls, called_of
from auroral.sql.expressions.lexer import tokens

T = TypeVar("T")


def lower(box: Join, given: Given) -> Physical:
    """Keys are spread over buckets unless order must be inferred over all of an input."""
    sides = tuple(KernelColumns(schema) for schema in given.schemas)
    fields = tuple(side.fields() for side in sides)
    pairs, rest = equalities(box.on, given.schemas)
    keys = key_columns(pairs, sides, given.tables)
    orders = (box.left, box.right)
    banded = box.rows is None and not given.tables
    before = after = None
    if banded:
        assert box.left is not None
        before, after = box.lengths(box.left.type_in(sides[0].schema, tuple_number=True))
    ordered = [order if banded else None for order in orders]
    sifting = box if isinstance(box, SiftedJoin) else None
    sieves = _two(_sieves(sifting, side, columns) for side, columns in enumerate(sides))
    kernel = JoinKernel(
        on=_two(ordered_column(s, o) if o else None for s, o in zip(sides, ordered, strict=True)),
        by=_two(side.fields(o.by) if o else () for side, o in zip(sides, ordered, strict=True)),
        slack=_two(o.slack if o else None for o in ordered),
        before=before,
        after=after,
        rows=box.rows,
        keys=keys,
        fields=(fields[0], fields[1]),
        types=(sides[0].types(), sides[1].types()),
        late=("left_late" in given.wanted, "right_late" in given.wanted),
        table=given.tables[0] if given.tables else None,
        timeout_us=timeout_us(box.timeout),
        sieves=sieves,
        shelves=_two(_shelf(sifting, side) for side in (0, 1)),
        unread=_unread(box, given, fields),
        by_mark=_two(s.fields(mark_fields(m)) for s, m in zip(sides, given.marks, strict=True)),
    )
    made = (*(f"l_{name}" for name in fields[0]), *(f"r_{name}" for name in fields[1]))
    inferred = any(order is not None and order.attribute is None for order in ordered)
    alone = inferred or box.rows is not None or given.tables or not keys[0]
    ports = {"": made, "left_late": fields[0], "right_late": fields[1]}
    spread = None if alone else keys
    if rest is None:
        return Physical(kernel, (sides[0], sides[1]), ports, spread)
    types = [field.type for schema in given.schemas for field in schema]
    structs = {
        side: [(f"{side[0]}_{c}", name) for c, name in zip(fields[n], schema.names, strict=True)]
        for n, (side, schema) in enumerate(zip(SIDES, given.schemas, strict=True))
    }
    called = _called(box, given)
    return Physical(
        kernel,
        (sides[0], sides[1]),
        ports,
        spread,
        where=called.expressions[0].text if called else rest,
        calls=called.calls if called else (),
        equal=" AND ".join(f"left.`{a}` = right.`{b}`" for a, b in equal_fields(rest)) or "true",
        functions={name.lower(): made.udf for name, made in given.functions.items()},
        returns=tuple(zip(made, types, strict=True)),
        structs=structs,
    )


def _called(box: Join, given: Given) -> FunctionCalls | None:
    """The predicate without its calls of Python functions; None if there are none."""
    returns = {name.lower(): made.returns for name, made in given.functions.items()}
    if box.on is None or not called_of(box.on, returns):
        return None
    left, right = given.schemas
    return FunctionCalls(sided(left=left, right=right)).taken_out(box.on, returns, given.resolver)


def _unread(
    box: Join, given: Given, fields: Sequence[Sequence[str]]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns of both sides that neither the predicate nor anybody behind the join reads."""
    if not given.unread or _called(box, given) is not None:  # dead letters show whole pairs
        return (), ()
    words = {token.text.strip("`").lower() for token in tokens(box.on or "")}
    unread = iter(name in given.unread for name in given.output.names)
    return _two(
        tuple(
            column
            for column, name in zip(columns, schema.names, strict=True)
            if next(unread) and name.lower() not in words
        )
        for columns, schema in zip(fields, given.schemas, strict=True)
    )


def _sieves(box: SiftedJoin | None, side: int, columns: KernelColumns) -> tuple[str, ...]:
    """The columns that say which tuples of a side pass."""
    found = box.of_side(side) if box is not None else ()
    return tuple(columns.computed(sieve.where, Type("boolean")) for sieve in found)


def _shelf(box: SiftedJoin | None, side: int) -> str | None:
    """The state table for what the sieves of a side drop; other sieves have another one."""
    texts = [sieve.where for sieve in box.of_side(side)] if box is not None else []
    if not texts:
        return None
    digest = hashlib.sha256("\n".join(sorted(texts)).encode()).hexdigest()
    return f"{SIDES[side]}~{digest[:12]}"


def equalities(
    on: str | None, schemas: Sequence[Schema], sides: tuple[str, str] = SIDES
) -> tuple[list[tuple[str, str]], str | None]:
    """Pairs of fields that must be equal, and the predicate unless they say all of it."""
    if on is None:
        return [], None
    found = equal_fields(on, sides)
    pairs = [
        pair
        for pair in found
        if _common(*(s.field(n).type for s, n in zip(schemas, pair, strict=True))) is not None
    ]
    return pairs, None if is_equalities(on, sides) and len(pairs) == len(found) else on


def _common(left: Type, right: Type) -> Type | None:
    """The type in which two keys compare exactly as Spark's `=` does; None if there is none."""
    if left == right and left.name not in ("array", "map", "struct"):
        return left
    return Type("bigint") if left.is_integral and right.is_integral else None


def key_columns(
    pairs: list[tuple[str, str]], sides: tuple[KernelColumns, ...], tables: Sequence[int] = ()
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns of both sides that must be equal; a table has only its fields."""
    keys: tuple[list[str], list[str]] = ([], [])
    for one, other in pairs:
        common = _common(sides[0].schema.field(one).type, sides[1].schema.field(other).type)
        assert common is not None
        for side, name in enumerate((one, other)):
            columns = sides[side]
            found = columns.field(name) if side in tables else columns.computed(f"`{name}`", common)
            keys[side].append(found)
    return tuple(keys[0]), tuple(keys[1])


def _two(values: Iterable[T]) -> tuple[T, T]:
    left, right = values
    return left, right
