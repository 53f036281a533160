"""Which expressions are worth timing on real tuples, and how these tuples are made (pure).

Comparisons and arithmetic take about as long as `assumed` says. What calls functions may take a
thousand times as long, and only a trial tells.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from auroral.boxes import Filter, Map, Union
from auroral.errors import AuroralError
from auroral.network.check import CheckedNetwork
from auroral.network.types import Schema
from auroral.optimizer.rules import calls_functions
from auroral.sql.expressions.parser import parse
from auroral.sql.expressions.syntax import Call, Cast, Lambda, Node, free_names, walk

_COMPARING = frozenset(("and", "or", "not", "in", "isnull", "isunknown", "div", "mod"))
"""Words that take no longer than signs do."""


@dataclass(frozen=True)
class ProbeLayer:
    """Fields of a box's output, each computed by an expression over the fields of its input."""

    schema: Schema
    """Of the input."""
    texts: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Probe:
    """The expressions of a box, and how what they read is made of the tuples of a log."""

    box: str
    arc: str
    """The nearest arc before the box whose tuples are written to a log."""
    layers: tuple[ProbeLayer, ...]
    """Maps and unions in between, in flow order. Filters are left out: any tuples will do."""
    schema: Schema
    """Of the box's input."""
    reads: tuple[str, ...]
    texts: tuple[str, ...]


def probes(checked: CheckedNetwork, boxes: Collection[str]) -> Iterator[Probe]:
    """The probes of those among some boxes whose expressions are worth timing.

    Boxes that call Python functions are measured as they run; boxes that read what such a
    function has made are left out, as nobody calls functions only to measure.

    >>> from auroral.network.network import Network
    >>> net = Network("n")
    >>> texts = net.stream("texts", schema="id int, body string")
    >>> hashed = texts.map(keep="*", hash="sha2(body, 256)", name="hashed")
    >>> _ = net.output("o", hashed.filter("hash LIKE '00%'", name="rare"))
    >>> [(probe.box, probe.arc, probe.reads) for probe in probes(net.check(), ["hashed", "rare"])]
    [('hashed', 'texts', ('body',)), ('rare', 'texts', ('hash',))]
    """
    functions = {name.lower() for name in checked.network.functions}
    for name in boxes:
        box = checked.network.boxes[name]
        if isinstance(box, Filter | Map) and not calls_functions(box, functions):
            texts = box.predicates if isinstance(box, Filter) else box.texts
            wanted = tuple(text for text in texts.values() if _is_worth(text))
            (source,) = (arc.name for arc in checked.inputs_of(name))
            arc, layers, made = _made(checked, source, functions)
            reads = {field for text in wanted for field in _reads(text)}
            if wanted and reads <= made.keys():
                found = tuple(made[field] for field in sorted(reads))
                yield Probe(name, arc, layers, checked.arcs[source].schema, found, wanted)


def _made(
    checked: CheckedNetwork, arc: str, functions: Collection[str]
) -> tuple[str, tuple[ProbeLayer, ...], dict[str, str]]:
    """The log that an arc is made of, how, and its fields that can be made, by lower-case name."""
    producer = checked.arcs[arc].producer
    box = checked.network.boxes.get(producer)
    if not isinstance(box, Filter | Map | Union):
        return arc, (), {name.lower(): name for name in checked.arcs[arc].schema.names}
    source = checked.inputs_of(producer)[0]
    log, layers, known = _made(checked, source.name, functions)
    if isinstance(box, Filter):
        return log, layers, known
    if isinstance(box, Union):
        pairs = zip(checked.arcs[arc].schema.names, source.schema.names, strict=True)
        texts = {name: f"`{own}`" for name, own in pairs if own.lower() in known}
    else:
        kept = [name for name in box.kept(source.schema) if name.lower() in known]
        texts = {name: f"`{name}`" for name in kept}
        if not calls_functions(box, functions):
            texts |= {name: how for name, how in box.texts.items() if _reads(how) <= known.keys()}
    made = {name.lower(): name for name in texts}
    return log, (*layers, ProbeLayer(source.schema, tuple(texts.items()))), made


def _is_worth(text: str) -> bool:
    try:
        return any(map(_may_be_slow, walk(parse(text))))
    except (AuroralError, RecursionError):
        return False


def _may_be_slow(node: Node) -> bool:
    if isinstance(node, Call):
        return node.name[0].isalpha() and node.name not in _COMPARING
    return isinstance(node, Cast | Lambda)


def _reads(text: str) -> frozenset[str]:
    """The fields that an expression reads, in lower case."""
    return frozenset(name.lower() for name in free_names(parse(text)))
