"""Which outputs have sinks."""

from __future__ import annotations

from collections.abc import Set


class BoundOutputs:
    """The outputs that sinks get, by name; `Sinks` changes it, who reads results looks at it.

    Whoever changes it holds the lock of the queries.
    """

    def __init__(self, known: Set[str] = frozenset()):
        self._known = set(known)
        self._open: set[str] = set()

    @property
    def open(self) -> Set[str]:
        """Those that have a sink now."""
        return self._open

    @property
    def known(self) -> Set[str]:
        """Those, and those that had one in an earlier run and may have it again."""
        return self._known

    def add(self, output: str) -> None:
        self._open.add(output)
        self._known.add(output)

    def remove(self, output: str) -> None:
        """The query of an output is no more."""
        self._open.discard(output)
        self._known.discard(output)
