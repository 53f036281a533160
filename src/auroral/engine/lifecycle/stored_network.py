"""The network that a state directory was left with, and the one that is given now."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from auroral.engine.lifecycle.epochs import RUNNING, DeclaredNetwork
from auroral.engine.lifecycle.stored_qos import file_qos, qos_edited
from auroral.engine.queries.registrar import Registrar
from auroral.engine.topology.identity import identity, remembered, restored
from auroral.errors import NetworkError, StateError
from auroral.ids import ArcId
from auroral.network.endpoints import with_late_outputs
from auroral.network.network import Network
from auroral.storage import Change, Store


class StoredNetwork:
    """Finds out with which network to begin, and whether another is to take its place."""

    def __init__(self, store: Store, given: Network, sinks: Collection[str]):
        """`sinks` are outputs and arcs that were given a sink."""
        self._store = store
        self._given = given
        self._sinks = sinks
        self.edited = False
        """Whether the given network is another than the state was left with."""
        self._qos_edited: frozenset[str] = frozenset()
        """Outputs whose graphs the given network has changed."""

    def bind(self) -> DeclaredNetwork:
        """The network to begin with; a state directory of another network is refused."""
        given = DeclaredNetwork(self._given, bound_arcs(self._given, self._sinks))
        if not self._store.durable:
            return given
        self.edited = self._store.bind_network(identity(given.network, given.bound))
        edited = qos_edited(self._store, given.network)
        # Other graphs may mean other superboxes, which take over when the network is edited.
        self._qos_edited = frozenset() if self.edited else edited
        running = self._store.manifest.meta(RUNNING)
        declared = given if running is None else self.restored(json.loads(running))
        if running is None or edited:
            saved = json.dumps(remembered(declared.network, declared.bound, declared.demanded))
            file = file_qos(self._store, given.network, edited)
            self._store.commit(Change(meta={RUNNING: saved, **file}))
        if running is None:
            self.edited = False
            return given
        if self.edited or declared.network != given.network:
            return declared
        return replace(given, demanded=declared.demanded)

    def restored(self, document: Mapping[str, Any]) -> DeclaredNetwork:
        """A network from what is remembered of it."""
        network, bound = restored(document, self._given, self._qos_edited)
        demanded = frozenset(document.get("demanded", ()))
        return DeclaredNetwork(with_late_outputs(network, self._sinks), bound, demanded)

    def serve(self, registrar: Registrar, network: Network) -> None:
        """Let queries be read against the network to begin with."""
        try:
            registrar.serve(network)
        except NetworkError as error:
            raise StateError(
                "STATE_OF_OTHER_NETWORK",
                "the state was left with another version of the network, which cannot be put"
                f" together any more: {error}",
                where=str(self._store.directory),
                hint="start with that version, or use another state directory",
            ) from None


def bound_arcs(network: Network, sinks: Collection[str]) -> frozenset[str]:
    """Arcs of boxes and streams that are delivered only because they were given a sink."""
    arcs = {*network.streams, *network.boxes}
    names = [name for name in sinks if name not in network.outputs]
    return frozenset(name for name in names if ArcId.parse(name).producer in arcs)
