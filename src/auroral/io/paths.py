"""Paths of files that Auroral reads and writes itself: those of this machine."""

from __future__ import annotations

import os
import re

from auroral.errors import UsageError

# A path may have lost a slash on its way through `Path`; one letter is a drive of Windows.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")


def require_local(path: str | os.PathLike[str], where: str) -> None:
    """Refuse a URL, which would be taken for a directory of that name.

    >>> require_local("x.csv", "sink of alerts")
    """
    text = os.fspath(path)
    found = _SCHEME.match(text) if isinstance(text, str) else None
    if found:
        scheme = found.group(1).lower()
        raise UsageError(
            "NOT_LOCAL",
            f"expected a path, found a URL ({scheme}): this version reads and writes local files",
            where=where,
            hint="give the path without file://"
            if scheme == "file"
            else "copy it, mount it, or read it by one of Spark's connectors",
        )
