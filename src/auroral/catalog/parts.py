"""Parts of networks: taken out with all that they need, and put into other networks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from auroral.errors import NetworkError, UsageError, closest, list_existing
from auroral.ids import ArcId, InnerBoxId
from auroral.network.positions import KINDS
from auroral.sql.queries.from_clause import FromSource, arc_name
from auroral.sql.queries.queries import read_query

Document = Mapping[str, Any]
Parts = dict[str, dict[str, Any]]
_SHARED = ("functions", "streams", "tables", "superboxes")
"""Sections of which another network may have the same entry, to be used by both."""
_FIXED = ("functions", "tables")
"""Sections whose names stand in expressions and SQL of boxes; they are never renamed."""
_SECTIONS = tuple(KINDS)
_WORD = re.compile(r"\w+")


def part_of(document: Document, names: Iterable[str]) -> dict[str, Any]:
    """The network of some entities and all that these need: what feeds them, tables, functions.

    >>> boxes = {"b": {"box": "filter", "input": "s"}, "c": {"box": "filter", "input": "t"}}
    >>> net = {"network": "n", "streams": {"s": {}, "t": {}}, "boxes": boxes}
    >>> part_of(net, ["b"])
    {'network': 'n', 'streams': {'s': {}}, 'boxes': {'b': {'box': 'filter', 'input': 's'}}}
    """
    wanted = [_named(document, name) for name in names]
    pending = [key for keys in wanted for key in keys]
    found: set[tuple[str, str]] = set()
    while pending:
        key = pending.pop()
        if key not in found:
            found.add(key)
            pending += _needed(document, *key)
    part: dict[str, Any] = {"network": document["network"]}
    for section in _SECTIONS:
        own = {n: e for n, e in document.get(section, {}).items() if (section, n) in found}
        if own:
            part[section] = own
    return part


def _named(document: Document, name: str) -> list[tuple[str, str]]:
    found = [(section, name) for section in _SECTIONS if name in document.get(section, {})]
    if not found:
        names = [other for section in _SECTIONS for other in document.get(section, {})]
        raise UsageError(
            "UNKNOWN_ENTITY",
            f"there is no {name}; {list_existing(dict.fromkeys(names))}",
            hint=closest(name, names),
        )
    return found


def _needed(document: Document, section: str, name: str) -> Iterator[tuple[str, str]]:
    """What an entity names: arcs, members, its superbox, tables and functions."""
    entry = document[section][name]
    producers = [InnerBoxId.outermost(ArcId.parse(arc).producer) for arc in _arcs(section, entry)]
    for producer in producers:
        for other in ("streams", "tables", "boxes", "queries", "connection_points", "views"):
            if producer in document.get(other, {}):
                yield other, producer
    if section == "groups":
        for member in _members(entry):
            for other in ("boxes", "groups"):
                if InnerBoxId.outermost(member) in document.get(other, {}):
                    yield other, InnerBoxId.outermost(member)
                    break
    words = set(_words(entry))
    kinds = {entry["box"]} if section == "boxes" else set()
    if section == "superboxes":
        kinds = {box["box"] for box in entry["boxes"].values()}
    yield from (("superboxes", kind) for kind in kinds if kind in document.get("superboxes", {}))
    for other in _FIXED:  # whoever merely says the word gets one more: it does no harm
        yield from ((other, one) for one in document.get(other, {}) if one.lower() in words)


def _arcs(section: str, entry: Any) -> list[str]:
    """The arcs that an entity reads."""
    if section == "queries":
        return [arc_name(piece) for source in _sources(_sql(entry)) for piece in source.arcs]
    if section == "boxes":
        inputs = entry.get("inputs", [])
        found = [*(inputs.values() if isinstance(inputs, Mapping) else inputs)]
        return [*found, *([entry["input"]] if "input" in entry else [])]
    key = {"outputs": "from", "views": "from", "connection_points": "on"}.get(section)
    return [entry[key]] if key is not None and key in entry else []


def _sql(entry: Any) -> str:
    return str(entry if isinstance(entry, str) else entry["sql"])


def _sources(sql: str) -> tuple[FromSource, ...]:
    with suppress(NetworkError):
        return read_query(sql).sources
    return ()


def _members(entry: Any) -> list[str]:
    return list(entry["members"] if isinstance(entry, Mapping) else entry)


def _words(node: Any) -> Iterator[str]:
    """The words of all texts in plain data, in lower case."""
    if isinstance(node, str):
        yield from (word.lower() for word in _WORD.findall(node))
    elif isinstance(node, Mapping):
        for part in node.values():
            yield from _words(part)
    elif isinstance(node, list | tuple):
        for part in node:
            yield from _words(part)


def merged(document: Document, part: Document, prefix: str = "") -> Parts:
    """What has to be added to a network so that it has a part, by section and name.

    Functions, streams, tables and superboxes that the network has already, declared in the same
    way, are used by both. Everything else gets the prefix; without one, a name that is taken is
    refused.
    """
    names = {key: _new_name(document, *key, part, prefix) for key in _entries(part)}
    found: Parts = {}
    for (section, name), new in names.items():
        entry = part[section][name]
        if new == name and section in _SHARED and document.get(section, {}).get(name) == entry:
            continue
        _require_free(document, section, new, prefix)
        found.setdefault(section, {})[new] = _renamed(section, entry, names)
    return found


def _entries(part: Document) -> Iterator[tuple[str, str]]:
    for section in _SECTIONS:
        yield from ((section, name) for name in part.get(section, {}))


def _new_name(document: Document, section: str, name: str, part: Document, prefix: str) -> str:
    same = document.get(section, {}).get(name) == part[section][name]
    return name if section in _FIXED or (section in _SHARED and same) else f"{prefix}{name}"


def _require_free(document: Document, section: str, name: str, prefix: str) -> None:
    own = ("functions", "superboxes", "groups", "outputs")
    others = (section,) if section in own else tuple(s for s in _SECTIONS if s not in own)
    taken = next((other for other in others if name in document.get(other, {})), None)
    if taken is None:
        return
    hint = "give another prefix" if prefix else "give a --prefix for the names of the part"
    if section in _FIXED:
        hint = f"the two {section} differ; rename one of them in its file"
    raise NetworkError(
        "DUPLICATE_NAME",
        f"the network has a {KINDS[taken]} {name} already, declared otherwise",
        hint=hint,
    )


def _renamed(section: str, entry: Any, names: Mapping[tuple[str, str], str]) -> Any:
    """An entry that reads what the names it says have become."""
    kinds = {old: new for (of, old), new in names.items() if of == "superboxes"}
    arcs = {
        old: new
        for (of, old), new in names.items()
        if of in ("streams", "tables", "boxes", "queries", "connection_points", "views")
    }
    if section == "queries":
        sql = _renamed_query(_sql(entry), arcs)
        return sql if isinstance(entry, str) else {**entry, "sql": sql}
    if section == "groups":
        groups = {old: new for (of, old), new in names.items() if of == "groups"}
        members = [_renamed_arc(member, {**groups, **arcs}) for member in _members(entry)]
        return members if not isinstance(entry, Mapping) else {**entry, "members": members}
    if section == "superboxes":
        boxes = {
            name: {**box, "box": kinds.get(box["box"], box["box"])}
            for name, box in entry["boxes"].items()
        }
        return {**entry, "boxes": boxes}
    changed = dict(entry)
    if section == "boxes":
        changed["box"] = kinds.get(entry["box"], entry["box"])
        if "input" in entry:
            changed["input"] = _renamed_arc(entry["input"], arcs)
        inputs = entry.get("inputs")
        if isinstance(inputs, Mapping):
            changed["inputs"] = {key: _renamed_arc(arc, arcs) for key, arc in inputs.items()}
        elif inputs is not None:
            changed["inputs"] = [_renamed_arc(arc, arcs) for arc in inputs]
    key = {"outputs": "from", "views": "from", "connection_points": "on"}.get(section)
    if key is not None and key in entry:
        changed[key] = _renamed_arc(entry[key], arcs)
    return changed


def _renamed_arc(arc: str, names: Mapping[str, str]) -> str:
    """An arc of something that has another name now, its port and inner box as before."""
    name = InnerBoxId.outermost(ArcId.parse(arc).producer)
    return names.get(name, name) + arc[len(name) :]


def _quoted(name: str) -> str:
    """A name as SQL takes it; those of boxes inside of superboxes need quotes."""
    return f"`{name}`" if InnerBoxId.parse(name) is not None else name


def _renamed_query(sql: str, names: Mapping[str, str]) -> str:
    """A query over arcs that have other names now; the query calls them as before.

    >>> _renamed_query("SELECT s.x FROM s WHERE s.x > 1", {"s": "my_s"})
    'SELECT s.x FROM my_s AS s WHERE s.x > 1'
    """
    pieces = []
    for source in _sources(sql):
        for number, piece in enumerate(source.arcs):
            old = arc_name(piece)
            new = _renamed_arc(old, names)
            if new != old:
                text = _quoted(new)
                alone = source.alias is None and len(source.arcs) == 1 and number == 0
                named = f"{text} AS {_quoted(str(source.name))}"
                pieces.append((piece, named if alone else text))
    for piece, text in reversed(pieces):
        sql = sql[: piece.start] + text + sql[piece.end :]
    return sql
