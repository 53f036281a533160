"""Syslog: RFC 5424 in both directions, RFC 3164 as far as it can be read."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from auroral.errors import UsageError
from auroral.io.batches import DecodedRows
from auroral.network.types import Schema
from auroral.server.converters.texts import read_texts, write_texts

OWN_ID = "auroral@32473"
"""The structured data in which fields travel that a message has no place for."""
_NULLS = "_null"
"""The parameter of it that lists fields which are NULL although the message has a value."""
_DEFAULT_PRIORITY = 13
_BOM = "\ufeff"

_MESSAGE = re.compile(r"<([0-9]{1,3})>([1-9][0-9]{0,2}) (.*)", re.DOTALL)
_HEADER = re.compile(
    r"(?P<timestamp>\S+) (?P<hostname>\S+) (?P<app_name>\S+) (?P<procid>\S+) (?P<msgid>\S+) "
    r'(?P<data>-|(?>\[(?>[^\]"\\]|\\.|"(?>\\.|[^"\\])*")*\])+)'
    r"(?: (?P<message>.*))?\Z",
    re.DOTALL,
)
_ELEMENT = re.compile(r'\[((?>[^\]"\\]|\\.|"(?>\\.|[^"\\])*")*)\]', re.DOTALL)
_ID = re.compile(r'[^=\s\]"]+')
_PARAMETER = re.compile(r'[ ]+([^=\s\]"]+)="((?>\\.|[^"\\])*)"', re.DOTALL)
_ESCAPED = re.compile(r'\\(["\\\]])')
_OLD = re.compile(
    r"<([0-9]{1,3})>(?:(?P<time>[A-Z][a-z]{2} [ 0-9][0-9] [0-9]{2}:[0-9]{2}:[0-9]{2}) "
    r"(?P<hostname>\S+) )?(?:(?P<app_name>[^\s:\[\]]{1,64})(?:\[(?P<procid>[^\]]*)\])?: ?)?"
    r"(?P<message>.*)\Z",
    re.DOTALL,
)
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?(Z|[+-][0-9]{2}:[0-9]{2})"
)
_WORD = re.compile(r"[!-~]+")
_COUNTED = re.compile(rb"([1-9][0-9]{0,8}) (?=<)")
_ANY_COUNTED = re.compile(rb"(?:\A|\n|[^0-9])[1-9][0-9]{0,8} <")
WORDS = ("hostname", "app_name", "procid", "msgid")


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


class SyslogConverter:
    """Messages of RFC 5424 and RFC 3164, one per line or preceded by their length (RFC 6587).

    Fields of a stream that it gives: priority, facility, severity, version, timestamp, hostname,
    app_name, procid, msgid, structured_data (JSON) and message. Others are taken from parameters
    of the structured data by their name. RFC 3164 knows no year: it is the one that makes the
    time nearest to now.

    >>> schema = Schema.parse("severity int, hostname string, message string")
    >>> SyslogConverter().decode(b"<34>Oct 11 22:14:15 mars su: 'su root' failed", schema).good
    [{'severity': 2, 'message': "'su root' failed", 'hostname': 'mars'}]
    """

    name = "syslog"
    media_types = ("application/syslog", "text/x-syslog")

    def __init__(self, now: Callable[[], dt.datetime] = _now):
        self._now = now

    def decode(self, data: bytes, schema: Schema) -> DecodedRows:
        wanted = {field.name.lower(): field.name for field in schema}
        rows: list[dict[str, Any] | None] = []
        broken: dict[int, str] = {}
        frames = [frame for frame in _frames(data) if frame[2].strip()]
        for _, _, frame in frames:
            try:
                row: dict[str, Any] | None = self._row(frame.decode(), wanted)
            except UnicodeDecodeError:
                row, broken[len(rows)] = None, "invalid UTF-8"
            except ValueError as error:
                row, broken[len(rows)] = None, str(error)
            rows.append(row)
        texts = [frame for _, _, frame in frames]
        lines = [line for _, line, _ in frames]
        return DecodedRows(read_texts(rows, schema, broken), broken, texts, lines)

    def decode_block(self, data: bytes, schema: Schema) -> DecodedRows:
        return self.decode(data, schema)

    def cut(self, data: bytes) -> int:
        if not _ANY_COUNTED.search(data):
            return data.rfind(b"\n") + 1
        return max((end for end, _, _ in _frames(data, final=False)), default=0)

    def encode(self, table: pa.Table) -> bytes:
        columns = write_texts(table)
        for name in columns:
            if not _ID.fullmatch(name) and name.lower() != "message":
                raise UsageError(
                    "CANNOT_ENCODE", f"syslog cannot have a parameter of the name {name!r}"
                )
        rows = zip(*columns.values(), strict=True) if columns else [()] * table.num_rows
        return b"".join(_framed(dict(zip(columns, row, strict=True))) for row in rows)

    # ── reading one message ──

    def _row(self, text: str, wanted: dict[str, str]) -> dict[str, Any]:
        found = _MESSAGE.match(text)
        header = _HEADER.match(found.group(3)) if found else None
        if found and header:
            values = _new(found, header)
            elements = _elements(header["data"])
        else:
            values, elements = self._old(text), {}
        if elements:
            values["structured_data"] = json.dumps(
                {id: dict(pairs) for id, pairs in elements.items()}, ensure_ascii=False
            )
            if OWN_ID in elements and len(elements) == 1:
                del values["structured_data"]  # fields that have no other place, see `_written`
        own = elements.pop(OWN_ID, [])
        row = {wanted[name]: value for name, value in values.items() if name in wanted}
        for name, value in (pair for pairs in elements.values() for pair in pairs):
            if name.lower() in wanted and name.lower() not in values:
                row.setdefault(wanted[name.lower()], value)
        for name, value in own:
            if name == _NULLS:
                for null in value.split(","):
                    row.pop(wanted.get(null.lower(), ""), None)
            elif name.lower() in wanted:
                row[wanted[name.lower()]] = value
        return row

    def _old(self, text: str) -> dict[str, str | None]:
        found = _OLD.match(text)
        if not found:
            raise ValueError("expected <PRIORITY> and a message of RFC 5424 or RFC 3164")
        values = {**_priority(found.group(1)), "message": found["message"]}
        for name in ("hostname", "app_name", "procid"):
            values[name] = found[name] or None
        if found["time"]:
            values["timestamp"] = self._dated(found["time"])
        return values

    def _dated(self, text: str) -> str:
        """A time without a year, which is the nearest to now; as in RFC 5424."""
        month, day, clock = text[:3], text[4:6], text[7:]
        if month not in _MONTHS:
            raise ValueError(f"{month} is no month")
        now = self._now()
        times = []
        for year in (now.year - 1, now.year, now.year + 1):
            number = _MONTHS.index(month) + 1
            try:
                time = dt.datetime.fromisoformat(f"{year}-{number:02}-{int(day):02}T{clock}+00:00")
            except ValueError:
                continue
            times.append(time)
        if not times:
            raise ValueError(f"{text} is no time")
        nearest = min(times, key=lambda time: abs(time - now))
        return nearest.isoformat().replace("+00:00", "Z")


def _frames(data: bytes, final: bool = True) -> Iterator[tuple[int, int, bytes]]:
    """Messages with the place behind each and the line where it begins."""
    place, line = 0, 1
    while place < len(data):
        counted = _COUNTED.match(data, place)
        if counted:
            end = counted.end() + int(counted.group(1))
            if end <= len(data):
                frame = data[counted.end() : end]
                yield end, line, frame
                line += frame.count(b"\n")
                place = end
                continue
            if not final:
                return
        end = data.find(b"\n", place)
        if end < 0:
            if not final:
                return
            end = len(data)
        yield min(end + 1, len(data)), line, data[place:end].removesuffix(b"\r")
        place, line = end + 1, line + 1


def _priority(text: str) -> dict[str, str | None]:
    number = int(text)
    if number > 191:
        raise ValueError(f"the priority {number} is above 191")
    return {"priority": str(number), "facility": str(number >> 3), "severity": str(number & 7)}


def _new(found: re.Match[str], header: re.Match[str]) -> dict[str, str | None]:
    values = {**_priority(found.group(1)), "version": found.group(2)}
    for name in ("timestamp", *WORDS):
        values[name] = None if header[name] == "-" else header[name]
    message = header["message"]
    values["message"] = message and message.removeprefix(_BOM)
    return values


def _elements(text: str) -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    if text == "-":
        return found
    for inside in _ELEMENT.findall(text):
        named = _ID.match(inside)
        if not named:
            raise ValueError("structured data without an id")
        rest = inside[named.end() :]
        pairs = _PARAMETER.findall(rest)
        if _PARAMETER.sub("", rest).strip():
            raise ValueError(f'structured data {named.group()}: expected name="value" pairs')
        found.setdefault(named.group(), []).extend((n, _ESCAPED.sub(r"\1", v)) for n, v in pairs)
    return found


# ── writing one message ──


def _framed(row: dict[str, str | None]) -> bytes:
    data = _written(row).encode()
    if b"\n" in data or b"\r" in data:
        return b"%d %s" % (len(data), data)
    return data + b"\n"


def _written(row: dict[str, str | None]) -> str:
    given = {name.lower(): value for name, value in row.items()}
    priority = _number(given.get("priority"), 191)
    facility, severity = _number(given.get("facility"), 23), _number(given.get("severity"), 7)
    if priority is None:
        parts = (1 if facility is None else facility, 5 if severity is None else severity)
        priority = parts[0] * 8 + parts[1]
    time = given.get("timestamp")
    said: dict[str, str | None] = {
        **_priority(str(priority)),
        "version": "1",
        "timestamp": time if time and _TIME.fullmatch(time) else None,
        "message": given.get("message"),
    }
    for name in WORDS:
        text = given.get(name)
        said[name] = text if text and text != "-" and _WORD.fullmatch(text) else None
    pairs = {}
    nulls = []
    for name, value in row.items():
        if value == said.get(name.lower()):
            continue
        if value is None:
            nulls.append(name)
        else:
            pairs[name] = value
    if nulls:
        pairs[_NULLS] = ",".join(nulls)
    message = given.get("message")
    words = " ".join(said[name] or "-" for name in ("timestamp", *WORDS))
    tail = "" if message is None else f" {message if message.isascii() else _BOM + message}"
    return f"<{priority}>1 {words} {_data(pairs)}{tail}"


def _number(text: str | None, most: int) -> int | None:
    fits = text is not None and text.isdecimal() and text.isascii() and str(int(text)) == text
    return int(text) if fits and text is not None and int(text) <= most else None


def _data(pairs: dict[str, str]) -> str:
    if not pairs:
        return "-"
    found = "".join(f' {name}="{_escaped(value)}"' for name, value in pairs.items())
    return f"[{OWN_ID}{found}]"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("]", "\\]")
