"""What a network from the wire may name: functions, files, options, variables and jars.

What the file at the start names is allowed, and what the person who starts the server adds to it.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from auroral.errors import NetworkError, list_existing
from auroral.network.function import load_named
from auroral.network.network import Network
from auroral.server.named import (
    NamedFunction,
    NamedOption,
    NamedPath,
    functions_of,
    named_outside,
    referring,
    variables_of,
)

DATA = "data"
"""The directory beside the network file in which networks from the wire may use files."""
_SPECIAL = frozenset("*?[]{}\\:\0\r\n")
"""What makes a path a pattern, a variable or a URL for one of its readers."""
_CODE = frozenset(
    (".py", ".pyc", ".pyd", ".pyi", ".pyw", ".pth", ".so", ".egg", ".whl", ".zip", ".jar")
)
"""Endings of files that Python or Java load."""


@dataclass(frozen=True)
class AllowedReferences:
    """What networks from the wire may name."""

    modules: frozenset[str]
    """Exact names, or `package.*` for a package and what is below it."""
    functions: frozenset[str]
    """Functions that the file at the start names, as it names them."""
    roots: tuple[Path, ...]
    protected: tuple[Path, ...]
    """Files and directories of the server itself, also below a root."""
    paths: frozenset[tuple[str, Path]]
    """Paths that the file at the start names, by section: who may read may not write."""
    options: frozenset[tuple[str, str, str]]
    """Options, by format, that the file at the start has."""
    variables: frozenset[str]
    jars: frozenset[str]

    @classmethod
    def of(
        cls,
        network: Network,
        modules: Collection[str] = (),
        roots: Collection[Path] = (),
        protected: Collection[Path] = (),
    ) -> AllowedReferences:
        """What a network names itself, more modules, and what is below some directories."""
        directory = network.directory or Path()
        functions = frozenset(named.udf for named in functions_of(network))
        outside = list(named_outside(network))
        paths = [named for named in outside if isinstance(named, NamedPath)]
        options = [named for named in outside if isinstance(named, NamedOption)]
        return cls(
            frozenset((*map(_module, functions), *modules)),
            functions,
            tuple(root.resolve() for root in (directory / DATA, *roots)),
            tuple(path.resolve() for path in protected),
            frozenset((named.section, _resolved(named.path, directory)) for named in paths),
            frozenset((named.format, named.option, named.value) for named in options),
            frozenset(variables_of(referring(network))),
            frozenset(network.engine.jars),
        )

    def mistakes(self, network: Network) -> Iterator[NetworkError]:
        """What a network names and may not, each at its place."""
        yield from self.outside_mistakes(network)
        yield from self.function_mistakes(network)

    def function_mistakes(self, network: Network) -> Iterator[NetworkError]:
        """The functions of a network that may not be called; modules not allowed stay unloaded."""
        for named in functions_of(network):
            mistake = self._function_mistake(named, network.directory)
            if mistake is not None:
                yield mistake

    def outside_mistakes(self, network: Network) -> Iterator[NetworkError]:
        """The files, options, variables and jars that a network may not name."""
        for named in named_outside(network):
            if isinstance(named, NamedPath):
                yield from self._path_mistakes(named, network.directory or Path())
            elif (named.format, named.option, named.value) not in self.options:
                yield _option_mistake(named)
        found = variables_of(referring(network)) - self.variables
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

    def require(self, network: Network) -> None:
        """Refuse a network that names what it may not."""
        for mistake in self.mistakes(network):
            raise mistake

    # ── functions ──

    def _function_mistake(
        self, named: NamedFunction, directory: Path | None
    ) -> NetworkError | None:
        module = _module(named.udf)
        if named.udf in self.functions:
            return None
        if not self._allows(module):
            return NetworkError(
                "MODULE_NOT_ALLOWED",
                f"the module {module} may not be used by a network that comes over the wire;"
                f" {list_existing(self.modules)}",
                where=named.place,
                hint=f"start the server with --allow-module {module}",
            )
        try:
            load_named(named.udf, directory)
        except NetworkError:
            return None  # the check of the network says why
        owner = _owner(named.udf)
        if owner is not None and self._allows(owner):
            return None
        return NetworkError(
            "MODULE_NOT_ALLOWED",
            f"{named.udf} is not defined in a module that a network from the wire may use;"
            f" {list_existing(self.modules)}",
            where=named.place,
            hint="name the module in which it is defined, and allow that: --allow-module MODULE",
        )

    def _allows(self, module: str) -> bool:
        if module in self.modules:
            return True
        parts = module.split(".")
        if any(part.startswith("_") for part in parts):
            return False  # such as package.__main__
        above = (".".join(parts[:length]) for length in range(1, len(parts) + 1))
        return any(f"{package}.*" in self.modules for package in above)

    # ── files ──

    def _path_mistakes(self, named: NamedPath, directory: Path) -> Iterator[NetworkError]:
        why = self._why_not(named, directory)
        if why is not None:
            yield NetworkError(
                "PATH_NOT_ALLOWED",
                f"a network from the wire may not use {named.path}: {why}",
                where=named.place,
                hint=f"use a file in {DATA}/ beside the network file, or start the server with"
                " --allow-path DIR",
            )

    def _why_not(self, named: NamedPath, directory: Path) -> str | None:
        try:
            found = _resolved(named.path, directory)
        except (OSError, ValueError, RuntimeError):
            return "there can be no such path"
        if (named.section, found) in self.paths:
            return None
        if _SPECIAL & set(named.path):
            return "patterns, variables and URLs are not allowed"
        root = next((root for root in self.roots if found.is_relative_to(root)), None)
        if root is None:
            return "it is in no directory that is allowed"
        below = found.relative_to(root).parts
        if any(part.startswith(".") for part in below):
            return "it is hidden"
        if any(Path(part).suffix.lower() in _CODE for part in below):
            return "it could be loaded as a program"
        if any(found.is_relative_to(own) or own.is_relative_to(found) for own in self.protected):
            return "it belongs to the server"
        return None


def _module(udf: str) -> str:
    return udf.partition(":")[0]


def _owner(udf: str) -> str | None:
    """The module in which a loaded function or class is defined; None if others lead to it."""
    module, _, attribute = udf.partition(":")
    found: Any = sys.modules[module]
    for number, part in enumerate(attribute.split(".")):
        if part.startswith("_") or (number and isinstance(found, ModuleType)):
            return None
        found = getattr(found, part)
    owner = getattr(found, "__module__", None)
    return owner if isinstance(owner, str) else None


def _option_mistake(named: NamedOption) -> NetworkError:
    what = f"the option {named.option}" if named.option else "a connector with these options"
    return NetworkError(
        "OPTION_NOT_ALLOWED",
        f"{named.format}: the network file at the start does not have {what}",
        where=named.place,
        hint="put it into the network file, and start the server again",
    )


def _resolved(path: str, directory: Path) -> Path:
    for scheme in ("file://", "file:"):
        path = path.removeprefix(scheme)
    return Path(directory, path).resolve()
