"""Commands that look into a network on a server, and ask its history."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from auroral.cli.remote import CaOption, ServerOption, TokenFileOption, TokenOption, connected
from auroral.errors import UsageError


def entities(
    kind: Annotated[
        str | None, typer.Argument(metavar="[KIND]", help="streams, boxes, outputs, queries …")
    ] = None,
    server: ServerOption = None,
    token: TokenOption = None,
    token_file: TokenFileOption = None,
    ca: CaOption = None,
) -> None:
    """List the streams, boxes, outputs and the rest of a network on a server."""
    with connected(server, token, token_file, ca) as client:
        found = client.list_entities()
    if kind is not None and kind not in found:
        raise UsageError("UNKNOWN_ENTITY", f"there is no kind {kind}; there are {', '.join(found)}")
    for section, names in found.items():
        if kind in (None, section):
            for name in names:
                typer.echo(name if kind is not None else f"{section} {name}")


def describe(
    name: Annotated[str, typer.Argument(metavar="NAME", help="a box, stream, output or query")],
    server: ServerOption = None,
    token: TokenOption = None,
    token_file: TokenFileOption = None,
    ca: CaOption = None,
) -> None:
    """Tell what a server knows of a part of its network, as JSON."""
    with connected(server, token, token_file, ca) as client:
        typer.echo(json.dumps(client.describe(name), indent=2, ensure_ascii=False))


def breakpoints(
    add: Annotated[str | None, typer.Option(metavar="ARC", help="set one on this arc")] = None,
    where: Annotated[
        str | None, typer.Option(metavar="SQL", help="only for tuples that satisfy this")
    ] = None,
    remove: Annotated[str | None, typer.Option(metavar="ID", help="forget one")] = None,
    server: ServerOption = None,
    token: TokenOption = None,
    token_file: TokenFileOption = None,
    ca: CaOption = None,
) -> None:
    """List the breakpoints of a network on a server; set or forget one first."""
    if where is not None and add is None:
        raise UsageError("BAD_OPTION", "--where belongs to --add ARC", where="--where")
    with connected(server, token, token_file, ca) as client:
        if remove is not None:
            client.remove_breakpoint(remove)
        if add is not None:
            client.set_breakpoint(add, where)
        found = client.debug_state()["breakpoints"]
    for one in found:
        condition = f" where {one['condition']}" if one["condition"] else ""
        switched = "" if one["enabled"] else ", disabled"
        typer.echo(f"{one['id']} {one['arc']}{condition}: {one['hits']} hits{switched}")


def detach(
    name: Annotated[str, typer.Argument(metavar="NAME", help="an attached query")],
    server: ServerOption = None,
    token: TokenOption = None,
    token_file: TokenFileOption = None,
    ca: CaOption = None,
) -> None:
    """End a query that is attached to a network on a server; its results are dropped."""
    with connected(server, token, token_file, ca) as client:
        client.detach(name)


def replay(
    point: Annotated[str, typer.Argument(metavar="POINT", help="a connection point or view")],
    query: Annotated[
        str | None, typer.Argument(metavar="[SQL]", help="a query over its name; default: all")
    ] = None,
    since: Annotated[str | None, typer.Option(help="the first value of its progress")] = None,
    until: Annotated[str | None, typer.Option(help="the last value of its progress")] = None,
    server: ServerOption = None,
    token: TokenOption = None,
    token_file: TokenFileOption = None,
    ca: CaOption = None,
) -> None:
    """Let kept history of a server flow again; prints the name by which `dequeue` takes it."""
    with connected(server, token, token_file, ca) as client:
        typer.echo(client.replay(point, _value(since), _value(until), query))


def set_qos(
    output: Annotated[str, typer.Argument(metavar="OUTPUT")],
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="graphs as JSON", show_default="those declared"),
    ] = None,
    server: ServerOption = None,
    token: TokenOption = None,
    token_file: TokenFileOption = None,
    ca: CaOption = None,
) -> None:
    """Let a server judge an output by other graphs."""
    try:
        graphs = None if file is None else json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        problem = f"cannot read the graphs: {error}"
        raise UsageError("CANNOT_READ", problem, where=str(file)) from None
    with connected(server, token, token_file, ca) as client:
        client.set_qos(output, graphs)


def _value(text: str | None) -> str | int | float | None:
    """A number if it is one, else the text, which may be a time."""
    try:
        found = None if text is None else json.loads(text)
    except ValueError:
        return text
    return found if isinstance(found, (int, float)) and not isinstance(found, bool) else text
