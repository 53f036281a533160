"""What a network may say but hardly means, told when it starts."""

from __future__ import annotations

import copy
import logging
from contextlib import suppress

from auroral.errors import AuroralError
from auroral.network.check import CheckedNetwork
from auroral.network.network import Network

_LOG = logging.getLogger("auroral")
_MOST_QUERIES_WARNED_OF = 1_000
"""Of more queries the start does not ask whether their windows can close; `net.check()` does."""


def log_cautions(network: Network) -> None:
    """Log what is allowed but hardly meant; of very many queries, what boxes alone show."""
    if len(network.queries) > _MOST_QUERIES_WARNED_OF:
        network = copy.copy(network)
        network.queries = {}
    with suppress(AuroralError):  # only Spark's analyzer may know some expression's type
        for caution in CheckedNetwork(network, {}, ()).warnings:
            _LOG.warning(caution)
