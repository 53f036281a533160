"""Classes with state that Spark's workers import by name."""

from __future__ import annotations

from typing import Any


class Gather:
    """Gathers tuples as text, gives two of three with what it has, and fails where one has a zero.

    It changes its state in place before it fails, and returns a part of it.
    """

    def init(self) -> list[str]:
        return []

    def step(self, state: list[str], row: dict[str, Any]) -> Any:
        text = "|".join("nan" if value != value else str(value) for value in row.values())
        state.append(text)
        if any(value == 0 and value is not False for value in row.values()):
            raise ValueError("a zero")
        if len(state) % 3 == 1:
            return state, None
        made = {"length": len(state), "text": text, "parts": state[-3:]}
        return (state if len(state) < 6 else []), made
