"""The loop that ties everything together, and the public Engine."""

from auroral.engine.engine import Engine

__all__ = ["Engine"]
