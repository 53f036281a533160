"""Attaching and detaching while the network runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from auroral.eddy.registered import NEVER
from auroral.engine.context import EngineContext
from auroral.engine.ingest.ingest import Ingest
from auroral.engine.lifecycle.network_changes import NetworkChanges
from auroral.engine.locks import ReentrantLock
from auroral.engine.points.ad_hoc_query import AdHocQuery, Build
from auroral.engine.points.attachments import Attachments
from auroral.engine.points.branch_marks import held_before
from auroral.engine.points.history import KeptHistory
from auroral.engine.points.mark_series import series_of
from auroral.engine.points.on_demand import ViewsOnDemand
from auroral.engine.points.point import PointHistory
from auroral.engine.runtime.loop import Loop
from auroral.engine.runtime.watermarks import WatermarkTracker
from auroral.errors import UsageError, require_name
from auroral.ids import AttachmentId
from auroral.network.network import Network
from auroral.progress.values import from_mark, to_mark
from auroral.storage import Change, Store

_LOOK_S = 1.0


@dataclass(frozen=True)
class HistoryStretch:
    """A part of kept history, up to and including a value of the progressing attribute."""

    until: Any = None
    """None: everything that is kept at the moment of attaching."""


class Attaching:
    """Adds and removes attached queries.

    A query is attached at the moment of the next arrival. It begins with the oldest tuple that the
    point keeps at that moment, or with the oldest of these at or above `since`, and then it sees
    everything on the arc. The path of a view that keeps nothing begins to run when a query is
    attached to it.
    """

    def __init__(
        self,
        store: Store,
        network: Callable[[], Network],
        history: KeptHistory,
        attachments: Attachments,
        ingest: Ingest,
        loop: Loop,
        lock: ReentrantLock,
        query_names: Callable[[], list[str]],
        context: EngineContext,
        changes: NetworkChanges,
    ):
        """`lock` is held while queries change, which share names with what is attached."""
        self._store = store
        self._network = network
        self._history = history
        self._attachments = attachments
        self._ingest = ingest
        self._loop = loop
        self._lock = lock
        self._query_names = query_names
        self._reserved: dict[str, str] = {}
        """Queries that are about to be attached, and to what."""
        self.on_demand = ViewsOnDemand(context, changes, ingest, loop, self._is_used)

    def attach(
        self,
        point: str,
        query: str | Build | AdHocQuery,
        name: str | None,
        since: Any,
        *,
        stretch: HistoryStretch | None = None,
        lasting: bool = True,
    ) -> str:
        """Attach a query; returns its name. One that is not `lasting` ends with the engine.

        With a `stretch` it gives kept history alone, and ends by itself.
        """
        require_name(point, "a connection point or a view")
        resting = point in self.on_demand
        if resting:
            self.on_demand.require_begins_now(point, since)
        else:
            found = self._history.require(point, self._network())
        with self._loop.between_rounds(), self._lock:
            name = self._reserve(name, point)
        try:
            if resting:
                self._check(point, name, query)
                self.on_demand.begin(point)
                found = self._history.require(point, self._network())
            value = None if since is None else as_mark_of(found, since, "since")
            until = stretch.until if stretch is not None else None
            limit = None if until is None else as_mark_of(found, until, "until")
            self._attach(found, query, name, (value, limit), stretch is not None, lasting)
        finally:
            del self._reserved[name]
            if resting:  # if it was not attached
                self.on_demand.end_unused([point])
        self._loop.wake()
        return name

    def _check(self, view: str, name: str, query: str | Build | AdHocQuery) -> None:
        """Refuse a query that cannot be attached to a view, before that begins to run."""
        point = self.on_demand.as_if_running(view)
        _, plan = self._attachments.prepare(self._loop.execution, point, name, query)
        plan.discard()

    def _is_used(self, view: str) -> bool:
        return bool(self._attachments.on(view)) or view in self._reserved.values()

    def _attach(
        self,
        point: PointHistory,
        query: str | Build | AdHocQuery,
        name: str,
        span: tuple[Any, Any],
        ends: bool,
        lasting: bool,
    ) -> None:
        """`span` are marks from which on and up to which history is wanted, if not all is."""
        since, until = span
        branch, plan = self._attachments.prepare(self._loop.execution, point, name, query)
        try:
            moment = self._hold(point, name)
            depends = point.kept.is_bounded and not point.kept.keeps_nothing
            if depends or since is not None or until is not None:
                self._await(point, moment)
            with self._loop.between_rounds(), self._lock:
                execution = self._loop.execution
                execution.stepper.fold(self._ingest.seal())
                begins = beginning(self._history, point, execution.watermarks, moment, since)
                before = NEVER if not ends else point.until(until, begins, moment)
                self._attachments.add(
                    execution, point, name, branch, plan, begins, ends=before, lasting=lasting
                )
        except BaseException:
            plan.discard()
            point.holds.pop(name, None)
            raise
        finally:
            self._store.forget([], [(point.arc, str(AttachmentId(name)))])

    def _hold(self, point: PointHistory, name: str) -> int:
        """The moment of attaching; nothing that is kept now goes until the query has begun."""
        with self._loop.between_rounds():
            with self._ingest.at_moment() as moment:
                place = (point.arc, str(AttachmentId(name)))
                self._store.commit(Change(heads={place: point.oldest}))
            point.holds[name] = point.oldest
        return moment

    def _await(self, point: PointHistory, moment: int) -> None:
        """Wait until all tuples of the arc before a moment are there: which stay is known then."""
        while self._loop.execution.stepper.emitted_before(point.arc) < moment:
            if self._loop.failure is not None:
                raise self._loop.failure
            self._loop.require_going()
            self._loop.execution.require_well()
            self._loop.require_unpaused(moment)
            if not self._loop.settle_or_wait(moment, _LOOK_S):
                return

    # ── names and values ──

    def _reserve(self, name: str | None, point: str) -> str:
        taken = {*self._query_names(), *self._network().outputs, *self._attachments.names}
        taken |= self._reserved.keys()
        if name is None:
            number = 1
            while f"attached_{number}" in taken:
                number += 1
            name = f"attached_{number}"
        require_name(name, "an attached query")
        self._network().require_query_name(name)
        if name in taken:
            raise UsageError("DUPLICATE_NAME", f"the name {name} is taken")
        self._reserved[name] = point
        return name

    # ── going ──

    def detach(self, name: str) -> None:
        """Detach a query; what nobody has taken of its results is dropped."""
        self._attachments.require(name)
        with self._loop.between_rounds(), self._lock:
            self._attachments.require(name)
            sinks = self._loop.execution.sinks
            released = sinks.detach(name)
            self._attachments.remove(name)
            sinks.outputs.forget([name])
        self.on_demand.end_unused()
        sinks.await_closed(released)
        self._loop.wake()


def as_mark_of(point: PointHistory, value: Any, called: str) -> Any:
    """A value of the progressing attribute of a point, as marks are."""
    if point.attribute is None:
        raise UsageError(
            "BAD_CALL",
            f"{called} is a value of a field that makes progress, but {point.name} has none",
        )
    kind = point.schema.field(point.attribute).type
    try:
        if kind.name.startswith("timestamp") and isinstance(value, str):
            value = datetime.fromisoformat(value)
        elif kind.name == "date" and isinstance(value, str):
            value = date.fromisoformat(value)
        elif kind.name == "decimal":
            value = Decimal(str(value))
        elif kind.is_numeric and isinstance(value, str | bool):
            raise ValueError
        return to_mark(value, kind.scale)
    except (ValueError, TypeError, ArithmeticError):
        problem = f"{called} is a value of {point.attribute} ({kind}), found {value!r}"
        raise UsageError("BAD_CALL", problem) from None


def beginning(
    history: KeptHistory, point: PointHistory, live: WatermarkTracker, moment: int, since: Any
) -> int:
    """Where a query begins that is attached at a moment, before which the arc is complete."""
    mark = None
    if point.attribute is not None:
        (series,) = series_of({point.attribute: point.shape[point.attribute]})
        mark = held_before(point, live, moment).get(series)
    begins = point.beginning(moment, mark, history.now_us(point))
    if since is None:
        return begins
    least = point.least_kept(begins, mark)
    if least is not None and since < least and history.has_dropped(point, begins):
        kind = point.schema.field(point.attribute or "").type
        asked, kept = (from_mark(value, kind.name, kind.scale) for value in (since, least))
        raise UsageError(
            "HISTORY_TOO_SHORT",
            f"{point.name} keeps {point.attribute} from {kept} on, not from {asked}",
            hint="leave out since to get everything that is kept",
        )
    return point.since(since, begins, moment)
