"""Finding a Java that Spark can run on."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from auroral.errors import UsageError

LEAST_MAJOR = 17
_HINT = "install OpenJDK 17 or newer and set JAVA_HOME, or put java on the PATH"


def require_java() -> Path:
    """The java executable, or one clear sentence about what is missing."""
    java = _find()
    major = _major(java)
    if major is not None and major < LEAST_MAJOR:
        raise UsageError(
            "WRONG_JAVA",
            f"Spark needs Java {LEAST_MAJOR} or newer, found {major}",
            where=str(java),
            hint=_HINT,
        )
    return java


def _find() -> Path:
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        if java.exists():
            return java
        raise UsageError("NO_JAVA", f"JAVA_HOME has no bin/java: {home}", hint=_HINT)
    found = shutil.which("java")
    if found:
        return Path(found)
    noted = Path(sys.prefix) / "java_home"
    if noted.exists():
        # Where set-up found one that is not on the PATH.
        os.environ["JAVA_HOME"] = noted.read_text().strip()
        return Path(os.environ["JAVA_HOME"]) / "bin" / "java"
    raise UsageError("NO_JAVA", "Spark needs Java, and none was found", hint=_HINT)


def _major(java: Path) -> int | None:
    """The major version, from the `release` file if there is one, else by asking."""
    release = java.resolve().parent.parent / "release"
    if release.exists():
        found = re.search(r'JAVA_VERSION="([^"]+)"', release.read_text(errors="replace"))
        if found:
            return parse_major(found[1])
    try:
        done = subprocess.run(
            [str(java), "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError("NO_JAVA", f"java does not start: {error}", where=str(java)) from None
    found = re.search(r'version "([^"]+)"', done.stderr + done.stdout)
    return parse_major(found[1]) if found else None


def parse_major(version: str) -> int:
    """The major version: `1.8.0_392` is 8, `17.0.15` is 17.

    >>> parse_major("1.8.0_392"), parse_major("21-ea")
    (8, 21)
    """
    parts = re.findall(r"\d+", version)
    return int(parts[1] if parts[0] == "1" and len(parts) > 1 else parts[0])
