"""A growing directory as a source: its files one after the other, as they appear."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from auroral.errors import UsageError
from auroral.io.chunk import Chunk
from auroral.io.fit import Extra
from auroral.io.readers.blocks import cannot_read
from auroral.io.readers.lexer import FIELD_LINES
from auroral.io.sources.files import CHUNK_ROWS, SUFFIXES, FileSource, format_of
from auroral.network.types import Schema


class DirectorySource:
    """Files of one format in order of (mtime, name) as first seen; what was seen keeps its place.

    Names that start with `.` or `_`, end in `.tmp` or have another format's suffix are passed over.
    A file must not change once it has its name: write it elsewhere and rename it.
    """

    def __init__(
        self,
        stream: str,
        path: str | Path,
        schema: Schema,
        *,
        format: str | None = None,
        once: bool = False,
        progress_on: str | None = None,
        by: Sequence[str] = (),
        chunk_rows: int = CHUNK_ROWS,
        extra: Extra = "reject",
        max_field_lines: int = FIELD_LINES,
    ):
        self.stream = stream
        self.path = str(path)
        self.schema = schema
        self.format = format_of(self.path, format)
        self.once = once
        self._options: dict[str, Any] = {
            "progress_on": progress_on,
            "by": by,
            "chunk_rows": chunk_rows,
            "extra": extra,
            "max_field_lines": max_field_lines,
        }
        self._files: list[str] = []
        self._next = 0
        self._open: FileSource | None = None
        self._scan()

    def poll(self, limit: int) -> Chunk | None:
        """The next rows of the file at hand; a chunk never spans files."""
        while self._advance():
            assert self._open is not None
            chunk = self._open.poll(limit)
            if chunk is not None:
                here = {"files": self._files[:], "at": self._next - 1, "base": chunk.offsets.base}
                return replace(chunk, offsets=replace(chunk.offsets, base=here))
        return None

    @property
    def finite(self) -> bool:
        return self.once

    @property
    def exhausted(self) -> bool:
        return self.once and not self._advance()

    def seek(self, offset: Any) -> None:
        base = offset["base"]
        self.close()
        self._files = list(base["files"])
        self._next = base["at"]
        self._enter()
        assert self._open is not None
        self._open.seek({"base": base["base"], "skip": offset["skip"]})
        self._scan()

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
        self._open = None

    def _advance(self) -> bool:
        """Have a file open that still has something; False if there is none now."""
        while self._open is None or self._open.exhausted:
            self.close()
            if self._next == len(self._files) and not self.once:
                self._scan()
            if self._next == len(self._files):
                return False
            self._enter()
        return True

    def _enter(self) -> None:
        path = os.path.join(self.path, self._files[self._next])
        self._open = FileSource(self.stream, path, self.schema, format=self.format, **self._options)
        self._next += 1

    def _scan(self) -> None:
        """Put the files that are new at the end of the list."""
        known = set(self._files)
        found: list[tuple[int, str]] = []
        try:
            with os.scandir(self.path) as entries:
                for entry in entries:
                    if entry.name not in known and self._takes(entry.name) and entry.is_file():
                        found.append((entry.stat().st_mtime_ns, entry.name))
        except FileNotFoundError as error:
            if error.filename and os.path.exists(self.path):
                raise UsageError(
                    "CANNOT_READ", f"{error.filename} vanished before it was read", where=self.path
                ) from None
            raise cannot_read(self.path, error) from None
        except OSError as error:
            raise cannot_read(self.path, error) from None
        self._files += [name for _, name in sorted(found)]

    def _takes(self, name: str) -> bool:
        if name.startswith((".", "_")) or name.endswith(".tmp"):
            return False
        return SUFFIXES.get(Path(name).suffix.lower(), self.format) == self.format
