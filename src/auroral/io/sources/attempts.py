"""Sources that fail: what they raise is told with their names, or tried again after a pause."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from auroral.errors import AuroralError, RunError
from auroral.io.sources.named import unwrapped
from auroral.io.sources.source import Source

T = TypeVar("T")
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0
MOST_RETRIES = 10
"""In a row; about two and a half minutes."""


def pause_s(failures: int) -> float:
    """How long to wait after so many failures in a row.

    >>> [pause_s(n) for n in (1, 2, 3, 7, 9)]
    [0.5, 1.0, 2.0, 30.0, 30.0]
    """
    return min(FIRST_PAUSE_S * 2.0 ** (failures - 1), LONGEST_PAUSE_S)


class Attempts:
    """The calls of one source."""

    def __init__(self, source: Source, now: Callable[[], float]):
        self._source = source
        self._now = now
        self._failures = 0
        self._again: float | None = None
        self.retries = 0
        """How often a call has failed and was, or will be, tried again."""

    @property
    def left_s(self) -> float:
        """How long the source is left alone from now on."""
        return 0.0 if self._again is None else max(self._again - self._now(), 0.0)

    def ask(self, question: Callable[[], T], meanwhile: T, *, mends: bool = False) -> T:
        """The answer of the source, or `meanwhile` until it can be asked again.

        An answer to a question that `mends` says that the source works again.
        """
        if self.left_s > 0:
            return meanwhile
        try:
            answer = question()
        except Exception as error:
            if not self._may_retry(error):
                raise self._told(error) from error
            self._failures += 1
            self.retries += 1
            self._again = self._now() + pause_s(self._failures)
            return meanwhile
        if mends:
            self._failures, self._again = 0, None
        return answer

    def _may_retry(self, error: Exception) -> bool:
        retryable = getattr(unwrapped(self._source), "retryable", None)
        return self._failures < MOST_RETRIES and retryable is not None and bool(retryable(error))

    def _told(self, error: Exception) -> AuroralError:
        if isinstance(error, AuroralError):
            return error
        source = unwrapped(self._source)
        name = getattr(source, "path", None) or type(source).__name__
        tried = f", after {self._failures} retries" if self._failures else ""
        return RunError(
            "SOURCE_FAILED",
            f"{type(error).__name__}: {error}{tried}",
            where=f"stream {self._source.stream}, source {name}",
        )
