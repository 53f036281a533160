"""The threads that deliver outputs to sinks, one for each: a slow sink delays only itself."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection

from auroral.engine.locks import ReentrantLock

_CLOSING_S = 1.0
"""So long the thread of an idle sink may take to close it at the end, whatever the grace time."""


class DeliveryThread:
    """Delivers when it is woken, and closes the sink when it is told to stop.

    It is a daemon: a sink that never returns does not keep the process alive.
    """

    def __init__(
        self,
        output: str,
        deliver: Callable[[], object],
        close: Callable[[], object],
        ended: Callable[[DeliveryThread, BaseException | None], None],
    ):
        """`ended` is called at last, with what went wrong that is not the sink's mistake."""
        self.output = output
        self._deliver = deliver
        self._close = close
        self._ended = ended
        self._wanted = threading.Event()
        self._wanted.set()
        self._stops = False
        self._closes = True
        self._thread = threading.Thread(target=self._run, name=f"sink {output}", daemon=True)

    def start(self) -> int:
        """Begin; returns what identifies the thread."""
        self._thread.start()
        assert self._thread.ident is not None
        return self._thread.ident

    def wake(self) -> None:
        """There may be something to deliver."""
        self._wanted.set()

    def stop(self, *, close: bool = True) -> None:
        """Deliver a last time what may be delivered, close the sink unless told otherwise, end."""
        self._closes = close
        self._stops = True
        self._wanted.set()

    def join(self, timeout_s: float) -> bool:
        """Wait for the end; False if it has not come in time."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        failure: BaseException | None = None
        try:
            stops = False
            while not stops:
                self._wanted.wait()
                self._wanted.clear()
                stops = self._stops
                self._deliver()
            if self._closes:
                self._close()
        except BaseException as error:  # whoever waits for a delivery would wait for ever
            failure = error
        self._ended(self, failure)


class DeliveryThreads:
    """The threads of all sinks. Whoever begins or releases one holds the lock of the queries."""

    def __init__(
        self,
        lock: ReentrantLock,
        grace_s: float,
        tell: Callable[[], None],
        fail: Callable[[BaseException], None],
    ):
        """`tell` is called when one has ended, `fail` if that was not the sink's mistake."""
        self._lock = lock
        self.grace_s = grace_s
        self.tell = tell
        self._fail = fail
        self._held: dict[str, DeliveryThread] = {}
        """By output."""
        self.closing: set[DeliveryThread] = set()
        """Those of sinks that are no longer there, until they have ended."""
        self._idents: set[int] = set()
        self._last_start_s: float | None = None
        """When the engine ends: the time after which no delivery begins."""
        self.over = False
        """Whether those that still run are abandoned."""

    def begin(
        self, output: str, deliver: Callable[[], object], close: Callable[[], object]
    ) -> None:
        """Let the sink of an output have a thread."""
        thread = self._held[output] = DeliveryThread(output, deliver, close, self._ended)
        self._idents.add(thread.start())

    def release(self, output: str, *, close: bool) -> DeliveryThread | None:
        """Let the thread of an output end, if it has one."""
        thread = self._held.pop(output, None)
        if thread is not None:
            self.closing.add(thread)
            thread.stop(close=close)
        return thread

    def wake(self, output: str) -> None:
        """There may be something to deliver."""
        thread = self._held.get(output)
        if thread is not None:
            thread.wake()

    def await_ended(self, threads: Collection[DeliveryThread]) -> None:
        """Wait for the end of threads, for the grace time at most."""
        for thread in threads:
            thread.join(self.grace_s)

    def stop(self, called: Collection[str]) -> list[str]:
        """End all threads; returns the outputs whose sinks have not returned in time.

        What steps have given is still delivered if the first half of that time is enough for it.
        `called` are the outputs whose sinks are being called.
        """
        now_s = time.monotonic()
        with self._lock:
            self._last_start_s = now_s + self.grace_s / 2
            threads = [*self._held.values(), *self.closing]
            for thread in self._held.values():
                thread.stop()
        end_s = now_s + self.grace_s
        late = [one for one in threads if not one.join(max(end_s - time.monotonic(), 0))]
        # A sink that is not called has only to be closed, which may begin a little later.
        busy = [one for one in late if one.output in called or not one.join(_CLOSING_S)]
        with self._lock:
            self.over = True
        return [thread.output for thread in busy]

    @property
    def is_last_start_over(self) -> bool:
        """Whether the engine ends, and no time is left for another delivery."""
        return self._last_start_s is not None and time.monotonic() >= self._last_start_s

    @property
    def has_current(self) -> bool:
        """Whether it is one of these threads that asks."""
        return threading.get_ident() in self._idents

    def _ended(self, thread: DeliveryThread, failure: BaseException | None) -> None:
        with self._lock:
            self._idents.discard(threading.get_ident())
            self.closing.discard(thread)
            over = self.over
        if failure is not None and not over:
            self._fail(failure)
        self.tell()
