"""What `modify` adds, as the plain data that goes over the wire."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from auroral.client.rows import as_json
from auroral.errors import UsageError
from auroral.network.box import Box
from auroral.network.declarations import (
    ConnectionPoint,
    Declaration,
    Output,
    Stream,
    Table,
)
from auroral.network.queries import Query

_SECTIONS: Mapping[type, str] = {
    Box: "boxes",
    Stream: "streams",
    Table: "tables",
    Output: "outputs",
    ConnectionPoint: "connection_points",
    Query: "queries",
}


def changes(add: Mapping[str, Any]) -> dict[str, Any]:
    """Declarations by name, those of Python objects below the sections they belong to.

    >>> changes({"alerts": Output(**{"from": "hot"}), "near": "SELECT * FROM hot"})
    {'outputs': {'alerts': {'from': 'hot'}}, 'near': 'SELECT * FROM hot'}
    """
    if not isinstance(add, Mapping) or not all(isinstance(name, str) for name in add):
        raise UsageError("BAD_CALL", "add maps names to declarations")
    found: dict[str, Any] = {}
    for name, given in add.items():
        if not isinstance(given, Declaration):
            found[name] = as_json(_plain(given))
            continue
        section = next((own for kind, own in _SECTIONS.items() if isinstance(given, kind)), None)
        if section is None:
            raise UsageError(
                "BAD_CALL",
                f"a {type(given).__name__} cannot be sent; give it as the network file has it",
            )
        document = given.document()
        if isinstance(given, Box):
            document = {"box": given.box, **document}
        found.setdefault(section, {})[name] = document
    return found


def _plain(given: Any) -> Any:
    """Sections may hold declarations, too."""
    if isinstance(given, Mapping):
        return {name: _plain(item) for name, item in given.items()}
    if isinstance(given, Box):
        return {"box": given.box, **given.document()}
    return given.document() if isinstance(given, Declaration) else given
