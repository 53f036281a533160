"""Other ways in and out that a server starts beside HTTP."""

from __future__ import annotations

from typing import Protocol


class Feed(Protocol):
    """Something that listens for clients of its own, such as Arrow Flight or lines."""

    @property
    def address(self) -> str:
        """Where clients connect to, once it has started."""

    def start(self) -> None:
        """Bind and begin to serve."""

    def statistics(self) -> dict[str, int]:
        """What it has seen, for metrics; empty if it does not count."""

    def stop(self) -> None:
        """Serve no more."""
