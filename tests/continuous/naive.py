"""What a template and its constants say of a tuple, in the plainest way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from auroral.boxes.predicate import sided
from auroral.continuous.sharing.template import Atom, Clause, Template
from auroral.network.types import Schema
from auroral.sql.expressions.expression import evaluator
from auroral.sql.expressions.numbers import order_key

Row = Mapping[str, Any]


@lru_cache(maxsize=4096)
def _run(text: str, schema: Schema) -> Any:
    return evaluator(text, schema)


def holds(atom: Atom, constants: Sequence[Any], row: Row, schema: Schema) -> bool:
    value = _run(atom.attribute.text, schema)(row)
    if atom.op == "null":
        return value is None
    if value is None:
        return False
    if atom.op == "not null":
        return True
    assert atom.slot is not None
    constant = constants[atom.slot]
    if constant is None:
        return False
    if atom.op in ("prefix", "not prefix"):
        return bool(value.startswith(constant)) == (atom.op == "prefix")
    key = order_key(value)
    if atom.op in ("in", "not in"):
        return (key in [order_key(c) for c in constant]) == (atom.op == "in")
    other = order_key(constant)
    return bool(
        {
            "=": key == other,
            "!=": key != other,
            "<": key < other,
            "<=": key <= other,
            ">": key > other,
            ">=": key >= other,
        }[atom.op]
    )


def satisfies(
    clauses: Iterable[Clause], constants: Sequence[Any], row: Row, schema: Schema
) -> bool:
    return all(any(holds(atom, constants, row, schema) for atom in clause) for clause in clauses)


def selects(template: Template, constants: Sequence[Any], row: Row, schema: Schema) -> bool:
    """Whether a tuple of the only source is selected."""
    return satisfies(template.sources[0].clauses, constants, row, schema)


def pairs(
    template: Template, constants: Sequence[Any], rows: Sequence[Row], schemas: Sequence[Schema]
) -> bool:
    """Whether tuples, one of each source, are joined; windows of rows aside."""
    for source, row, schema in zip(template.sources, rows, schemas, strict=True):
        if not satisfies(source.clauses, constants, row, schema):
            return False
    assert template.join is not None
    for i, one, j, other in template.join.equal:
        if rows[i][one] is None or rows[i][one] != rows[j][other]:
            return False
    on = template.join.on
    for i, most in enumerate(template.bands):
        for j, limit in enumerate(most):
            a, b = rows[i][on[i]], rows[j][on[j]]
            if a is None or b is None or b - a > limit:
                return False
    joined = sided(**{f"s{at}": schema for at, schema in enumerate(schemas)})
    row = {f"s{at}": row for at, row in enumerate(rows)}
    return satisfies(template.clauses, constants, row, joined)
