"""The latest log lines, for the page."""

from __future__ import annotations

import logging
import threading
from collections import deque
from typing import Any

from auroral.errors import masked

KEPT = 500
_CHARS = 2000
_QUIET = ("auroral.server.access", "auroral.server.audit")
"""Who asked for what is not for everybody who looks."""


class LogRing(logging.Handler):
    """Keeps the latest lines of a log; requests and the audit log are left out."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._ring: deque[tuple[int, dict[str, Any]]] = deque(maxlen=KEPT)
        self._count = 0
        self._guard = threading.Lock()

    def emit(self, record: logging.LogRecord) -> None:
        if record.name in _QUIET:
            return
        entry = {
            "at_us": int(record.created * 1e6),
            "level": record.levelname.lower(),
            "text": masked(record.getMessage())[:_CHARS],
        }
        with self._guard:
            self._count += 1
            self._ring.append((self._count, entry))

    def after(self, number: int) -> tuple[int, list[dict[str, Any]]]:
        """The lines after a number, and the number of the last."""
        with self._guard:
            return self._count, [entry for at, entry in self._ring if at > number]
