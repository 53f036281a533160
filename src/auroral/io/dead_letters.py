"""The file in which rows that did not fit can be seen."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from auroral.errors import masked
from auroral.io.chunk import DeadLetter
from auroral.io.sinks.append import AppendFile


class DeadLetterFile:
    """JSON lines with source, place, line, reason and row; positions are byte offsets."""

    def __init__(self, path: str | Path, *, durable: bool = False, private: bool = False):
        self._file = AppendFile(path, durable=durable, private=private)

    def open(self, position: Any | None) -> None:
        """Start anew if `position` is None, else cut away what was written after it."""
        self._file.open(position)

    def append(self, letters: Iterable[DeadLetter]) -> Any:
        """Write the letters, and return the position after them."""
        shown = (replace(letter, place=masked(letter.place)) for letter in letters)
        lines = (f"{json.dumps(asdict(letter), ensure_ascii=False)}\n" for letter in shown)
        position = self._file.append("".join(lines).encode(errors="backslashreplace"))
        self._file.sync()
        return position

    def close(self) -> None:
        self._file.close()
