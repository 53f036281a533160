"""The JSON Schema of the network file, for editors and other programs."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from auroral.network.box import BOXES, VARIANTS
from auroral.network.declarations import (
    ConnectionPoint,
    EngineOptions,
    Group,
    Output,
    Stream,
    Table,
    ViewDeclaration,
)
from auroral.network.function import Function
from auroral.network.queries import Family, Query
from auroral.network.templates import SuperboxInstance, SuperboxTemplate, TemplateParameter

_NAME = r"^[A-Za-z][A-Za-z0-9_]{0,99}$"


def network_schema() -> dict[str, Any]:
    """The schema that `auroral schema` prints and `docs/network.schema.json` holds."""
    sections: dict[str, type[BaseModel]] = {
        "functions": Function,
        "streams": Stream,
        "tables": Table,
        "superboxes": SuperboxTemplate,
        "connection_points": ConnectionPoint,
        "views": ViewDeclaration,
        "outputs": Output,
    }
    models: list[type[BaseModel]] = [*sections.values(), EngineOptions, Query, Family, Group]
    models += [SuperboxInstance, TemplateParameter]
    kinds = [*BOXES.values(), *VARIANTS.values()]
    models += kinds
    references, definitions = models_json_schema(
        [(model, "validation") for model in models], by_alias=True
    )
    for box in kinds:
        definition = definitions["$defs"][box.__name__]
        definition["required"] = ["box", *definition.get("required", [])]
    instance = definitions["$defs"][SuperboxInstance.__name__]
    names = sorted(BOXES)
    instance["properties"].pop("parameters")  # they stand beside the other keys
    instance["properties"]["box"] = {"type": "string", "not": {"enum": names}}
    instance["additionalProperties"] = True
    properties = {name: _named(references[model, "validation"]) for name, model in sections.items()}
    queries = [references[model, "validation"] for model in (Query, Family)]
    boxes = [references[box, "validation"] for box in kinds]
    boxes.append(references[SuperboxInstance, "validation"])
    members = {"type": "array", "items": {"type": "string"}}
    only_kinds = {"additionalProperties": {"properties": {"box": {"enum": names}}}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Auroral network",
        "description": "A network of boxes and arrows over streams, run by `auroral run`.",
        "type": "object",
        "additionalProperties": False,
        "required": ["network"],
        "properties": {
            "network": {"type": "string", "pattern": _NAME},
            "functions": properties["functions"],
            "streams": properties["streams"],
            "tables": properties["tables"],
            "superboxes": properties["superboxes"],
            "boxes": _named({"oneOf": boxes}),
            "queries": _named({"anyOf": [{"type": "string"}, *queries]}),
            "connection_points": properties["connection_points"],
            "views": properties["views"],
            "groups": _named({"anyOf": [members, references[Group, "validation"]]}),
            "outputs": properties["outputs"],
            "engine": references[EngineOptions, "validation"],
        },
        "if": {"not": {"required": ["superboxes"]}},
        "then": {"properties": {"boxes": only_kinds}},
        "$defs": definitions["$defs"],
    }


def _named(entry: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "propertyNames": {"pattern": _NAME},
        "additionalProperties": entry,
    }
