"""What a state directory is: in which format it is written, and whose network's it is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from auroral.errors import StateError
from auroral.storage.manifest import FORMAT, Manifest


def require_format(manifest: Manifest, directory: Path, *, buckets: int) -> None:
    """Refuse what another version wrote; a new directory gets its format and its buckets."""
    found = manifest.meta("format")
    if found is None:
        with manifest.transaction():
            manifest.set_meta("format", str(FORMAT))
            manifest.set_meta("next_moment", "0")
            manifest.set_meta("buckets", str(buckets))
    elif int(found) != FORMAT:
        older = int(found) < FORMAT
        raise StateError(
            "STATE_TOO_OLD" if older else "STATE_TOO_NEW",
            f"the state directory has format {found}, this version reads {FORMAT}",
            where=str(directory),
            hint="use the version that wrote it, or another directory",
        )


def bind_network(manifest: Manifest, document: Mapping[str, Any], directory: Path) -> None:
    """Make a directory a network's, or refuse another's."""
    text = json.dumps(document, sort_keys=True)
    found = manifest.meta("network")
    if found is None:
        with manifest.transaction():
            manifest.set_meta("network", text)
    elif found != text:
        other = json.loads(found)
        raise StateError(
            "STATE_OF_OTHER_NETWORK",
            f"the state directory belongs to {difference(other, document)}",
            where=str(directory),
            hint="use the network it was made with, or another directory",
        )


def difference(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    """How a network differs from the one a state directory was made with, in words."""
    if found.get("network") != wanted.get("network"):
        return f"the network {found.get('network')}, not {wanted.get('network')}"
    changed = []
    for section in sorted({*found, *wanted} - {"network"}):
        before, after = found.get(section, {}), wanted.get(section, {})
        names = {*before, *after} if isinstance(before, dict) and isinstance(after, dict) else set()
        changed += [f"{section}.{n}" for n in sorted(names) if before.get(n) != after.get(n)]
    return f"another version of {found.get('network')}: {', '.join(changed)} differ"
