"""Window functions that Spark's workers import by name."""

from __future__ import annotations

from typing import Any

from auroral import NOTHING


class Spread:
    """How far the values of a window lie apart; nothing for three, and it cannot count to five."""

    def init(self) -> list[float]:
        return []

    def incr(self, state: list[float], value: Any) -> None:
        if value is not None:
            state.append(float(value))

    def final(self, state: list[float]) -> Any:
        if len(state) == 5:
            raise ValueError("no fives")
        if len(state) == 3:
            return NOTHING
        return max(state) - min(state) if state else None


class Joined:
    """The texts of a window in order of arrival."""

    def init(self) -> str:
        return ""

    def incr(self, state: str, text: str | None, number: int | None) -> str:
        return f"{state}{text or '-'}{number}"

    def final(self, state: str) -> str:
        return state
