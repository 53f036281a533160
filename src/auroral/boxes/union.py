"""Union: merge arcs of one schema in order of arrival."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from auroral.errors import NetworkError
from auroral.network.box import ManyInputs, Scope, register
from auroral.network.types import Schema
from auroral.progress.propagation import ArcProgress, united


@register
class Union(ManyInputs):
    """Pass the tuples of all inputs in order of arrival [1 §5.2.1.3].

    What one moment brings by several paths comes in the order of `inputs`. The field names are
    those of the first input; the types must be the same.
    """

    kind: ClassVar[str] = "union"
    executable: ClassVar[bool] = True

    box: Literal["union"] = "union"

    def model_post_init(self, _context: Any) -> None:
        if len(self.inputs) < 2:
            raise NetworkError(
                "BAD_PARAMETER",
                f"a union needs two inputs or more, found {list(self.inputs)}",
                where="key inputs",
            )

    def ports(self, inputs: Sequence[Schema], _scope: Scope) -> dict[str, Schema]:
        first = inputs[0]
        for name, schema in zip(self.inputs[1:], inputs[1:], strict=True):
            if _shape(schema) != _shape(first):
                raise NetworkError(
                    "SCHEMA_MISMATCH",
                    f"the inputs of a union need one schema: {self.inputs[0]} has ({first}),"
                    f" {name} has ({schema})",
                    where="key inputs",
                    hint="put a map before it",
                )
        return {"": first}

    def reads(self, inputs: Sequence[Schema], _scope: Scope) -> tuple[frozenset[str], ...]:
        return tuple(frozenset(schema.names) for schema in inputs)

    def progress(self, inputs: Sequence[ArcProgress], _schemas: Sequence[Schema]) -> ArcProgress:
        return united(inputs)


def _shape(schema: Schema) -> list[tuple[str, str]]:
    return [(field.name.lower(), str(field.type)) for field in schema]
