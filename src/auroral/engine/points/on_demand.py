"""Views that keep nothing: their paths run only while queries are attached to them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from auroral.engine.context import EngineContext
from auroral.engine.ingest.ingest import Ingest
from auroral.engine.lifecycle.network_changes import NetworkChanges
from auroral.engine.points.kept_arc import on_demand
from auroral.engine.points.point import PointHistory
from auroral.engine.runtime.loop import Loop
from auroral.errors import UsageError
from auroral.network.point_names import live_arc


class ViewsOnDemand:
    """Begins and ends the paths of views; each is a change of the network, by an epoch.

    A view begins to run with the first query that is attached to it. Boxes that run for it alone
    begin empty, as they do when `modify` adds an output. When the last query is detached, they
    stop and forget everything.
    """

    def __init__(
        self,
        context: EngineContext,
        changes: NetworkChanges,
        ingest: Ingest,
        loop: Loop,
        is_used: Callable[[str], bool],
    ):
        """`is_used` says whether a query is attached to a view, or about to be."""
        self._context = context
        self._epochs = context.queries.epochs
        self._changes = changes
        self._ingest = ingest
        self._loop = loop
        self._is_used = is_used

    def __contains__(self, name: object) -> bool:
        """Whether there is such a view, which keeps nothing."""
        view = self._epochs.latest.declared.network.views.get(str(name))
        return view is not None and view.materialized == "none"

    def require_begins_now(self, view: str, since: object) -> None:
        """Refuse to begin in the past, of which nothing is kept."""
        if since is not None:
            raise UsageError(
                "HISTORY_TOO_SHORT",
                f"the view {view} keeps nothing of the past",
                hint="leave out since, or give the view keep or materialize: part",
            )

    def require_history(self, name: str) -> None:
        """Refuse a view that keeps nothing where only the past is wanted."""
        if name in self:
            raise UsageError(
                "NOT_MATERIALIZED",
                f"the view {name} keeps nothing of the past",
                hint="give --follow to see what flows, or give the view keep or materialize: part",
            )

    def as_if_running(self, view: str) -> PointHistory:
        """What a query would be attached to, so that it can be checked before anything happens."""
        checked = self._loop.execution.checked
        from_ = checked.network.views[view].from_
        arc = live_arc(checked.network, from_)
        return PointHistory(self._context.store, on_demand(view, arc), checked)

    def begin(self, view: str) -> None:
        """Let the path of a view run, and wait until it does."""
        with self._context.locks.network:
            demanded = self._epochs.latest.declared.demanded
            if view not in demanded:
                self._demand(demanded | {view})
                why = "it runs: a query is attached to it"
                self._context.decisions.note([view], "changed", why)
            self._loop.await_epoch(self._epochs.latest.start)

    def end_unused(self, views: Collection[str] | None = None) -> None:
        """Let the paths of views end that no query is attached to; of all views, or of some."""
        if self._ingest.ended is not None:
            return  # nothing comes that they would process
        with self._context.locks.network:
            demanded = self._epochs.latest.declared.demanded
            looked_at = demanded if views is None else demanded.intersection(views)
            unused = [view for view in sorted(looked_at) if not self._is_used(view)]
            if unused:
                self._demand(demanded.difference(unused))
                for view in unused:
                    why = "it rests: no query is attached to it any more"
                    self._context.decisions.note([view], "changed", why)

    def _demand(self, views: Collection[str]) -> int:
        """Let some views run from the next moment on, and no others."""
        declared = replace(self._epochs.latest.declared, demanded=frozenset(views))
        return self._changes.make(self._changes.plan(declared))
