"""WaitFor: hold tuples until a signal matches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from pydantic import StrictFloat, StrictInt, StrictStr

from auroral.boxes.predicate import predicate, sided
from auroral.errors import NetworkError
from auroral.network.box import ManyInputs, Scope, register, require_inputs
from auroral.network.types import Schema


@register
class WaitFor(ManyInputs):
    """Hold each tuple until a signal matches it; at the timeout it is discarded [4 §4.2]."""

    kind: ClassVar[str] = "wait_for"

    box: Literal["wait_for"] = "wait_for"
    match: StrictStr
    timeout: StrictInt | StrictFloat

    def model_post_init(self, _context: Any) -> None:
        require_inputs(self, 2)
        if self.timeout <= 0:
            raise NetworkError(
                "BAD_PARAMETER",
                f"expected more than 0 seconds, found {self.timeout}",
                where="key timeout",
            )

    def ports(self, inputs: Sequence[Schema], scope: Scope) -> dict[str, Schema]:
        held, signal = inputs
        predicate(self.match, sided(held=held, signal=signal), scope, "match")
        return {"": held, "late": held}

    def reads(self, inputs: Sequence[Schema], _scope: Scope) -> tuple[frozenset[str], ...]:
        return tuple(frozenset(schema.names) for schema in inputs)
