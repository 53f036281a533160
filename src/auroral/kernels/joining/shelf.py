"""What sieves have dropped: stored, but not read, until the sieves are gone.

The tuples of a shelf find no partners as long as the filter behind the join would drop these
pairs. Somebody may read the join's arc without that filter later, so they are not forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from auroral.kernels.joining.sides import BandProgress
from auroral.kernels.kernel import Emitted, columns_of, parts_of
from auroral.kernels.stored import appended, conformed, renewed
from auroral.kernels.units import Mask, numbers
from auroral.progress.lowwater import END

MOST_PARTS = 16
"""A shelf in more parts than this is read, and what is dead in it forgotten."""


@dataclass(frozen=True)
class Shelf:
    """The shelf of one side, and those of sieves that are gone."""

    name: str | None
    """The state table that it is; None if the side has no sieves."""
    stale: tuple[str, ...]
    """The state tables that other sieves have left."""
    state: Mapping[str, pa.Table]

    @staticmethod
    def of(side: str, name: str | None, state: Mapping[str, pa.Table]) -> Shelf:
        stale = tuple(table for table in state if side_of(table) == side and table != name)
        return Shelf(name, stale, state)

    def old(self, name: str, schema: pa.Schema) -> pa.Table:
        """What is stored of the side, with what sieves that are gone have dropped.

        `schema` has the columns that are wanted.
        """
        parts = [
            conformed(columns_of(self.state, table, schema.names), schema)
            for table in (name, *self.stale)
        ]
        return pa.concat_tables(parts) if len(parts) > 1 else parts[0]

    def store(self, side: int, on: str, rows: pa.Table, band: BandProgress, out: Emitted) -> None:
        """Put tuples that were dropped on the shelf; forget from time to time those that are dead.

        Reading a shelf costs as much as reading the state, so it is read seldom.
        """
        out.state |= {table: self.state[table].slice(0, 0) for table in self.stale}
        if self.name is None:
            return
        parts, over = parts_of(self.state, self.name), band.progress[1 - side][1] == END
        if parts > (0 if over else MOST_PARTS):
            held = self.state[self.name]
            values = band.units.column(side, numbers(held[on])[0])
            live = ~band.dead(side, values, band.bounds(values)[1], 1)
            changed = renewed(held, live, rows, anew=True)
        else:
            changed = appended(rows)
        if changed is not None:
            out.state[self.name] = changed


def side_of(table: str) -> str | None:
    """The side whose shelf a state table is; None if it is another one.

    >>> side_of("left~1f"), side_of("left")
    ('left', None)
    """
    side, mark, _ = table.partition("~")
    return side if mark else None


def passing(table: pa.Table, sieves: Sequence[str]) -> Mask:
    """Which tuples all of some sieves let through."""
    passes = np.ones(table.num_rows, bool)
    for name in sieves:
        passes &= np.asarray(table[name].fill_null(False), bool)
    return passes
