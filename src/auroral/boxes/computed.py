"""Computed fields of windows: SQL aggregates and user window functions."""

from __future__ import annotations

from collections.abc import Mapping

from auroral.errors import NetworkError
from auroral.network.box import Resolver, Scope, at_key
from auroral.network.function import Function
from auroral.network.types import Field, Schema
from auroral.sql.aggregates.analysis import Aggregation, analyze_aggregate

WINDOW_METHODS = ("init", "incr", "final")


def computed_fields(
    compute: Mapping[str, str | Function],
    schema: Schema,
    scope: Scope,
    constant: Field | None = None,
) -> list[Field]:
    """The fields that aggregates and window functions make.

    Aggregates may name a `constant` too, which is the same for all tuples of a window.
    """
    fields = []
    for name, how in compute.items():
        with at_key(f"compute.{name}"):
            if isinstance(how, Function):
                _require_window_function(how, schema, scope)
                fields.append(Field(name, how.type(scope.directory, imports=scope.imports)))
            else:
                found = analyzed_over(how, schema, scope.resolver, constant)
                assert found.calls or constant  # refuses what no kernel can compute
                fields.append(Field(name, found.type))
    return fields


def computed_reads(
    compute: Mapping[str, str | Function],
    schema: Schema,
    scope: Scope,
    constant: Field | None = None,
) -> frozenset[str]:
    """The fields they read; a window function without `args` reads all."""
    names: set[str] = set()
    for how in compute.values():
        if isinstance(how, Function):
            read = how.window_arguments(schema, scope.directory, imports=scope.imports)
            names.update(read)
        else:
            names.update(analyzed_over(how, schema, scope.resolver, constant).fields)
    return frozenset(names) - ({constant.name} if constant else set())


def analyzed_over(
    text: str, schema: Schema, resolver: Resolver | None, constant: Field | None
) -> Aggregation:
    """An aggregate expression over fields, and a constant if there is one."""
    if constant is None:
        return analyze_aggregate(text, schema, resolver=resolver)
    schema = Schema((*schema.fields, constant))
    return analyze_aggregate(text, schema, groups=(constant.name,), resolver=resolver)


def require_some(compute: Mapping[str, str | Function], kind: str) -> None:
    """Refuse a box that computes nothing."""
    if not compute:
        raise NetworkError(
            "BAD_PARAMETER", f"{kind} needs at least one computed field", where="key compute"
        )


def _require_window_function(how: Function, schema: Schema, scope: Scope) -> None:
    how.window_arguments(schema, scope.directory, imports=scope.imports)
    cls = how.target(scope.directory, scope.imports)
    if cls is None:
        return
    missing = [method for method in WINDOW_METHODS if not callable(getattr(cls, method, None))]
    if missing:
        raise NetworkError(
            "BAD_FUNCTION",
            f"the window function {how.label} needs init, incr and final;"
            f" {', '.join(missing)} missing",
        )
