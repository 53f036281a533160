"""XML: rows as elements, fields as their attributes and elements."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

import pyarrow as pa

from auroral.io.batches import DecodedRows
from auroral.network.types import Schema
from auroral.server.converters.converter import LineConverter
from auroral.server.converters.texts import read_texts, write_texts

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_TRUE = ("true", "1")


class XmlConverter(LineConverter):
    """A document whose root's elements are rows, or one `row` element; in feeds one per line.

    >>> decoded = XmlConverter().decode(
    ...     b'<rows><row sid="1"><pos>30</pos></row></rows>', Schema.parse("sid int, pos int")
    ... )
    >>> decoded.good
    [{'sid': 1, 'pos': 30}]

    Documents with a document type are refused: entities could make them huge or read files.
    """

    name = "xml"
    media_types = ("application/xml", "text/xml")

    def decode(self, data: bytes, schema: Schema) -> DecodedRows:
        return _finished([_Document(data)], schema)

    def decode_block(self, data: bytes, schema: Schema) -> DecodedRows:
        lines = [(i, line) for i, line in enumerate(data.split(b"\n"), 1) if line.strip()]
        return _finished([_Document(line, number) for number, line in lines], schema)

    def encode(self, table: pa.Table) -> bytes:
        columns = [_elements(n, texts) for n, texts in write_texts(table).items()]
        rows = zip(*columns, strict=True) if columns else [()] * table.num_rows
        lines = ["<rows>", *(f"<row>{''.join(row)}</row>" for row in rows), "</rows>", ""]
        return "\n".join(lines).encode()


class _RefusedError(Exception):
    """The document has something that is not taken."""


@dataclass
class _Row:
    """A row as far as it has been read."""

    line: int
    start: int
    fields: dict[str, str | None] = field(default_factory=dict)
    broken: str | None = None
    text: bytes = b""

    def put(self, name: str, value: str | None) -> None:
        if name in self.fields:
            self.broken = self.broken or f"the field {name} occurs twice"
        self.fields[name] = value


class _Document:
    """The rows of one document, and where it is broken."""

    def __init__(self, data: bytes, line: int = 1):
        self.rows: list[_Row] = []
        self._data = data
        self._line = line
        self._depth = 0
        self._row: _Row | None = None
        self._row_depth = 1
        self._name: str | None = None
        self._how: dict[str, str] = {}
        self._text: list[str] = []
        self._parser = parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._begin
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.StartDoctypeDeclHandler = self._refuse
        parser.EntityDeclHandler = self._refuse
        parser.ExternalEntityRefHandler = self._refuse
        try:
            parser.Parse(data, True)
        except _RefusedError as error:
            self._broken_off(str(error))
        except expat.ExpatError as error:
            self._broken_off(f"invalid XML: {expat.ErrorString(error.code)}")
        except (ValueError, LookupError) as error:  # an encoding that is not known
            self._broken_off(f"invalid XML: {error}")

    def _broken_off(self, reason: str) -> None:
        """What follows the last whole row is one bad record."""
        begun = self._row
        start = begun.start if begun else max(self._parser.CurrentByteIndex, 0)
        line = begun.line if begun else self._line + self._parser.CurrentLineNumber - 1
        text = self._data[start:] or self._data
        self.rows.append(_Row(line, start, {}, reason, text))

    def _refuse(self, *_: Any) -> int:
        raise _RefusedError("a document type is not allowed")

    def _begin(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        name = _local(name)
        if self._depth == 1:
            self._row_depth = 1 if name == "row" else 2
        if self._depth == self._row_depth:
            line = self._line + self._parser.CurrentLineNumber - 1
            self._row = _Row(line, self._parser.CurrentByteIndex)
            for key, value in attributes.items():
                if not key.startswith("xmlns"):
                    self._row.put(_local(key), value)
        elif self._row is not None and self._depth == self._row_depth + 1:
            self._text.clear()
            named = name == "field" and "name" in attributes
            self._name = attributes["name"] if named else name
            self._how = attributes
        elif self._row is not None:
            self._row.broken = f"the field {self._name} has elements; nested values are JSON text"

    def _characters(self, text: str) -> None:
        if self._name is not None:
            self._text.append(text)
        elif self._row is not None and text.strip():
            self._row.broken = self._row.broken or f"text outside of fields: {text.strip()[:40]!r}"

    def _end(self, _name: str) -> None:
        row = self._row
        if row is not None and self._depth == self._row_depth + 1 and self._name is not None:
            row.put(self._name, self._value(row))
            self._name = None
        elif row is not None and self._depth == self._row_depth:
            end = self._data.find(b">", self._parser.CurrentByteIndex) + 1
            row.text = self._data[row.start : end or None]
            self.rows.append(row)
            self._row = None
        self._depth -= 1

    def _value(self, row: _Row) -> str | None:
        text = "".join(self._text)
        if any(_local(k) == "nil" and v in _TRUE for k, v in self._how.items()):
            return None
        if self._how.get("encoding") == "base64":
            try:
                return base64.b64decode(text, validate=True).decode()
            except (binascii.Error, ValueError):
                row.broken = row.broken or f"{self._name}: expected base64 of UTF-8 text"
        return text


def _local(name: str) -> str:
    return name.rpartition(":")[2]


def _finished(documents: list[_Document], schema: Schema) -> DecodedRows:
    rows = [row for document in documents for row in document.rows]
    broken = {i: row.broken for i, row in enumerate(rows) if row.broken}
    values = read_texts([None if r.broken else r.fields for r in rows], schema, broken)
    return DecodedRows(values, broken, [r.text for r in rows], [r.line for r in rows])


def _elements(name: str, texts: list[str | None]) -> list[str]:
    """A column as elements; NULL is none."""
    plain = _NAME.fullmatch(name) and name != "field"
    tag, begin = (name, name) if plain else ("field", f"field name={_attribute(name)}")
    found = []
    for text in texts:
        if text is None:
            found.append("")
        elif _FORBIDDEN.search(text):  # characters that XML does not have
            code = base64.b64encode(text.encode()).decode()
            found.append(f'<{begin} encoding="base64">{code}</{tag}>')
        else:
            found.append(f"<{begin}>{escape(text, {chr(13): '&#13;'})}</{tag}>")
    return found


def _attribute(name: str) -> str:
    return quoteattr(name, {"\r": "&#13;", "\n": "&#10;", "\t": "&#9;"})
