"""Reusable superboxes: templates with parameters, and their instances, which look like boxes.

`flattened` puts ordinary boxes in place of instances. A box `across` inside the instance `north`
is called `north/across`, in statistics and in the state directory too.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, Field, PlainSerializer, PlainValidator, StrictStr
from pydantic import WithJsonSchema as Published

from auroral.errors import NetworkError, closest, list_existing
from auroral.ids import ArcId, InnerBoxId
from auroral.network.box import BOXES, Box, rewired
from auroral.network.declarations import NOTES, Declaration, Described, Placed
from auroral.network.positions import InnerBoxOrigin
from auroral.network.substitution import (
    ParameterType,
    ParameterValue,
    fitted,
    references,
    substituted,
)
from auroral.network.types import Schema

if TYPE_CHECKING:
    from auroral.network.network import Network

DEFAULT_OUTPUT = "out"
"""The output that the arc named like the instance is, where there are several."""
_RESERVED = ("box", "input", "inputs", "parameters", "on_change", *NOTES)
"""Keys of instances that cannot be parameters."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,99}")
_LONGEST_NAME = 200
"""Files are called by names, too."""
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


def flattened(network: Network) -> Network:
    """The same network with ordinary boxes in place of instances of superboxes."""
    if not network.instances:
        return network
    expansion = _Expansion(network)
    for name, instance in network.instances.items():
        expansion.add(name, instance, ())
    return expansion.network()


class _Expansion:
    """Boxes in place of instances, on the way."""

    def __init__(self, network: Network):
        self._declared = network
        self._boxes: dict[str, Box] = {}
        self._aliases: dict[str, str] = {}
        self._origins: dict[str, InnerBoxOrigin] = {}
        self._required: dict[str, list[RequiredFields]] = {}
        self._plain = copy.copy(network)
        self._plain.compact = network
        self._plain.instances, self._plain.superboxes = {}, {}
        self._plain.use_positions(replace(network.positions, inner=self._origins))

    def add(self, name: str, instance: SuperboxInstance, within: tuple[str, ...]) -> None:
        """Expand an instance; `within` are the superboxes that it stands in."""
        try:
            self._add(name, instance, within)
        except NetworkError as error:
            if error.where and not error.where.startswith("key "):
                raise
            raise self._plain.locate(error, "boxes", name) from None

    def _add(self, name: str, instance: SuperboxInstance, within: tuple[str, ...]) -> None:
        if instance.box in within:
            loop = " → ".join([*within[within.index(instance.box) :], instance.box])
            raise NetworkError("CYCLE", f"a superbox cannot contain itself: {loop}")
        template = self._declared.superboxes[instance.box]
        values = template.values(instance.parameters)
        given = instance.arcs(template)
        for key, arc in given.items():
            self._require_known(name, instance, key, arc)
            if (wanted := template.inputs[key]) is not None:
                self._required.setdefault(name, []).append(RequiredFields(arc, key, wanted))
        for inner, declared in template.boxes.items():
            box = str(InnerBoxId(name, inner))
            if len(box) > _LONGEST_NAME:
                problem = f"{box:.60}… is longer than {_LONGEST_NAME} letters"
                raise NetworkError("BAD_NAME", problem, hint="use shorter names, or nest less")
            self._origins[box] = InnerBoxOrigin(instance.box, inner, name)
            self._box(box, declared, template, values, given, (*within, instance.box))
        for port, arc in template.outputs.items():
            meant = given.get(arc) or f"{name}/{arc}"
            self._aliases[str(ArcId(name, port))] = meant
            if port == template.default_output:
                self._aliases[name] = meant

    def _box(
        self,
        name: str,
        declared: Mapping[str, Any],
        template: SuperboxTemplate,
        values: Mapping[str, ParameterValue],
        given: Mapping[str, str],
        within: tuple[str, ...],
    ) -> None:
        plain, nested = self._plain, declared["box"] in self._declared.superboxes
        try:
            own = substituted(declared, values, instance=nested)
        except NetworkError as error:
            raise plain.locate(error, "boxes", name) from None
        read = own.get("inputs")

        def meant(arc: Any, key: str = "inputs") -> Any:
            return self._meant(arc, name, key, template, given)

        if "input" in own:
            own["input"] = meant(own["input"], "input")
        if isinstance(read, Mapping):
            own["inputs"] = {key: meant(arc) for key, arc in read.items()}
        elif isinstance(read, list | tuple):
            own["inputs"] = [meant(arc) for arc in read]
        if nested:
            self.add(name, plain.declared_instance(own, ("boxes", name)), within)
        else:
            kinds = self._declared.superboxes
            self._boxes[name] = plain.declared_box(own, ("boxes", name), kinds)

    def _meant(
        self, arc: Any, name: str, key: str, template: SuperboxTemplate, given: Mapping[str, str]
    ) -> Any:
        """The arc of the network that a box of a superbox reads under a name."""
        if not isinstance(arc, str):
            return arc
        inner = InnerBoxId.parse(name)
        assert inner is not None
        if arc in given:
            return given[arc]
        if ArcId.parse(arc).producer in template.boxes:
            return f"{inner.instance}/{arc}"
        if arc in self._declared.tables:
            return arc
        raise self._plain.locate(template.unknown_arc(arc), "boxes", name, key)

    def _require_known(self, name: str, instance: SuperboxInstance, key: str, arc: str) -> None:
        """Refuse an input that nothing of this name feeds; ports are checked with the boxes."""
        network, producer = self._declared, ArcId.parse(arc).producer
        if InnerBoxId.parse(producer) is not None:
            return  # in a superbox: its own boxes were looked up, or an instance is read
        kinds = (network.streams, network.boxes, network.instances, network.tables)
        if any(producer in kind for kind in kinds):
            return
        names = [name for kind in kinds for name in kind]
        raise NetworkError(
            "UNKNOWN_ARC",
            f"there is no arc {arc} for the input {key} of {name}; {list_existing(names)}",
            where="key input" if instance.input is not None else "key inputs",
            hint=closest(arc, names),
        )

    def network(self) -> Network:
        """The network of ordinary boxes."""
        plain, declared = self._plain, self._declared
        aliases = {name: self._resolved(name) for name in self._aliases}
        every = {**declared.boxes, **self._boxes}
        plain.boxes = {
            name: rewired(box, [aliases.get(arc, arc) for arc in box.sources()])
            if any(arc in aliases for arc in box.sources())
            else box
            for name, box in every.items()
        }
        plain.outputs = {
            name: output.model_copy(update={"from_": aliases[output.from_]})
            if output.from_ in aliases
            else output
            for name, output in declared.outputs.items()
        }
        plain.connection_points = {
            name: point.model_copy(update={"on": aliases[point.on]})
            if point.on in aliases
            else point
            for name, point in declared.connection_points.items()
        }
        plain.aliases = aliases
        plain.required_fields = {
            name: tuple(replace(one, arc=aliases.get(one.arc, one.arc)) for one in required)
            for name, required in self._required.items()
        }
        return plain

    def _resolved(self, name: str) -> str:
        """The arc behind an output of an instance, however many lie between."""
        seen: list[str] = []
        while name in self._aliases:
            if name in seen:
                raise NetworkError(
                    "CYCLE",
                    f"superboxes feed each other in a circle: {' ← '.join([*seen, name])}",
                    where=self._plain.place("boxes", ArcId.parse(seen[0]).producer),
                )
            seen.append(name)
            name = self._aliases[name]
        return name


@dataclass(frozen=True)
class RequiredFields:
    """Fields that an arc must have because an input of a superbox declares them."""

    arc: str
    input: str
    schema: Schema

    def require(self, found: Schema) -> None:
        """Refuse an arc that lacks one of them."""
        for field in self.schema.fields:
            if field.name not in found or found.field(field.name).type != field.type:
                raise NetworkError(
                    "SCHEMA_MISMATCH",
                    f"the input {self.input} needs the field {field.name} {field.type}, but"
                    f" {self.arc} has {found}",
                )


def require_fields(network: Network, box: str, schema_of: Callable[[str], Schema | None]) -> None:
    """Refuse arcs that lack fields which inputs of the superboxes around a box declare."""
    inner = InnerBoxId.parse(box)
    while inner is not None:
        for required in network.required_fields.get(inner.instance, ()):
            found = schema_of(required.arc)
            try:
                if found is not None:
                    required.require(found)
            except NetworkError as error:
                raise network.locate(error, "boxes", inner.instance) from None
        inner = InnerBoxId.parse(inner.instance)


def check_templates(network: Network) -> None:
    """Refuse superboxes of boxes that do not exist, and those that contain themselves."""
    uses: dict[str, list[str]] = {}
    for name, template in network.superboxes.items():
        for box, declared in template.boxes.items():
            kind = str(declared["box"])
            if kind in network.superboxes:
                uses.setdefault(name, []).append(kind)
            elif kind not in BOXES:
                raise unknown_box(kind, network.superboxes).at(
                    network.place("superboxes", name, "boxes", box, "box")
                )
    loop = find_cycle(uses)
    if loop is not None:
        raise NetworkError(
            "CYCLE",
            f"a superbox cannot contain itself: {' → '.join(loop)}",
            where=network.place("superboxes", loop[0]),
        )


def unknown_box(kind: Any, superboxes: Mapping[str, SuperboxTemplate]) -> NetworkError:
    """What is said of a kind of box that does not exist."""
    kinds = [*BOXES, *superboxes]
    return NetworkError(
        "UNKNOWN_BOX",
        f"there is no box {kind}; {list_existing(kinds)}",
        hint=closest(str(kind), kinds),
    )


def find_cycle(uses: Mapping[str, Sequence[str]]) -> list[str] | None:
    """Names that lead back to the first of them, or None.

    >>> find_cycle({"a": ["b"], "b": ["c", "a"]}), find_cycle({"a": ["b", "b"]})
    (['a', 'b', 'a'], None)
    """
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> list[str] | None:
        if name in path:
            return [*path[path.index(name) :], name]
        if name in done:
            return None
        for used in uses.get(name, ()):
            if (loop := visit(used, (*path, name))) is not None:
                return loop
        done.add(name)
        return None

    return next((loop for name in uses if (loop := visit(name, ())) is not None), None)


def upstream_of(network: Network, name: str) -> Network:
    """The network of one box or instance and those that it rests on; the rest as it is."""
    needed: set[str] = set()
    stack = [name]
    while stack:
        one = stack.pop()
        if one in needed or (one not in network.boxes and one not in network.instances):
            continue
        needed.add(one)
        arcs = _read_by(network, one)
        stack += [InnerBoxId.outermost(ArcId.parse(arc).producer) for arc in arcs]
    part = copy.copy(network)
    part.boxes = {box: found for box, found in network.boxes.items() if box in needed}
    part.instances = {box: found for box, found in network.instances.items() if box in needed}
    return part


def _read_by(network: Network, name: str) -> Sequence[str]:
    if name in network.boxes:
        return network.boxes[name].sources()
    instance = network.instances[name]
    if isinstance(instance.inputs, dict):
        return list(instance.inputs.values())
    return instance.inputs or ([instance.input] if instance.input is not None else [])


def boxes_of(network: Network, names: Sequence[str]) -> list[str]:
    """Boxes of a network without superboxes, those of instances in their place."""
    found: list[str] = []
    for name in names:
        own = [name] if name in network.boxes else []
        found += own or [box for box in network.boxes if box.startswith(f"{name}/")]
    return found


def _bad_name(name: str, key: str) -> NetworkError:
    return NetworkError(
        "BAD_NAME",
        f"{name!r:.60} cannot be a name here: expected a letter, then letters, digits or _, up"
        " to 100",
        where=f"key {key}",
    )
