"""Number: the arrival number of a stream's tuples as a field."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field as Alias
from pydantic import StrictStr

from auroral.errors import NetworkError
from auroral.network.box import OneInput, Scope, register
from auroral.network.types import Field, Schema, Type
from auroral.progress.lowwater import JointLowWater, LowWater, Mark
from auroral.progress.propagation import ArcProgress


@register
class Number(OneInput):
    """Add a field that counts the tuples of a stream: 0, 1, 2 … as they enter [3 §5.2].

    Windows over it are row windows whose answer does not depend on execution.
    """

    kind: ClassVar[str] = "number"
    executable: ClassVar[bool] = True
    stateful: ClassVar[bool] = True
    counts_arrivals: ClassVar[bool] = True

    box: Literal["number"] = "number"
    as_: Annotated[StrictStr, Alias(alias="as")]

    @property
    def passes_revisions(self) -> bool:
        return True

    def ports(self, inputs: Sequence[Schema], _scope: Scope) -> dict[str, Schema]:
        (schema,) = inputs
        if self.as_ in schema:
            raise NetworkError(
                "DUPLICATE_FIELD", f"there is a field {self.as_} already", where="key as"
            )
        return {"": Schema((*schema.fields, Field(self.as_, Type("bigint"))))}

    def reads(self, inputs: Sequence[Schema], _scope: Scope) -> tuple[frozenset[str], ...]:
        return (frozenset(inputs[0].names),)

    def progress(self, inputs: Sequence[ArcProgress], _schemas: Sequence[Schema]) -> ArcProgress:
        return inputs[0]

    def relies_on(self, _inputs: Sequence[ArcProgress]) -> tuple[Mark | JointLowWater, ...]:
        return (LowWater(),)
