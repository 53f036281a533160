"""The network that comes next, made ready in a thread of its own while the others work."""

from __future__ import annotations

import threading
from collections.abc import Callable

from auroral.engine.design import Design
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
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.design = next_design(self._works)
            self._tell()  # boxes that stay need not wait for what follows
            self.design.warm_up()
        except BaseException as error:  # whoever waits would wait for ever
            self.error = error
        finally:
            self.ready = True
            self._tell()

    def fits(self, works: Works) -> bool:
        """Whether it is made for a network, and for what comes next there."""
        return self._works is works and (self.design is None or is_next(works, self.design))

    def wait(self) -> None:
        """Until it is ready."""
        self._thread.join()
