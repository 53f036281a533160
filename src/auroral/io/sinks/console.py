"""Output rows on the terminal, for a first look."""

from __future__ import annotations

import sys
from typing import Any, TextIO

from auroral.errors import RunError
from auroral.io.sinks.append import cannot_write
from auroral.io.sinks.jsonl import json_lines
from auroral.io.sinks.sink import Delivery


class ConsoleSink:
    """A line per row: the output's name and the row as JSON. The position counts rows."""

    def __init__(self, stream: TextIO | None = None):
        self._stream = stream
        self._rows = 0

    def open(self, position: Any | None) -> None:
        """Go on counting; what was shown cannot be taken back."""
        self._rows = position or 0

    def write(self, delivery: Delivery) -> Any:
        stream = self._stream or sys.stdout
        lines = bytes(json_lines(delivery.table)).decode().split("\n")[:-1]
        try:
            stream.writelines(f"{delivery.output} {line}\n" for line in lines)
            stream.flush()
        except OSError as error:
            raise cannot_write("the console", error) from None
        except ValueError as error:
            raise RunError("CANNOT_WRITE", f"cannot write the console: {error}") from None
        self._rows += delivery.table.num_rows
        return self._rows

    def close(self) -> None:
        """The terminal stays open."""
