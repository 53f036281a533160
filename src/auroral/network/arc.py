"""Arcs as handles: every box is a method of the arc it reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from auroral.network.types import Schema

if TYPE_CHECKING:
    from auroral.network.network import Network


@dataclass(frozen=True)
class Arc:
    """The stream between two boxes, named after what feeds it."""

    network: Network
    name: str

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"Arc({self.name!r})"

    @property
    def schema(self) -> Schema:
        """The fields of its tuples."""
        return self.network.schema_of(self.name)

    def port(self, name: str) -> Arc:
        """Another arc of the same box: `rest`, `late` or a route."""
        arc = Arc(self.network, f"{self.name}.{name}")
        _ = arc.schema
        return arc

    @property
    def rest(self) -> Arc:
        """What a filter lets past."""
        return self.port("rest")

    @property
    def late(self) -> Arc:
        """What came too late for this box."""
        return self.port("late")

    def filter(
        self,
        where: str | None = None,
        *,
        routes: Mapping[str, str] | None = None,
        name: str | None = None,
    ) -> Arc:
        """Keep tuples that satisfy a predicate, or route them by several."""
        return self._add("filter", name, where=where, routes=dict(routes) if routes else None)

    def map(
        self, *, keep: str | Sequence[str] = (), name: str | None = None, **compute: Any
    ) -> Arc:
        """Compute new fields; `keep="*"` keeps the old ones too."""
        kept = keep if isinstance(keep, str) else tuple(keep)
        return self._add("map", name, keep=kept, compute=compute)

    def stateful_map(
        self,
        udf: str | Callable[..., Any],
        *,
        by: Sequence[str] = (),
        returns: str | Mapping[str, str] | Schema | None = None,
        keep: str | Sequence[str] = (),
        name: str | None = None,
    ) -> Arc:
        """Let a class with `init()` and `step(state, row)` make at most one tuple of each.

        `returns` are the fields of the rows it returns, unless the class has an attribute of that
        name; `by` gives each group a state of its own; `keep` names fields that pass unchanged.
        """
        kept = keep if isinstance(keep, str) else tuple(keep)
        given = {"udf": udf, "by": tuple(by), "returns": returns, "keep": kept}
        return self._add("map", name, state=True, **given)

    def union(self, *others: Arc, name: str | None = None) -> Arc:
        """Merge with other arcs of the same schema."""
        return self.network.union(self, *others, name=name)

    def bsort(self, order: Any, *, name: str | None = None) -> Arc:
        """Sort within a buffer of slack + 1 tuples, or as far as punctuation allows."""
        return self._add("bsort", name, order=order)

    def aggregate(
        self,
        order: Any,
        window: Any,
        *,
        name: str | None = None,
        late: str | None = None,
        history: Any = None,
        **compute: Any,
    ) -> Arc:
        """Compute over windows; `late="revise"` corrects closed ones, `history` back."""
        given = {"order": order, "window": window, "late": late, "history": history}
        return self._add("aggregate", name, **given, compute=compute)

    def dedup(self, *keys: str, order: Any, name: str | None = None) -> Arc:
        """Pass the first of tuples with the same keys."""
        return self._add("dedup", name, keys=keys, order=order)

    def join(
        self, other: Arc, on: str | None = None, *, name: str | None = None, **how: Any
    ) -> Arc:
        """Pair with tuples of another arc that lie within a band.

        `how`: `left` and `right` orders, one of `within`, `range` and `rows`, and `timeout`.
        """
        return self.network.box("join", name, inputs=(self, other), on=on, **how)

    def resample(
        self,
        other: Arc,
        *,
        left: Any,
        right: Any,
        within: Any,
        timeout: float | None = None,
        name: str | None = None,
        **compute: Any,
    ) -> Arc:
        """Compute over the other arc's tuples near each of this one's.

        After `timeout` seconds a tuple of this arc is answered with what there is.
        """
        return self.network.box(
            "resample",
            name,
            inputs=(self, other),
            left=left,
            right=right,
            within=within,
            compute=compute,
            timeout=timeout,
        )

    def read(
        self, sql: str, *, keep: Sequence[str] = (), order: Any = None, name: str | None = None
    ) -> Arc:
        """Run a SELECT per tuple and emit its rows, fields of the tuple to `keep` before them."""
        return self._add("read", name, sql=sql, keep=tuple(keep), order=order)

    def update(self, sql: str, *, order: Any = None, name: str | None = None, **report: str) -> Arc:
        """Run an UPDATE, INSERT or DELETE per tuple and emit a report."""
        return self._add("update", name, sql=sql, order=order, report=report)

    def wait_for(self, signal: Arc, match: str, *, timeout: float, name: str | None = None) -> Arc:
        """Hold each tuple until a signal matches it."""
        return self.network.box(
            "wait_for", name, inputs=(self, signal), match=match, timeout=timeout
        )

    def latch(
        self, table: str | Arc, *, by: Sequence[str], name: str | None = None, **compute: str
    ) -> Arc:
        """Keep running aggregates of all tuples by key in a table, and emit each change."""
        given = {"by": tuple(by), "compute": compute, "table": str(table)}
        return self._add("latch", name, **given)

    def _add(self, kind: str, name: str | None, **parameters: Any) -> Arc:
        given = {key: value for key, value in parameters.items() if value is not None}
        return self.network.box(kind, name, input=self, **given)
