"""How a stream declares its progress: `ordered`, `delay` or `punctuated`, with options."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr

from auroral.errors import NetworkError
from auroral.progress.durations import LONGEST, parse_duration_us
from auroral.validation import WordedModel

Amount = StrictInt | StrictFloat | StrictStr
Below = Literal["route"] | None
"""What becomes of tuples below the mark: they enter as others do, or leave on the arc `S.late`."""


class Heartbeat(WordedModel):
    """In a lull the mark still advances to (now − lag seconds).

    `unit` says what a number counts since 1970: s (the default), ms, us or ns.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    lag: Annotated[StrictInt | StrictFloat | StrictStr, Field(description="seconds, or text")]
    unit: Annotated[
        Literal["s", "ms", "us", "ns"] | None,
        Field(description="what values of a number count since 1970; default s"),
    ] = None

    def model_post_init(self, _context: Any) -> None:
        self.lag_us()

    def lag_us(self) -> int:
        """The lag in microseconds."""
        if isinstance(self.lag, str):
            return parse_duration_us(self.lag)
        if self.lag < 0:
            raise NetworkError(
                "BAD_PARAMETER", f"heartbeat lag must not be negative, found {self.lag}"
            )
        if self.lag > LONGEST // 1_000_000:
            raise NetworkError("BAD_PARAMETER", f"heartbeat lag is too large: {self.lag}")
        return round(self.lag * 1_000_000)


class Progress(WordedModel):
    """What a stream promises about one of its fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    on: Annotated[StrictStr, Field(description="the field that progresses")]
    ordered: StrictBool = False
    delay: Amount | None = None
    punctuated: StrictBool = False
    heartbeat: Heartbeat | None = None
    by: tuple[StrictStr, ...] = ()
    below: Annotated[
        Below,
        Field(description="route: tuples below the mark leave on the arc S.late"),
    ] = None

    def model_post_init(self, _context: Any) -> None:
        kinds = [self.ordered, self.delay is not None, self.punctuated]
        if sum(kinds) != 1:
            raise NetworkError(
                "BAD_PARAMETER",
                f"progress on {self.on} needs exactly one of ordered: true, delay: d,"
                f" punctuated: true; found {sum(kinds)} of them",
            )
        if isinstance(self.delay, int | float) and self.delay < 0:
            raise NetworkError("BAD_PARAMETER", f"delay must not be negative, found {self.delay}")

    def delay_in(self, type_name: str) -> Any:
        """The delay in the units of the progressing field: µs for timestamps, days for dates."""
        if self.delay is None:
            return 0
        if type_name.startswith("timestamp"):
            if isinstance(self.delay, str):
                return parse_duration_us(self.delay)
            return round(self.delay * 1_000_000)
        if type_name == "date":
            if isinstance(self.delay, str):
                return parse_duration_us(self.delay) // 86_400_000_000
            return int(self.delay)
        if isinstance(self.delay, str):
            raise NetworkError(
                "BAD_PARAMETER",
                f"delay {self.delay!r} is text, but {self.on} is {type_name}: expected a number",
            )
        return Decimal(str(self.delay)) if type_name == "decimal" else self.delay


def Ordered(  # noqa: N802
    on: str,
    *,
    heartbeat: Amount | Heartbeat | None = None,
    by: tuple[str, ...] = (),
    below: Below = None,
) -> Progress:
    """Progress on a field that never decreases.

    >>> Ordered("time").ordered
    True
    """
    return Progress(on=on, ordered=True, heartbeat=_heartbeat(heartbeat), by=by, below=below)


def Delayed(  # noqa: N802
    on: str,
    delay: Amount,
    *,
    heartbeat: Amount | Heartbeat | None = None,
    by: tuple[str, ...] = (),
    below: Below = None,
) -> Progress:
    """Progress on a field that lags the greatest value seen by at most `delay`."""
    return Progress(on=on, delay=delay, heartbeat=_heartbeat(heartbeat), by=by, below=below)


def Punctuated(  # noqa: N802
    on: str,
    *,
    heartbeat: Amount | Heartbeat | None = None,
    by: tuple[str, ...] = (),
    below: Below = None,
) -> Progress:
    """Progress on a field for which the data carry punctuations."""
    return Progress(on=on, punctuated=True, heartbeat=_heartbeat(heartbeat), by=by, below=below)


def _heartbeat(lag: Amount | Heartbeat | None) -> Heartbeat | None:
    return lag if lag is None or isinstance(lag, Heartbeat) else Heartbeat(lag=lag)
