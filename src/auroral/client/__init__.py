"""The client: an engine behind a server, with the Engine's methods."""

from auroral.client.api import Client
from auroral.client.follower import RemoteFollower

__all__ = ["Client", "RemoteFollower"]
