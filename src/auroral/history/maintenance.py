"""The thread that keeps runs: at low priority, beside everything else."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Mapping

from auroral.errors import AuroralError
from auroral.history.index import KeptMoments, KeyedHistory

_NICE = 10
_LOOK_S = 1.0
"""How often it looks whether there is something to do."""


class HistoryMaintenance:
    """Lets each history make, merge and drop its runs.

    `histories` gives those that there are now, `kept` which moments of a point's log are history
    now. A history whose work fails (a full disk) is left alone until the next start; lookups go
    on without new runs, and `failures` says why.
    """

    def __init__(
        self,
        histories: Callable[[], Mapping[str, KeyedHistory]],
        kept: Callable[[str], KeptMoments | None],
        *,
        look_s: float = _LOOK_S,
    ):
        self._histories = histories
        self._kept = kept
        self._look_s = look_s
        self._changed = threading.Condition()
        self._asked = True
        self._idle = False
        self._stopping = False
        self._thread: threading.Thread | None = None
        self.failures: dict[str, str] = {}
        """By point, why its history is not organised any further."""

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="auroral-history", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Look at once."""
        with self._changed:
            self._asked, self._idle = True, False
            self._changed.notify_all()

    def stop(self) -> None:
        """Return when the piece of work under way is done, or given up."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    def settle(self, timeout_s: float | None = None) -> bool:
        """Wait until there is nothing to do; False if that took too long."""
        with self._changed:
            return self._changed.wait_for(lambda: self._idle or self._stopping, timeout_s)

    def work(self) -> bool:
        """One piece of work of each history; False if there was nothing to do."""
        done = False
        for point, history in self._histories().items():
            if self._stopping or point in self.failures:
                continue
            kept = self._kept(point)
            try:
                done = (kept is not None and history.work(kept, self._is_stopping)) or done
            except AuroralError as error:
                self.failures[point] = error.message
        return done

    def _is_stopping(self) -> bool:
        return self._stopping

    def _run(self) -> None:
        # On Linux the priority is the thread's alone.
        with contextlib.suppress(OSError, AttributeError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._asked or self._stopping, self._look_s)
                if self._stopping:
                    return
                self._asked = False
            while self.work():
                pass
            with self._changed:
                self._idle = not self._asked
                self._changed.notify_all()
