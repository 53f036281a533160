"""The thread that delivers one output to its sink, so that a slow sink delays only itself."""

from __future__ import annotations

import threading
from collections.abc import Callable


class DeliveryThread:
    """Delivers when it is woken, and closes the sink when it is told to stop.

    It is a daemon: a sink that never returns does not keep the process alive.
    """

    def __init__(
        self,
        output: str,
        deliver: Callable[[], None],
        close: Callable[[], None],
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
