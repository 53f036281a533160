"""The queries of an eddy between two changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from auroral.continuous.sharing.template import Attribute
from auroral.eddy.panes.step import AggregateGroup
from auroral.eddy.parts import Snapshot
from auroral.eddy.stems.step import JoinGroup

Ids = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Version:
    """The queries of an eddy from moment `start` on, as its tasks need them.

    `filters` are the compiled predicates of each arc, and of each join group's joined tuples.
    `fields` are the fields that have to be read of each arc. Of the results of a kind, `copied`
    fields are kept and `computed` ones evaluated, those for the queries with these ids.
    """

    start: int
    filters: Mapping[str, Snapshot] = field(default_factory=dict)
    fields: Mapping[str, frozenset[str]] = field(default_factory=dict)
    copied: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    """By arc (of joins, the first) and kind."""
    computed: Mapping[tuple[str, str], Mapping[Attribute, Ids]] = field(default_factory=dict)
    joins: tuple[JoinGroup, ...] = ()
    aggregates: tuple[AggregateGroup, ...] = ()
    counted: Ids = field(default_factory=lambda: np.zeros(0, np.int32))
    """Queries of joins and aggregates whose results are not kept."""
    queries: int = 0

    @property
    def stateless(self) -> bool:
        """Whether each tuple is processed alone, so that tasks may divide them in any way."""
        return not self.joins and not self.aggregates

    def tables(self) -> list[str]:
        """The state tables that are kept."""
        stems = dict.fromkeys(f"stem:{arc}" for group in self.joins for arc in group.shape.arcs)
        kept = ("panes", "classes")
        return [*stems, *(f"{key}:{group.name}" for group in self.aggregates for key in kept)]
