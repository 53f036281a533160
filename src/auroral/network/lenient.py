"""A network checked as far as it can be: every mistake at its place, and all types there are.

`check` stops at the first mistake, which is right for a file that is to run. Whoever edits a
network wants to see all of them, and the fields of what is sound meanwhile.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from auroral.errors import Caution, NetworkError, closest
from auroral.ids import ArcId, InnerBoxId
from auroral.network import check as checks
from auroral.network.box import Resolver
from auroral.network.check import (
    CheckedNetwork,
    TypedArc,
    arcs_of_box,
    arcs_of_streams,
    flow_order,
    what_boxes_see,
)
from auroral.network.data_sets import with_data_sets
from auroral.network.declarations import EngineOptions
from auroral.network.endpoints import endpoint_mistakes
from auroral.network.network import NAMED, SECTIONS, Network
from auroral.network.plain import require_plain
from auroral.network.point_names import attachable_arcs, with_points_resolved
from auroral.network.positions import DocumentPositions
from auroral.network.superboxes import check_templates
from auroral.network.types import Schema

_UNNAMED = "network"
_FOLLOWING = ("UNKNOWN_ARC", "UNKNOWN_BOX", "UNKNOWN_TABLE")
"""Mistakes that go away when what they name is mended."""


@dataclass
class LenientCheck:
    """What was found; `network` has only the parts that could be read."""

    network: Network
    mistakes: list[NetworkError] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)
    """Parts that could not be read or typed: nothing is said of what depends on them."""
    arcs: dict[str, TypedArc] = field(default_factory=dict)
    queries: dict[str, Schema] = field(default_factory=dict)
    cautions: tuple[Caution, ...] = ()
    checked: CheckedNetwork | None = None
    """The network as `check` would have it, if there is no mistake."""


def read_leniently(
    document: Mapping[str, Any],
    positions: DocumentPositions | None = None,
    directory: Path | None = None,
) -> LenientCheck:
    """The parts of a network that can be read, and the mistakes of the others.

    >>> found = read_leniently({"network": "n", "streams": {"s": {"schema": "a int"}, "t": {}}})
    >>> list(found.network.streams), [str(mistake.where) for mistake in found.mistakes]
    (['s'], ['stream t, key schema'])
    """
    positions = positions or DocumentPositions()
    name = document.get("network")
    network = Network(_UNNAMED, positions=positions, directory=directory)
    found = LenientCheck(network)
    try:
        require_plain(document, positions)
    except NetworkError as mistake:
        found.mistakes.append(mistake)
        return found
    for key in document:
        if key not in SECTIONS:
            problem = f"unknown key {key}; the keys here are {', '.join(SECTIONS)}"
            hint = closest(key, SECTIONS)
            place = positions.describe(key)
            found.mistakes.append(NetworkError("UNKNOWN_KEY", problem, where=place, hint=hint))
    try:
        if not isinstance(name, str):
            problem = f"expected `network: name` with the network's name, found {name!r}"
            raise NetworkError("MISSING_KEY", problem, where=positions.describe("network"))
        network.name = Network(name, positions=positions).name
    except NetworkError as mistake:
        found.mistakes.append(mistake)
    for section in NAMED:
        _read_section(found, section, document.get(section))
    if document.get("engine") is not None:
        try:
            whole = {"network": _UNNAMED, "engine": document["engine"]}
            network.engine = Network.parse(whole, positions).engine
        except NetworkError as mistake:
            found.mistakes.append(mistake)
            network.engine = EngineOptions()
    return found


def _read_section(found: LenientCheck, section: str, entries: Any) -> None:
    if entries is None:
        return
    if not isinstance(entries, Mapping):
        problem, place = f"expected names under {section}, found {entries!r:.100}", section
        where = found.network.place(place)
        found.mistakes.append(NetworkError("BAD_FILE", problem, where=where))
        return
    for name, declared in entries.items():
        try:
            found.network.declare(section, name, declared)
        except NetworkError as mistake:
            found.mistakes.append(mistake)
            found.broken.add(name)


def check_leniently(found: LenientCheck, resolver: Resolver | None = None) -> None:
    """Type all that can be typed of what was read, and collect the mistakes on the way."""
    try:
        check_templates(found.network)
    except NetworkError as mistake:
        found.mistakes.append(mistake)
        found.broken.update(found.network.instances)
        found.network = _without(found.network, set(found.network.instances))
    network = _flattened(found)
    scope = what_boxes_see(network, resolver)
    found.arcs = arcs_of_streams(network)
    order = _order(found, network)
    for name in order:
        producers = {ArcId.parse(arc).producer for arc in network.boxes[name].sources()}
        if not _broken(found, producers):
            try:
                found.arcs |= arcs_of_box(network, name, found.arcs, scope)
                continue
            except NetworkError as mistake:
                found.mistakes.append(mistake)
        found.broken.add(name)
    sound = copy.copy(network)
    sound.boxes = {name: box for name, box in network.boxes.items() if name not in found.broken}
    _type_queries(found, sound, tuple(n for n in order if n in sound.boxes), resolver)
    schemas = {name: arc.schema for name, arc in found.arcs.items()}
    found.mistakes += [
        one
        for one in endpoint_mistakes(network, schemas, found.queries)
        if not _follows(found, one)
    ]
    if not found.mistakes:
        found.checked = CheckedNetwork(network, found.arcs, order, found.queries)
        found.cautions = found.checked.warnings
    for alias, arc in {**network.aliases, **_points(found.network)}.items():
        if arc in found.arcs:
            found.arcs.setdefault(alias, found.arcs[arc])


def _points(network: Network) -> dict[str, str]:
    try:
        return attachable_arcs(network)
    except NetworkError:
        return {}


def _broken(found: LenientCheck, producers: set[str]) -> bool:
    """Whether one of some producers could not be read or typed."""
    outer = {InnerBoxId.outermost(name) for name in producers}
    return bool(found.broken & (producers | outer))


def _flattened(found: LenientCheck) -> Network:
    """The network of plain boxes, without instances and points that cannot be resolved."""
    while True:
        try:
            return with_data_sets(with_points_resolved(found.network.flattened()))
        except NetworkError as mistake:
            found.mistakes.append(mistake)
            section, name = (*map(str, mistake.path[:2]), "", "")[:2]
            one = {name} & {*found.network.instances, *found.network.connection_points}
            if section not in ("boxes", "connection_points") or not one:
                one = {*found.network.instances, *found.network.connection_points}
            found.broken |= one
            found.network = _without(found.network, one)


def _without(network: Network, names: set[str]) -> Network:
    """The network without some instances of superboxes, boxes and connection points."""
    made = copy.copy(network)
    for section in ("instances", "boxes", "connection_points"):
        parts = getattr(network, section)
        setattr(made, section, {n: part for n, part in parts.items() if n not in names})
    return made


def _order(found: LenientCheck, network: Network) -> tuple[str, ...]:
    """The order in which data flow; boxes in circles are left out."""
    left = dict(network.boxes)
    while True:
        part = copy.copy(network)
        part.boxes = left
        try:
            return flow_order(part, left)
        except NetworkError as mistake:
            found.mistakes.append(mistake)
            one = str(mistake.path[1]) if len(mistake.path) > 1 else ""
            one = one if one in left else next(iter(left))
            found.broken.add(one)
            left = {name: box for name, box in left.items() if name != one}


def _type_queries(
    found: LenientCheck, network: Network, order: tuple[str, ...], resolver: Resolver | None
) -> None:
    checker = checks.query_checker
    if not network.queries or checker is None:
        return
    scope = what_boxes_see(network, resolver)
    try:
        found.queries = checker(network, found.arcs, order, scope)
        return
    except NetworkError:
        pass  # which one it is, and what else, is found one by one
    for name, query in network.queries.items():
        alone = copy.copy(network)
        alone.queries = {name: query}
        try:
            found.queries |= checker(alone, found.arcs, order, scope)
        except NetworkError as mistake:
            if not any(re.search(rf"\b{re.escape(b)}\b", query.sql) for b in found.broken):
                found.mistakes.append(mistake)
            found.broken.add(name)


def _follows(found: LenientCheck, mistake: NetworkError) -> bool:
    """Whether a mistake is only that something names a part that is broken itself."""
    if mistake.code not in _FOLLOWING or len(mistake.path) < 2:
        return False
    section, name = mistake.path[0], str(mistake.path[1])
    network = found.network
    if section == "outputs":
        named = [network.outputs[name].from_]
    elif section == "views":
        named = [network.views[name].from_]
    elif section == "connection_points":
        named = [network.connection_points[name].on or ""]
    elif section == "groups":
        named = list(network.groups[name].members)
    else:
        return False
    arcs = _points(network)
    return _broken(found, {ArcId.parse(arcs.get(arc, arc)).producer for arc in named} | set(named))
