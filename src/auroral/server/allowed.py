"""What a network from the wire may name: modules, files, variables and jars.

What the file at the start names is allowed, and what the person who starts the server adds to it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from auroral.errors import DocumentPlace, NetworkError, list_existing
from auroral.network.function import Function
from auroral.network.network import Network
from auroral.network.queries import Family

_VARIABLE = re.compile(r"(?<!\$)\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SCHEMES = ("sqlite:///", "parquet:", "csv:", "file://", "file:")
_LOCAL = re.compile(r"^(/|~|\.\.?/|file:|[A-Za-z]:[\\/])")
"""Options of any source or sink that look like this are paths, whatever their name."""
_TABLE = re.compile(r"#[^#]*$")
"""What the address of a table has behind the file."""


@dataclass(frozen=True)
class NamedPath:
    """A path that a network names, and where it stands."""

    path: str
    place: DocumentPlace


def modules_of(network: Network) -> set[str]:
    """The modules of the Python functions of a network."""
    boxes = network.flattened().boxes.values()
    functions = [*network.functions.values(), *(f for box in boxes for f in box.functions())]
    return {module for one in functions if (module := _module(one)) is not None}


def _module(function: Function) -> str | None:
    return function.udf.partition(":")[0] if isinstance(function.udf, str) else None


def paths_of(network: Network) -> Iterator[NamedPath]:
    """The files and directories that sources, sinks, stores and families of a network name."""
    for name, stream in network.streams.items():
        for spec in stream.sources:
            yield from _in_options(spec, network.place("streams", name, "source"))
    for name, output in network.outputs.items():
        if output.sink:
            yield from _in_options(output.sink, network.place("outputs", name, "sink"))
    for name, table in network.tables.items():
        if table.store is not None:
            yield from _in_address(table.store, network.place("tables", name, "store"))
    for name, point in network.connection_points.items():
        if point.store is not None:
            yield from _in_address(point.store, network.place("connection_points", name, "store"))
    for name, query in network.queries.items():
        if isinstance(query, Family) and isinstance(query.values, str):
            yield NamedPath(query.values, network.place("queries", name, "values"))


def _in_options(spec: Mapping[str, Any], place: DocumentPlace) -> Iterator[NamedPath]:
    for key, value in spec.items():
        if isinstance(value, Mapping):
            yield from _in_options(value, place)
        elif isinstance(value, str) and (key.lower() == "path" or _LOCAL.match(value)):
            yield NamedPath(value, DocumentPlace(place, (*place.path, key)))


def _in_address(address: str, place: DocumentPlace) -> Iterator[NamedPath]:
    for scheme in _SCHEMES:
        if address.startswith(scheme):
            yield NamedPath(_TABLE.sub("", address.removeprefix(scheme)), place)
            return


def variables_of(document: Any) -> set[str]:
    """The variables of the environment that a document names.

    >>> sorted(variables_of({"a": ["${HOME}/x", "$${NOT}"], "b": {"c": "${B}"}}))
    ['B', 'HOME']
    """
    if isinstance(document, str):
        return set(_VARIABLE.findall(document))
    if isinstance(document, Mapping):
        return set().union(*map(variables_of, document.values()))
    if isinstance(document, (list, tuple)):
        return set().union(*map(variables_of, document))
    return set()


@dataclass(frozen=True)
class AllowedReferences:
    """What networks from the wire may name."""

    modules: frozenset[str]
    roots: tuple[Path, ...]
    paths: frozenset[Path]
    variables: frozenset[str]
    jars: frozenset[str]

    @classmethod
    def of(
        cls, network: Network, modules: Collection[str] = (), roots: Collection[Path] = ()
    ) -> AllowedReferences:
        """What a network names itself, more modules, and all below some directories."""
        directory = network.directory or Path()
        return cls(
            frozenset((*modules_of(network), *modules)),
            tuple(root.resolve() for root in (directory, *roots)),
            frozenset(_resolved(named.path, directory) for named in paths_of(network)),
            frozenset(variables_of(_referring(network))),
            frozenset(network.engine.jars),
        )

    def mistakes(self, network: Network) -> Iterator[NetworkError]:
        """What a network names and may not, each at its place."""
        yield from self._modules(network)
        for named in paths_of(network):
            if not self._may_use(named.path, network.directory or Path()):
                yield NetworkError(
                    "PATH_NOT_ALLOWED",
                    f"{named.path} is not below the directory of the network file",
                    where=named.place,
                    hint="start the server with --allow-path DIR",
                )
        found = variables_of(_referring(network)) - self.variables
        for name in sorted(found):
            yield NetworkError(
                "VARIABLE_NOT_ALLOWED",
                f"the network file at the start did not name the variable {name};"
                f" {list_existing(self.variables)}",
            )
        for jar in network.engine.jars:
            if jar not in self.jars:
                yield NetworkError(
                    "PATH_NOT_ALLOWED",
                    f"the network file at the start did not name the jar {jar}",
                    where=network.place("engine", "jars"),
                )

    def _modules(self, network: Network) -> Iterator[NetworkError]:
        for name, function in network.functions.items():
            yield from self._module_mistake(function, network.place("functions", name, "udf"))
        plain = network.flattened()
        for name, box in plain.boxes.items():
            for function in box.functions():
                yield from self._module_mistake(function, plain.place("boxes", name))

    def _module_mistake(self, function: Function, place: DocumentPlace) -> Iterator[NetworkError]:
        module = _module(function)
        if module is None or any(module == m or module.startswith(f"{m}.") for m in self.modules):
            return
        yield NetworkError(
            "MODULE_NOT_ALLOWED",
            f"the module {module} may not be used by a network that comes over the wire;"
            f" {list_existing(self.modules)}",
            where=place,
            hint=f"start the server with --allow-module {module}",
        )

    def _may_use(self, path: str, directory: Path) -> bool:
        try:
            found = _resolved(path, directory)
        except (OSError, ValueError, RuntimeError):
            return False
        return found in self.paths or any(found.is_relative_to(root) for root in self.roots)

    def require(self, network: Network) -> None:
        """Refuse a network that names what it may not."""
        for mistake in self.mistakes(network):
            raise mistake


def _resolved(path: str, directory: Path) -> Path:
    for scheme in ("file://", "file:"):
        path = path.removeprefix(scheme)
    return Path(directory, path).resolve()


def _referring(network: Network) -> list[Any]:
    """The parts of a network in which variables have values."""
    return [
        *(stream.sources for stream in network.streams.values()),
        *(output.sink for output in network.outputs.values()),
        *(table.store for table in network.tables.values()),
        *(point.store for point in network.connection_points.values()),
        *network.engine.jars,
    ]
