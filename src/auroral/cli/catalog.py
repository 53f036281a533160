"""`auroral catalog`: what a state directory knows of its network, as YAML or JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap

from auroral.catalog import merged, part_of, read_catalog
from auroral.errors import UsageError
from auroral.network.network import Network
from auroral.network.yaml_text import yaml_text

app = typer.Typer(
    help="List, describe, export and import what networks are made of.", no_args_is_help=True
)
State = Annotated[Path, typer.Argument(metavar="STATE", help="the state directory")]
Json = Annotated[bool, typer.Option("--json", help="print JSON")]


@app.command("list")
def list_entities(
    state: State,
    as_json: Json = False,
    as_yaml: Annotated[bool, typer.Option("--yaml", help="print YAML")] = False,
    kind: Annotated[str | None, typer.Option(help="one kind only, such as box")] = None,
) -> None:
    """List the entities of a network that runs or ran, with counts, cost and selectivity."""
    found = [one for one in read_catalog(state).listed() if kind in (None, one["kind"])]
    if as_json or as_yaml:
        _print({"entities": found} if as_yaml else found, as_json=as_json)
        return
    width = max((len(f"{one['kind']} {one['name']}") for one in found), default=0)
    for one in found:
        typer.echo(f"{one['kind'] + ' ' + one['name']:<{width}}  {_line(one)}".rstrip())


@app.command()
def describe(
    state: State,
    name: Annotated[str, typer.Argument(metavar="NAME", help="a box, stream, query, …")],
    as_json: Json = False,
) -> None:
    """Show all that is known under a name: declaration, schema, counts, progress and cost."""
    found = read_catalog(state).described(name)
    if as_json:
        _print(found, as_json=True)
        return
    for number, one in enumerate(found):
        typer.echo("---\n" if number else "", nl=False)  # an output may be called like a box
        _print(one, as_json=False)


@app.command("export")
def export_network(
    source: Annotated[Path, typer.Argument(metavar="STATE|FILE", help="a state or a network")],
    only: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="these (by commas) with all that they need"),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="write to a file")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write the network of a state directory, or a part of it, as a network file."""
    if source.is_dir():
        catalog = read_catalog(source)
        document = catalog.document()
        for name in catalog.not_exported():
            problem = "the catalog does not hold its rows"
            typer.echo(f"note: the family {name} is left out: {problem}", err=True)
    else:
        document = Network.load(source).document()
    if only is not None:
        names = [name.strip() for name in only.split(",") if name.strip()]
        document = part_of(document, names)
    if output is None:
        _print(document, as_json=as_json)
    else:
        _write(output, _text(document, as_json=as_json or output.suffix.lower() == ".json"))


@app.command("import")
def import_part(
    part: Annotated[Path, typer.Argument(metavar="PART", help="a network file, or a part of one")],
    into: Annotated[Path, typer.Option(metavar="NETWORK", help="the network file to add it to")],
    prefix: Annotated[str, typer.Option(help="put before the names of the part")] = "",
) -> None:
    """Add a part of one network to the file of another; comments of that file stay."""
    document = Network.load(into).document()
    added = merged(document, Network.load(part).document(), prefix)
    whole = {
        **document,
        **{section: {**document.get(section, {}), **own} for section, own in added.items()},
    }
    Network.parse(whole, directory=into.absolute().parent).check()
    if into.suffix.lower() == ".json":
        _write(into, _text(whole, as_json=True))
    else:
        _write(into, _with_entries(into, added))
    for section, own in added.items():
        typer.echo(f"{section}: {', '.join(own)}")


def _with_entries(path: Path, added: Mapping[str, Mapping[str, Any]]) -> str:
    """The text of a network file with more entries; what was there stays as it was written."""
    yaml = YAML(typ="rt")
    yaml.preserve_quotes = True
    yaml.width = 10_000
    document = yaml.load(path.read_text(encoding="utf-8-sig"))
    lines = yaml_text(added)
    fresh = YAML(typ="rt").load(lines) if added else CommentedMap()
    for section, own in fresh.items():
        if not isinstance(document.get(section), CommentedMap):
            document[section] = own
            continue
        for name, entry in own.items():
            document[section][name] = entry
    text = _StringTarget()
    yaml.dump(document, text)
    return text.text


class _StringTarget:
    """What a document is written to."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, part: str | bytes) -> None:
        self.text += part.decode() if isinstance(part, bytes) else part


def _line(one: Mapping[str, Any]) -> str:
    parts = []
    if "schema" in one:
        parts.append(", ".join(f"{name} {type}" for name, type in one["schema"].items()))
    if "tuples" in one:
        parts.append(f"{one['tuples']:,} tuples")
    if "cost_s" in one:
        parts.append(
            f"{one['cost_s'] * 1e6:.3g} µs per tuple, {one['call_s'] * 1e3:.3g} ms per call"
        )
    if "selectivity" in one:
        parts.append(f"selectivity {one['selectivity']:.3g}")
    return "; ".join(parts)


def _print(document: Any, *, as_json: bool) -> None:
    typer.echo(_text(document, as_json=as_json), nl=False)


def _text(document: Any, *, as_json: bool) -> str:
    if as_json:
        return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    return yaml_text(document)


def _write(path: Path, text: str) -> None:
    """Put a text in place of a file, whole or not at all."""
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8", newline="\n")
        os.replace(temporary, path)
    except OSError as error:
        problem = f"cannot write the network file: {error.strerror}"
        raise UsageError("CANNOT_WRITE", problem, where=str(path)) from None
