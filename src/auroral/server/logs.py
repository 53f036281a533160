"""Structured logs of a server: one line for each event, as JSON or as text."""

from __future__ import annotations

import datetime as dt
import json
import logging
import sys
from typing import Literal

from auroral.errors import masked

LogForm = Literal["json", "text"]
LOGGERS = ("auroral", "uvicorn.error")


class JsonLines(logging.Formatter):
    """An object for each event: `at`, `level`, `logger`, `text`, and fields of its own."""

    def format(self, record: logging.LogRecord) -> str:
        said = {"at": _at(record), "level": record.levelname.lower(), "logger": record.name}
        fields = getattr(record, "fields", None)
        said |= fields if fields is not None else {"text": masked(record.getMessage())}
        if record.exc_info:
            said["traceback"] = masked(self.formatException(record.exc_info))
        return json.dumps(said, ensure_ascii=False, default=str)


class TextLines(logging.Formatter):
    """A line for each event, for people."""

    def format(self, record: logging.LogRecord) -> str:
        fields = getattr(record, "fields", None)
        text = masked(record.getMessage()) if fields is None else _spelt(fields)
        line = f"{_at(record)} {record.levelname.lower()} {record.name}: {text}"
        if record.exc_info:
            line += f"\n{masked(self.formatException(record.exc_info))}"
        return line


def _spelt(fields: dict[str, object]) -> str:
    return " ".join(f"{name}={value}" for name, value in fields.items() if value is not None)


def _at(record: logging.LogRecord) -> str:
    return dt.datetime.fromtimestamp(record.created, dt.UTC).isoformat(timespec="milliseconds")


def log_to_stderr(form: LogForm, *, requests: bool = True) -> None:
    """Write the logs of the server and the engine to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    for name in LOGGERS:
        log = logging.getLogger(name)
        log.handlers = [handler]
        log.propagate = False
        log.setLevel(logging.INFO if name == "auroral" else logging.WARNING)
    if not requests:
        logging.getLogger("auroral.server.access").setLevel(logging.WARNING)
