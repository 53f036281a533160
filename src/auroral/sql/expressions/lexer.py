"""Cut the text of a Spark SQL expression into tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass

from auroral.errors import NetworkError

_TOKEN = re.compile(
    r"""
    (?P<space>(?:\s+|--[^\n]*(?:\n|$)|/\*.*?\*/)+)
  | (?P<string>[rR]'[^']*'|[rR]"[^"]*"|'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
  | (?P<number>(?:(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)(?:[eE][+-]?[0-9]+)?(?:[bB][dD]|[dDfF])?
             |[0-9]+[lLsSyY])(?![\w]))
  | (?P<quoted>`(?:[^`]|``)*`)
  | (?P<word>\w+)
  | (?P<op><=>|>>>|<<|>>|->|::|\|\||<>|!=|!<|!>|<=|>=|==|[-+*/%&|^~=<>!()\[\],.:;?])
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
_ESCAPES |= {"%": "\\%", "_": "\\_"}
_ESCAPE = re.compile(
    r"\\u([0-9a-fA-F]{4})|\\U([0-9a-fA-F]{8})|\\([01][0-7]{2})|\\(.)|''|\"\"", re.DOTALL
)


@dataclass(frozen=True)
class Token:
    """`kind` is word, quoted, number, string, op or end; `text` is words in lower case."""

    kind: str
    text: str
    start: int
    end: int


def tokens(text: str) -> list[Token]:
    """The tokens of `text`, the last of them of kind `end`.

    >>> [t.text for t in tokens("Pos >= 30 -- fast")]
    ['pos', '>=', '30', '']
    """
    found: list[Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise syntax_error(text, at, _unreadable(text[at:]))
        kind = match.lastgroup or ""
        if kind != "space":
            word = match.group().lower() if kind == "word" else match.group()
            found.append(Token(kind, word, match.start(), match.end()))
        at = match.end()
    found.append(Token("end", "", len(text), len(text)))
    return found


def _unreadable(rest: str) -> str:
    if rest[0] in "'\"`":
        return f"the quote {rest[0]} is never closed"
    if rest.startswith("/*"):
        return "the comment /* is never closed"
    return f"{rest[0]!r} means nothing in Spark SQL"


def syntax_error(text: str, at: int, problem: str) -> NetworkError:
    """An error that shows the place in the text with a mark in front of it."""
    shown = " ".join(f"{text[:at]}▸{text[at:]}".split())
    mark = shown.index("▸")
    start, stop = max(0, mark - 40), mark + 41
    shown = ("…" if start else "") + shown[start:stop] + ("…" if stop < len(shown) else "")
    return NetworkError("SYNTAX_ERROR", f"{problem}, at column {at + 1}: {shown}")


def unquote(text: str) -> str:
    """The value of a string literal as Spark reads it: MySQL's escapes, `\\%` and `\\_` kept."""
    if text[0] in "rR":
        return text[2:-1]
    quote = text[0] * 2

    def value(match: re.Match[str]) -> str:
        if match.group() in ("''", '""'):
            return match.group()[0] if match.group() == quote else match.group()
        if code := match[1] or match[2]:
            return chr(int(code, 16))
        if match[3]:
            return chr(int(match[3], 8))
        return _ESCAPES.get(match[4], match[4])

    return _ESCAPE.sub(value, text[1:-1])
