"""String functions: positions count from 1, trimming takes spaces only, NULL gives NULL."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Sequence
from typing import Any

from auroral.network.types import Type
from auroral.sql.expressions.coercion import BIGINT, BINARY, BOOLEAN, INT, STRING, array_of, common
from auroral.sql.expressions.typed import (
    OnlySparkError,
    Row,
    Typed,
    cast,
    constant,
    implicit_cast,
    mismatch,
    strict,
)
from auroral.sql.functions.catalogue import register, simple

_END = (1 << 31) - 1

simple("upper ucase", [STRING], STRING, str.upper)
simple("lower lcase", [STRING], STRING, str.lower)
simple("length char_length character_length len", ["string|binary"], INT, len)
simple("octet_length", ["string|binary"], INT, lambda s: len(_bytes(s)))
simple("bit_length", ["string|binary"], INT, lambda s: len(_bytes(s)) * 8)
simple("ascii", [STRING], INT, lambda s: ord(s[0]) if s else 0)
simple("repeat", [STRING, INT], STRING, lambda s, n: s * max(n, 0))
simple("space", [INT], STRING, lambda n: " " * max(n, 0))
simple("chr char", [BIGINT], STRING, lambda n: "" if n < 0 else chr(n & 0xFF))


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def _title(text: str) -> str:
    words = text.lower().split(" ")
    return " ".join(word[:1].title() + word[1:] for word in words)


simple("initcap", [STRING], STRING, _title)


def _trimming(name: str, strip: Callable[[str, str], str]) -> None:
    @register(name, 1, 2)
    def build(args: Sequence[Typed]) -> Typed:
        typed = [implicit_cast(name, arg, STRING, at) for at, arg in enumerate(args, 1)]
        if len(typed) == 1:
            return strict(STRING, typed, lambda text: strip(text, " "))
        # The characters come first, the text second; unlike Python, none means none.
        return strict(STRING, typed, lambda chars, text: strip(text, chars) if chars else text)


_trimming("trim", str.strip)
_trimming("ltrim", str.lstrip)
_trimming("rtrim", str.rstrip)


@register("btrim", 1, 2)
def _btrim(args: Sequence[Typed]) -> Typed:
    if any(arg.type == BINARY for arg in args):
        raise OnlySparkError("btrim of binary")
    typed = [implicit_cast("btrim", arg, STRING, at) for at, arg in enumerate(args, 1)]
    if len(typed) == 1:
        return strict(STRING, typed, lambda text: text.strip(" "))
    return strict(STRING, typed, lambda text, chars: text.strip(chars) if chars else text)


def _substring(text: Any, at: int, count: int = _END) -> Any:
    start = at - 1 if at > 0 else (len(text) + at if at < 0 else 0)
    return text[max(start, 0) : max(start + count, 0)]


@register("substring substr", 2, 3)
def _substring_call(args: Sequence[Typed]) -> Typed:
    text = implicit_cast("substring", args[0], "string|binary")
    places = [implicit_cast("substring", arg, INT, at) for at, arg in enumerate(args[1:], 2)]
    return strict(text.type, [text, *places], _substring)


def _end(name: str, take: Callable[[Any, int], Any]) -> None:
    @register(name, 2)
    def build(args: Sequence[Typed]) -> Typed:
        text = implicit_cast(name, args[0], "string|binary" if name == "left" else STRING)
        return strict(text.type, [text, implicit_cast(name, args[1], INT, 2)], take)


_end("left", lambda text, count: text[: max(count, 0)])
_end("right", lambda text, count: text[max(len(text) - count, 0) :] if count > 0 else "")


@register("concat", 0, None)
def _concat(args: Sequence[Typed]) -> Typed:
    if not args:
        return constant("", STRING)
    if all(arg.type == BINARY for arg in args):
        return strict(BINARY, args, lambda *parts: b"".join(parts))
    if all(arg.type.name == "array" for arg in args):
        type = common([arg.type for arg in args])
        if type is None:
            raise mismatch("concat", args, "arrays of one type")
        return strict(type, [cast(arg, type) for arg in args], lambda *p: [i for a in p for i in a])
    texts = [implicit_cast("concat", arg, STRING, at) for at, arg in enumerate(args, 1)]
    return strict(STRING, texts, lambda *parts: "".join(parts))


@register("concat_ws", 1, None)
def _concat_ws(args: Sequence[Typed]) -> Typed:
    texts = array_of(STRING)
    typed = [
        implicit_cast("concat_ws", arg, texts if arg.type.name == "array" else STRING, at)
        for at, arg in enumerate(args, 1)
    ]
    if typed[0].type != STRING:
        raise mismatch("concat_ws", args[:1], "a string as separator")
    separator, *parts = [arg.run for arg in typed]

    def run(row: Row) -> str | None:
        glue: str | None = separator(row)
        if glue is None:
            return None
        found: list[str] = []
        for part in parts:
            value = part(row)
            if value is not None:
                found += (
                    [item for item in value if item is not None]
                    if isinstance(value, list)
                    else [value]
                )
        return glue.join(found)

    return Typed(STRING, run, constant=all(arg.constant for arg in args))


simple(
    "replace",
    [STRING, STRING, STRING],
    STRING,
    lambda text, old, new="": text.replace(old, new) if old else text,
    least=2,
)


def _translate(text: str, source: str, target: str) -> str:
    table: dict[int, str | None] = {}
    for at, char in enumerate(source):
        table.setdefault(ord(char), target[at] if at < len(target) else None)
    return text.translate(table)


simple("translate", [STRING, STRING, STRING], STRING, _translate)


def _predicate(name: str, test: Callable[[Any, Any], bool]) -> None:
    @register(name, 2)
    def build(args: Sequence[Typed]) -> Typed:
        if all(arg.type == BINARY for arg in args):
            return strict(BOOLEAN, args, test)
        texts = [implicit_cast(name, arg, STRING, at) for at, arg in enumerate(args, 1)]
        return strict(BOOLEAN, texts, test)


_predicate("startswith", lambda text, part: text.startswith(part))
_predicate("endswith", lambda text, part: text.endswith(part))
_predicate("contains", lambda text, part: part in text)
simple("instr", [STRING, STRING], INT, lambda text, part: text.find(part) + 1)


@register("locate position", 2, 3)
def _locate(args: Sequence[Typed]) -> Typed:
    part, text = (implicit_cast("locate", arg, STRING, at) for at, arg in enumerate(args[:2], 1))
    one = constant(1, INT)
    start = implicit_cast("locate", args[2], INT, 3) if len(args) == 3 else one
    runs = part.run, text.run, start.run

    def run(row: Row) -> int | None:
        at = runs[2](row)
        if at is None:
            return 0
        sought, source = runs[0](row), runs[1](row)
        if sought is None or source is None:
            return None
        if at < 1:
            return 0
        return int(source.find(sought, at - 1)) + 1 if sought else 1

    return Typed(INT, run, constant=all(arg.constant for arg in args))


def _padding(name: str, left: bool) -> None:
    @register(name, 2, 3)
    def build(args: Sequence[Typed]) -> Typed:
        if args[0].type == BINARY:
            raise OnlySparkError(f"{name} of binary")
        text = implicit_cast(name, args[0], STRING)
        size = implicit_cast(name, args[1], INT, 2)
        blank = constant(" ", STRING)
        pad = implicit_cast(name, args[2], STRING, 3) if len(args) == 3 else blank

        def run(value: str, length: int, filler: str) -> str:
            missing = length - len(value)
            if missing <= 0 or not filler:
                return value[: max(length, 0)]
            fill = (filler * (missing // len(filler) + 1))[:missing]
            return fill + value if left else value + fill

        return strict(STRING, [text, size, pad], run)


_padding("lpad", left=True)
_padding("rpad", left=False)


@register("reverse", 1)
def _reverse(args: Sequence[Typed]) -> Typed:
    arg = args[0] if args[0].type.name == "array" else implicit_cast("reverse", args[0], STRING)
    return strict(arg.type, [arg], lambda value: value[::-1])


@register("split_part", 3)
def _split_part(args: Sequence[Typed]) -> Typed:
    text, by = (implicit_cast("split_part", arg, STRING, at) for at, arg in enumerate(args[:2], 1))
    place = implicit_cast("split_part", args[2], INT, 3)
    if not place.constant or not place.value():
        raise OnlySparkError("split_part with a part that is no constant, or 0")

    def run(value: str, delimiter: str, at: int) -> str:
        parts = value.split(delimiter) if delimiter else [value]
        index = at - 1 if at > 0 else len(parts) + at
        return parts[index] if 0 <= index < len(parts) else ""

    return strict(STRING, [text, by, place], run)


@register("substring_index", 3)
def _substring_index(args: Sequence[Typed]) -> Typed:
    def run(text: str, by: str, count: int) -> str:
        if not by or not count:
            return ""
        parts = text.split(by) if count > 0 else []
        if count > 0:
            return by.join(parts[:count])
        # From the right, overlapping delimiters are found right to left.
        return by.join(text.rsplit(by)[count:])

    kinds = (STRING, STRING, INT)
    typed = [
        implicit_cast("substring_index", arg, kind, at)
        for at, (arg, kind) in enumerate(zip(args, kinds, strict=True), 1)
    ]
    return strict(STRING, typed, run)


_SHA2 = {
    0: hashlib.sha256,
    224: hashlib.sha224,
    256: hashlib.sha256,
    384: hashlib.sha384,
    512: hashlib.sha512,
}
simple("md5", [BINARY], STRING, lambda data: hashlib.md5(data).hexdigest())
simple("sha1 sha", [BINARY], STRING, lambda data: hashlib.sha1(data).hexdigest())
simple("crc32", [BINARY], BIGINT, zlib.crc32)
simple(
    "sha2",
    [BINARY, INT],
    STRING,
    lambda data, bits: _SHA2[bits](data).hexdigest() if bits in _SHA2 else None,
)


def _hex(value: int | bytes | str) -> str:
    if isinstance(value, int):
        return f"{value % (1 << 64):X}"
    return _bytes(value).hex().upper()


@register("hex", 1)
def _hex_call(args: Sequence[Typed]) -> Typed:
    arg = implicit_cast("hex", args[0], "bigint|binary|string")
    return strict(Type("string"), [arg], _hex)
