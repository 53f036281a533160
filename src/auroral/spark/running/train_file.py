"""The files of a train."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class TrainFile:
    """One Parquet file of a train."""

    path: Path
    rows: int
    bytes: int
