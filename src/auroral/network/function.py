"""Python functions in place of expressions, vectorised over Arrow."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Annotated, Any, TypeVar

import pyarrow as pa
from pydantic import BeforeValidator, StrictStr, field_serializer

from auroral.errors import NetworkError, closest, list_existing
from auroral.network.declarations import Declaration
from auroral.network.types import Schema, Type

F = TypeVar("F", bound=Callable[..., Any])


def function(returns: str, *args: str) -> Callable[[F], F]:
    """Declare what a Python function returns and, unless its parameters do, the fields it takes.

    >>> @function("double")
    ... def half(value):
    ...     return pc.divide(value, 2.0)
    >>> half.returns
    'double'
    """

    def declare(target: F) -> F:
        Type.parse(returns)
        target.returns = returns  # type: ignore[attr-defined]
        if args:
            target.args = args  # type: ignore[attr-defined]
        return target

    return declare


class Function(Declaration):
    """`udf: module:name` called with one Arrow array per argument, giving one Arrow array."""

    udf: StrictStr | Callable[..., Any]
    args: tuple[StrictStr, ...] | None = None
    returns: StrictStr | None = None

    @field_serializer("udf")
    def _name(self, udf: Any) -> str:
        return written(udf)

    @property
    def label(self) -> str:
        return self.udf if isinstance(self.udf, str) else _qualified(self.udf)

    def load(self, directory: Path | None = None) -> Callable[..., Any]:
        """The function itself; `directory` is searched besides the module path."""
        return self.udf if callable(self.udf) else load_named(self.udf, directory)

    def target(self, directory: Path | None, imports: bool) -> Callable[..., Any] | None:
        """The function itself; None if its module would have to be imported and may not be."""
        if isinstance(self.udf, str) and not imports:
            _parts(self.udf)
            return None
        return self.load(directory)

    def arguments(
        self, schema: Schema, directory: Path | None = None, *, imports: bool = True
    ) -> tuple[str, ...]:
        """The fields it is called with."""
        names = self.args
        target = self.target(directory, imports)
        if names is None and target is None:
            raise self._not_imported("its arguments are", "args: [fields]")
        if names is None:
            names = getattr(target, "args", None)
        if names is None:
            assert target is not None
            names = _parameters(target, self.label)
        return tuple(schema.field(name).name for name in names)

    def window_arguments(
        self, schema: Schema, directory: Path | None = None, *, imports: bool = True
    ) -> tuple[str, ...]:
        """The fields a window function is called with; all, unless it says which."""
        target = self.target(directory, imports)
        names = self.args or getattr(target, "args", None) or schema.names
        return tuple(schema.field(name).name for name in names)

    def type(self, directory: Path | None = None, *, imports: bool = True) -> Type:
        target = self.target(directory, imports)
        returns = self.returns or getattr(target, "returns", None)
        if returns is None and target is None:
            raise self._not_imported("its type is", "returns: type")
        if not isinstance(returns, str):
            raise NetworkError(
                "MISSING_KEY",
                f"{self.label}: its type is not known",
                hint="add returns: type beside udf, or decorate it with @auroral.function(type)",
            )
        return Type.parse(returns)

    def _not_imported(self, what: str, key: str) -> NetworkError:
        return NetworkError(
            "MISSING_KEY",
            f"{self.label}: {what} not known, because its module is not imported",
            hint=f"add {key} beside udf, or allow the import: --import on the command line,"
            " imports=True for Network or Network.load in Python",
        )


def written(udf: str | Callable[..., Any]) -> str:
    """A function as a file names it; angle brackets mark one that no file can name."""
    if isinstance(udf, str):
        return udf
    label = _qualified(udf)
    module = getattr(udf, "__module__", "__main__")
    return f"{module}:{label if hasattr(udf, '__qualname__') else f'<{label}>'}"


def _wrapped(declared: Any) -> Any:
    return Function(udf=declared) if callable(declared) else declared


Computed = Annotated[StrictStr | Function, BeforeValidator(_wrapped)]
"""How a field is computed: an expression, `{udf: module:name}`, or in Python a callable."""


def unimportable(document: Any) -> NetworkError | None:
    """Why a part of a network cannot stand in a file: it has a function that no file can name."""
    if not isinstance(document, dict):
        return None
    module, _, label = str(document.get("udf", "")).partition(":")
    if module == "__main__" or "<" in label:
        return NetworkError(
            "CANNOT_SAVE",
            f"the function {label} cannot be named in a file",
            hint="define it at the top of an importable module",
        )
    return next(filter(None, map(unimportable, document.values())), None)


def load_named(name: str, directory: Path | None = None) -> Callable[..., Any]:
    """Import `module:function`. This runs the code of the module."""
    module_name, attribute = _parts(name)
    if directory is not None and str(directory) not in sys.path:
        sys.path.append(str(directory))
    try:
        target: Any = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        raise NetworkError(
            "BAD_FUNCTION",
            f"cannot import {module_name} for {name}: {type(error).__name__}: {error}",
        ) from None
    for part in attribute.split("."):
        if not hasattr(target, part):
            public = [n for n in vars(target) if not n.startswith("_")]
            raise NetworkError(
                "BAD_FUNCTION",
                f"{module_name} has no {attribute}; {list_existing(public)}",
                hint=closest(part, public),
            )
        target = getattr(target, part)
    if not callable(target):
        raise NetworkError("BAD_FUNCTION", f"{name} is not callable")
    return target  # type: ignore[no-any-return]


def _parts(name: str) -> tuple[str, str]:
    """The module and the function of `module:function`."""
    module, colon, attribute = name.partition(":")
    if not colon or not module or not attribute:
        raise NetworkError("BAD_FUNCTION", f"expected module:function, found {name!r}")
    return module, attribute


def fresh(function: Callable[..., Any]) -> Callable[..., Any]:
    """What one call uses: a new instance of a class, a copy of an object, a function as it is.

    >>> class Counter:
    ...     calls = 0
    ...     def __call__(self, n):
    ...         self.calls += 1
    ...         return [self.calls] * len(n)
    >>> used = Counter()
    >>> fresh(Counter)([7]), fresh(used)([7]), fresh(used)([7, 8]), fresh(len)([7])
    ([1], [1], [1, 1], 1)
    """
    made: Callable[..., Any] = function() if isinstance(function, type) else deepcopy(function)
    return made


def fitted(result: pa.Array, returns: Type, function: Callable[..., Any]) -> pa.Array:
    """What a function gave, in the type it was declared with."""
    try:
        return result.cast(returns.arrow())
    except pa.ArrowException as error:
        problem = f"{_qualified(function)} should return {returns}, and returned {result.type}"
        raise TypeError(f"{problem} ({error})") from None


class Nothing:
    """The type of `NOTHING`."""

    def __repr__(self) -> str:
        return "NOTHING"

    def __reduce__(self) -> str:
        return "NOTHING"  # there is one, also after pickling


NOTHING = Nothing()
"""What `final` of a window function returns if its window is to yield no tuple.

If one of several functions of a box returns it, the window yields none.
"""


def fitted_value(value: Any, to: pa.DataType) -> pa.Array:
    """One value that a function returned, as an array of a type; raises if it does not fit."""
    try:
        return pa.array([value], to)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([value]).cast(to)


def require_row(row: Any, names: Sequence[str]) -> Mapping[str, Any]:
    """Refuse what is no row with some of these fields; those that it lacks are NULL."""
    if not isinstance(row, Mapping):
        raise TypeError(f"expected a row as a dict, or None, found {type(row).__name__}")
    for name in row:
        if name not in names:
            raise ValueError(f"the row has a field {name!r}, but returns names {', '.join(names)}")
    return row


def signature_of(
    function: Callable[..., Any], *, follow_wrapped: bool = False
) -> inspect.Signature | None:
    """How a function, or an instance of a class, may be called; None if it does not tell."""
    try:
        if not isinstance(function, type):
            return inspect.signature(function, follow_wrapped=follow_wrapped)
        signature = inspect.signature(function.__call__, follow_wrapped=follow_wrapped)
        return signature.replace(parameters=list(signature.parameters.values())[1:])
    except (TypeError, ValueError):
        return None


def _parameters(target: Callable[..., Any], label: str) -> tuple[str, ...]:
    signature = signature_of(target, follow_wrapped=True)
    parameters = None if signature is None else list(signature.parameters.values())
    if parameters is None or any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        raise NetworkError(
            "MISSING_KEY", f"{label}: its arguments are not known", hint="add args: [fields]"
        )
    return tuple(p.name for p in parameters)


def _qualified(target: Callable[..., Any]) -> str:
    return getattr(target, "__qualname__", None) or type(target).__name__
