"""The thread that keeps runs: at low priority, beside everything else."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Mapping

from auroral.errors import AuroralError
from auroral.history.index import KeptMoments, KeyedHistory

_NICE = 10


class HistoryMaintenance:
    """Lets each history do its work whenever something was committed.

    `kept` tells which moments of a point's log are history now. A history whose work fails (a full
    disk) is left alone until the next start; lookups go on without new runs, and `failures` says
    why.
    """

    def __init__(
        self, histories: Mapping[str, KeyedHistory], kept: Callable[[str], KeptMoments | None]
    ):
        self._histories = dict(histories)
        self._kept = kept
        self._changed = threading.Condition()
        self._asked = True
        self._idle = False
        self._stopping = False
        self._thread: threading.Thread | None = None
        self.failures: dict[str, str] = {}

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="auroral-history", daemon=True)
        self._thread.start()

    def add(self, point: str, history: KeyedHistory) -> None:
        """Take care of one more."""
        with self._changed:
            self._histories[point] = history
        self.wake()

    def remove(self, point: str) -> None:
        with self._changed:
            self._histories.pop(point, None)
            self.failures.pop(point, None)

    def wake(self) -> None:
        """Something was committed."""
        with self._changed:
            self._asked, self._idle = True, False
            self._changed.notify_all()

    def stop(self) -> None:
        """Return when the piece of work under way is done."""
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
        with self._changed:
            histories = list(self._histories.items())
        done = False
        for point, history in histories:
            if self._stopping or point in self.failures:
                continue
            kept = self._kept(point)
            try:
                done = (kept is not None and history.work(kept)) or done
            except AuroralError as error:
                self.failures[point] = error.message
        return done

    def _run(self) -> None:
        # On Linux the priority is the thread's alone.
        with contextlib.suppress(OSError, AttributeError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._asked or self._stopping)
                if self._stopping:
                    return
                self._asked = False
            while self.work():
                pass
            with self._changed:
                self._idle = not self._asked
                self._changed.notify_all()
