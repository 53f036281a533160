"""Classes that examples of the palette use."""

from __future__ import annotations

from typing import Any


class Rise:
    """By how much each reading is above the one before it; nothing if it is not."""

    returns = "rise int"

    def init(self) -> int | None:
        return None

    def step(self, before: int | None, row: dict[str, Any]) -> tuple[int, dict[str, int] | None]:
        now: int = row["celsius"]
        rises = before is not None and now > before
        return now, {"rise": now - (before or 0)} if rises else None
