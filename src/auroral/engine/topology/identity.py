"""The identity of a network: what a state directory was made for, and needs again."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from auroral.ids import ArcId
from auroral.io.identity import defining
from auroral.network.network import Network

_ENGINE = ("order", "flush")
"""The engine's options that results depend on; the others decide how fast they come."""


def identity(network: Network, sinks: Iterable[str]) -> dict[str, Any]:
    """What must be the same for a state directory to be used again.

    It leaves out queries, which come and go, and all that changes no result: quality of service,
    groups, and how sources, sinks and stores are reached. So no password is stored. Arcs that are
    delivered only because they were given a sink are a part of what runs.
    """
    plain = copy.copy(network)
    plain.queries, plain.groups = {}, {}
    arcs = {*network.streams, *network.boxes}
    own = [
        name for name in sinks if name not in network.outputs if ArcId.parse(name).producer in arcs
    ]
    document = plain.document()
    for stream in _entries(document, "streams"):
        if "source" in stream:
            source = stream["source"]
            several = isinstance(source, list)
            stream["source"] = [*map(defining, source)] if several else defining(source)
    for output in _entries(document, "outputs"):
        output.pop("qos", None)
        if "sink" in output:
            output["sink"] = defining(output["sink"])
    for stored in (*_entries(document, "tables"), *_entries(document, "connection_points")):
        if "store" in stored:
            stored["store"] = _without_login(stored["store"])
    engine = document.pop("engine", {})
    document["engine"] = {key: engine[key] for key in _ENGINE if key in engine}
    return {**document, "sinks": dict.fromkeys(own, "bound")}


def _entries(document: Mapping[str, Any], section: str) -> Iterable[dict[str, Any]]:
    entries: Iterable[dict[str, Any]] = document.get(section, {}).values()
    return entries


def _without_login(store: str) -> str:
    """The address of a store without user, password and options.

    >>> _without_login("postgresql://me:secret@host/db?sslmode=off#t"), _without_login("sqlite:///a")
    ('postgresql://host/db#t', 'sqlite:///a')
    """
    parts = urlsplit(store)
    if "@" not in parts.netloc and not parts.query:
        return store
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()
