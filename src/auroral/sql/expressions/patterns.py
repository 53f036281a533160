"""LIKE and regular expressions: Java's syntax in Python's `re`, as far as the two agree."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from auroral.errors import NetworkError, RunError
from auroral.network.types import Type
from auroral.sql.expressions.coercion import BOOLEAN, INT, STRING, array_of
from auroral.sql.expressions.typed import OnlySparkError, Typed, implicit_cast, strict
from auroral.sql.functions.catalogue import register

_CLASSES = {"d": "0-9", "w": "a-zA-Z0-9_", "s": " \\t\\n\\x0b\\f\\r"}
_LINE_END = "\\n\\r\\x85\\u2028\\u2029"
DOLLAR = "(?=(?:\\r\\n|(?<!\\r)\\n|[\\r\\x85\\u2028\\u2029])?\\Z)"
_SAME_ESCAPES = frozenset("tnrfa.\\[](){}*+?^$|/-\"'<>=!:,;@#%&~` _")
_LAZY_GROUPS = ("?:", "?=", "?!", "?<=", "?<!", "?>")


@lru_cache(maxsize=512)
def like_pattern(pattern: str, escape: str = "\\") -> re.Pattern[str]:
    """The pattern of LIKE; an escape in front of anything else is an error, as in Spark.

    What stands between two % is sought once, from the left, and not again: so the time grows with
    the length of the text times that of the pattern, however many % there are.
    """
    pieces, chars = [""], iter(pattern)
    for char in chars:
        if char == escape:
            char = next(chars, "")
            if char not in ("_", "%", escape):
                raise NetworkError(
                    "BAD_PATTERN",
                    f"LIKE {pattern!r}: {escape} must stand before _, % or itself",
                    hint=f"write {escape}{escape} for a plain {escape}",
                )
            pieces[-1] += re.escape(char)
        elif char == "%":
            pieces.append("")
        else:
            pieces[-1] += "." if char == "_" else re.escape(char)
    first, *between = pieces
    if not between:
        return re.compile(first, re.DOTALL)
    last = between.pop()
    sought = "".join(f"(?>.*?{piece})" for piece in between if piece)
    return re.compile(f"{first}{sought}.*{last}", re.DOTALL)


def _like(name: str, fold: bool) -> None:
    @register(name, 2, 3)
    def build(args: Sequence[Typed]) -> Typed:
        texts = [implicit_cast(name.upper(), arg, STRING, at) for at, arg in enumerate(args, 1)]
        escape = texts[2].value() if len(texts) == 3 else "\\"
        if len(escape) != 1:
            raise NetworkError("BAD_PATTERN", f"ESCAPE: expected one character, found {escape!r}")
        if texts[1].constant and texts[1].value() is not None:
            like_pattern(texts[1].value(), escape)

        def run(text: str, pattern: str) -> bool:
            if fold:
                text, pattern = text.lower(), pattern.lower()
            try:
                return like_pattern(pattern, escape).fullmatch(text) is not None
            except NetworkError as error:  # the pattern came with the tuple
                raise RunError(error.code, error.message, hint=error.hint) from None

        return strict(BOOLEAN, texts[:2], run)


_like("like", fold=False)
_like("ilike", fold=True)


def java_regex(pattern: str) -> re.Pattern[str]:
    """Java's regular expression in Python, OnlySparkError if the two would differ.

    >>> java_regex(r"\\d+").findall("٣ 12")
    ['12']
    """
    flags = re.NOFLAG
    at = 0
    if match := re.match(r"\(\?([is]+)\)", pattern):
        at = match.end()
        flags |= re.DOTALL if "s" in match[1] else re.NOFLAG
        flags |= re.IGNORECASE | re.ASCII if "i" in match[1] else re.NOFLAG
    out = ""
    while at < len(pattern):
        piece, at = _piece(pattern, at, flags)
        out += piece
    try:
        return re.compile(out, flags)
    except (re.error, OverflowError):
        raise OnlySparkError(f"the regular expression {pattern!r}") from None


def _piece(pattern: str, at: int, flags: re.RegexFlag) -> tuple[str, int]:
    char = pattern[at]
    if char == "\\":
        return _escape(pattern, at, flags)
    if char == "[":
        return _bracket(pattern, at)
    if char == ".":
        return ("." if flags & re.DOTALL else f"[^{_LINE_END}]"), at + 1
    if char == "$":
        return DOLLAR, at + 1
    if char == "(":
        if pattern.startswith("(?<", at) and pattern[at + 3 : at + 4].isalpha():
            return "(?P<", at + 3
        if pattern.startswith("(?", at) and not pattern.startswith(_LAZY_GROUPS, at + 1):
            raise OnlySparkError(f"the regular expression {pattern!r}")
        return "(", at + 1
    if char == "{" and not re.match(r"\{[0-9]+(,[0-9]*)?\}", pattern[at:]):
        raise OnlySparkError(f"the regular expression {pattern!r}")
    return char, at + 1


def _escape(pattern: str, at: int, flags: re.RegexFlag) -> tuple[str, int]:
    char = pattern[at + 1 : at + 2]
    if char.lower() in _CLASSES and char:
        return f"[{'^' if char.isupper() else ''}{_CLASSES[char.lower()]}]", at + 2
    if char == "Q":
        end = pattern.find("\\E", at)
        end = len(pattern) if end < 0 else end
        return re.escape(pattern[at + 2 : end]), min(end + 2, len(pattern))
    if char in ("A", "z", "Z"):
        return {"A": "\\A", "z": "\\Z", "Z": DOLLAR}[char], at + 2
    if char in ("b", "B") and not flags & re.ASCII:
        return f"\\{char}", at + 2
    if char.isdigit() and char != "0" and not pattern[at + 2 : at + 3].isdigit():
        return f"(?:\\{char})", at + 2
    if match := re.match(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4})", pattern[at:]):
        return match[0], at + match.end()
    if char in _SAME_ESCAPES and char:
        return (f"\\{char}" if char in "tnrfa" else re.escape(char)), at + 2
    raise OnlySparkError(f"the regular expression {pattern!r}")


def _bracket(pattern: str, at: int) -> tuple[str, int]:
    """A character class; Java's unions, intersections and negated classes inside stay Spark's."""
    match = re.match(r"\[(\^?)((?:[^\\\[\]&]|\\.)+)\]", pattern[at:], re.DOTALL)
    if match is None:
        raise OnlySparkError(f"the regular expression {pattern!r}")

    def inside(found: re.Match[str]) -> str:
        char = found[1]
        if char in _CLASSES:
            return _CLASSES[char]
        if char in _SAME_ESCAPES:
            return f"\\{char}" if char in "tnrfa" else re.escape(char)
        raise OnlySparkError(f"the regular expression {pattern!r}")

    members = re.sub(r"\\(.)", inside, match[2], flags=re.DOTALL)
    return f"[{match[1]}{members}]", at + match.end()


def _constant(name: str, arg: Typed) -> Any:
    if not arg.constant or arg.value() is None:
        raise OnlySparkError(f"{name} with a pattern that is no constant")
    return arg.value()


def _never_empty(name: str, pattern: str) -> re.Pattern[str]:
    """A pattern that matches no empty text: Java would match inside a surrogate pair."""
    regex = java_regex(pattern)
    if regex.fullmatch(""):
        raise OnlySparkError(f"{name} with a pattern that matches nothing at all")
    return regex


@register("rlike regexp regexp_like", 2)
def _rlike(args: Sequence[Typed]) -> Typed:
    text, pattern = (implicit_cast("RLIKE", arg, STRING, at) for at, arg in enumerate(args, 1))
    search = java_regex(_constant("RLIKE", pattern)).search
    return strict(BOOLEAN, [text], lambda value: search(value) is not None)


@register("regexp_extract", 2, 3)
def _extract(args: Sequence[Typed]) -> Typed:
    kinds = (STRING, STRING, INT)
    text, pattern, *rest = [
        implicit_cast("regexp_extract", arg, kind, at)
        for at, (arg, kind) in enumerate(zip(args, kinds, strict=False), 1)
    ]
    regex = java_regex(_constant("regexp_extract", pattern))
    group = _constant("regexp_extract", rest[0]) if rest else 1
    if not 0 <= group <= regex.groups:
        raise NetworkError(
            "BAD_PATTERN",
            f"regexp_extract: there is no group {group}, the pattern has {regex.groups}",
        )

    def run(value: str) -> str:
        match = regex.search(value)
        return (match[group] or "") if match else ""

    return strict(STRING, [text], run)


@register("regexp_replace", 3, 4)
def _replace(args: Sequence[Typed]) -> Typed:
    if len(args) == 4:
        raise OnlySparkError("regexp_replace from a position")
    text, pattern, by = (
        implicit_cast("regexp_replace", arg, STRING, at) for at, arg in enumerate(args, 1)
    )
    regex = _never_empty("regexp_replace", _constant("regexp_replace", pattern))
    replacement = _replacement(_constant("regexp_replace", by), regex.groups)
    return strict(STRING, [text], lambda value: regex.sub(replacement, value))


def _replacement(template: str, groups: int) -> Callable[[re.Match[str]], str]:
    """Java's replacement: `$1` a group, a backslash before a plain character."""
    parts: list[str | int] = []
    at = 0
    while at < len(template):
        char = template[at]
        if char == "$":
            end = at + 2
            if not template[at + 1 : end].isdigit() or int(template[at + 1 : end]) > groups:
                raise OnlySparkError(f"the replacement {template!r}")
            while template[end : end + 1].isdigit() and int(template[at + 1 : end + 1]) <= groups:
                end += 1
            parts.append(int(template[at + 1 : end]))
            at = end
            continue
        if char == "\\":
            at += 1
            if at == len(template):
                raise OnlySparkError(f"the replacement {template!r}")
        parts.append(template[at])
        at += 1
    return lambda match: "".join(
        part if isinstance(part, str) else (match[part] or "") for part in parts
    )


@register("split", 2, 3)
def _split(args: Sequence[Typed]) -> Typed:
    kinds: tuple[Type, ...] = (STRING, STRING, INT)
    text, pattern, *rest = [
        implicit_cast("split", arg, kind, at)
        for at, (arg, kind) in enumerate(zip(args, kinds, strict=False), 1)
    ]
    source = _constant("split", pattern)
    regex = _never_empty("split", source)
    limit = _constant("split", rest[0]) if rest else -1

    def run(value: str) -> list[str]:
        parts: list[str] = []
        start = 0
        for match in regex.finditer(value):
            if limit > 0 and len(parts) == limit - 1:
                break
            if match.end() == 0:
                continue
            parts.append(value[start : match.start()])
            start = match.end()
        return [*parts, value[start:]]

    return strict(array_of(STRING), [text], run)
