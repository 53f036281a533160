"""Eddy: all continuous queries over some arcs as one box. It is made, never declared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from auroral.network.box import ManyInputs, Scope
from auroral.network.types import Schema
from auroral.progress.lowwater import JointLowWater, Mark
from auroral.progress.propagation import ArcProgress


class Eddy(ManyInputs):
    """Filter, join and aggregate for many queries at once [5].

    Which queries it has changes while it runs, so they are no part of it; it writes the logs of
    their results itself.
    """

    kind: ClassVar[str] = "eddy"
    executable: ClassVar[bool] = True
    stateful: ClassVar[bool] = True

    box: Literal["eddy"] = "eddy"

    @property
    def passes_revisions(self) -> bool:
        return True

    def ports(self, _inputs: Sequence[Schema], _scope: Scope) -> dict[str, Schema]:
        return {"": Schema(())}

    def reads(self, inputs: Sequence[Schema], _scope: Scope) -> tuple[frozenset[str], ...]:
        return tuple(frozenset(schema.names) for schema in inputs)

    def progress(self, _inputs: Sequence[ArcProgress], _schemas: Sequence[Schema]) -> ArcProgress:
        return {}

    def relies_on(self, _inputs: Sequence[ArcProgress]) -> tuple[Mark | JointLowWater, ...]:
        return ()
