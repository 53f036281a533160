"""Variables of the environment in a network file: `${NAME}` in sources, sinks, stores and jars.

A network keeps the text as it was written, so that nothing is saved, shown or stored with the
value in it; who opens a source, a sink or a store asks here for what it says now.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from auroral.errors import NetworkError, conceal

if TYPE_CHECKING:
    from auroral.network.network import Network

_VARIABLE = re.compile(r"\$(\$)?\{(?:([A-Za-z_][A-Za-z0-9_]*)\})?")
Place = Callable[..., str]
"""Where the value under some keys stands, in words."""


def sources_of(network: Network, stream: str) -> list[dict[str, Any]]:
    """The declared sources of a stream, with the values of variables."""
    sources = network.streams[stream].sources
    return [
        _resolved(spec, lambda *key: network.place("streams", stream, "source", *key))
        for spec in sources
    ]


def sink_of(network: Network, output: str) -> dict[str, Any] | None:
    """The declared sink of an output, with the values of variables."""
    spec = network.outputs[output].sink
    return spec and _resolved(spec, lambda *key: network.place("outputs", output, "sink", *key))


def store_of(network: Network, table: str) -> str | None:
    """The declared store of a table, with the values of variables."""
    store = network.tables[table].store
    return store and resolved(store, lambda: network.place("tables", table, "store"))


def data_set_of(network: Network, point: str) -> str:
    """The address of a stored data set, with the values of variables."""
    store = network.connection_points[point].store
    assert store is not None
    return resolved(store, lambda: network.place("connection_points", point, "store"))


def has_variables(text: str) -> bool:
    """Whether a text says something else once variables have their values."""
    return _VARIABLE.search(text) is not None


def resolved(text: str, place: Place) -> str:
    """A text with the values of the variables in it; `$${` stands for `${`.

    >>> os.environ["GREETED"] = "world"
    >>> resolved("hello ${GREETED}, $${GREETED}", lambda: "here")
    'hello world, ${GREETED}'
    """

    def value(found: re.Match[str]) -> str:
        escaped, name = found.groups()
        if escaped:
            return found.group()[1:]
        if name is None:
            raise NetworkError(
                "BAD_VARIABLE",
                "expected ${NAME}, a variable of the environment: letters, digits and _",
                where=place(),
                hint="write $${ for the characters ${",
            )
        if name not in os.environ:
            raise NetworkError(
                "UNKNOWN_VARIABLE",
                f"the environment has no variable {name}",
                where=place(),
                hint=f"set it, as in {name}=… auroral run; write $${{ for the characters ${{",
            )
        conceal(os.environ[name], f"${{{name}}}")
        return os.environ[name]

    return _VARIABLE.sub(value, text)


def _resolved(spec: Mapping[str, Any], place: Place) -> dict[str, Any]:
    return {key: _value(value, (key,), place) for key, value in spec.items()}


def _value(value: Any, path: tuple[str, ...], place: Place) -> Any:
    if isinstance(value, str):
        return resolved(value, lambda: place(*path))
    if isinstance(value, Mapping):
        return {key: _value(part, (*path, str(key)), place) for key, part in value.items()}
    return value
