"""Networks without superboxes: ordinary boxes in place of their instances.

`flattened` puts ordinary boxes in place of instances. A box `across` inside the instance `north`
is called `north/across`, in statistics and in the state directory too.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from auroral.errors import NetworkError, closest, list_existing
from auroral.ids import ArcId, InnerBoxId
from auroral.network.box import BOXES, Box, class_of, rewired
from auroral.network.positions import InnerBoxOrigin
from auroral.network.substitution import ParameterValue, substituted
from auroral.network.templates import SuperboxInstance, SuperboxTemplate
from auroral.network.types import Schema

if TYPE_CHECKING:
    from auroral.network.network import Network

_LONGEST_NAME = 200
"""Files are called by names, too."""


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
        self._plain.positions = replace(network.positions, inner=self._origins)

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


def box_class(declared: Any, superboxes: Mapping[str, SuperboxTemplate]) -> type[Box]:
    """The class of a box as a file declares it; `superboxes` are what else could stand there."""
    kind = declared.get("box") if isinstance(declared, Mapping) else None
    if kind is None:
        kinds = list_existing([*BOXES, *superboxes])
        raise NetworkError(
            "MISSING_KEY", f"expected `box: kind` and its keys, found {declared!r}; {kinds}"
        )
    if not isinstance(kind, str) or kind not in BOXES:
        raise unknown_box(kind, superboxes).at("key box")
    return class_of(declared, kind)


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
