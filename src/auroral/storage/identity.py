"""What a state directory is: in which format it is written, and whose network's it is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from auroral.errors import StateError
from auroral.storage.manifest import CATALOG, FORMAT, Manifest

ORDERED = frozenset(("schema", "routes", "compute", "report", "returns"))
"""The parameters whose keys are in an order that counts: of fields, and of what is tried first."""


def require_format(
    manifest: Manifest, directory: Path, *, buckets: int | None, default: int
) -> None:
    """Refuse what another version wrote, or another number of buckets if one is wanted.

    A new directory gets its format, and the buckets that are wanted or the default.
    """
    found = manifest.meta("format")
    if found is None:
        with manifest.transaction():
            manifest.set_meta("format", str(FORMAT))
            manifest.set_meta("catalog", str(CATALOG))
            manifest.set_meta("next_moment", "0")
            manifest.set_meta("buckets", str(buckets or default))
    elif int(found) != FORMAT:
        raise wrong_format(found, directory)
    elif buckets is not None and manifest.meta("buckets") != str(buckets):
        raise StateError(
            "OTHER_BUCKETS",
            f"the state directory has {manifest.meta('buckets')} buckets, not {buckets}",
            where=str(directory),
            hint=f"change it with `auroral rescale {directory} {buckets}`, or leave buckets out",
        )


def wrong_format(found: str | None, directory: Path) -> StateError:
    """What is said of a state directory that another version wrote."""
    older = int(found or 0) < FORMAT
    return StateError(
        "STATE_TOO_OLD" if older else "STATE_TOO_NEW",
        f"the state directory has format {found}, this version reads {FORMAT}",
        where=str(directory),
        hint="use the version that wrote it, or another directory",
    )


def default_buckets(cores: int) -> int:
    """Twice the cores, rounded up to a power of two.

    >>> [default_buckets(cores) for cores in (1, 2, 3, 12)]
    [2, 4, 8, 32]
    """
    return 1 << (2 * cores - 1).bit_length()


def bind_network(manifest: Manifest, document: Mapping[str, Any], directory: Path) -> bool:
    """Make a directory a network's, or refuse another's; whether it is declared otherwise now."""
    text = json.dumps(canonical(document))
    found = manifest.meta("network")
    if found is None:
        with manifest.transaction():
            manifest.set_meta("network", text)
        return False
    other = json.loads(found)
    if other.get("network") != document.get("network"):
        raise StateError(
            "STATE_OF_OTHER_NETWORK",
            f"the state directory belongs to {difference(other, canonical(document))}",
            where=str(directory),
            hint="use the network it was made with, or another directory",
        )
    return found != text


def canonical(document: Mapping[str, Any]) -> dict[str, Any]:
    """The same network with keys sorted wherever their order means nothing.

    >>> canonical({"boxes": {"b": {"routes": {"z": "1", "a": "2"}, "input": "s"}}})
    {'boxes': {'b': {'input': 's', 'routes': {'z': '1', 'a': '2'}}}}
    """
    return {
        section: {name: _parameters(part[name]) for name in sorted(part)}
        if isinstance(part, Mapping)
        else part
        for section, part in sorted(document.items())
    }


def _parameters(declared: Any) -> Any:
    if not isinstance(declared, Mapping):
        return _sorted(declared)
    return {
        key: {field: _sorted(value) for field, value in part.items()}
        if key in ORDERED and isinstance(part, Mapping)
        else _sorted(part)
        for key, part in sorted(declared.items())
    }


def _sorted(part: Any) -> Any:
    if isinstance(part, Mapping):
        return {key: _sorted(part[key]) for key in sorted(part)}
    return [_sorted(item) for item in part] if isinstance(part, list | tuple) else part


def difference(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    """How a network differs from the one a state directory was made with, in words."""
    if found.get("network") != wanted.get("network"):
        return f"the network {found.get('network')}, not {wanted.get('network')}"
    changed = []
    for section in sorted({*found, *wanted} - {"network"}):
        before, after = found.get(section, {}), wanted.get(section, {})
        names = {*before, *after} if isinstance(before, dict) and isinstance(after, dict) else set()
        for name in sorted(names):
            if name not in before or name not in after:
                changed.append(f"{section}.{name}: {'added' if name in after else 'missing'} now")
            elif json.dumps(before[name]) != json.dumps(after[name]):
                what = ", ".join(_changed(before[name], after[name]))
                changed.append(f"{section}.{name}" + (f": {what}" if what else ""))
    return f"another version of {found.get('network')}; what differs is {'; '.join(changed)}"


def _changed(before: Any, after: Any) -> list[str]:
    """The parameters of a declaration that differ, if only in their order."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return []
    keys = sorted({*before, *after})
    return [
        key if before.get(key) != after.get(key) else f"the order of {key}"
        for key in keys
        if json.dumps(before.get(key)) != json.dumps(after.get(key))
    ]
