"""The audit log: every change, who asked for it, from where, and what came of it."""

from __future__ import annotations

import datetime as dt
import json
import logging
import os
import threading
from pathlib import Path
from typing import Any

FILE_BYTES = 16 << 20
"""A file that is larger is put aside."""
FILES = 8
"""So many are kept, the newest as `audit.jsonl`, older ones as `audit.jsonl.1` and so on."""
_log = logging.getLogger("auroral.server.audit")


class AuditLog:
    """Appends JSON lines to files that only their owner can read; without a path, only logs."""

    def __init__(self, path: Path | None, *, file_bytes: int = FILE_BYTES, files: int = FILES):
        self._lock = threading.Lock()
        self._path = path
        self._file_bytes = file_bytes
        self._files = files
        self._handle: int | None = None if path is None else _opened(path)

    def note(
        self,
        *,
        role: str | None,
        client: str | None,
        request: str | None,
        what: str,
        result: str,
        **more: Any,
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
            try:
                self._append(line.encode("utf-8", errors="replace") + b"\n")
            except OSError as error:  # what it would tell has happened all the same
                _log.error("the audit log cannot be written: %s", error.strerror)
        _log.info(line, extra={"fields": entry})

    def _append(self, line: bytes) -> None:
        if self._handle is None or self._path is None:
            return
        if os.fstat(self._handle).st_size + len(line) > self._file_bytes:
            self._put_aside(self._path)
        os.write(self._handle, line)

    def _put_aside(self, path: Path) -> None:
        """Begin another file; the oldest goes."""
        names = [path, *(path.with_name(f"{path.name}.{n}") for n in range(1, self._files))]
        for older, newer in zip(names[:0:-1], names[-2::-1], strict=True):
            if newer.exists():
                os.replace(newer, older)
        handle = _opened(path)
        if self._handle is not None:
            os.close(self._handle)
        self._handle = handle

    def close(self) -> None:
        """Nothing is noted any more."""
        with self._lock:
            if self._handle is not None:
                os.close(self._handle)
                self._handle = None


def _opened(path: Path) -> int:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.fchmod(handle, 0o600)  # of one that somebody else made
    return handle
