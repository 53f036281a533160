"""The network document that a catalog keeps: all that was declared, and no secrets."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from auroral.io.identity import defining
from auroral.network.network import Network
from auroral.network.queries import Family, Query

_ADDRESSES = ("servers", "url")
"""Options of sources and sinks that are kept besides those that define the data."""
MOST_QUERIES = 1_000
"""Of more queries only those with a description or tags are kept, and no schemas are listed."""
MOST_ROWS = 1_000
"""A family with more rows of values is not kept."""
_VARIABLE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
_LOGIN = re.compile(r"//([^/@\s]*)@")


def public_document(network: Network) -> dict[str, Any]:
    """The plain data of the network file, superboxes as they were declared, without logins.

    Of sources and sinks stays what defines their data, where they are, and what is a variable of
    the environment, of which only the name is known here. Very many queries are left out, as the
    manifest has them anyway, and so are families with very many rows.
    """
    declared = copy.copy(network.compact or network)
    declared.queries = {
        name: query
        for name, query in declared.queries.items()
        if _is_small(query) and (len(declared.queries) <= MOST_QUERIES or _has_notes(query))
    }
    return without_secrets(declared.document())


def without_secrets(document: dict[str, Any]) -> dict[str, Any]:
    """A network's document, in which sources, sinks and stores keep what may be told; in place.

    >>> source = {"format": "kafka", "topic": "t", "servers": "a", "password": "x"}
    >>> without_secrets({"streams": {"s": {"source": source}}})
    {'streams': {'s': {'source': {'format': 'kafka', 'topic': 't', 'servers': 'a'}}}}
    """
    for section in ("streams", "outputs", "views", "tables", "connection_points"):
        for entry in document.get(section, {}).values():
            if isinstance(entry, dict):
                _conceal_logins(entry)
    return document


def public_entity(described: Mapping[str, Any]) -> dict[str, Any]:
    """What `Engine.describe` tells of something, without logins."""
    found = dict(described)
    _conceal_logins(found)
    if isinstance(found.get("output"), Mapping):
        found["output"] = dict(found["output"])
        _conceal_logins(found["output"])
    return found


def _conceal_logins(entry: dict[str, Any]) -> None:
    """Let a declaration keep of its source, sink and store only what may be told."""
    for key in ("source", "sink"):
        given = entry.get(key)
        if isinstance(given, list):
            entry[key] = [_public(one) if isinstance(one, Mapping) else one for one in given]
        elif isinstance(given, Mapping):
            entry[key] = _public(given)
    if isinstance(entry.get("store"), str):
        entry["store"] = without_login(entry["store"])


def _is_small(query: Query) -> bool:
    values = query.values if isinstance(query, Family) else ""
    return isinstance(values, str) or len(values) <= MOST_ROWS


def _has_notes(query: Query) -> bool:
    return query.description is not None or bool(query.tags)


def _public(spec: Mapping[str, Any]) -> dict[str, Any]:
    kept = defining(spec)
    return {
        key: without_login(value) if isinstance(value, str) else value
        for key, value in spec.items()
        if key in kept or key in _ADDRESSES or _is_variable(value)
    }


def _is_variable(value: Any) -> bool:
    return isinstance(value, str) and _VARIABLE.fullmatch(value) is not None


def without_login(address: str) -> str:
    """An address without user, password and options, unless they are variables.

    >>> without_login("postgresql://me:secret@host/db?password=x#t")
    'postgresql://host/db#t'
    >>> without_login("jdbc:postgresql://me@host/db"), without_login("pg://${USER}:${PASS}@host")
    ('jdbc:postgresql://host/db', 'pg://${USER}:${PASS}@host')
    """
    if "://" not in address:
        return address
    whole = urlsplit(address)
    if whole.query:
        address = whole._replace(query="").geturl()

    def login(found: re.Match[str]) -> str:
        left = _VARIABLE.sub("", found[1]).strip(":")
        return "//" if left else found[0]

    return _LOGIN.sub(login, address)
