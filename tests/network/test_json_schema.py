"""The published JSON Schema: up to date, takes what is valid, refuses what is not."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from auroral.network.box import BOXES, VARIANTS
from auroral.network.json_schema import network_schema
from auroral.network.templates import SuperboxInstance

from .documents import EVERY, SOLDIERS
from .test_superboxes import NETWORK as SUPERBOXES

ROOT = Path(__file__).parents[2]
TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
NOTES = {"title", "description", "default", "$schema", "$defs", "$id"}


def fits(value: Any, schema: Any, root: dict[str, Any]) -> bool:
    """Whether a value is valid; a keyword this does not know is an error of the test."""
    return all(
        keyword in NOTES or _fits(keyword, argument, value, schema, root)
        for keyword, argument in (schema if isinstance(schema, dict) else {}).items()
    )


def _fits(keyword: str, argument: Any, value: Any, schema: Any, root: dict[str, Any]) -> bool:
    match keyword:
        case "$ref":
            return fits(value, root["$defs"][argument.removeprefix("#/$defs/")], root)
        case "type":
            is_bool = isinstance(value, bool)
            return isinstance(value, TYPES[argument]) and (not is_bool or argument == "boolean")
        case "const":
            return bool(value == argument)
        case "enum":
            return value in argument
        case "anyOf":
            return any(fits(value, option, root) for option in argument)
        case "oneOf":
            return sum(fits(value, option, root) for option in argument) == 1
        case "not":
            return not fits(value, argument, root)
        case "if":
            return not fits(value, argument, root) or fits(value, schema["then"], root)
        case "then":
            return True  # with `if`
        case "pattern":
            return re.search(argument, value) is not None
        case "minimum":
            return not isinstance(value, int | float) or value >= argument
        case "maximum":
            return not isinstance(value, int | float) or value <= argument
        case "exclusiveMinimum":
            return not isinstance(value, int | float) or value > argument
        case "minItems":
            return not isinstance(value, list) or len(value) >= argument
        case "maxItems":
            return not isinstance(value, list) or len(value) <= argument
        case "minProperties":
            return not isinstance(value, dict) or len(value) >= argument
        case "items":
            return not isinstance(value, list) or all(fits(v, argument, root) for v in value)
        case "prefixItems":
            return all(fits(v, s, root) for v, s in zip(value, argument, strict=False))
        case "required":
            return not isinstance(value, dict) or set(argument) <= set(value)
        case "propertyNames":
            return not isinstance(value, dict) or all(fits(key, argument, root) for key in value)
        case "properties":
            given = value if isinstance(value, dict) else {}
            return all(fits(given[key], s, root) for key, s in argument.items() if key in given)
        case "additionalProperties":
            known = schema.get("properties", {})
            given = value if isinstance(value, dict) else {}
            rest = [given[key] for key in given if key not in known]
            return not rest if argument is False else all(fits(v, argument, root) for v in rest)
    raise AssertionError(f"the schema says {keyword}, which this test does not know")


SCHEMA = network_schema()
VALID = [YAML(typ="safe").load(text) for text in (SOLDIERS, EVERY, SUPERBOXES)]


def test_the_published_schema_is_up_to_date() -> None:
    published = (ROOT / "docs" / "network.schema.json").read_text(encoding="utf-8")
    assert json.loads(published) == SCHEMA, "auroral schema > docs/network.schema.json"


def test_every_box_is_described() -> None:
    options = SCHEMA["properties"]["boxes"]["additionalProperties"]["oneOf"]
    assert {option["$ref"].rpartition("/")[2] for option in options} == {
        SuperboxInstance.__name__,
        *(box.__name__ for box in (*BOXES.values(), *VARIANTS.values())),
    }
    assert all(SCHEMA["$defs"][box.__name__].get("description") for box in BOXES.values())


@pytest.mark.parametrize("document", VALID)
def test_what_is_valid_fits(document: Any) -> None:
    assert fits(document, SCHEMA, SCHEMA)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("strems",), {}),
        (("network",), "2nd"),
        (("network",), None),
        (("streams", "reports", "schema"), {}),
        (("streams", "reports", "schema"), {"a": 5}),
        (("streams", "reports", "scheme"), {"a": "int"}),
        (("streams", "reports", "progress", "dely"), 5),
        (("streams", "reports", "progress", "ordered"), "yes"),
        (("streams", "reports", "progress", "heartbeat"), {"lagg": 5}),
        (("streams", "2nd"), {"schema": {"a": "int"}}),
        (("boxes", "across", "box"), "filtr"),
        (("boxes", "across", "wher"), "pos > 1"),
        (("boxes", "across", "where"), 5),
        (("boxes", "across"), {"input": "reports", "where": "pos > 1"}),
        (("boxes", "across"), {"box": "filter", "where": "pos > 1"}),
        (("boxes", "across"), {"box": "union", "inputs": "reports"}),
        (("boxes", "crowd", "order", "slack"), -1),
        (("boxes", "crowd", "order", "slak"), 1),
        (("boxes", "crowd", "window", "size"), []),
        (("boxes", "crowd", "window", "siz"), 1),
        (("boxes", "crowd", "compute", "cnt"), {"udff": "a:b"}),
        (("connection_points", "recent", "keep"), {"rows": 0}),
        (("groups", "border"), "across"),
        (("outputs", "alerts", "form"), "enough"),
        (("outputs", "alerts", "qos", "latency"), [[0]]),
        (("outputs", "alerts", "qos", "latncy"), []),
        (("engine", "headroom"), 2),
        (("engine", "scheduler"), "lifo"),
        (("queries", "hot"), 5),
        (("groups", "border"), {"members": ["across"], "tag": ["x"]}),
        (("superboxes",), {"far": {"inputs": ["in"], "outputs": "b"}}),
        (("superboxes",), {"far": {"inputs": [], "boxes": {"b": {"box": "map"}}, "outputs": "b"}}),
    ],
)
def test_what_is_not_valid_does_not_fit(path: tuple[str, ...], value: Any) -> None:
    document = copy.deepcopy(VALID[0])
    parent = document
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = value
    assert not fits(document, SCHEMA, SCHEMA)
