"""The palette: what a network can be built of, in one sentence each, with an example that runs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel
from ruamel.yaml import YAML

from auroral.network.box import BOXES, VARIANTS, Box, OneInput
from auroral.network.declarations import (
    ConnectionPoint,
    Group,
    Output,
    Stream,
    Table,
    ViewDeclaration,
)
from auroral.network.network import Network
from auroral.network.queries import Query
from auroral.server.models import FunctionInfo, PaletteEntry, PaletteExample
from auroral.server.wire_rows import json_value
from auroral.sql.aggregates.functions import AGGREGATE_FUNCTIONS
from auroral.sql.functions.catalogue import CATALOGUE
from auroral.testing import run

_FILE = Path(__file__).with_name("palette.yaml")
_DECLARATIONS: Mapping[str, type[BaseModel]] = {
    "stream": Stream,
    "table": Table,
    "output": Output,
    "query": Query,
    "connection_point": ConnectionPoint,
    "view": ViewDeclaration,
    "group": Group,
}
_READS_ONE = ("output", "connection_point", "view")
_REFERENCES = re.compile(r"\s*\[\d[^\]]*\]")
"""Sections of papers, as docstrings name them."""

Inputs = Literal["none", "one", "two", "many"]


@cache
def palette() -> tuple[PaletteEntry, ...]:
    """Every kind of box, and the other declarations that a canvas shows."""
    described: dict[str, Any] = YAML(typ="safe").load(_FILE)
    return tuple(_entry(kind, about) for kind, about in described.items())


def box_kinds() -> dict[str, type[Box]]:
    """Every kind of box that a file can declare."""
    return BOXES | {box.kind: box for box in VARIANTS.values()}


def _entry(kind: str, about: Mapping[str, Any]) -> PaletteEntry:
    box = box_kinds().get(kind)
    cls = box or _DECLARATIONS[kind]
    example = about["example"]
    network = Network.parse(example["network"])
    network.imports = True
    return PaletteEntry(
        kind=kind,
        section=about.get("section", "boxes"),
        summary=_summary(cls),
        telling=about["telling"],
        inputs=_inputs(kind, box),
        ports=_ports(network, kind) if box is not None else [],
        example=PaletteExample(
            network=example["network"], in_=example["in"], out=_results(network, example)
        ),
        starter={**({"box": box.model_fields["box"].default} if box else {}), **about["starter"]},
    )


def _summary(cls: type[BaseModel]) -> str:
    """The first sentence of a docstring."""
    first = (cls.__doc__ or "").strip().splitlines()[0]
    sentence = _REFERENCES.sub("", first).partition(". ")[0]
    return f"{sentence.rstrip('.')}."


def _inputs(kind: str, box: type[Box] | None) -> Inputs:
    if box is None:
        return "one" if kind in _READS_ONE else "many" if kind == "query" else "none"
    if issubclass(box, OneInput):
        return "one"
    return "many" if kind == "union" else "two"


def _ports(network: Network, kind: str) -> list[str]:
    """The ports of the box of a kind in an example; the main one is empty."""
    name = next(name for name, box in network.boxes.items() if box.kind == kind)
    return [arc.port for arc in network.check().outputs_of(name)]


def _results(network: Network, example: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = run(network, example["in"])
    rows = found.table(example["table"]) if "table" in example else found[example["out"]]
    plain: list[dict[str, Any]] = json_value(rows)
    return plain


def functions(network: Network) -> list[FunctionInfo]:
    """The functions that expressions and windows may call, and those that the network declares."""
    found = [
        FunctionInfo(name=name, kind="scalar", signature=_signature(name, one.least, one.most))
        for name, one in sorted(CATALOGUE.items())
        if re.fullmatch(r"[a-z_][a-z0-9_]*", name)
    ]
    found += [
        FunctionInfo(name=name, kind="aggregate", signature=f"{name}(…)")
        for name in sorted(AGGREGATE_FUNCTIONS)
    ]
    for name, declared in network.functions.items():
        arguments = ", ".join(declared.args or ("…",))
        returns = f" {declared.returns}" if declared.returns else ""
        found.append(
            FunctionInfo(name=name, kind="python", signature=f"{name}({arguments}){returns}")
        )
    return found


def _signature(name: str, least: int, most: int | None) -> str:
    """How a function is called.

    >>> _signature("round", 1, 2), _signature("concat", 1, None)
    ('round(a[, b])', 'concat(a, …)')
    """
    letters = [chr(ord("a") + at) for at in range(least if most is None else most)]
    shown = ", ".join(letters[:least])
    if most is None:
        return f"{name}({shown}, …)" if shown else f"{name}(…)"
    for letter in letters[least:]:
        shown += f"[, {letter}]" if shown else f"[{letter}]"
    return f"{name}({shown})"
