"""Map: a generalised projection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from pydantic import StrictStr

from auroral.boxes.predicate import expression
from auroral.errors import NetworkError
from auroral.network.box import OneInput, Scope, at_key, register
from auroral.network.function import Computed, Function
from auroral.network.types import Field, Schema
from auroral.progress.propagation import ArcProgress, joint_of, renamed
from auroral.sql.parser import parse
from auroral.sql.syntax import Name


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
            else:
                found = expression(computed, schema, scope, f"compute.{name}")
                fields[name] = Field(name, found.type)
        return {"": Schema(tuple(fields[name] for name in self.layout(schema)))}

    def reads(self, inputs: Sequence[Schema], scope: Scope) -> tuple[frozenset[str], ...]:
        (schema,) = inputs
        names = set(self.kept(schema))
        for name, computed in self.compute.items():
            if isinstance(computed, Function):
                names.update(_arguments(computed, schema, scope))
            else:
                names.update(expression(computed, schema, scope, f"compute.{name}").fields)
        return (frozenset(names),)

    def progress(self, inputs: Sequence[ArcProgress], _schemas: Sequence[Schema]) -> ArcProgress:
        copies: dict[str, list[str]] = {}
        computed = {name.lower() for name in self.compute}
        kept = {name.lower() for name in self.keep}
        attributes = {name for mark in inputs[0].items() for name in _names(*mark)}
        attributes |= {name for pair in joint_of(inputs[0]) for name in pair}
        for name in attributes:
            if (self.keep == "*" and name.lower() not in computed) or name.lower() in kept:
                copies.setdefault(name, []).append(name)
        for name, text in self.compute.items():
            tree = parse(text) if isinstance(text, str) else None
            for attribute in attributes:
                if isinstance(tree, Name) and tree.name.lower() == attribute.lower():
                    copies.setdefault(attribute, []).append(name)
        return renamed(inputs[0], copies)


def _arguments(how: Function, schema: Schema, scope: Scope) -> tuple[str, ...]:
    """The fields a function takes; all, if only its module could tell and is not imported."""
    if how.args is None and how.target(scope.directory, scope.imports) is None:
        return schema.names
    return how.arguments(schema, scope.directory, imports=scope.imports)


def _names(attribute: str, mark: Any) -> tuple[str, ...]:
    return (attribute, *getattr(mark, "by", ()))
