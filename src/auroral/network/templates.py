"""Superboxes as they are declared: templates with parameters, and instances of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainSerializer, PlainValidator, StrictStr
from pydantic import WithJsonSchema as Published

from auroral.errors import NetworkError, closest, list_existing
from auroral.ids import ArcId
from auroral.network.declarations import NOTES, Declaration, Described, Placed
from auroral.network.substitution import ParameterType, ParameterValue, fitted, references
from auroral.network.types import Schema

DEFAULT_OUTPUT = "out"
"""The output that the arc named like the instance is, where there are several."""
_RESERVED = ("box", "input", "inputs", "parameters", "on_change", *NOTES)
"""Keys of instances that cannot be parameters."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,99}")
_SCALAR = {"anyOf": [{"type": kind} for kind in ("number", "string", "boolean")]}


class TemplateParameter(Declaration):
    """A parameter of a superbox; without a default every instance must give it."""

    type: ParameterType
    default: Annotated[Any, Published(_SCALAR)] = None
    description: StrictStr | None = None

    def model_post_init(self, _context: Any) -> None:
        if self.default is not None:
            fitted(self.type, self.default)

    def short(self) -> Any:
        """The form the network file uses: the default alone if that says all."""
        kind = _kind_of(self.default)
        plain = self.description is None and kind == self.type
        return self.default if plain else self.document()


def _kind_of(value: Any) -> ParameterType | None:
    """The type of a parameter that is declared by its default alone."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "string" if isinstance(value, str) else None


def _full_parameters(declared: Any) -> Any:
    if not isinstance(declared, Mapping):
        return declared
    kinds = {name: _kind_of(value) for name, value in declared.items()}
    return {
        name: value if (kind := kinds[name]) is None else {"type": kind, "default": value}
        for name, value in declared.items()
    }


def _template_inputs(declared: Any) -> dict[str, Schema | None]:
    """By input its schema; None where any will do."""
    if isinstance(declared, str):
        declared = [declared]
    if isinstance(declared, list | tuple) and all(isinstance(name, str) for name in declared):
        if len(set(declared)) < len(declared):
            raise NetworkError("DUPLICATE_NAME", f"an input occurs twice: {list(declared)}")
        declared = dict.fromkeys(declared)
    if not isinstance(declared, Mapping) or not declared:
        problem = f"expected names of inputs, or names and their schemas, found {declared!r:.100}"
        raise NetworkError("BAD_PARAMETER", problem)
    return {
        name: None if schema is None else Schema.parse(schema) for name, schema in declared.items()
    }


def _written_inputs(inputs: Mapping[str, Schema | None]) -> Any:
    if all(schema is None for schema in inputs.values()):
        return list(inputs)
    return {name: schema and schema.declaration() for name, schema in inputs.items()}


def _full_outputs(declared: Any) -> Any:
    return {DEFAULT_OUTPUT: declared} if isinstance(declared, str) else declared


def _written_outputs(outputs: Mapping[str, str]) -> Any:
    return outputs[DEFAULT_OUTPUT] if list(outputs) == [DEFAULT_OUTPUT] else dict(outputs)


_FIELDS = {
    "anyOf": [
        {"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 1},
        {"type": "string"},
        {"type": "null"},
    ]
}
_INPUTS = {
    "anyOf": [
        {"type": "array", "items": {"type": "string"}, "minItems": 1},
        {"type": "object", "additionalProperties": _FIELDS, "minProperties": 1},
    ],
    "description": "names of inputs, or names and the fields that each must have",
}
_OUTPUTS = {
    "anyOf": [
        {"type": "string"},
        {"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 1},
    ],
    "description": "an arc, or by port the arc of the superbox that it gives",
}
_PARAMETERS = {
    "type": "object",
    "additionalProperties": {
        "anyOf": [*_SCALAR["anyOf"], {"$ref": "#/$defs/TemplateParameter"}],
    },
    "description": "by name a default value, or type, default and description",
}
_BOXES = {
    "type": "object",
    "additionalProperties": {
        "type": "object",
        "properties": {"box": {"type": "string"}},
        "required": ["box"],
    },
    "minProperties": 1,
    "description": "boxes as under `boxes`, with ${name} for a parameter",
}


class SuperboxTemplate(Described):
    """Boxes that are used as one box, any number of times, with other parameters [4 §2].

    Its boxes read its inputs, each other and tables. An instance `north` of it gives the arc
    `north`, which is its only output or the one called `out`, and `north.port` for each output.
    """

    parameters: Annotated[
        dict[str, TemplateParameter],
        BeforeValidator(_full_parameters),
        PlainSerializer(lambda found: {name: one.short() for name, one in found.items()}),
        Published(_PARAMETERS),
    ] = Field(default_factory=dict)
    inputs: Annotated[
        Any,
        PlainValidator(_template_inputs),
        PlainSerializer(_written_inputs),
        Placed,
        Published(_INPUTS),
    ]
    boxes: Annotated[dict[str, dict[str, Any]], Field(min_length=1), Published(_BOXES)]
    outputs: Annotated[
        dict[str, StrictStr],
        Field(min_length=1),
        BeforeValidator(_full_outputs),
        PlainSerializer(_written_outputs),
        Published(_OUTPUTS),
    ]

    def model_post_init(self, _context: Any) -> None:
        for key in ("parameters", "inputs", "boxes", "outputs"):
            for name in getattr(self, key):
                if not _NAME.fullmatch(name):
                    raise _bad_name(name, key)
        for name in self.parameters:
            if name in _RESERVED:
                problem = f"{name} cannot name a parameter: boxes have such a key"
                raise NetworkError("BAD_NAME", problem, where=f"key parameters.{name}")
        for name in self.inputs:
            if name in self.boxes:
                problem = f"{name} is an input and a box of the superbox"
                raise NetworkError("DUPLICATE_NAME", problem, where=f"key boxes.{name}")
        for name, declared in self.boxes.items():
            if not isinstance(declared.get("box"), str):
                problem = f"expected `box: kind` and its keys, found {declared!r:.100}"
                raise NetworkError("MISSING_KEY", problem, where=f"key boxes.{name}")
            for used in references(declared):
                if used not in self.parameters:
                    raise NetworkError(
                        "UNKNOWN_PARAMETER",
                        f"the superbox has no parameter {used}; {list_existing(self.parameters)}",
                        where=f"key boxes.{name}",
                        hint=closest(used, self.parameters),
                    )
        for port, arc in self.outputs.items():
            if arc not in self.inputs and ArcId.parse(arc).producer not in self.boxes:
                raise self.unknown_arc(arc).at(f"key outputs.{port}")

    @property
    def default_output(self) -> str | None:
        """The output that the arc named like an instance is."""
        if DEFAULT_OUTPUT in self.outputs:
            return DEFAULT_OUTPUT
        return next(iter(self.outputs)) if len(self.outputs) == 1 else None

    def unknown_arc(self, arc: str) -> NetworkError:
        """What is said of an arc that its boxes cannot read."""
        names = [*self.inputs, *self.boxes]
        return NetworkError(
            "UNKNOWN_ARC",
            f"there is no arc {arc} in the superbox, which reads its inputs and its boxes;"
            f" {list_existing(names)}",
            hint=closest(arc, names),
        )

    def values(self, given: Mapping[str, Any]) -> dict[str, ParameterValue]:
        """The values of all parameters, of which some are given."""
        found = {}
        for name in given:
            if name not in self.parameters:
                keys = ["box", "input", "inputs", *self.parameters, *NOTES]
                raise NetworkError(
                    "UNKNOWN_KEY",
                    f"unknown key {name}; the keys here are {', '.join(keys)}",
                    where=f"key {name}",
                    hint=closest(name, keys),
                )
        for name, parameter in self.parameters.items():
            value = given.get(name, parameter.default)
            if value is None:
                raise NetworkError(
                    "MISSING_KEY",
                    f"the parameter {name} is missing: it has no default",
                    where=f"key {name}",
                )
            try:
                found[name] = fitted(parameter.type, value)
            except NetworkError as error:
                raise error.at(f"key {name}") from None
        return found


class SuperboxInstance(Described):
    """A superbox in place of a box: its inputs, and values for its parameters."""

    box: StrictStr
    input: StrictStr | None = None
    inputs: tuple[StrictStr, ...] | dict[str, StrictStr] | None = None
    parameters: dict[str, Any] = Field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        found = super().document()
        given = found.pop("parameters", {})
        last = {key: found.pop(key) for key in NOTES if key in found}
        return {**found, **given, **last}

    @staticmethod
    def keys(declared: Mapping[str, Any]) -> dict[str, Any]:
        """A declaration as it stands in a file, with the parameters under a key of their own."""
        own = {key: part for key, part in declared.items() if key in ("box", "input", "inputs")}
        own |= {key: part for key, part in declared.items() if key in NOTES}
        return {**own, "parameters": {k: v for k, v in declared.items() if k not in own}}

    def arcs(self, template: SuperboxTemplate) -> dict[str, str]:
        """By input of the superbox the arc that it reads."""
        wanted = list(template.inputs)
        if (self.input is None) == (self.inputs is None):
            found = "both" if self.input is not None else "neither"
            key = "input" if len(wanted) == 1 else "inputs"
            raise NetworkError("MISSING_KEY", f"expected {key}, found {found} of input and inputs")
        if isinstance(self.inputs, dict):
            odd = next((name for name in self.inputs if name not in wanted), None)
            missing = next((name for name in wanted if name not in self.inputs), None)
            if odd is not None or missing is not None:
                problem = (
                    f"{self.box} has no input {odd}" if odd else f"the input {missing} has no arc"
                )
                raise NetworkError(
                    "BAD_PARAMETER", f"{problem}; {list_existing(wanted)}", where="key inputs"
                )
            return {name: self.inputs[name] for name in wanted}
        given = (self.input,) if self.input is not None else self.inputs or ()
        if len(given) != len(wanted):
            raise NetworkError(
                "BAD_PARAMETER",
                f"{self.box} takes {len(wanted)} inputs ({', '.join(wanted)}), found {len(given)}",
                where="key input" if self.input is not None else "key inputs",
            )
        return dict(zip(wanted, map(str, given), strict=True))


def _bad_name(name: str, key: str) -> NetworkError:
    return NetworkError(
        "BAD_NAME",
        f"{name!r:.60} cannot be a name here: expected a letter, then letters, digits or _, up"
        " to 100",
        where=f"key {key}",
    )
