"""Map with state: a Python class that sees tuples one by one and remembers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal

from pydantic import StrictStr, field_serializer

from auroral.boxes.order import require_groups
from auroral.errors import NetworkError
from auroral.network.box import OneInput, Scope, at_key, register_variant
from auroral.network.declarations import DeclaredSchema
from auroral.network.function import Function, written
from auroral.network.types import Schema
from auroral.progress.lowwater import JointLowWater, LowWater, Mark
from auroral.progress.propagation import ArcProgress, renamed

METHODS = ("init", "step")


@register_variant("map", "state")
class StatefulMap(OneInput):
    """Let a class with `init()` and `step(state, row)` make at most one tuple of each [4 §3.1].

    It is called in order of arrival, with a state per group of `by`. A class that counts to 100
    and returns a row at each hundredth tuple is "Count 100". Fields named by `keep` pass
    unchanged, before those that the class returns.
    """

    kind: ClassVar[str] = "stateful_map"
    executable: ClassVar[bool] = True
    stateful: ClassVar[bool] = True

    box: Literal["map"] = "map"
    state: Literal[True]
    udf: StrictStr | Callable[..., Any]
    by: tuple[StrictStr, ...] = ()
    returns: DeclaredSchema | None = None
    keep: Literal["*"] | tuple[StrictStr, ...] = ()

    @field_serializer("udf")
    def _name(self, udf: Any) -> str:
        return written(udf)

    @property
    def function(self) -> Function:
        """The class as other boxes declare functions."""
        return Function(udf=self.udf)

    def functions(self) -> tuple[Function, ...]:
        return (self.function,)

    def kept(self, schema: Schema) -> tuple[str, ...]:
        """The fields that pass unchanged."""
        if self.keep == "*":
            return schema.names
        return tuple(schema.field(name).name for name in self.keep)

    def returned(self, scope: Scope) -> Schema:
        """The fields that the class returns: as declared here, or by its attribute `returns`."""
        target = self.function.target(scope.directory, scope.imports)
        if self.returns is not None:
            return self.returns
        declared = getattr(target, "returns", None)
        if declared is None:
            raise NetworkError(
                "MISSING_KEY",
                f"{self.function.label}: the fields that it returns are not known",
                where="key returns",
                hint="add returns: {field: type}"
                + (
                    "" if target else ", or allow the import of its module (--import, imports=True)"
                ),
            )
        with at_key("udf"):
            return Schema.parse(declared)

    def ports(self, inputs: Sequence[Schema], scope: Scope) -> dict[str, Schema]:
        (schema,) = inputs
        with at_key("by"):
            require_groups(schema, self.by)
        with at_key("udf"):
            self._require_methods(scope)
        with at_key("keep"):
            kept = [schema.field(name) for name in self.kept(schema)]
        returned = self.returned(scope)
        for field in returned:
            if any(field.name.lower() == other.name.lower() for other in kept):
                raise NetworkError(
                    "DUPLICATE_FIELD", f"{field.name} is both kept and returned", where="key keep"
                )
        return {"": Schema((*kept, *returned.fields))}

    def reads(self, inputs: Sequence[Schema], _scope: Scope) -> tuple[frozenset[str], ...]:
        return (frozenset(inputs[0].names),)

    def progress(self, inputs: Sequence[ArcProgress], schemas: Sequence[Schema]) -> ArcProgress:
        return renamed(inputs[0], {name: [name] for name in self.kept(schemas[0])})

    def relies_on(self, _inputs: Sequence[ArcProgress]) -> tuple[Mark | JointLowWater, ...]:
        return (LowWater(),)

    def _require_methods(self, scope: Scope) -> None:
        target = self.function.target(scope.directory, scope.imports)
        missing = [name for name in METHODS if not callable(getattr(target, name, None))]
        if target is not None and missing:
            raise NetworkError(
                "BAD_FUNCTION",
                f"{self.function.label} needs init and step to be a map with state;"
                f" {', '.join(missing)} missing",
            )
