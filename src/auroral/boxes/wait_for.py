"""WaitFor: hold tuples until a signal matches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from pydantic import StrictStr

from auroral.boxes.predicate import predicate, sided
from auroral.boxes.window import Seconds, require_timeout
from auroral.errors import NetworkError
from auroral.network.box import ManyInputs, Scope, at_key, register, require_inputs
from auroral.network.types import Schema
from auroral.progress.lowwater import JointLowWater, LowWater, Mark
from auroral.progress.propagation import ArcProgress
from auroral.sql.expressions.function_calls import called_of
from auroral.sql.expressions.parser import parse
from auroral.sql.expressions.syntax import Member, Name, walk

SIDES = ("held", "signal")
"""What `match` calls the two inputs."""
TIMED_OUT, ENDED = "timeout", "ended"
"""Why a tuple was discarded: its time was over, or the input ended before a signal came."""


@register
class WaitFor(ManyInputs):
    """Hold each tuple until a signal matches it; at the timeout it is discarded [4 §4.2].

    A signal releases the tuples that are held when it arrives and is not remembered: one that came
    before a tuple does not count. What reaches the box in one moment counts as held before the
    signals of that moment. With `held.id = signal.id` and timeout 5, a tuple of id 1 that comes at
    0 leaves at the signal of id 1 at 4; a signal at 6 would be too late.
    """

    kind: ClassVar[str] = "wait_for"
    executable: ClassVar[bool] = True
    stateful: ClassVar[bool] = True

    box: Literal["wait_for"] = "wait_for"
    match: StrictStr
    timeout: Seconds

    def model_post_init(self, _context: Any) -> None:
        require_inputs(self, 2)
        try:
            require_timeout(self.timeout)
        except NetworkError as error:
            raise NetworkError("BAD_PARAMETER", error.message, where="key timeout") from None

    @property
    def times_out(self) -> bool:
        return True

    def ports(self, inputs: Sequence[Schema], scope: Scope) -> dict[str, Schema]:
        held, _ = inputs
        self._require_computable(inputs, scope)
        self.named(inputs)
        return {"": held, "late": held}

    def reads(self, inputs: Sequence[Schema], _scope: Scope) -> tuple[frozenset[str], ...]:
        held, _ = inputs
        return frozenset(held.names), frozenset(self.named(inputs)[1])

    def named(self, inputs: Sequence[Schema]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The fields of held tuples and of signals that `match` names."""
        nodes = list(walk(parse(self.match)))
        found = []
        for side, schema in zip(SIDES, inputs, strict=True):
            members = [n for n in nodes if isinstance(n, Member) and _is_name(n.base, side)]
            if len(members) < sum(_is_name(node, side) for node in nodes):
                raise NetworkError(
                    "TYPE_MISMATCH",
                    f"expected fields of {side}, found {side} itself in {self.match!r}",
                    where="key match",
                    hint=f"write {side}.{schema.names[0]}",
                )
            found.append(tuple(dict.fromkeys(schema.field(node.name).name for node in members)))
        return found[0], found[1]

    def progress(self, _inputs: Sequence[ArcProgress], _schemas: Sequence[Schema]) -> ArcProgress:
        # How long a tuple is held depends on signals and the clock, not on its values.
        return {}

    def relies_on(self, _inputs: Sequence[ArcProgress]) -> tuple[Mark | JointLowWater, ...]:
        return LowWater(), LowWater()

    def _require_computable(self, inputs: Sequence[Schema], scope: Scope) -> None:
        """Refuse what only Spark can evaluate: pairs are found where the tuples are held."""
        held, signal = inputs
        with at_key("match"):
            called = sorted(called_of(self.match, scope.functions))
        if called:
            raise _unsupported(f"match cannot call Python functions, found {', '.join(called)}")
        found = predicate(self.match, sided(held=held, signal=signal), scope, "match")
        if not found.in_catalogue:
            raise _unsupported(
                f"only Spark can evaluate {self.match!r}, but wait_for does it alone"
            )


def _unsupported(problem: str) -> NetworkError:
    return NetworkError(
        "UNSUPPORTED_EXPRESSION",
        problem,
        where="key match",
        hint="compute a field with a map before this box",
    )


def _is_name(node: object, name: str) -> bool:
    return isinstance(node, Name) and node.name.lower() == name
