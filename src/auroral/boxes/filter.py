"""Filter: keep tuples that satisfy a predicate, or route them by the first that holds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from pydantic import StrictStr

from auroral.boxes.predicate import require_boolean, with_calls
from auroral.errors import NetworkError
from auroral.network.box import OneInput, Scope, register
from auroral.network.types import Schema
from auroral.progress.propagation import ArcProgress, passed
from auroral.sql.expressions.function_calls import FunctionCalls

REST = "rest"


@register
class Filter(OneInput):
    """Route each tuple to the first predicate that holds; NULL counts as false [1 §5.2.1.1].

    With `where`, tuples that satisfy it leave on the arc named like the box and the others on
    `box.rest`: of pos = 29, 30, 31 and `pos >= 30`, 30 and 31 leave, 29 rests. With `routes`,
    each name is a port.
    """

    kind: ClassVar[str] = "filter"
    executable: ClassVar[bool] = True

    box: Literal["filter"] = "filter"
    where: StrictStr | None = None
    routes: dict[str, StrictStr] | None = None

    def model_post_init(self, _context: Any) -> None:
        if (self.where is None) == (self.routes is None):
            found = "both" if self.where is not None else "neither"
            raise NetworkError(
                "BAD_PARAMETER", f"a filter takes either where or routes, found {found}"
            )
        if self.routes == {}:
            raise NetworkError(
                "BAD_PARAMETER", "expected at least one route, found none", where="key routes"
            )
        for name in self.routes or {}:
            if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,99}", name) or name == REST:
                raise NetworkError(
                    "BAD_NAME",
                    f"{name!r:.60} cannot name a route: expected a letter, then letters, digits or"
                    f" _, up to 100, but not {REST}",
                    where="key routes",
                )

    @property
    def predicates(self) -> dict[str, str]:
        """Port to predicate, in order of precedence."""
        return {"": self.where} if self.where is not None else dict(self.routes or {})

    def ports(self, inputs: Sequence[Schema], scope: Scope) -> dict[str, Schema]:
        found = self.calls(inputs[0], scope).expressions
        for (key, text), one in zip(self._keys().items(), found, strict=True):
            require_boolean(one, text, key)
        return dict.fromkeys((*self.predicates, REST), inputs[0])

    def reads(self, inputs: Sequence[Schema], scope: Scope) -> tuple[frozenset[str], ...]:
        return (self.calls(inputs[0], scope).reads(inputs[0]),)

    def calls(self, schema: Schema, scope: Scope) -> FunctionCalls:
        """Its predicates, in order, and the Python functions that they call."""
        return with_calls(self._keys(), schema, scope)

    def _keys(self) -> dict[str, str]:
        return {f"routes.{port}" if port else "where": p for port, p in self.predicates.items()}

    def progress(self, inputs: Sequence[ArcProgress], _schemas: Sequence[Schema]) -> ArcProgress:
        return passed(inputs[0])
