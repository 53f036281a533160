"""Output rows to a Python function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from auroral.io.sinks.sink import Delivery


class CallbackSink:
    """Calls a function with each delivery; the position counts rows.

    After a crash the last delivery may be given again: `delivery.first` tells.
    """

    def __init__(self, function: Callable[[Delivery], object]):
        self._function = function
        self._rows = 0

    def open(self, position: Any | None) -> None:
        self._rows = position or 0

    def write(self, delivery: Delivery) -> Any:
        self._function(delivery)
        self._rows += delivery.table.num_rows
        return self._rows

    def close(self) -> None:
        """Nothing is held."""
