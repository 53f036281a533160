"""What a transaction of the store is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from auroral.storage.segment import Segment


@dataclass(frozen=True)
class Fresh:
    """New tuples of a log, not yet written: hidden columns first, in order of arrival."""

    log: str
    table: pa.Table
    sealed: int
    punctuations: tuple[tuple[int, Any, tuple[Any, ...]], ...] = ()


@dataclass
class Change:
    """What one transaction makes true."""

    fresh: Sequence[Fresh] = ()
    written: Sequence[Segment] = ()
    retired: Sequence[Segment] = ()
    """Segments of state that others take the place of."""
    next_moment: int | None = None
    heads: Mapping[tuple[str, str], int] = field(default_factory=dict)
    progress: Mapping[str, Any] = field(default_factory=dict)
    sources: Mapping[str, Any] = field(default_factory=dict)
    sinks: Mapping[str, Any] = field(default_factory=dict)
    counts: Mapping[tuple[str, str], int] = field(default_factory=dict)
    meta: Mapping[str, str] = field(default_factory=dict)
    finished_step: int | None = None


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
