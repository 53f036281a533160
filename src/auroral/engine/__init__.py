"""The loop that ties everything together, and the public Engine."""

from auroral.engine.api import Engine
from auroral.engine.inspect.followers import Follower

__all__ = ["Engine", "Follower"]
