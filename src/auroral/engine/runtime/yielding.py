"""Python that takes long gives way to other threads."""

from __future__ import annotations

import sys
import threading

_TURN_S = 0.0001


class PromptThreadSwitching:
    """While some thread is in here, threads have their turn soon; any may, at the same time.

    To read thousands of texts is nothing but Python, and a step waits for its turn after each
    answer of Spark's: 5 ms each time, as Python comes.

    >>> before = sys.getswitchinterval()
    >>> with PROMPT_SWITCHING, PROMPT_SWITCHING:
    ...     inside = sys.getswitchinterval()
    >>> inside < before == sys.getswitchinterval()
    True
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._before = 0.0

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._before = sys.getswitchinterval()
                sys.setswitchinterval(min(self._before, _TURN_S))
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                sys.setswitchinterval(self._before)


PROMPT_SWITCHING = PromptThreadSwitching()
"""One for the process, as what it sets is."""
