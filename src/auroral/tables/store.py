"""What a database is to the boxes that read and update its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from auroral.errors import AuroralError, RunError
from auroral.network.declarations import Table
from auroral.tables.statements import BoxStatement
from auroral.tables.values import column

STEPS = "_auroral_steps"
"""The table, in each database, that says how far each box has changed it."""


class StoreUnavailableError(Exception):
    """A database cannot be used for now; who needs it tries again later."""


def changed_under_us(where: str, reason: str) -> AuroralError:
    """A table is not what it was when the engine started."""
    return RunError(
        "TABLE_CHANGED",
        f"a statement that was sound does not work any more: {reason}",
        where=where,
        hint="restore the table, or change the network to fit it, and start again",
    )


@dataclass(frozen=True)
class BoxProgress:
    """How far a box has changed a database: all its tuples before a moment.

    `payload` is what came of those from the moment `first` on, for a step that runs again.
    """

    first: int
    done_before: int
    payload: bytes


@dataclass
class Batch:
    """The tuples of one box in a step, and what its statement made of them."""

    statement: BoxStatement
    parameters: Sequence[tuple[Any, ...]]
    """Of each tuple, as the database takes them."""
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    """What a SELECT gave, tuple after tuple."""
    owners: list[int] = field(default_factory=list)
    """For each of these rows, the number of the tuple."""
    failures: dict[int, str] = field(default_factory=dict)
    """By the number of the tuple: why it could not be processed."""

    def result(self) -> tuple[pa.Table, pa.Array]:
        """The rows as columns, and the number of the tuple that each is of.

        A tuple one of whose rows has a value that does not fit has failed.
        """
        columns = self.statement.columns
        assert columns is not None
        values = list(zip(*self.rows, strict=True)) or [()] * len(columns)
        arrays = []
        for one, of in zip(columns, values, strict=True):
            array, failed = column(one, of)
            arrays.append(array)
            for at, reason in failed.items():
                self.failures.setdefault(self.owners[at], reason)
        owners = pa.array(self.owners, pa.int64())
        table = pa.Table.from_arrays(arrays, schema=columns.arrow())
        if self.failures:
            kept = pa.array([owner not in self.failures for owner in self.owners], pa.bool_())
            return table.filter(kept), owners.filter(kept)
        return table, owners


@dataclass(frozen=True)
class StatementRun:
    """Tuples of one box, by their numbers, that come one after the other in a step."""

    batch: int
    first: int
    last: int


class TableTransaction(Protocol):
    """All or nothing of a step."""

    def applied(self, state: str, box: str) -> BoxProgress | None:
        """How far a box of a state directory has changed the database."""
        ...

    def record(self, state: str, boxes: Mapping[str, BoxProgress]) -> None:
        """Note how far boxes have changed the database."""
        ...

    def run(self, batches: Sequence[Batch], runs: Sequence[StatementRun]) -> None:
        """Run the statements of tuples, in the order of the runs.

        What fails for a tuple's values is noted in its batch, and the others go on.
        """
        ...


class TableStore(Protocol):
    """A database with tables."""

    @property
    def where(self) -> str:
        """What errors call it."""
        ...

    def ensure(self, name: str, table: Table, rows: pa.Table | None) -> None:
        """Make a table, with these rows, if it is missing; refuse one that does not fit."""
        ...

    def remember_steps(self) -> None:
        """Make ready to note how far boxes have changed the database."""
        ...

    def forget(self, state: str) -> None:
        """Drop what was noted for a state directory."""
        ...

    def prepare(self, statement: BoxStatement) -> None:
        """Refuse a statement that the database does not accept."""
        ...

    def parameters(self, statement: BoxStatement, tuples: pa.Table) -> Batch:
        """The parameters of tuples, as the database takes them."""
        ...

    def transaction(self, *, writes: bool) -> AbstractContextManager[TableTransaction]:
        """A transaction; raises StoreUnavailableError if the database cannot be used for now."""
        ...

    def rows(self, name: str, table: Table) -> pa.Table:
        """The rows of a table as they are now, in the order of its key."""
        ...

    def close(self) -> None: ...
