"""Regular expressions that are searched in a time that grows with the text, and not faster."""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from auroral.errors import NetworkError
from auroral.sql.expressions.patterns import DOLLAR, java_regex

_DOLLAR_OF_RE2 = "(?:(?:\\r\\n|[\\n\\r\\x{85}\\x{2028}\\x{2029}])?\\z)"
_PIECE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", re.DOTALL)
_CLOSED = re.compile(r"\\.|\[(?:\\.|[^\\\]])*\]", re.DOTALL)
_GROUP = re.compile(r"\(\?(?::|P<\w+>|<?[=!])")
_CHOICES = re.compile(r"[*+?{|]")
_FOLDED = {0x17F: 0xE000, 0x212A: 0xE001}
"""What only Unicode's rules take for an s and a k, as something that is neither."""
Search = Callable[[str], bool]


def is_plain(pattern: str) -> bool:
    """Whether nothing in Java's regular expression is repeated or has alternatives.

    >>> [is_plain(pattern) for pattern in ("^a[b*]c$", "a+", "(a|b)", r"a\\+b")]
    [True, False, False, True]
    """
    text = java_regex(pattern).pattern.replace(DOLLAR, "")
    return not _CHOICES.search(_GROUP.sub("(", _CLOSED.sub("", text)))


def linear_search(pattern: str) -> Search:
    """Whether a text has a place that matches Java's regular expression; refused if that is slow.

    >>> search = linear_search("(a+)+$")
    >>> search("b" + "a" * 100), search("a" * 100 + "!")
    (True, False)
    """
    regex = java_regex(pattern)
    if is_plain(pattern):
        return lambda text: regex.search(text) is not None
    matcher = re2_of(pattern)
    return lambda text: bool(matcher(pa.array([text])).to_pylist()[0])


def re2_of(pattern: str) -> Callable[[pa.Array | pa.ChunkedArray], pa.Array | pa.ChunkedArray]:
    """A search of whole columns by RE2, which releases the interpreter."""
    regex = java_regex(pattern)
    text = regex.pattern
    folds = bool(regex.flags & re.IGNORECASE)
    unlike = folds and (not pattern.isascii() or re.search(r"\\[ux]", pattern))
    bounds = re.search(r"\\[bB]", re.sub(r"\\[^bB]", "", text))
    if unlike or bounds:
        raise _slow(pattern)
    translated = _PIECE.sub(_piece, text.replace(DOLLAR, "\0")).replace("\0", _DOLLAR_OF_RE2)
    flags = "s" * bool(regex.flags & re.DOTALL) + "i" * folds
    full = f"(?{flags}){translated}" if flags else translated

    def matcher(texts: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
        if folds:
            for char, instead in _FOLDED.items():
                texts = pc.replace_substring(texts, chr(char), chr(instead))
        return pc.match_substring_regex(texts, full)

    try:
        matcher(pa.array(["a"]))
    except pa.ArrowInvalid:
        raise _slow(pattern) from None
    return matcher


def _piece(found: re.Match[str]) -> str:
    kind = found[0][1]
    if kind in "ux" and len(found[0]) > 2:
        return f"\\x{{{found[0][2:]}}}"
    return "\\z" if kind == "Z" else found[0]


def _slow(pattern: str) -> NetworkError:
    return NetworkError(
        "BAD_CONDITION",
        f"the regular expression {pattern!r:.100} can take too long to search",
        hint="do without back-references, look-around, \\b beside repetitions, and atomic groups",
    )
