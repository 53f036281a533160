"""Writing the catalog: what a network declares, with the schemas of all its arcs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from auroral.catalog.document import MOST_QUERIES, public_document
from auroral.ids import ArcId, InnerBoxId
from auroral.network.check import CheckedNetwork
from auroral.network.network import Network
from auroral.network.positions import KINDS
from auroral.network.types import Schema
from auroral.storage import Change, Store
from auroral.storage.manifest import EntityRow

DOCUMENT = "document"
"""Under which the manifest keeps the network document."""


def record_catalog(store: Store, network: Network, checked: CheckedNetwork) -> None:
    """Let the catalog say what the network is now; nothing is written if it says so already.

    `network` is the one that the engine was given or has changed to, `checked` the same without
    the boxes that the engine adds. A store that ends with the engine has no catalog.
    """
    if not store.durable:
        return
    document = public_document(network)
    text = json.dumps(document)
    rows = list(entity_rows(document, network, checked))
    with store.lock:
        same = store.manifest.meta(DOCUMENT) == text and store.manifest.entities() == rows
    if not same:
        store.commit(Change(meta={DOCUMENT: text}, entities=rows))


def entity_rows(
    document: Mapping[str, Any], network: Network, checked: CheckedNetwork
) -> Iterator[EntityRow]:
    """What the catalog lists: everything declared, inner boxes, and the ports of boxes."""
    schemas = {name: arc.schema for name, arc in checked.arcs.items()}
    schemas |= {alias: schemas[arc] for alias, arc in network.aliases.items() if arc in schemas}
    schemas |= {name: table.schema_ for name, table in network.tables.items()}
    schemas |= {name: schema for name, schema in checked.queries.items() if name not in schemas}
    for section, kind in KINDS.items():
        if section == "queries" and len(network.queries) > MOST_QUERIES:
            continue  # they have a table of their own
        for name, entry in document.get(section, {}).items():
            own = "instance" if section == "boxes" and name not in network.boxes else kind
            arc = name
            if section in ("outputs", "connection_points", "views"):
                arc = entry.get("from", entry.get("on"))
            schema = None if section in ("groups", "superboxes") else schemas.get(arc)
            yield EntityRow(own, name, json.dumps(entry), _written(schema))
    for name, box in network.boxes.items():
        if InnerBoxId.parse(name) is not None:
            entry = {"box": box.box, **box.document()}
            yield EntityRow("box", name, json.dumps(entry), _written(schemas.get(name)))
    for name, schema in schemas.items():
        arc = ArcId.parse(name)
        inside = InnerBoxId.parse(arc.producer) is not None and name in network.aliases
        if arc.port and not inside:
            yield EntityRow("arc", name, None, _written(schema))


def _written(schema: Schema | None) -> str | None:
    return None if schema is None else json.dumps(schema.declaration())
