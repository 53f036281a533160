"""The loop that ties everything together, and the public Engine."""

from auroral.engine.api import Engine

__all__ = ["Engine"]
