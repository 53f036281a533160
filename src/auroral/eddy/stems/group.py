"""The input and output of a step over SteMs: joins, arrivals, results."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from auroral.continuous.sharing.template import JoinShape
from auroral.eddy.lineage import Lineage
from auroral.eddy.routes.probing import Prober, Probes
from auroral.kernels.grouping import Ids
from auroral.kernels.kernel import Appended


@dataclass(frozen=True)
class JoinGroup:
    """The queries of one shape: they share one join."""

    name: str
    """Also the kind of its lineage."""
    shape: JoinShape
    fields: tuple[tuple[str, ...], ...]
    """For each source, the fields that results or clauses of any of its queries read."""
    rows: tuple[int, ...] = ()
    """With row windows, the largest in use of each source."""
    bands: tuple[tuple[int | float, ...], ...] = ()
    """With `range`: by how much source j's attribute may exceed source i's, at the most."""
    since: int = 0
    """No earlier tuple takes part in any of its queries."""

    @property
    def places(self) -> tuple[str, ...]:
        """Under which kind each source's lineage goes; an arc may be joined with itself."""
        arcs = self.shape.arcs
        return tuple(
            self.name if arcs.count(arc) == 1 else f"{self.name}/{n}" for n, arc in enumerate(arcs)
        )

    def reachable(self, bound: Collection[int], left: Sequence[int]) -> list[int]:
        """The remaining sources that an equality connects; all of them if there is none.

        A source without equality would be combined with every tuple in the window.
        """
        ends = [
            (i, j) for one, _, other, _ in self.shape.equal for i, j in ((one, other), (other, one))
        ]
        reached = {j for i, j in ends if i in bound}
        return [place for place in left if place in reached] or list(left)

    def keys(self, place: int) -> tuple[str, ...]:
        """The fields of a source that equalities compare."""
        pairs = [((i, one), (j, other)) for i, one, j, other in self.shape.equal]
        return tuple(dict.fromkeys(name for pair in pairs for at, name in pair if at == place))

    def stored(self, place: int) -> tuple[str, ...]:
        """The fields of a source that have to be stored."""
        on = self.shape.on[place : place + 1]
        return tuple(dict.fromkeys([*self.keys(place), *on, *self.fields[place]]))


@dataclass(frozen=True)
class NewTuples:
    """Tuples of one arc that arrived in this step, in order, and whom they may satisfy.

    `first_number` tuples of the arc arrived before the step. If the table has not all that
    arrived in it, `moments` are the moments of all, and `rows` says which of them the table has.
    """

    table: pa.Table
    lineages: Mapping[str, Lineage] = field(default_factory=dict)
    """By place: the group's name, or `name/i` for source i of a group that has the arc twice."""
    first_number: int = 0
    moments: Ids | None = None
    rows: Ids | None = None


@dataclass
class StemStep:
    """The output of a step."""

    results: dict[str, tuple[pa.Table, Lineage]] = field(default_factory=dict)
    """By group: joined tuples in any order, and the queries each satisfies."""
    state: dict[str, pa.Table | Appended] = field(default_factory=dict)
    """State tables that have changed, `stem:<arc>`."""
    late: dict[str, dict[str, int]] = field(default_factory=dict)
    """By arc and reason, tuples that some query would have taken but for their place in order."""
    held: dict[str, int] = field(default_factory=dict)
    """By arc, stored tuples that a join still needs."""
    probes: dict[Prober, Probes] = field(default_factory=dict)
    """By group and source of the new tuples, what these did."""
