"""The identity of a network: what a state directory was made for, and needs again."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from auroral.engine.lifecycle.epochs import DeclaredNetwork
from auroral.ids import ArcId
from auroral.io.identity import defining
from auroral.network.data_sets import with_data_sets
from auroral.network.declarations import NOTES
from auroral.network.network import Network
from auroral.scheduling.fusion import EARLIER_RULE, Fusion

_ENGINE = ("order", "flush")
"""The engine's options that results depend on; the others decide how fast they come."""


def identity(network: Network, sinks: Iterable[str]) -> dict[str, Any]:
    """What must be the same for a state directory to be used again.

    It leaves out queries, which come and go, and all that changes no result: quality of service,
    groups, descriptions and tags, and how sources, sinks and stores are reached. So no password is
    stored. Graphs count as far as they decide which boxes run as one. Superboxes count as the
    boxes that they stand for. Arcs that are delivered only because they were given a sink are a
    part of what runs.
    """
    network = network.flattened()
    plain = copy.copy(network)
    plain.queries, plain.groups, plain.superboxes = {}, {}, {}
    arcs = {*network.streams, *network.boxes}
    own = [
        name for name in sinks if name not in network.outputs if ArcId.parse(name).producer in arcs
    ]
    document = plain.document()
    for section in document.values():
        for entry in section.values() if isinstance(section, dict) else ():
            for key in NOTES if isinstance(entry, dict) else ():
                entry.pop(key, None)
    _without_access(document)
    for output in (*_entries(document, "outputs"), *_entries(document, "views")):
        output.pop("qos", None)
    engine = document.pop("engine", {})
    document["engine"] = {key: engine[key] for key in _ENGINE if key in engine}
    if fusion := Fusion.of(network).document():  # other superboxes have other places in logs
        document["fusion"] = fusion
    return {**document, "sinks": dict.fromkeys(own, "bound")}


def remembered(declared: DeclaredNetwork) -> dict[str, Any]:
    """What the manifest keeps of a network that runs, to have it again without its file.

    Options of sources, sinks and stores that only say how these are reached are left out.
    """
    plain = copy.copy(declared.network.compact or declared.network)
    plain.queries = {}
    # Outputs of late tuples that were only given a sink are added at each start.
    plain.outputs = {n: o for n, o in plain.outputs.items() if not ArcId.parse(n).port}
    document = plain.document()
    _without_access(document)
    return {
        "network": document,
        "bound": sorted(declared.bound),
        "demanded": sorted(declared.demanded),
        "fusion_rule": declared.fusion_rule,
    }


def restored(
    document: Mapping[str, Any], running: Network, other_qos: Collection[str] = ()
) -> DeclaredNetwork:
    """A network that was remembered; earlier versions did not say how boxes were fused.

    What is declared as in the `running` network is taken from it: it knows how to reach things. So
    are the graphs of outputs and views that have `other_qos` there than before.
    """
    given = running.compact or running
    known = given.document()
    _without_access(known)
    stored = copy.deepcopy(document["network"])
    for section in ("outputs", "views"):
        for name, entry in stored.get(section, {}).items():
            if name in other_qos and name in known.get(section, {}):
                entry.pop("qos", None)
                entry |= {key: part for key, part in known[section][name].items() if key == "qos"}
    network = Network.parse(stored, directory=given.directory)
    network.imports = given.imports
    rule = document.get("fusion_rule", EARLIER_RULE)
    _take_options(network, given, rule)
    for section in ("streams", "tables"):
        for name, entry in stored.get(section, {}).items():
            if known.get(section, {}).get(name) == entry:
                getattr(network, section)[name] = getattr(given, section)[name]
    for name, output in network.outputs.items():  # graphs do not say how it is reached
        one, other = (part.get("outputs", {}).get(name, {}) for part in (stored, known))
        if one | {"qos": None} == other | {"qos": None}:
            network.outputs[name] = given.outputs[name].model_copy(update={"qos": output.qos})
    network.queries = dict(given.queries)
    for name, function in given.functions.items():
        if stored.get("functions", {}).get(name) == known.get("functions", {}).get(name):
            network.functions[name] = function
    for name, box in given.boxes.items():
        if stored.get("boxes", {}).get(name) == known.get("boxes", {}).get(name):
            network.boxes[name] = box
    flat = running if network == given else with_data_sets(network.flattened())
    bound, demanded = frozenset(document["bound"]), frozenset(document.get("demanded", ()))
    return DeclaredNetwork(flat, bound, demanded, rule)


def _take_options(stored: Network, given: Network, rule: int) -> None:
    """Let a network that was remembered be run as the given one says.

    What results depend on stays, and so do the superboxes: tuples may wait between them.
    """
    before, fusion = stored.engine, Fusion.of(stored, rule)
    kept = {option: getattr(before, option) for option in _ENGINE}
    stored.engine = given.engine.model_copy(update=kept)
    if Fusion.of(stored, rule) != fusion:
        others = {"superbox": before.superbox, "scheduler": before.scheduler}
        stored.engine = stored.engine.model_copy(update=others)


def _without_access(document: Mapping[str, Any]) -> None:
    """Drop how sources, sinks and stores are reached."""
    for stream in _entries(document, "streams"):
        if "source" in stream:
            source = stream["source"]
            several = isinstance(source, list)
            stream["source"] = [*map(defining, source)] if several else defining(source)
    for output in _entries(document, "outputs"):
        if "sink" in output:
            output["sink"] = defining(output["sink"])
    for stored in (*_entries(document, "tables"), *_entries(document, "connection_points")):
        if "store" in stored:
            stored["store"] = _without_login(stored["store"])


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
