"""The audit log: every change, who asked for it, from where, and what came of it."""

from __future__ import annotations

import datetime as dt
import json
import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILE_BYTES = 16 << 20
"""A file that is larger is put aside."""
FILES = 8
"""So many are kept, the newest as `audit.jsonl`, older ones as `audit.jsonl.1` and so on."""
MOST_TEXT = 2000
"""So much of each value is recorded: what a client sends must not fill the log."""
REFUSED_S = 60.0
"""Refused calls of one role, client and method are recorded together for so long."""
_REFUSED_TEXT = 200
_MOST_REFUSED = 32
"""Clients and methods beyond so many at a time are put together by role."""
_log = logging.getLogger("auroral.server.audit")


@dataclass
class _RefusedCalls:
    """Calls that were refused since the first of them was recorded."""

    since_s: float
    count: int = 0
    last: dict[str, Any] | None = None
    """What the last one is recorded as; None if there was only the first."""


class AuditLog:
    """Appends JSON lines to files that only their owner can read; without a path, only logs."""

    def __init__(
        self,
        path: Path | None,
        *,
        file_bytes: int = FILE_BYTES,
        files: int = FILES,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._clock = clock
        self._refused: dict[tuple[str | None, ...], _RefusedCalls] = {}
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
        who = {"role": role, "client": client, "request": request}
        self._note_refused()
        self._write({**who, "what": what, "result": result, **more})

    def refused(
        self,
        *,
        role: str | None,
        client: str | None,
        request: str | None,
        method: str,
        path: str,
        result: str,
    ) -> None:
        """Record that a role was not enough; repeated calls are counted, and recorded together.

        So who may only look cannot push the changes of others out of the log.
        """
        who = {"role": role, "client": client, "request": request}
        entry = {**who, "what": f"{method} {_short(path, _REFUSED_TEXT)}", "result": result}
        self._note_refused()
        with self._lock:
            key: tuple[str | None, ...] = (role, client, method)
            if key not in self._refused and len(self._refused) >= _MOST_REFUSED:
                key = (role,)
            known = self._refused.get(key)
            if known is None:
                self._refused[key] = _RefusedCalls(self._clock())
            else:
                known.count, known.last = known.count + 1, entry
        if known is None:
            self._write(entry)

    def _note_refused(self, *, every: bool = False) -> None:
        """Record the refused calls that were put together for long enough."""
        until = self._clock() - REFUSED_S
        with self._lock:
            due = [key for key, one in self._refused.items() if every or one.since_s <= until]
            ended = [self._refused.pop(key) for key in due]
        for one in ended:
            if one.last is not None:
                self._write({**one.last, "calls": one.count})

    def _write(self, given: dict[str, Any]) -> None:
        at = dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")
        entry = {"at": at, **{name: _short(value) for name, value in given.items()}}
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
        self._note_refused(every=True)
        with self._lock:
            if self._handle is not None:
                os.close(self._handle)
                self._handle = None


def _short(value: Any, most: int = MOST_TEXT) -> Any:
    """A value that is not too long to be recorded, else the beginning of its text."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return value if len(text) <= most else f"{text[:most]}…"


def _opened(path: Path) -> int:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.fchmod(handle, 0o600)  # of one that somebody else made
    return handle
