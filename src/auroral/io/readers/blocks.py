"""A file as blocks of whole records; memory is bounded by the block or the longest record."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from auroral.errors import UsageError
from auroral.io.readers.lexer import LINE_END, lines

BLOCK_BYTES = 1 << 20
RECORD_BYTES = 1 << 26
"""A line longer than this is a dead letter; a quoted field longer than this is never closed."""
KEPT_BYTES = 1 << 13
TOO_LONG = f"longer than {RECORD_BYTES >> 20} MiB"

Cut = Callable[[bytes, bool], tuple[int, bool]]
"""From bytes and whether they are the last: where whole records end, and if they look plain."""


@dataclass(frozen=True)
class RecordBlock:
    """Whole records: where they start, and whether the fast reader can be trusted with them."""

    data: bytes
    byte: int
    line: int
    plain: bool
    broken: str | None = None
    """Why the block is one bad record, of which only the beginning is here."""


def cannot_read(path: str, error: OSError) -> UsageError:
    reason = error.strerror or str(error)
    return UsageError("CANNOT_READ", f"cannot read {path}: {reason}", where=path)


def open_file(path: str) -> BinaryIO:
    """The file for reading; an error in words if that cannot be."""
    try:
        if os.path.isdir(path):
            raise IsADirectoryError(21, "Is a directory")
        return open(path, "rb", buffering=0)
    except OSError as error:
        raise cannot_read(path, error) from None
    except ValueError as error:  # a NUL in the name
        raise UsageError("CANNOT_READ", f"cannot read {path!r}: {error}") from None


def cut_lines(block: bytes, final: bool) -> tuple[int, bool]:
    """Cut after the last newline."""
    return (len(block) if final else block.rfind(b"\n") + 1), True


def blocks(path: str, byte: int, line: int, cut: Cut) -> Iterator[RecordBlock]:
    """The blocks from a place where a record starts, `line` being the number of its line."""
    with open_file(path) as file:
        held = b""
        try:
            if byte > os.fstat(file.fileno()).st_size:
                raise UsageError(
                    "SOURCE_CHANGED",
                    f"{path} has become shorter than the place to go on from, byte {byte}",
                    where=path,
                )
            file.seek(byte)
            final = False
            while held or not final:
                if not final:
                    want = max(BLOCK_BYTES, len(held))
                    more = _read(file, want)
                    held, final = held + more, len(more) < want
                    if not held:
                        return
                end, plain = cut(held, final)
                if not end and (final or len(held) >= RECORD_BYTES):
                    end, plain = _first_line(held), False
                    if not end:
                        length = len(held) + _skip_line(file)
                        yield RecordBlock(held[:KEPT_BYTES], byte, line, False, TOO_LONG)
                        held, byte, line = b"", byte + length, line + 1
                if not end:
                    continue
                data, held = held[:end], held[end:]
                yield RecordBlock(data, byte, line, plain)
                byte += end
                line += lines(data)
        except OSError as error:
            raise cannot_read(path, error) from None


def _first_line(held: bytes) -> int:
    found = LINE_END.search(held)
    return found.end() if found else 0 if len(held) >= RECORD_BYTES else len(held)


def _skip_line(file: BinaryIO) -> int:
    """Go on to the next line; how many bytes that took."""
    start, size = file.tell(), 0
    while part := file.read(BLOCK_BYTES):
        end = part.find(b"\n") + 1
        size += end or len(part)
        if end:
            file.seek(start + size)
            break
    return size


def _read(file: BinaryIO, size: int) -> bytes:
    """`size` bytes, fewer only at the end of the file."""
    parts: list[bytes] = []
    while size > 0:
        part = file.read(size)
        if not part:
            break
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
