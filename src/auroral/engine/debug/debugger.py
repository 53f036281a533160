"""The debugging calls of an engine, put together from their parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from auroral.engine.debug.stepping_by_hand import STEP_KINDS, run_paused
from auroral.engine.debug.watch import DebugWatch
from auroral.engine.inspect.followers import Follower
from auroral.engine.lifecycle.editor import NetworkEditor
from auroral.engine.lifecycle.edits import NetworkEdit
from auroral.engine.parts import EngineParts
from auroral.engine.points.attaching import HistoryStretch
from auroral.engine.points.browsing import kept_rows
from auroral.engine.queries.modification import requested
from auroral.errors import UsageError, closest, list_existing, require_name


class Debugger:
    """Pauses, steps, breaks, traces and looks at tuples."""

    def __init__(self, parts: EngineParts, editor: NetworkEditor):
        self._parts = parts
        self._editor = editor
        self._watch: DebugWatch = parts.watch
        self._trace: list[dict[str, Any]] = []

    # ── pausing ──

    def pause(self, application: str | None) -> dict[str, Any]:
        """Pause everything or one application."""
        watch = self._watch
        with self._parts.loop.between_rounds():
            self._require_application(application)
            watch.change(watch.pauses.pause(application))
        return self.state()

    def resume(self, application: str | None) -> dict[str, Any]:
        """Go on with everything or one application."""
        watch = self._watch
        with self._parts.loop.between_rounds():
            self._require_application(application)
            watch.hit = None
            watch.change(watch.pauses.resume(application, watch.applications()))
        self._parts.loop.wake()
        return self.state()

    def _require_application(self, application: str | None) -> None:
        if application is None:
            return
        require_name(application, "an output or a query")
        names = self._watch.applications()
        if application not in names:
            raise UsageError(
                "UNKNOWN_OUTPUT",
                f"there is no output {application}; {list_existing(names)}",
                hint=closest(application, names),
            )

    def state(self) -> dict[str, Any]:
        """What is paused, which breakpoint was hit, all breakpoints, the last trace."""
        watch = self._watch
        with self._parts.loop.between_rounds():
            hit = watch.hit
            return {
                "paused": watch.is_paused,
                "applications": watch.pauses.paused_applications(watch.applications()),
                "hit": None if hit is None else hit.document(),
                "breakpoints": watch.breakpoints.documents(),
                "trace": list(self._trace),
            }

    # ── stepping ──

    def step(self, kind: str, application: str | None, count: int) -> list[dict[str, Any]]:
        """Run the next trains or moments although everything is paused; returns the trace."""
        if kind not in STEP_KINDS:
            raise UsageError("BAD_CALL", f"kind is train or tuple, not {kind!r}")
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            raise UsageError("BAD_CALL", f"count is a number of steps, not {count!r}")
        self._parts.loop.require_outside("run a step")
        watch = self._watch
        with self._parts.loop.between_rounds():
            self._require_application(application)
            if not watch.is_paused:
                raise UsageError("NOT_PAUSED", "the engine is not paused", hint="pause it first")
            watch.hit = None
            watch.change(watch.pauses.stopped())
            self._trace = run_paused(self._parts, watch, kind, application, count)
            return list(self._trace)

    # ── breakpoints ──

    def set_breakpoint(self, arc: str, condition: str | None, *, enabled: bool) -> str:
        """Set a breakpoint; returns its id."""
        watch = self._watch
        with self._parts.loop.between_rounds():
            id = watch.breakpoints.add(watch.finder, arc, condition, enabled)
            watch.refresh()
        return id

    def remove_breakpoint(self, id: str) -> None:
        """Forget a breakpoint."""
        with self._parts.loop.between_rounds():
            self._watch.breakpoints.remove(id)
            self._watch.refresh()

    def enable_breakpoint(self, id: str, enabled: bool) -> None:
        """Let a breakpoint stop the engine, or not."""
        with self._parts.loop.between_rounds():
            self._watch.breakpoints.enable(id, enabled)
            self._watch.refresh()

    # ── looking at tuples ──

    def sample(self, arc: str, limit: int, where: str | None) -> pa.Table:
        """The latest tuples of an arc."""
        return self._watch.taps.sample(self._watch.finder, arc, limit, where)

    def point_rows(
        self, point: str, key: Any, span: tuple[Any, Any], limit: int, before: int | None
    ) -> pa.Table:
        """Kept history by key and time."""
        return kept_rows(self._parts, point, key, span, limit, before)

    def follow(self, output: str) -> Follower:
        """Follow an output from now on."""
        require_name(output, "an output or a query")
        watch, loop = self._watch, self._parts.loop
        with loop.between_rounds():
            outputs = loop.execution.outputs
            outputs.require(output)
            view = outputs.found(output)
            complete = None if view is None else watch.complete_before(view.log)
            since = self._parts.ingest.seal() if complete is None else complete
            return watch.followers.add(output, since)

    # ── trying things ──

    def send(self, stream: str, row: Mapping[str, Any]) -> dict[str, Any]:
        """Enqueue one tuple; returns its moment."""
        if not isinstance(row, Mapping):
            raise UsageError("BAD_CALL", f"a tuple is a mapping of fields, not {row!r:.60}")
        moment = self._parts.ingest.send(stream, dict(row))
        self._parts.loop.wake()
        return {"moment": moment}

    def replay(self, point: str, since: Any, until: Any, into: str | None) -> str:
        """Let a stretch of history flow through a query of its own."""
        require_name(point, "a connection point or a view")
        attaching = self._parts.attaching
        if point in attaching.on_demand:
            attaching.on_demand.require_history(point)
        attached = None if into is None else self._parts.attachments.query_of(into)
        query = attached or into or f"SELECT * FROM {point}"
        return attaching.attach(point, query, None, since, stretch=HistoryStretch(until))

    def preview_change(self, edit: NetworkEdit) -> dict[str, list[str]]:
        """What a change would do."""
        if edit.network is None:
            self._parts.changing.check(*requested(edit.add, edit.remove))
            return edit.queries_report()
        return self._editor.preview(edit)
