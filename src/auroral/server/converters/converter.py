"""What a converter is: it decodes bytes into rows of a stream, and encodes results."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import pyarrow as pa

from auroral.io.batches import DecodedRows
from auroral.network.types import Schema

__all__ = ["DecodedRows", "FormatConverter", "LineConverter"]


@runtime_checkable
class FormatConverter(Protocol):
    """A data format by name and media type, in both directions.

    Packages offer converters by the entry point group `auroral.converters`; the entry point
    names a class, or a function, that takes no arguments.
    """

    @property
    def name(self) -> str:
        """What line feeds call it."""

    @property
    def media_types(self) -> tuple[str, ...]:
        """The Content-Types that it decodes, in lower case; the first is what it encodes."""

    def decode(self, data: bytes, schema: Schema) -> DecodedRows:
        """The rows in the body of a request, and why some records are none.

        Bad data never raises.
        """

    def encode(self, table: pa.Table) -> bytes:
        """The rows of a table; `decode` gives them back."""

    def cut(self, data: bytes) -> int:
        """How many bytes of what a connection has brought are whole records."""

    def decode_block(self, data: bytes, schema: Schema) -> DecodedRows:
        """The rows in what `cut` has cut off; one bad record must not cost others."""


class LineConverter:
    """What converters share whose records are lines."""

    def cut(self, data: bytes) -> int:
        return data.rfind(b"\n") + 1
