"""Map: a generalised projection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from pydantic import StrictStr

from auroral.boxes.predicate import with_calls
from auroral.errors import NetworkError
from auroral.network.box import OneInput, Scope, at_key, register
from auroral.network.function import Computed, Function
from auroral.network.types import Field, Schema
from auroral.progress.monotone import Derived, derived
from auroral.progress.monotone import FieldTerm as Copied
from auroral.progress.propagation import ArcProgress
from auroral.sql.expressions.function_calls import FunctionCalls
from auroral.sql.expressions.monotone import order_kept


@register
class Map(OneInput):
    """Compute a new tuple from each tuple, by expressions or Python functions [1 §5.2.1.2].

    `keep` names the fields that stay, `"*"` all; a computed field of the same name takes its
    place. (pos = 7) with keep `"*"` and twice = `pos * 2` gives (pos = 7, twice = 14).
    """

    kind: ClassVar[str] = "map"
    executable: ClassVar[bool] = True

    box: Literal["map"] = "map"
    compute: dict[str, Computed] = {}  # noqa: RUF012
    keep: Literal["*"] | tuple[StrictStr, ...] = ()
    state: Literal[False] = False

    def model_post_init(self, _context: Any) -> None:
        if not self.compute and not self.keep:
            raise NetworkError("BAD_PARAMETER", "a map needs compute, keep or both")

    def kept(self, schema: Schema) -> tuple[str, ...]:
        """The fields that pass unchanged."""
        if self.keep == "*":
            names = {name.lower() for name in self.compute}
            return tuple(name for name in schema.names if name.lower() not in names)
        return tuple(schema.field(name).name for name in self.keep)

    def layout(self, schema: Schema) -> tuple[str, ...]:
        """The names of the output fields, in order; a computed field takes its like's place."""
        computed = {name.lower(): name for name in self.compute}
        kept = schema.names if self.keep == "*" else self.kept(schema)
        names = [computed.get(name.lower(), name) for name in kept] if self.keep == "*" else kept
        return (*names, *(name for name in self.compute if name not in names))

    def ports(self, inputs: Sequence[Schema], scope: Scope) -> dict[str, Schema]:
        (schema,) = inputs
        fields = {name: schema.field(name) for name in self.kept(schema)}
        for name, computed in self.compute.items():
            if name in fields:
                raise NetworkError("DUPLICATE_FIELD", f"{name} is both kept and computed")
            if isinstance(computed, Function):
                with at_key(f"compute.{name}"):
                    _arguments(computed, schema, scope)
                    type = computed.type(scope.directory, imports=scope.imports)
                    fields[name] = Field(name, type)
        for name, found in zip(self.texts, self.calls(schema, scope).expressions, strict=True):
            fields[name] = Field(name, found.type)
        return {"": Schema(tuple(fields[name] for name in self.layout(schema)))}

    def reads(self, inputs: Sequence[Schema], scope: Scope) -> tuple[frozenset[str], ...]:
        (schema,) = inputs
        names = set(self.kept(schema))
        for computed in self.compute.values():
            if isinstance(computed, Function):
                names.update(_arguments(computed, schema, scope))
        return (frozenset(names) | self.calls(schema, scope).reads(schema),)

    @property
    def texts(self) -> dict[str, str]:
        """The fields that are computed by expressions."""
        return {name: how for name, how in self.compute.items() if isinstance(how, str)}

    def calls(self, schema: Schema, scope: Scope) -> FunctionCalls:
        """Its expressions, in order, and the Python functions that they call by name."""
        keys = {f"compute.{name}": text for name, text in self.texts.items()}
        return with_calls(keys, schema, scope)

    def progress(self, inputs: Sequence[ArcProgress], schemas: Sequence[Schema]) -> ArcProgress:
        return derived(inputs[0], self.order_kept(schemas[0]))

    def order_kept(self, schema: Schema) -> dict[str, Derived]:
        """How its fields are made of fields whose order they keep; others are left out."""
        made: dict[str, Derived] = {name: Copied(name) for name in self.kept(schema)}
        for name, how in self.compute.items():
            found = order_kept(how, schema) if isinstance(how, str) else None
            if found is not None:
                made[name] = found
        return made


def _arguments(how: Function, schema: Schema, scope: Scope) -> tuple[str, ...]:
    """The fields a function takes; all, if only its module could tell and is not imported."""
    if how.args is None and how.target(scope.directory, scope.imports) is None:
        return schema.names
    return how.arguments(schema, scope.directory, imports=scope.imports)
