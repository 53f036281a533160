"""The network that comes next, made ready in a thread of its own while the others work."""

from __future__ import annotations

import threading
from collections.abc import Callable

from auroral.engine.runtime.yielding import PROMPT_SWITCHING
from auroral.engine.topology.execution import Execution, is_planned_next, plan_next
from auroral.engine.topology.plan import ExecutionPlan


class BackgroundCompilation:
    """What is found out and compiled for boxes that are to come."""

    def __init__(self, execution: Execution, tell: Callable[[], None]):
        """`tell` is called whenever more is known."""
        self._works = execution
        self._tell = tell
        self.plan: ExecutionPlan | None = None
        self.error: BaseException | None = None
        self.ready = False
        """Whether it may be put in the place of the one that works."""
        self._lock = threading.Lock()
        self._given_up = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            with PROMPT_SWITCHING:
                self.plan = plan_next(self._works)
                self._tell()  # boxes that stay need not wait for what follows
                self.plan.warm_up()
        except BaseException as error:  # whoever waits would wait for ever
            self.error = error
        finally:
            with self._lock:
                self.ready = True
                given_up = self._given_up
            if given_up:
                self._discard()
            self._tell()

    def fits(self, execution: Execution, plan: ExecutionPlan | None) -> bool:
        """Whether it is made for a network, and what it has found for what comes next there."""
        return self._works is execution and (plan is None or is_planned_next(execution, plan))

    def give_up(self) -> None:
        """Others are to come."""
        with self._lock:
            self._given_up = True
            done = self.ready
        if done:
            self._discard()

    def _discard(self) -> None:
        if self.plan is not None:
            self.plan.discard()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def wait(self) -> None:
        """Until it is ready."""
        self._thread.join()
