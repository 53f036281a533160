"""The engine's clock: time never goes back, though the machine's clock may be set back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from auroral.storage import Store

LAST_TIME = "last_time_us"
"""Under which the manifest keeps the time of the last commit of input."""


def last_time_us(store: Store) -> int:
    """The time up to which an earlier run came; 0 if there was none."""
    return int(store.manifest.meta(LAST_TIME) or 0)


def _elapsed_us() -> int:
    """Time that passes, also while the machine sleeps, and that nobody can set."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime_ns(clock) // 1000


class MonotoneClock:
    """Microseconds since 1970: those at the start, and what has passed since.

    It begins at the machine's clock, or at the time an earlier run had reached if that is later.

    >>> times = iter([5, 5, 3, 7])
    >>> clock = MonotoneClock(lambda: next(times))
    >>> [clock(), clock(), clock()]
    [5, 5, 7]
    """

    def __init__(
        self,
        given: Callable[[], int] | None = None,
        *,
        after: int = 0,
        wall_us: Callable[[], int] = lambda: time.time_ns() // 1000,
        elapsed_us: Callable[[], int] = _elapsed_us,
    ):
        """`given` is another clock to follow; it does not go back either."""
        self._lock = threading.Lock()
        self._read = given or elapsed_us
        self._fixed = given is not None
        self._ahead = 0 if given else wall_us() - elapsed_us()
        self._last = 0
        self.not_before(after)

    def __call__(self) -> int:
        with self._lock:
            self._last = max(self._last, self._read() + self._ahead)
            return self._last

    def not_before(self, time_us: int) -> None:
        """Go on from a time, if that is later than now."""
        now = self()
        with self._lock:
            self._last = max(self._last, time_us)
            if not self._fixed:
                self._ahead += max(time_us - now, 0)
