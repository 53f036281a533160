"""Text to typed columns, one column at a time: how CSV fields and ISO strings are read.

What is read must not depend on the company a value keeps, so there is one way to read a value:
Arrow's cast, of the whole column if it succeeds, else of ever smaller parts after tidying.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from auroral.network.types import FRACTIONAL, INTEGRAL, Type

Parsed = tuple[pa.Array, dict[int, str]]
"""The column, NULL where a value does not fit; and for each such value why not."""

Cast = Callable[[pa.Array], pa.Array]
FOUND_CHARS = 60
ZONED = r"[T ]\d.*(Z|[+-]\d\d(:?\d\d)?)$"
_NUMBER = r"(?i)^[+-]?([0-9.]+(e[+-]?[0-9]+)?|nan|inf|infinity)$"
# No value of another shape can be cast, so that many bad values need not be tried one by one.
_SHAPES = {
    **dict.fromkeys(INTEGRAL, r"^-?[0-9]+$"),
    **dict.fromkeys((*FRACTIONAL, "decimal"), _NUMBER),
    **dict.fromkeys(("date", "timestamp", "timestamp_ntz"), r"^\d{4}-\d\d-\d\d"),
    "boolean": "(?i)^(true|false)$",
}
_UTC = pa.timestamp("us", tz="UTC")
_NO_ZONE = pa.timestamp("us")


def expected(type: Type | str, found: object) -> str:
    """Say what was expected and what came.

    >>> expected("int", "abc")
    "expected int, found 'abc'"
    """
    shown = repr(found)
    if len(shown) > FOUND_CHARS:
        shown = f"{shown[:FOUND_CHARS]}…"
    return f"expected {type}, found {shown}"


def parse(texts: pa.Array, type: Type) -> Parsed:
    """Read a column of strings; NULL stays NULL, and empty text is NULL but for strings and binary.

    >>> parse(pa.array(["1", "x", None, " +3"]), Type("int"))[1]
    {1: "expected int, found 'x'"}
    """
    if type.name == "string":
        return texts, {}
    cast = caster(type)
    try:
        return cast(texts), {}
    except (pa.ArrowInvalid, ValueError):
        if type.is_integral:
            cast = _plain(type)
        return _by_halves(cast, tidy(texts, type), texts, type)


def caster(type: Type) -> Cast:
    """The cast that reads a column of tidy strings or raises if any of them does not fit."""
    if type.is_integral:
        return lambda texts: _integers(texts, type.arrow())
    if type.name == "boolean":
        return _booleans
    if type.name == "binary":
        return _binary
    if type.name == "timestamp":
        return _timestamps
    return _plain(type)


def _plain(type: Type) -> Cast:
    arrow = type.arrow()
    return lambda texts: texts.cast(arrow)


def tidy(texts: pa.Array, type: Type) -> pa.Array:
    """Take away what does not matter: blanks around, a plus, zeros below the microsecond."""
    texts = pc.utf8_trim_whitespace(texts)
    if type.is_integral:
        texts = pc.replace_substring_regex(texts, r"^\+(\d)", r"\1")
        texts = pc.replace_substring_regex(texts, r"^.*[xX].*$", "x")
    elif type.name.startswith("timestamp"):
        texts = pc.replace_substring_regex(texts, r"z$", "Z")
        texts = pc.replace_substring_regex(texts, r"(\.\d{6})0+", r"\1")
    if type.name == "binary":
        return texts
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)


def _by_halves(cast: Cast, texts: pa.Array, shown: pa.Array, type: Type) -> Parsed:
    """Cast all that can be cast; costs some casts per value that cannot."""
    pieces: list[pa.Array] = []
    wrong: dict[int, str] = {}
    shape = _SHAPES.get(type.name)
    if shape:
        hopeless = pc.invert(pc.match_substring_regex(texts, shape))
        for i in pc.indices_nonzero(hopeless).to_pylist():
            wrong[i] = expected(type, shown[i].as_py())
        texts = pc.if_else(hopeless, pa.scalar(None, pa.string()), texts)
    todo = [(0, len(texts))]
    while todo:
        start, length = todo.pop()
        try:
            pieces.append(cast(texts.slice(start, length)))
        except (pa.ArrowInvalid, ValueError):
            if length == 1:
                wrong[start] = expected(type, shown[start].as_py())
                pieces.append(pa.nulls(1, type.arrow()))
            else:
                half = length // 2
                todo += [(start + half, length - half), (start, half)]
    return pa.concat_arrays(pieces), wrong


def _integers(texts: pa.Array, type: pa.DataType) -> pa.Array:
    # Arrow reads 0x10 as 16.
    data = texts.buffers()[2]
    if data is not None:
        held = data.to_pybytes()
        if b"x" in held or b"X" in held:
            raise ValueError("maybe hexadecimal")
    return texts.cast(type)


def _booleans(texts: pa.Array) -> pa.Array:
    lower = pc.ascii_lower(texts)
    yes = pc.equal(lower, "true")
    if pc.all(pc.or_(yes, pc.equal(lower, "false"))).as_py() is False:
        raise ValueError("neither true nor false")
    return yes


def _binary(texts: pa.Array) -> pa.Array:
    try:
        values = [
            None if t is None else base64.b64decode(t, validate=True) for t in texts.to_pylist()
        ]
    except binascii.Error:
        raise ValueError("not base64") from None
    return pa.array(values, pa.binary())


def _timestamps(texts: pa.Array) -> pa.Array:
    """Text without a zone is UTC; Arrow wants either all with or all without."""
    try:
        return texts.cast(_UTC)
    except pa.ArrowInvalid:
        pass
    try:
        return texts.cast(_NO_ZONE).cast(_UTC)
    except pa.ArrowInvalid:
        if len(texts) == 1:
            raise
    zoned = pc.match_substring_regex(texts, ZONED)
    none = pa.scalar(None, pa.string())
    with_zone = pc.if_else(zoned, texts, none).cast(_UTC)
    without = pc.if_else(zoned, none, texts).cast(_NO_ZONE).cast(_UTC)
    return pc.coalesce(with_zone, without)
