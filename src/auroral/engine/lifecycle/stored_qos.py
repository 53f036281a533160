"""The graphs of outputs that a state directory remembers.

The latest statement holds, whoever made it: the network file, `modify` or `set_qos`. So a restart
with a file that says of an output what it said before changes nothing, and one that says something
else takes the place of what was set meanwhile.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any

from auroral.errors import NetworkError
from auroral.network.box import Resolver
from auroral.network.network import Network
from auroral.qos.graphs import QoS
from auroral.storage import Change, Store

_OF_FILE = "qos of the file"
"""Under which the manifest keeps the graphs that the network file had."""
_SET = "qos set"
"""Under which it keeps those that were set while the engine ran; null: none from now on."""


def declared_qos(network: Network) -> dict[str, QoS | None]:
    """The graphs of all outputs, and of those views that have some."""
    views = {name: view.qos for name, view in network.views.items() if view.qos is not None}
    return {**views, **{name: output.qos for name, output in network.outputs.items()}}


def with_graphs(network: Network, graphs: Mapping[str, QoS | None]) -> Network:
    """The network with other graphs of outputs and views; what is not among them stays."""
    changed = copy.copy(network)
    changed.outputs = {
        name: output.model_copy(update={"qos": graphs.get(name, output.qos)})
        for name, output in network.outputs.items()
    }
    changed.views = {
        name: view.model_copy(update={"qos": graphs.get(name, view.qos)})
        for name, view in network.views.items()
    }
    if network.compact is not None:
        changed.compact = with_graphs(network.compact, graphs)
    return changed


def qos_edited(store: Store, given: Network) -> frozenset[str]:
    """The outputs of which the file says something else than at the last start."""
    before, now = json.loads(store.manifest.meta(_OF_FILE) or "{}"), _documents(given)
    return frozenset(name for name in {*before, *now} if before.get(name) != now.get(name))


def file_qos(given: Network) -> dict[str, str]:
    """What to remember of the file."""
    return {_OF_FILE: json.dumps(_documents(given))}


def qos_left(store: Store, edited: Collection[str]) -> dict[str, str]:
    """What to remember of what was set, if the file says something else of `edited` outputs."""
    return _meta({name: qos for name, qos in qos_set(store).items() if name not in edited})


def with_qos_set(
    network: Network, chosen: Mapping[str, QoS | None], resolver: Resolver | None
) -> Network:
    """The network of the file with graphs that were set, but for those of fields that are gone."""
    for name, qos in chosen.items():
        changed = with_graphs(network, {name: qos})
        with suppress(NetworkError):
            if qos is not None and qos.value is not None:
                changed.check(resolver)
            network = changed
    return network


def _documents(network: Network) -> dict[str, Any]:
    found = declared_qos(network)
    return {name: qos.document() for name, qos in found.items() if qos is not None}


def qos_set(store: Store) -> dict[str, QoS | None]:
    """What was set while the engine ran."""
    found: dict[str, Any] = json.loads(store.manifest.meta(_SET) or "{}")
    return {
        name: None if document is None else QoS.model_validate(document)
        for name, document in found.items()
    }


def remember_qos_set(store: Store, chosen: Mapping[str, QoS | None]) -> None:
    """Keep what is set now."""
    store.commit(Change(meta=_meta(chosen)))


def _meta(chosen: Mapping[str, QoS | None]) -> dict[str, str]:
    documents = {name: None if qos is None else qos.document() for name, qos in chosen.items()}
    return {_SET: json.dumps(documents)}
