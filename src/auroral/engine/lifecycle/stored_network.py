"""The network that a state directory was left with, and the one that is given now."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from auroral.engine.lifecycle.epochs import COMING, RUNNING, DeclaredNetwork
from auroral.engine.lifecycle.stored_qos import file_qos, qos_edited, qos_left
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

    def bind(self) -> DeclaredNetwork:
        """The network to begin with; a state directory of another network is refused."""
        given = DeclaredNetwork(self._given, bound_arcs(self._given, self._sinks))
        if not self._store.durable:
            return given
        self.edited = self._store.bind_network(identity(given.network, given.bound))
        running = self._store.manifest.meta(RUNNING)
        if running is None:
            self.edited = False
            self._store.commit(Change(meta=_saved(given) | file_qos(given.network)))
            return given
        declared = self.restored(json.loads(running))
        if edited := qos_edited(self._store, given.network):
            declared = self._with_other_qos(json.loads(running), declared, edited)
            meta = {} if self.edited else _saved(declared) | file_qos(given.network)
            self._store.commit(Change(meta=meta | qos_left(self._store, edited)))
        if self.edited or declared.network != given.network:
            return declared
        return replace(given, demanded=declared.demanded, fusion_rule=declared.fusion_rule)

    def _with_other_qos(
        self, running: Mapping[str, Any], before: DeclaredNetwork, edited: Collection[str]
    ) -> DeclaredNetwork:
        """Let the graphs that the file has changed hold at once, or from an epoch on.

        They wait for an epoch if other boxes would run as one, or if an epoch is planned: it would
        bring the graphs back that were there when it was planned.
        """
        planned = json.loads(self._store.manifest.meta(COMING) or "[]")
        declared = self.restored(running, edited)
        self.edited = self.edited or bool(planned) or declared.fusion != before.fusion
        return before if self.edited else declared

    def restored(
        self, document: Mapping[str, Any], other_qos: Collection[str] = ()
    ) -> DeclaredNetwork:
        """A network from what is remembered of it; some outputs with the graphs of the file."""
        found = restored(document, self._given, other_qos)
        return replace(found, network=with_late_outputs(found.network, self._sinks))

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


def _saved(declared: DeclaredNetwork) -> dict[str, str]:
    return {RUNNING: json.dumps(remembered(declared))}


def bound_arcs(network: Network, sinks: Collection[str]) -> frozenset[str]:
    """Arcs of boxes and streams that are delivered only because they were given a sink."""
    arcs = {*network.streams, *network.boxes}
    names = [name for name in sinks if name not in network.outputs]
    return frozenset(name for name in names if ArcId.parse(name).producer in arcs)
