"""Which arcs keep their history, and how much of it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from auroral.network.declarations import KEEP_ALL, Keep, duration_us
from auroral.network.network import Network
from auroral.network.point_names import point_arcs


@dataclass(frozen=True)
class KeptArc:
    """A connection point or a view: the arc whose tuples are kept, and the bounds; None: none."""

    name: str
    arc: str
    time_us: int | None = None
    rows: int | None = None
    bytes: int | None = None
    key: str | None = None

    @property
    def is_bounded(self) -> bool:
        """Whether something is dropped at some time."""
        return (self.time_us, self.rows, self.bytes) != (None, None, None)

    @property
    def keeps_nothing(self) -> bool:
        """Whether it is a view that only runs: what queries have still to read stays."""
        return self.rows == 0


def kept_arcs(network: Network, demanded: Collection[str] = ()) -> dict[str, KeptArc]:
    """The connection points and views of a network whose arcs are written to logs, by name.

    These keep something, or are views that are `demanded`: queries are attached to them.

    >>> net = Network("border")
    >>> reports = net.stream("reports", "sid int")
    >>> _ = net.connection_point("recent", reports, keep={"time": "1 s", "rows": 9})
    >>> kept_arcs(net)["recent"]
    KeptArc(name='recent', arc='reports', time_us=1000000, rows=9, bytes=None, key=None)
    """
    arcs = point_arcs(network)
    found = {}
    for name, arc in arcs.items():
        declared = network.connection_points[name]
        time_us, rows = _bounds(declared.keep)
        found[name] = KeptArc(name, arc, time_us, rows, key=declared.key)
    parts = [view for view in network.views.values() if view.materialized == "part"]
    share = network.engine.view_bytes // max(len(parts), 1)
    for name, view in network.views.items():
        arc = arcs.get(view.from_, view.from_)
        time_us, rows = _bounds(view.keep)
        if view.materialized == "full":
            found[name] = KeptArc(name, arc, time_us, rows)
        elif view.materialized == "part":
            found[name] = KeptArc(name, arc, time_us, rows, share)
        elif name in demanded:
            found[name] = on_demand(name, arc)
    return found


def on_demand(name: str, arc: str) -> KeptArc:
    """A view that runs and keeps nothing."""
    return KeptArc(name, arc, rows=0)


def _bounds(keep: str | Keep | None) -> tuple[int | None, int | None]:
    if keep is None or keep == KEEP_ALL:
        return None, None
    if isinstance(keep, str):
        return duration_us(keep, "keep"), None
    return None if keep.time is None else duration_us(keep.time, "time"), keep.rows
