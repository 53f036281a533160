"""The last fifteen minutes of what a canvas charts: rings of fixed length."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from typing import Any

STEP_S = 2.0
KEPT_S = 900.0
RECENT = 90
"""Values of `recent_utility`: three minutes."""
_LENGTH = int(KEPT_S / STEP_S)
_SERIES: Mapping[str, tuple[str, ...]] = {
    "boxes": ("in_rate", "out_rate", "selectivity", "cost_s", "held", "queued"),
    "arcs": ("rate", "queued", "oldest_s"),
    "outputs": (
        *("rate", "waiting", "lag_s", "utility"),
        *("latency_s", "latency_p95_s", "loss", "value"),
    ),
    "points": ("rows", "bytes"),
    "queries": ("matches",),
}
_WHOLE = ("rate", "utility", "steps", "step_s", "late", "dead", "shed", "memory_bytes")
WHOLE = "*"
"""The name under which the figures of the whole engine are kept."""

Values = tuple[float | None, ...]


class PictureHistory:
    """Keeps a value of each figure every two seconds, and forgets those of what is gone."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._times: deque[float] = deque(maxlen=_LENGTH)
        self._rings: dict[tuple[str, str], deque[Values]] = {}

    def add(self, at_s: float, picture: Mapping[str, Any]) -> bool:
        """Take the figures of a picture, unless the last one is younger than two seconds."""
        with self._lock:
            if self._times and at_s - self._times[-1] < STEP_S * 0.9:
                return False
            self._times.append(at_s)
            found = {(WHOLE, WHOLE): tuple(picture[name] for name in _WHOLE)}
            for section, names in _SERIES.items():
                for entity, figures in picture[section].items():
                    found[section, entity] = tuple(figures.get(name) for name in names)
            for key in self._rings.keys() - found.keys():
                del self._rings[key]
            for key, values in found.items():
                self._rings.setdefault(key, deque(maxlen=_LENGTH)).append(values)
            return True

    def of(self, name: str) -> dict[str, Any] | None:
        """The series of an entity; those of an output are first if a box has the same name."""
        order = ("outputs", "boxes", "points", "queries", "arcs", WHOLE)
        with self._lock:
            rings = [(s, self._rings[s, name]) for s in order if (s, name) in self._rings]
            if not rings:
                return None
            longest = max(len(ring) for _, ring in rings)
            times = list(self._times)[-longest:]
            series: dict[str, list[float | None]] = {}
            for section, ring in rings:
                for at, figure in enumerate(_WHOLE if section == WHOLE else _SERIES[section]):
                    values: list[float | None] = [row[at] for row in ring]
                    missing: list[float | None] = [None] * (longest - len(values))
                    series.setdefault(figure, missing + values)
            return {"at_s": times, "series": series}

    def recent(self, section: str, name: str, figure: str) -> list[float | None]:
        """The latest values of one figure, newest last."""
        at = _SERIES[section].index(figure)
        with self._lock:
            ring = self._rings.get((section, name))
            return [] if ring is None else [row[at] for row in list(ring)[-RECENT:]]
