"""What is in a state directory: whether it was used before, and what may be removed from it."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from auroral.disk import sync_directory, unlink, write_whole

MARK = "auroral-state"
"""A file that is there once the manifest is, so that a manifest which is gone is missed."""
_TEXT = b"This directory is the state of an Auroral network. Without manifest.db it is useless.\n"
_SEGMENT = re.compile(r"(\d+)--?\d+--?\d+(-\d+-[A-Za-z0-9_.-]+-[0-9a-f]{12})?\.parquet(\.tmp)?")
_FRAME = re.compile(r"frame-[0-9a-f]{32}")


def has_state(directory: Path) -> bool:
    """Whether a directory was used before, so that it must have a manifest."""
    if (directory / MARK).exists() or _size(directory / "journal"):
        return True
    names = os.listdir(directory / "segments")
    return any(_SEGMENT.fullmatch(name) for name in names)


def mark_state(directory: Path, *, sync: bool) -> None:
    """Note that a directory has a manifest, which is on the disk already."""
    if not (directory / MARK).exists():
        write_whole(directory / MARK, _TEXT, sync=sync)
        if sync:
            sync_directory(directory)


def sweep(directory: Path, known: set[str]) -> int:
    """Remove what an earlier run wrote and never committed; what we did not make stays.

    Returns the greatest number of a segment file.
    """
    greatest = 0
    for entry in os.scandir(directory / "segments"):
        ours = _SEGMENT.fullmatch(entry.name)
        if ours:
            greatest = max(greatest, int(ours[1]))
            if entry.name not in known and entry.is_file(follow_symlinks=False):
                unlink(Path(entry.path))
    for entry in os.scandir(directory):
        if _FRAME.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path, ignore_errors=True)
    for path in (directory / "tables").glob("*.parquet.tmp"):
        unlink(path)
    return greatest


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0
