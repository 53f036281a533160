"""Parameters of superboxes: `${name}` in what a template says stands for a value.

A value stays one value wherever it is put: in an expression it becomes one literal or one field,
elsewhere a part of one text. So no parameter can change what a template does beside its values.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from auroral.errors import NetworkError, closest, list_existing
from auroral.progress.durations import parse_duration_us

ParameterType = Literal["int", "number", "string", "boolean", "field"]
_WANTED: Mapping[str, str] = {
    "int": "a whole number",
    "number": "a number",
    "string": "text",
    "boolean": "true or false",
    "field": "the name of a field",
}
_REFERENCE = re.compile(r"\$(\$)?\{(?:([A-Za-z][A-Za-z0-9_]*)\})?")
_PIECE = re.compile(
    r"""
    (?P<quoted>(?<!\w)[rR]'[^']*'|(?<!\w)[rR]"[^"]*"|'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"
              |`(?:[^`]|``)*`|--[^\n]*|/\*.*?\*/)
  | (?P<reference>\$\$?\{(?:[A-Za-z][A-Za-z0-9_]*\})?)
  | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
"""What an expression is made of, as far as it matters here: quotes and comments are apart."""
_EXPRESSIONS = ("where", "routes", "compute", "report", "match", "sql")
_STRUCTURE = ("box", "input", "inputs", "udf", "table")
"""Keys under which a parameter would change which boxes and functions there are."""


@dataclass(frozen=True)
class ParameterValue:
    """The value of a parameter, which fits its type."""

    type: ParameterType
    value: Any

    def literal(self) -> str:
        r"""How it stands in an expression.

        >>> print(ParameterValue("string", "it's").literal(), ParameterValue("int", -3).literal())
        'it\'s' (-3)
        """
        if self.type == "field":
            return f"`{self.value}`"
        if self.type == "string":
            escaped = self.value.replace("\\", "\\\\").replace("'", "\\'")
            return f"'{escaped}'"
        if self.type == "boolean":
            return "true" if self.value else "false"
        return f"({self.value!r})" if self.value < 0 else repr(self.value)


Values = Mapping[str, ParameterValue]


def fitted(type: ParameterType, value: Any) -> ParameterValue:
    """A value as a parameter of a type takes it; others are refused."""
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    fits = {
        "int": number and isinstance(value, int),
        "number": number,
        "string": isinstance(value, str),
        "boolean": isinstance(value, bool),
        "field": isinstance(value, str) and bool(value) and "`" not in value,
    }
    if not fits[type]:
        raise NetworkError("BAD_PARAMETER", f"expected {_WANTED[type]}, found {value!r:.100}")
    return ParameterValue(type, value)


def references(node: Any) -> Iterator[str]:
    """The parameters that plain data refer to."""
    if isinstance(node, str):
        yield from (name for escaped, name in _REFERENCE.findall(node) if not escaped and name)
    elif isinstance(node, Mapping):
        for part in node.values():
            yield from references(part)
    elif isinstance(node, list | tuple):
        for part in node:
            yield from references(part)


def substituted(declared: Mapping[str, Any], values: Values, *, instance: bool) -> dict[str, Any]:
    """The declaration of a box with values in place of parameters.

    Of an `instance` of another superbox all keys are parameters, and no expressions.

    >>> limit = {"limit": ParameterValue("int", 40)}
    >>> substituted({"box": "filter", "where": "pos >= ${limit}"}, limit, instance=False)
    {'box': 'filter', 'where': 'pos >= 40'}
    """
    kind = "" if instance else str(declared.get("box"))
    return {key: _node(part, (key,), kind, values) for key, part in declared.items()}


def _node(node: Any, path: tuple[str, ...], kind: str, values: Values) -> Any:
    if isinstance(node, Mapping):
        for key in node:
            if has_reference(key):
                raise _misplaced(f"{key} is a key", path)
        return {key: _node(part, (*path, str(key)), kind, values) for key, part in node.items()}
    if isinstance(node, list | tuple):
        return [_node(part, (*path, str(n)), kind, values) for n, part in enumerate(node)]
    if not isinstance(node, str) or "${" not in node:
        return node
    try:
        return _text(node, path, kind, values)
    except NetworkError as error:
        raise error if error.where else error.at(f"key {'.'.join(path)}") from None


def has_reference(text: Any) -> bool:
    """Whether a text refers to a parameter."""
    return any(references(text))


def _text(text: str, path: tuple[str, ...], kind: str, values: Values) -> Any:
    own = path[-1] if path[-1] in _STRUCTURE else path[0]
    if own in _STRUCTURE and has_reference(text):
        raise _misplaced(f"{own} says which boxes, arcs, tables or functions there are", path)
    if _is_expression(kind, path):
        return _in_expression(text, values)
    whole = _REFERENCE.fullmatch(text)
    plain = text
    if whole is None or whole[1] or not whole[2]:
        plain = _REFERENCE.sub(lambda found: _in_text(found, values), text)
        found: Any = plain
    else:
        found = _value(whole[2], values).value
    if kind and path == ("window", "advance") and isinstance(found, str):
        return found if _is_duration(found) else _in_expression(text, values)
    return found


def _is_expression(kind: str, path: tuple[str, ...]) -> bool:
    if not kind:
        return False
    nested = len(path) > 2  # the keys of a Python function
    return (path[0] in _EXPRESSIONS and not nested) or (kind == "join" and path == ("on",))


def _is_duration(text: str) -> bool:
    try:
        parse_duration_us(text)
    except (NetworkError, OverflowError):
        return False
    return True


def _in_text(found: re.Match[str], values: Values) -> str:
    escaped, name = found.groups()
    if escaped:
        return found.group()[1:]
    value = _value(name, values)
    return ("true" if value.value else "false") if value.type == "boolean" else str(value.value)


def _in_expression(text: str, values: Values) -> str:
    """An expression with literals in place of parameters, each of them a token of its own."""
    made = ""
    for piece in _PIECE.finditer(text):
        found = piece.group()
        if piece.lastgroup == "quoted":
            if has_reference(found):
                problem = f"a parameter stands outside of quotes and comments, found {found}"
                raise NetworkError("BAD_PARAMETER", problem, hint="use concat('…', ${name})")
            found = found.replace("$${", "${")
        elif piece.lastgroup == "reference":
            found = found[1:] if found.startswith("$$") else _literal(piece, text, values)
        elif found in "'\"`":
            raise NetworkError("SYNTAX_ERROR", f"the quote {found} is never closed: {text}")
        made += found
    return made


def _literal(piece: re.Match[str], text: str, values: Values) -> str:
    reference = _REFERENCE.fullmatch(piece.group())
    value = _value(reference[2] if reference else None, values)
    before, after = text[: piece.start()][-1:], text[piece.end() :].lstrip()[:1]
    glued = text[piece.end() :][:1]
    if value.type == "field" and before == ".":
        before = ""
    if (before and (before.isalnum() or before in "_'\"`.$}@:")) or (
        glued and (glued.isalnum() or glued in "_'\"`.$@:")
    ):
        problem = f"a parameter is a value of its own, found it joined to other text: {text}"
        raise NetworkError("BAD_PARAMETER", problem, hint="leave a blank, or compute the text")
    if after == "(":
        raise NetworkError("BAD_PARAMETER", f"a parameter cannot name a function: {text}")
    return value.literal()


def _value(name: str | None, values: Values) -> ParameterValue:
    if name is None:
        raise NetworkError(
            "BAD_PARAMETER",
            "expected ${name}, a parameter of the superbox: letters, digits and _",
            hint="write $${ for the characters ${",
        )
    if name not in values:
        raise NetworkError(
            "UNKNOWN_PARAMETER",
            f"the superbox has no parameter {name}; {list_existing(values)}",
            hint=closest(name, values),
        )
    return values[name]


def _misplaced(why: str, path: tuple[str, ...]) -> NetworkError:
    return NetworkError(
        "BAD_PARAMETER",
        f"a parameter cannot stand here: {why}",
        where=f"key {'.'.join(path)}",
        hint="parameters are numbers, texts, truth values and fields",
    )
