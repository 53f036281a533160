"""Plain data: what a network file can hold, whoever read it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from auroral.errors import NetworkError
from auroral.network.positions import DocumentPath, DocumentPositions

MOST_LEVELS = 64
MOST_PARTS = 1_000_000


def require_plain(node: Any, positions: DocumentPositions, at: DocumentPath = ()) -> None:
    """Refuse what no network file can say: other types, endless numbers, bottomless nesting."""
    problem = _problem(node)
    if len(at) > MOST_LEVELS:
        problem = "nested too deeply for a network"
    if problem:
        where = positions.describe(*at) or None
        raise NetworkError("BAD_FILE", problem, where=where)
    if isinstance(node, Mapping):
        for key, value in node.items():
            require_plain(value, positions, (*at, key))
    elif isinstance(node, list | tuple):
        for index, value in enumerate(node):
            require_plain(value, positions, (*at, index))


def _problem(node: Any) -> str | None:
    if isinstance(node, Mapping):
        odd = [key for key in node if not isinstance(key, str) or not _is_text(key)]
        return f"expected text as a key, found {odd[0]!r}" if odd else None
    if isinstance(node, str):
        return None if _is_text(node) else f"expected text, found {node!r}"
    if isinstance(node, float):
        return None if math.isfinite(node) else f"expected a finite number, found {node}"
    if isinstance(node, int):
        return None if abs(node) < 2**63 else "expected a number of at most 64 bits"
    if node is None or isinstance(node, list | tuple):
        return None
    return f"expected text, numbers, lists and keys, found {type(node).__name__}"


def _is_text(text: str) -> bool:
    """Half a surrogate pair is not: it cannot be written to any file."""
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)
