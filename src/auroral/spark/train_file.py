"""The files of a train, and what Spark says of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class TrainFile:
    """One Parquet file of a train."""

    path: Path
    rows: int
    bytes: int


def first_line(error: Exception) -> str:
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__
