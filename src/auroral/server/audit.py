"""The audit log: every change, who asked for it, from where, and what came of it."""

from __future__ import annotations

import datetime as dt
import json
import logging
import os
import threading
from pathlib import Path
from typing import Any

_log = logging.getLogger("auroral.server.audit")


class AuditLog:
    """Appends JSON lines to a file that only its owner can read; without a file, only logs."""

    def __init__(self, path: Path | None):
        self._lock = threading.Lock()
        self._handle: int | None = None
        if path is not None:
            self._handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def note(
        self, *, role: str, client: str | None, request: str, what: str, result: str, **more: Any
    ) -> None:
        """Record one change; `result` is `ok` or the code of the error."""
        entry = {
            "at": dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds"),
            "role": role,
            "client": client,
            "request": request,
            "what": what,
            "result": result,
            **more,
        }
        line = json.dumps(entry, ensure_ascii=False, default=str)
        with self._lock:
            if self._handle is not None:
                os.write(self._handle, line.encode("utf-8", errors="replace") + b"\n")
        _log.info(line, extra={"fields": entry})

    def close(self) -> None:
        """Nothing is noted any more."""
        with self._lock:
            if self._handle is not None:
                os.close(self._handle)
                self._handle = None
