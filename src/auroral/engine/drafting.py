"""The network that comes next, made ready in a thread of its own while the others work."""

from __future__ import annotations

import threading
from collections.abc import Callable

from auroral.engine.design import Design
from auroral.engine.giving_way import GIVING_WAY
from auroral.engine.works import Works, is_next, next_design


class Drafting:
    """What is found out and compiled for boxes that are to come."""

    def __init__(self, works: Works, tell: Callable[[], None]):
        """`tell` is called whenever more is known."""
        self._works = works
        self._tell = tell
        self.design: Design | None = None
        self.error: BaseException | None = None
        self.ready = False
        """Whether it may be put in the place of the one that works."""
        self._lock = threading.Lock()
        self._given_up = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            with GIVING_WAY:
                self.design = next_design(self._works)
                self._tell()  # boxes that stay need not wait for what follows
                self.design.warm_up()
        except BaseException as error:  # whoever waits would wait for ever
            self.error = error
        finally:
            with self._lock:
                self.ready = True
                given_up = self._given_up
            if given_up:
                self._discard()
            self._tell()

    def fits(self, works: Works, design: Design | None) -> bool:
        """Whether it is made for a network, and what it has found for what comes next there."""
        return self._works is works and (design is None or is_next(works, design))

    def give_up(self) -> None:
        """Others are to come."""
        with self._lock:
            self._given_up = True
            done = self.ready
        if done:
            self._discard()

    def _discard(self) -> None:
        if self.design is not None:
            self.design.discard()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def wait(self) -> None:
        """Until it is ready."""
        self._thread.join()
