"""Errors a user can act on: a stable code, where it happened, what was expected, what exists."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

_PASSWORD = re.compile(r"(\b[A-Za-z][A-Za-z0-9+.-]*://[^\s/@:]*):[^\s/@]+@")
_concealed: dict[str, str] = {}
_SHORT = 4


def conceal(value: str, name: str) -> None:
    """Show a name in place of a value in all errors from now on."""
    if value.strip():
        _concealed[value] = name


def masked(text: str) -> str:
    """A text without the passwords of URLs and without concealed values.

    >>> masked("cannot reach postgresql://me:secret@host/db")
    'cannot reach postgresql://me:***@host/db'
    """
    for value in sorted(_concealed, key=len, reverse=True):
        if value in text:
            whole = re.escape(value)
            if len(value) < _SHORT:  # a part of a word is hardly this value
                whole = rf"(?<![A-Za-z0-9_]){whole}(?![A-Za-z0-9_])"
            text = re.sub(whole, _concealed[value], text)
    return _PASSWORD.sub(r"\1:***@", text) if "://" in text else text


class DocumentPlace(str):
    """A place in words that also knows its keys in the document.

    >>> place = DocumentPlace("box hot, key where", ("boxes", "hot", "where"))
    >>> place.path
    ('boxes', 'hot', 'where')
    """

    __slots__ = ("path",)
    path: tuple[str | int, ...]

    def __new__(cls, text: str, path: tuple[str | int, ...]) -> DocumentPlace:
        made = super().__new__(cls, text)
        made.path = path
        return made


@dataclass(frozen=True)
class Caution:
    """Something that is allowed but hardly meant; `where` names the box or the stream."""

    code: str
    message: str
    where: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message} [{self.code}]"


class AuroralError(Exception):
    """A mistake or failure that is reported in words, never as a traceback.

    `code` is stable and upper-case, `where` names file, line, box or path, `hint` the likely fix,
    `path` the keys that lead to the mistake in a network's document, if they are known.
    """

    exit_code = 1

    def __init__(
        self, code: str, message: str, *, where: str | None = None, hint: str | None = None
    ):
        self.code = code
        self.message = masked(message)
        self.where = where and masked(where)
        self.path: tuple[str | int, ...] = getattr(where, "path", ())
        self.hint = hint and masked(hint)
        super().__init__(code, self.message)

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{self.code}: {place}{self.message}{hint}"

    def at(self, where: str) -> AuroralError:
        """The same error with its place put in front of the place it already names."""
        place = f"{where}, {self.where}" if self.where else where
        path = getattr(where, "path", ()) or self.path
        known = DocumentPlace(place, path) if path else place
        return type(self)(self.code, self.message, where=known, hint=self.hint)


class NetworkError(AuroralError):
    """The network, its file or an expression in it is invalid."""

    exit_code = 2


class UsageError(AuroralError):
    """A command or call was given something it cannot take."""

    exit_code = 2


class RunError(AuroralError):
    """Something failed while data flowed: a disk, a sink, Spark."""


class SinkError(RunError):
    """A sink raised: it gets nothing more until it is bound anew, others do."""


class StateError(AuroralError):
    """A state directory cannot be used: another network's, newer, locked, damaged."""


def ended() -> UsageError:
    """Something was asked of an engine while it ended."""
    return UsageError("NOT_STARTED", "the engine was shut down meanwhile")


def not_an_output(arc: str) -> UsageError:
    """An arc was given a sink while the engine runs."""
    return UsageError(
        "ALREADY_STARTED",
        f"the arc {arc} is no output; while the engine runs only outputs get a sink",
        hint=f'declare one: engine.modify(add={{"NAME": {{"from": "{arc}"}}}})',
    )


def require_name(name: Any, of: str) -> None:
    """Refuse what cannot be a name."""
    if not isinstance(name, str):
        raise UsageError("BAD_CALL", f"expected the name of {of}, found {name!r}")


def list_existing(names: Iterable[str]) -> str:
    """The clause that lists what exists: `there are a, b, c`.

    >>> list_existing(["b", "a"])
    'there are a, b'
    >>> list_existing([])
    'there are none'
    >>> list_existing([" a", "b"])
    "there are ' a', b"
    """
    ordered = [_seen(name) for name in sorted(names)]
    shown = ", ".join(ordered[:20]) + (", …" if len(ordered) > 20 else "")
    return f"there are {shown}" if ordered else "there are none"


def closest(name: str, names: Iterable[str]) -> str | None:
    """A `did you mean` hint, if some existing name is near.

    >>> closest("wher", ["where", "routes"])
    'did you mean where?'
    >>> closest("READINGS", ["readings"])
    'did you mean readings?'
    """
    by_letters = {other.lower(): other for other in names}
    near = difflib.get_close_matches(name.lower(), list(by_letters), n=1, cutoff=0.6)
    return f"did you mean {_seen(by_letters[near[0]])}?" if near else None


def _seen(name: str) -> str:
    """A name, in quotes if blanks at its ends would not be seen."""
    return name if name == name.strip() else repr(name)
