"""The files of a train."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from auroral.shedding.drops import Drop


@dataclass(frozen=True)
class TrainFile:
    """One Parquet file of a train."""

    path: Path
    rows: int
    bytes: int
    drops: tuple[Drop, ...] = ()
    """The drop boxes that tasks apply when they read it; `rows` counts all tuples."""
