"""The attached queries of a running network: which there are, and when each may work."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from auroral.continuous.boxing.progress import progressing
from auroral.eddy.registered import NEVER
from auroral.engine.points.ad_hoc_query import AdHocQuery, Branch, Build, branch_of
from auroral.engine.points.attachment import (
    Attachment,
    AttachmentRecord,
    plan_branch,
    progress_key,
)
from auroral.engine.points.history import KeptHistory
from auroral.engine.points.point import PointHistory
from auroral.engine.results.readers import consumer
from auroral.engine.results.views import View
from auroral.engine.runtime.stepper import Stepper
from auroral.engine.topology.execution import Execution
from auroral.engine.topology.plan import ExecutionPlan
from auroral.engine.topology.rescale import forget_state_keys
from auroral.errors import AuroralError, UsageError, closest, list_existing, require_name
from auroral.ids import AttachmentId
from auroral.scheduling.superboxes import Superbox
from auroral.storage import Change, Store

_LOG = logging.getLogger("auroral")
ATTACHMENTS = "attachments"
"""Under which the manifest keeps the attached queries."""
_OF_TABLES = ("read", "update", "latch")
"""Boxes that take turns with those of the network, which attached queries do not."""
_QUIET_S = 1.0
"""So long must the network have done nothing for historical steps to be large."""
_REST = 4.0
"""So many times as long as a historical step took, none is started while the network works."""


class Attachments:
    """Attached queries, by name. Whoever changes them holds the lock of the rounds.

    One historical step is under way at a time, and it is started when the network has nothing to
    start. While the network works there are pauses between historical steps, so that most live
    steps have all cores. Queries that have caught up work whenever there is something for them.
    """

    def __init__(
        self,
        store: Store,
        history: KeptHistory,
        *,
        background: bool,
        tell: Callable[[], None] = lambda: None,
    ):
        self._store = store
        self._history = history
        self._workers = int(background)
        self._tell = tell
        self._held: dict[str, Attachment] = {}
        self._broken: dict[str, tuple[AttachmentRecord, AuroralError]] = {}
        """Those of an earlier run that cannot be taken up again, and why."""
        self._asleep: dict[str, AttachmentRecord] = {}
        """Those that an earlier run left and nobody takes up now."""
        self._passing: set[str] = set()
        """Those that the next start forgets."""
        self._execution: Execution | None = None
        self._worked_s = 0.0
        """When the network last had something to do."""
        self._rest_until_s = 0.0
        """Until when no historical step is started if the network works."""

    # ── looking ──

    def __contains__(self, name: object) -> bool:
        return name in self._held or name in self._broken

    @property
    def names(self) -> list[str]:
        return [*self._held, *self._broken, *self._asleep]

    def view(self, name: str) -> View | None:
        """How the results of a query look; None if there is no such query."""
        found = self._held.get(name)
        return None if found is None else found.view

    def views(self) -> list[View]:
        """Where the results of all queries are."""
        return [attachment.view for attachment in list(self._held.values())]

    def emitted_before(self, log: str) -> int | None:
        """All results in a log before this moment are there; None if no query writes it."""
        attachment = self._of(log)
        return None if attachment is None else attachment.emitted_before(log)

    def arc_of(self, log: str) -> str | None:
        """The arc that the query reads which writes a log; None if no query writes it."""
        attachment = self._of(log)
        return None if attachment is None else attachment.point.arc

    def _of(self, log: str) -> Attachment | None:
        id = AttachmentId.of(log)
        return None if id is None else self._held.get(id.name)

    def statistics(self) -> dict[str, dict[str, Any]]:
        """How far each query is."""
        found = {name: one.statistics() for name, one in list(self._held.items())}
        for name, (record, error) in self._broken.items():
            found[name] = {
                "point": record.point,
                "query": record.query.shown,
                "caught_up": False,
                "failed": error.message,
            }
        return found

    def on(self, point: str) -> list[str]:
        """The queries that are attached to a point."""
        return [name for name, one in list(self._held.items()) if one.record.point == point]

    def reading_arc(self, arc: str) -> list[str]:
        """The queries that read an arc, by the name of a connection point on it."""
        return [name for name, one in list(self._held.items()) if one.point.arc == arc]

    def require(self, name: str) -> None:
        """Refuse a name that no attached query has."""
        require_name(name, "an attached query")
        if name not in self:
            raise UsageError(
                "UNKNOWN_ATTACHMENT",
                f"no query {name} is attached; {list_existing(self.names)}",
                hint=closest(name, self.names),
            )

    def require_free(self, names: Iterable[str]) -> None:
        """Refuse names of queries that attached ones have."""
        for name in names:
            if name in self:
                raise UsageError("DUPLICATE_NAME", f"the name {name} is taken by an attached query")

    def require_well(self, name: str | None = None) -> None:
        """Tell why a query does nothing more; of all queries, each failure once."""
        for one in list(self._held.values()):
            if one.failure is not None and (one.name == name or (name is None and not one.told)):
                one.told = True
                raise one.failure
        if name in self._broken:
            raise self._broken[name][1]

    def steppers(self) -> list[Stepper]:
        """Who runs the steps of each query."""
        return [one.stepper for one in list(self._held.values())]

    def superboxes_of(self, name: str) -> tuple[Superbox, ...]:
        """The superboxes of a query."""
        return self._held[name].superboxes if name in self._held else ()

    def query_of(self, name: str) -> AdHocQuery | None:
        """The query that is attached under a name; None if there is none."""
        found = self._held.get(name)
        return None if found is None else found.record.query

    def has_reached(self, name: str, moment: int) -> bool:
        """Whether a query has processed everything before a moment, as far as it can."""
        found = self._held.get(name)
        return found is None or self._is_done(found, moment)

    # ── working ──

    def step(self, execution: Execution, complete: int, *, live: bool) -> bool:
        """Let queries work; `live`: the network has had something to do in this round."""
        self._execution = execution
        now = time.monotonic()
        self._worked_s = now if live else self._worked_s
        polite = bool(self._workers) and now - self._worked_s < _QUIET_S
        ended = execution.watermarks.ended
        worked = False
        history_busy = any(a.stepper.busy for a in self._held.values() if a.is_historical)
        for name, attachment in list(self._held.items()):
            historical = attachment.is_historical
            if historical and history_busy and not attachment.stepper.busy:
                continue  # another one has its turn
            failed = attachment.failure
            bound = execution.stepper.emitted_before(attachment.point.arc, complete)
            resting = polite and historical and now < self._rest_until_s
            steps = attachment.stepper.steps
            did = attachment.step(bound, ended, polite=polite, resting=resting)
            if historical and attachment.stepper.steps > steps:
                took_s = attachment.stepper.durations_s[-1]
                self._rest_until_s = time.monotonic() + _REST * took_s
            worked = did or worked
            if attachment.is_over:
                self._end(attachment)
            if historical:
                history_busy = history_busy or attachment.stepper.busy
                self._held[name] = self._held.pop(name)  # the others first, next time
            if attachment.failure is not None and failed is None:
                _LOG.warning("%s", attachment.failure)
        return worked

    def _end(self, attachment: Attachment) -> None:
        """Let a query that has processed its stretch of history hold nothing back."""
        gone = attachment.end()
        self._store.commit(Change(meta=self._noted({})))
        self._store.forget([], gone)

    @property
    def rest_s(self) -> float | None:
        """In how many seconds the next historical step may be started, if there is a pause."""
        left_s = self._rest_until_s - time.monotonic()
        waits = left_s > 0 and any(one.is_historical for one in list(self._held.values()))
        return left_s if waits else None

    def reached(self, moment: int) -> bool:
        """Whether every query has processed everything before a moment, as far as it can."""
        return all(self._is_done(attachment, moment) for attachment in list(self._held.values()))

    def held_back(self, moment: int) -> bool:
        """Whether a pause alone keeps some query from processing what is before a moment."""
        return any(
            one.failure is None
            and not one.has_ended
            and one.stepper.held_back(min(moment, self._complete(one), one.record.ends))
            for one in list(self._held.values())
        )

    def _complete(self, attachment: Attachment) -> int:
        """The moment before which everything is on the arc that a query reads."""
        assert self._execution is not None
        return self._execution.stepper.emitted_before(attachment.point.arc)

    def _is_done(self, attachment: Attachment, moment: int) -> bool:
        """Whether a query has everything that its arc has; a box before that may be halted."""
        return attachment.is_done(min(moment, self._complete(attachment)))

    def reading(self) -> set[int]:
        """The segments, by id, that steps under way read."""
        return {i for one in list(self._held.values()) for i in one.stepper.reading()}

    # ── coming and going ──

    def prepare(
        self, execution: Execution, point: PointHistory, name: str, query: str | Build | AdHocQuery
    ) -> tuple[Branch, ExecutionPlan]:
        """Read and check a query; nothing is true yet."""
        context, checked = execution.context, execution.unmoved
        meant = progressing(checked.network, checked.arcs, checked.order).get(point.arc, ())
        resolver = context.settings.executor.resolver
        branch = branch_of(
            checked.network,
            point,
            name,
            query,
            meant,
            resolver,
            lasting=self._store.durable,
        )
        boxes = branch.network.boxes.values()
        late = next((b for b in boxes if not b.executable or b.kind in _OF_TABLES), None)
        if late is not None:
            problem = f"this version cannot run {late.kind} in an attached query"
            raise UsageError("BOX_NOT_EXECUTABLE", problem, where=f"attached query {name}")
        if any(box.times_out for box in boxes) and not point.uses_clock:
            raise UsageError(
                "NO_CLOCK",
                "the query has a timeout, but the network keeps no time",
                where=f"attached query {name}",
                hint="give a box of the network a timeout, or a stream a heartbeat",
            )
        return branch, plan_branch(context, point, branch)

    def add(
        self,
        execution: Execution,
        point: PointHistory,
        name: str,
        branch: Branch,
        plan: ExecutionPlan,
        begins: int,
        *,
        ends: int = NEVER,
        lasting: bool = True,
    ) -> Attachment:
        """Attach a query that was prepared; it sees tuples from the moment `begins` on.

        It ends before the moment `ends`. One that is not `lasting` is forgotten at the next start.
        """
        record = AttachmentRecord(name, point.name, branch.query, begins, ends)
        heads = {(s, box.name): begins for box in plan.superboxes for s in box.sources}
        heads[branch.output, consumer(name)] = begins
        self._store.commit(
            Change(
                heads=heads,
                meta=self._noted({name: record} if lasting else {}),
                progress={progress_key(name): begins},
            )
        )
        if not lasting:
            self._passing.add(name)
        return self._run(execution, point, record, plan, branch.output)

    def _run(
        self,
        execution: Execution,
        point: PointHistory,
        record: AttachmentRecord,
        plan: ExecutionPlan,
        output: str,
    ) -> Attachment:
        self._execution = execution
        made = self._held[record.name] = Attachment(
            execution.context,
            point,
            record,
            plan,
            output,
            self._live_marks,
            workers=self._workers,
            tell=self._tell,
        )
        return made

    def _live_marks(self) -> Any:
        assert self._execution is not None
        return self._execution.watermarks

    def leave_asleep(self) -> None:
        """Let the queries that an earlier run left be there, and do nothing."""
        self._asleep = self._recorded()

    def _recorded(self) -> dict[str, AttachmentRecord]:
        saved = json.loads(self._store.manifest.meta(ATTACHMENTS) or "{}")
        return {name: AttachmentRecord.parse(name, text) for name, text in saved.items()}

    def restore(self, execution: Execution) -> None:
        """Take up the queries that an earlier run left; those that cannot be are told."""
        self._execution = execution
        for record in self._recorded().values():
            try:
                self._restore(execution, record)
            except AuroralError as error:
                self._broken[record.name] = record, error
                _LOG.warning("%s", error)
        self._sweep()

    def _restore(self, execution: Execution, record: AttachmentRecord) -> None:
        point = self._history.points.get(record.point)
        if point is None:
            problem = f"the connection point {record.point} is no more"
            raise UsageError(
                "UNKNOWN_POINT", problem, where=f"attached query {record.name}", hint="detach it"
            )
        branch, plan = self.prepare(execution, point, record.name, record.query)
        made = self._run(execution, point, record, plan, branch.output)
        if record.ended:  # it may have died before these went
            there = [place for place in made.cursors() if self._store.has_cursor(*place)]
            self._store.forget([], there)

    def remove(self, name: str) -> None:
        """Detach a query: nothing is left of it."""
        attachment = self._held.get(name)
        if attachment is not None:
            attachment.stop(commit=True)
            attachment.discard()
        self._held.pop(name, None)
        self._broken.pop(name, None)
        self._passing.discard(name)
        self._store.commit(Change(meta=self._noted({})))
        self._sweep()

    def _noted(self, more: Mapping[str, AttachmentRecord]) -> dict[str, str]:
        held = self._held.items()
        records = {name: one.record for name, one in held if name not in self._passing}
        records |= {name: record for name, (record, _) in self._broken.items()}
        records |= self._asleep
        return {ATTACHMENTS: json.dumps({n: r.text() for n, r in {**records, **more}.items()})}

    def _sweep(self) -> None:
        """Drop logs, cursors, steps and counters of queries that are not attached."""
        there = set(self.names)

        def is_gone(text: str) -> bool:
            id = AttachmentId.of(text)
            return id is not None and id.name not in there

        for step in self._store.manifest.open_steps():
            if is_gone(step.superbox):
                self._store.commit(Change(finished_step=step.id))
        logs, cursors = self._store.names()
        progress = [
            key
            for key in self._store.manifest.progress()
            if is_gone(key.partition(" of ")[2]) or is_gone(_attached_part(key))
        ]
        readers = [(log, c) for log, c in cursors if is_gone(log) or is_gone(c)]
        counters = [key for key in self._store.counters if is_gone(key[0]) or is_gone(key[1])]
        gone = [log for log in logs if is_gone(log)]
        forget_state_keys(self._store, is_gone)
        if gone or readers or progress or counters:
            self._store.forget(gone, readers, progress, counters)

    def close(self, *, commit: bool) -> None:
        """End after the steps under way."""
        for attachment in self._held.values():
            attachment.stop(commit=commit)


def _attached_part(key: str) -> str:
    """What a key of progress says after the sign of marks; see `progress_key`."""
    return key.removeprefix(progress_key("").removesuffix(str(AttachmentId(""))))
