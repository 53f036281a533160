"""Structured logs of a server: one line for each event, as JSON or as text."""

from __future__ import annotations

import datetime as dt
import json
import logging
import sys
from typing import Any, Literal

from auroral.errors import masked

LogForm = Literal["json", "text"]
LOGGERS = ("auroral", "uvicorn.error")


class JsonLines(logging.Formatter):
    """An object for each event: `at`, `level`, `logger`, `text`, and fields of its own."""

    def format(self, record: logging.LogRecord) -> str:
        said = {"at": _at(record), "level": record.levelname.lower(), "logger": record.name}
        fields = getattr(record, "fields", None)
        said |= _masked(fields) if fields is not None else {"text": masked(record.getMessage())}
        if record.exc_info:
            said["traceback"] = masked(self.formatException(record.exc_info))
        return _printable(json.dumps(said, ensure_ascii=False, default=str))


class TextLines(logging.Formatter):
    """A line for each event, for people.

    What others have sent stays within its line and its field; a traceback is indented.
    """

    def format(self, record: logging.LogRecord) -> str:
        fields = getattr(record, "fields", None)
        text = masked(record.getMessage()) if fields is None else _spelt(_masked(fields))
        line = _printable(f"{_at(record)} {record.levelname.lower()} {record.name}: {text}")
        if record.exc_info:
            traceback = masked(self.formatException(record.exc_info))
            line += "".join(f"\n  {_printable(one)}" for one in traceback.splitlines())
        return line


def _spelt(fields: dict[str, Any]) -> str:
    return " ".join(f"{name}={_value(at)}" for name, at in fields.items() if at is not None)


def _value(value: Any) -> str:
    if isinstance(value, str) and value and not set(value) & set(' ="'):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


def _masked(value: Any) -> Any:
    """A value, and all that is in it, without secrets."""
    if isinstance(value, str):
        return masked(value)
    if isinstance(value, dict):
        return {name: _masked(one) for name, one in value.items()}
    return [_masked(one) for one in value] if isinstance(value, (list, tuple)) else value


def _printable(text: str) -> str:
    """A text with escapes in place of what would end the line, or steer a terminal."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)


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
