"""Types and schemas: Spark SQL's type names, what they are in Arrow."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from auroral.errors import NetworkError, closest, list_existing

HIDDEN = ("_seq", "_sub", "_ts")
RESERVED = frozenset((*HIDDEN, "_at", "_punctuation"))

_ALIASES = {
    "bool": "boolean",
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "dec": "decimal",
    "numeric": "decimal",
    "timestamp_ltz": "timestamp",
}
_ATOMS: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
TYPE_NAMES = (*_ATOMS, "decimal(p,s)", "array<t>", "map<k,v>", "struct<name:t,..>")
INTEGRAL = ("tinyint", "smallint", "int", "bigint")
FRACTIONAL = ("float", "double")
_FIXED_BYTES = 8
_VARIABLE_BYTES = 32
_POSITION_BYTES = 16
"""Of `_seq` and `_sub`."""


@dataclass(frozen=True)
class Type:
    """One Spark SQL type; `children` are the named parts of arrays, maps and structs.

    >>> str(Type.parse("ARRAY<Decimal(10, 2)>"))
    'array<decimal(10,2)>'
    """

    name: str
    precision: int = 0
    scale: int = 0
    children: tuple[Field, ...] = ()

    @staticmethod
    def parse(text: str) -> Type:
        """Read a Spark SQL type name."""
        try:
            parser = _TypeParser(text)
            found = parser.type()
            parser.end()
        except RecursionError:
            raise NetworkError("BAD_TYPE", "the type is nested too deeply") from None
        return found

    def __str__(self) -> str:
        if self.name == "decimal":
            return f"decimal({self.precision},{self.scale})"
        if self.name in ("array", "map"):
            return f"{self.name}<{','.join(str(child.type) for child in self.children)}>"
        if self.name == "struct":
            return f"struct<{','.join(f'{quoted(c.name)}:{c.type}' for c in self.children)}>"
        return self.name

    @property
    def is_integral(self) -> bool:
        return self.name in INTEGRAL

    @property
    def is_numeric(self) -> bool:
        return self.is_integral or self.name in FRACTIONAL or self.name == "decimal"

    @property
    def is_orderable(self) -> bool:
        """Whether progress can be declared on it: numbers, dates and timestamps."""
        return self.is_numeric or self.name in ("date", "timestamp", "timestamp_ntz")

    def arrow(self) -> pa.DataType:
        """The Arrow type Spark gives and takes for this type."""
        if self.name == "decimal":
            return pa.decimal128(self.precision, self.scale)
        if self.name == "array":
            return pa.list_(pa.field("element", self.children[0].type.arrow()))
        if self.name == "map":
            return pa.map_(self.children[0].type.arrow(), self.children[1].type.arrow())
        if self.name == "struct":
            return pa.struct([pa.field(c.name, c.type.arrow()) for c in self.children])
        return _ATOMS[self.name]


@dataclass(frozen=True)
class Field:
    """A named, typed column; every column may be NULL."""

    name: str
    type: Type


@dataclass(frozen=True)
class Schema:
    """The visible fields of an arc, in order. Names match without regard to case, as in Spark.

    >>> print(Schema.parse("sid int, at timestamp"))
    sid int, at timestamp
    """

    fields: tuple[Field, ...]

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for field in self.fields:
            if field.name.lower() in seen:
                raise NetworkError("DUPLICATE_FIELD", f"the field {field.name} occurs twice")
            if field.name.lower() in RESERVED:
                others = ", ".join(sorted(RESERVED - {field.name.lower()}))
                message = f"the field name {field.name} is reserved, as are {others}"
                raise NetworkError("RESERVED_FIELD", message)
            if not field.name or "`" in field.name:
                raise NetworkError("BAD_FIELD_NAME", f"{field.name!r} cannot name a field")
            seen.add(field.name.lower())

    @staticmethod
    def parse(declared: str | Mapping[str, str] | Schema) -> Schema:
        """Read `"a int, b string"` or `{a: int, b: string}`."""
        if isinstance(declared, Schema):
            return declared
        if isinstance(declared, str):
            parser = _TypeParser(declared)
            try:
                fields = parser.fields(end="", colon=False)
            except RecursionError:
                raise NetworkError("BAD_TYPE", "the schema is nested too deeply") from None
            parser.end()
            return Schema(fields)
        if not isinstance(declared, Mapping):
            raise NetworkError(
                "BAD_SCHEMA",
                f"expected fields and types, as in {{a: int, b: string}}; found {declared!r}",
            )
        return Schema(tuple(_declared_field(name, text) for name, text in declared.items()))

    def __str__(self) -> str:
        return ", ".join(f"{quoted(f.name)} {f.type}" for f in self.fields)

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._by_name

    @cached_property
    def _by_name(self) -> dict[str, Field]:
        return {field.name.lower(): field for field in self.fields}

    @property
    def tuple_bytes(self) -> int:
        """About how large a tuple is, with its position.

        >>> Schema.parse("sid int, name string").tuple_bytes
        56
        """
        sizes = [
            _FIXED_BYTES
            if field.type.is_orderable or field.type.name == "boolean"
            else _VARIABLE_BYTES
            for field in self.fields
        ]
        return _POSITION_BYTES + sum(sizes)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.fields)

    def field(self, name: str) -> Field:
        """The field of that name, or an error that lists the fields there are."""
        try:
            return self._by_name[name.lower()]
        except KeyError:
            raise NetworkError(
                "UNKNOWN_FIELD",
                f"there is no field {name}; {list_existing(self.names)}",
                hint=closest(name, self.names),
            ) from None

    def declaration(self) -> dict[str, str]:
        """The form the network file uses."""
        return {field.name: str(field.type) for field in self.fields}

    def arrow(self) -> pa.Schema:
        return pa.schema([pa.field(f.name, f.type.arrow()) for f in self.fields])


def quoted(name: str) -> str:
    """A name as Spark SQL reads it, in backticks unless it is a plain word."""
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) else f"`{name}`"


def _declared_field(name: str, text: object) -> Field:
    if not isinstance(text, str):
        raise NetworkError(
            "BAD_TYPE", f"expected a type's name, found {text!r}", where=f"key {name}"
        )
    try:
        return Field(name, Type.parse(text))
    except NetworkError as error:
        raise error.at(f"key {name}") from None


class _TypeParser:
    """Recursive descent over `name`, `name(p,s)`, `name<…>`."""

    _TOKEN = re.compile(r"\s*(?:(`[^`]+`)|([A-Za-z_][A-Za-z0-9_]*)|(\d+)|(\S))")

    def __init__(self, text: str):
        self.text = text
        self.tokens = [m.group().strip() for m in self._TOKEN.finditer(text)]
        self.at = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, expected: str) -> None:
        if self.peek() != expected:
            raise self.error(repr(expected))
        self.at += 1

    def name(self) -> str:
        token = self.peek()
        if not re.match(r"`[^`]|[A-Za-z_]", token):
            raise self.error("a name")
        self.at += 1
        return token.strip("`")

    def end(self) -> None:
        if self.peek():
            raise self.error("the end")

    def error(self, expected: str) -> NetworkError:
        found = repr(self.peek()) if self.peek() else "the end"
        return NetworkError("BAD_TYPE", f"expected {expected} in {self.text!r}, found {found}")

    def type(self) -> Type:
        word = self.name().lower()
        name = _ALIASES.get(word, word)
        if name == "decimal":
            return self._decimal()
        if name == "array":
            self.take("<")
            element = self.type()
            self.take(">")
            return Type("array", children=(Field("element", element),))
        if name == "map":
            self.take("<")
            key = self.type()
            self.take(",")
            value = self.type()
            self.take(">")
            return Type("map", children=(Field("key", key), Field("value", value)))
        if name == "struct":
            self.take("<")
            children = self.fields(end=">", colon=True)
            self.take(">")
            return Type("struct", children=children)
        if name not in _ATOMS:
            raise NetworkError(
                "UNKNOWN_TYPE",
                f"there is no type {word}; the types are {', '.join(TYPE_NAMES)}",
                hint=closest(word, (*_ATOMS, *_ALIASES)),
            )
        return Type(name)

    def _decimal(self) -> Type:
        precision, scale = 10, 0
        if self.peek() == "(":
            self.take("(")
            precision = self.number()
            if self.peek() == ",":
                self.take(",")
                scale = self.number()
            self.take(")")
        if not 1 <= precision <= 38 or not 0 <= scale <= precision:
            raise NetworkError(
                "BAD_TYPE", f"decimal({precision},{scale}): expected 1 <= p <= 38, 0 <= s <= p"
            )
        return Type("decimal", precision, scale)

    def number(self) -> int:
        token = self.peek()
        if not token.isdecimal() or len(token) > 9:
            raise self.error("a number")
        self.at += 1
        return int(token)

    def fields(self, end: str, colon: bool) -> tuple[Field, ...]:
        found: list[Field] = []
        while self.peek() != end:
            if found:
                self.take(",")
            name = self.name()
            if colon or self.peek() == ":":
                self.take(":")
            found.append(Field(name, self.type()))
        return tuple(found)
