"""What a call of `modify` asks for: queries, or other parts of the network."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from auroral.errors import UsageError, closest, list_existing
from auroral.network.box import Box
from auroral.network.declarations import ConnectionPoint, Output, Stream, Table
from auroral.network.function import Function
from auroral.network.network import NAMED, Network

_KINDS: Mapping[type, str] = {
    Box: "boxes",
    Stream: "streams",
    Table: "tables",
    Output: "outputs",
    ConnectionPoint: "connection_points",
    Function: "functions",
}
_TELLING = {"box": "boxes", "from": "outputs", "on": "connection_points", "udf": "functions"}
"""Keys that only one kind of declaration has."""
_LOOKED_UP = [*(name for name in NAMED if name != "queries"), "instances"]


@dataclass(frozen=True)
class NetworkEdit:
    """Queries that come and go, and the network as it is to be if more than that changes."""

    add: Mapping[str, Any]
    remove: list[str]
    network: Network | None = None
    whole: bool = False
    """Whether the network says which queries there are."""

    def queries_report(self) -> dict[str, list[str]]:
        """What it does to queries."""
        return {
            "added": [f"queries.{name}" for name in self.add],
            "removed": [f"queries.{name}" for name in self.remove if name not in self.add],
            "rebuilt": [],
        }

    def merged_report(self, report: Mapping[str, list[str]]) -> dict[str, list[str]]:
        """What it does to queries and to the rest."""
        own = self.queries_report()
        return {key: [*names, *own.get(key, [])] for key, names in report.items()}


def read_edit(current: Network, add: Any, remove: Any, network: Any) -> NetworkEdit:
    """What a call asks for; a mistake says what was expected, and nothing has happened."""
    if network is not None:
        if add or any(_section_of(current, name) is not None for name in _names(remove)):
            raise UsageError("BAD_CALL", "give a whole network, or what to add and remove")
        if not isinstance(network, Network):
            raise UsageError("BAD_CALL", f"network is a Network, found {network!r}")
        return NetworkEdit({}, _names(remove), network, whole=True)
    if not isinstance(add or {}, Mapping) or not all(isinstance(name, str) for name in add or {}):
        raise UsageError("BAD_CALL", "add maps names to declarations")
    queries, parts = _sorted(add or {})
    names = _names(remove)
    found = {name: _section_of(current, name) for name in names}
    gone = [place for place in found.values() if place is not None]
    left = [name for name, place in found.items() if place is None]
    if not parts and not gone:
        return NetworkEdit(queries, left)
    return NetworkEdit(queries, left, _edited(current, parts, gone))


def _names(remove: Any) -> list[str]:
    names = [remove] if isinstance(remove, str) else remove
    names = list(names) if isinstance(names, Iterable) else [names]
    if not all(isinstance(name, str) for name in names):
        raise UsageError("BAD_CALL", "remove lists names")
    return names


def _sorted(add: Mapping[str, Any]) -> tuple[dict[str, Any], list[tuple[str, str, Any]]]:
    """Queries, and other declarations with their sections and names."""
    queries: dict[str, Any] = {}
    parts: list[tuple[str, str, Any]] = []
    for name, given in add.items():
        if name in NAMED and isinstance(given, Mapping) and "sql" not in given:
            if name == "queries":
                queries |= given
            else:
                parts += [(name, own, declared) for own, declared in given.items()]
            continue
        section = _kind_of(given)
        if section is None:
            queries[name] = given
        else:
            parts.append((section, name, given))
    return queries, parts


def _kind_of(given: Any) -> str | None:
    """The section that a declaration belongs to; None for queries and rows of families."""
    for kind, section in _KINDS.items():
        if isinstance(given, kind):
            return section
    if not isinstance(given, Mapping) or "sql" in given:
        return None
    for key, section in _TELLING.items():
        if key in given:
            return section
    if "schema" in given:
        return "tables" if "store" in given or "key" in given else "streams"
    return None


def _section_of(network: Network, name: str) -> tuple[str, str] | None:
    """Where a name to be removed stands; None if it is no part of the network but queries."""
    section, dot, own = name.partition(".")
    if dot and section in _LOOKED_UP:
        parts = getattr(network, section)
        if own not in parts:
            raise UsageError(
                "UNKNOWN_ENTITY",
                f"there is no {own} in {section}; {list_existing(parts)}",
                hint=closest(own, parts),
            )
        return section, own
    first = ("streams", "tables", "boxes", "instances", "connection_points", "outputs")
    for section in (*first, *_LOOKED_UP):
        if name in getattr(network, section):
            return section, name
    return None


def _edited(
    network: Network, parts: list[tuple[str, str, Any]], gone: list[tuple[str, str]]
) -> Network:
    """The network without some parts, and with others."""
    made = copy.copy(network)
    for section in (*NAMED, "instances"):
        setattr(made, section, dict(getattr(network, section)))
    for section, name in gone:
        getattr(made, section).pop(name, None)
    for section, name, declared in parts:
        made.declare(section, name, declared)
    boxes = {name for section, name in gone if section in ("boxes", "instances")}
    removed = boxes - made.boxes.keys() - made.instances.keys()
    if removed:
        made.forget_members(removed)
    return made
