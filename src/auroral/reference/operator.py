"""What every reference box is: tuples in, emissions out, moment by moment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from auroral.reference.progress.marks import Promises

Row = dict[str, Any]


@dataclass(frozen=True)
class Tuple:
    """A row with its hidden fields.

    `entered_us` is when the oldest tuple it was made of entered the network, `moment` what brought
    or made it, `reached_us` the clock at that moment: when it reached the boxes behind its arc.
    """

    row: Row
    entered_us: int = 0
    moment: int = 0
    reached_us: int = 0


@dataclass(frozen=True)
class Emission:
    """A tuple that leaves on a port (`""` is the arc named like the box).

    A tuple that became part of no result carries the reason, by which it is counted; if the
    port is None it leaves nowhere.
    """

    port: str | None
    tuple: Tuple
    reason: str | None = None


@dataclass(frozen=True)
class Failed:
    """A result that there is not, because a Python function or a statement of a box failed."""

    reason: str
    row: Row
    place: str = "python function"


@dataclass(frozen=True)
class Now:
    """What holds once all tuples of a moment are there: what each input promises, the time."""

    promises: Sequence[Promises]
    clock_us: int | None = None
    ended: bool = False


class ReferenceOperator(Protocol):
    """One box at work. Each moment pushes its tuples, the first input's first, then settles."""

    def push(self, port: int, arrived: Tuple) -> Iterable[Emission | Failed]:
        """Take a tuple on the input of that number, and emit what it completes."""

    def settle(self, now: Now) -> Iterable[Emission | Failed]:
        """See the progress after this moment, and emit what it completes."""

    def held(self) -> int:
        """How many tuples or windows it keeps."""


class RowBox(Protocol):
    """A box that makes of each row at once what leaves on its ports, and waits for nothing."""

    def push(self, port: int, row: Row) -> Iterable[tuple[str, Row]]:
        """The ports and the rows that leave on them."""


@dataclass(frozen=True)
class TupleByTuple:
    """Such a box as an operator: what it makes entered when its tuple did."""

    box: RowBox

    def push(self, port: int, arrived: Tuple) -> list[Emission | Failed]:
        try:
            made = self.box.push(port, arrived.row)
        except FunctionFailedError as error:
            return [Failed(str(error), arrived.row)]
        except TableFailedError as error:
            failed = Failed(str(error), arrived.row, "table")
            return [failed, Emission("", arrived)] if error.passes else [failed]
        return [Emission(out, replace(arrived, row=row)) for out, row in made]

    def settle(self, _now: Now) -> list[Emission | Failed]:
        return []

    def held(self) -> int:
        return 0


RAISED = (Exception, SystemExit, GeneratorExit)
"""What is a function's failure; the interrupt of a person who waits is none."""


class NoResultError(Exception):
    """A window function returned NOTHING: its window yields no tuple."""


class TableFailedError(Exception):
    """A statement failed for the values of a tuple: a dead letter, the others go on."""

    passes = False
    """Whether the tuple passes all the same."""


class FunctionFailedError(Exception):
    """A Python function raised: the tuple is a dead letter, the others go on."""
