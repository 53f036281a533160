"""Running one train or one moment of a network that is paused."""

from __future__ import annotations

from typing import Any

from auroral.eddy.registered import NEVER
from auroral.engine.debug.watch import DebugWatch, Permit
from auroral.engine.parts import EngineParts
from auroral.engine.runtime.stepping import DueSpan
from auroral.engine.runtime.train import cut
from auroral.ids import AttachmentId
from auroral.storage import Store

STEP_KINDS = ("train", "tuple")
_WAIT_S = 1.0
_MOST_EMPTY = 1_000
"""So many steps without tuples may come before one with some."""


def run_paused(
    parts: EngineParts, watch: DebugWatch, kind: str, application: str | None, count: int
) -> list[dict[str, Any]]:
    """Run so many trains or moments, and tell what happened in each box; rounds are held up."""
    trace: list[dict[str, Any]] = []
    watch.tracer.on = True
    try:
        for number in range(count):
            entries = _run_one(parts, watch, kind, application)
            trace += [{"step": number, **entry} for entry in entries]
            if not entries:
                break
    finally:
        watch.tracer.on, watch.permit = False, None
        watch.tracer.take(parts.loop.execution)
        watch.refresh()
    return trace


def _run_one(
    parts: EngineParts, watch: DebugWatch, kind: str, application: str | None
) -> list[dict[str, Any]]:
    """One train or moment; those that bring tuples to no box are passed over."""
    for _ in range(_MOST_EMPTY):
        permit = _permit(parts, watch, kind, application)
        if permit is None:
            if parts.loop.threaded or not parts.loop.pull():
                return []
            continue
        _work(parts, watch, permit)
        entries = watch.tracer.take(parts.loop.execution)
        if any(any({**entry["in"], **entry["out"]}.values()) for entry in entries):
            return entries
    return []


def _work(parts: EngineParts, watch: DebugWatch, permit: Permit) -> None:
    """Do rounds until everything that is permitted is done."""
    watch.permit = permit
    watch.refresh()
    loop = parts.loop
    until = parts.ingest.seal()
    while True:
        worked = loop.work(until)
        busy = [s for s in _steppers(parts) if s.busy]
        if busy:
            busy[0].wait_for_step(_WAIT_S)
        elif not worked or (watch.permit is not None and watch.permit.starts == 0):
            break
    watch.permit = None


def _steppers(parts: EngineParts) -> list[Any]:
    return [parts.loop.execution.stepper, *parts.attachments.steppers()]


def _permit(
    parts: EngineParts, watch: DebugWatch, kind: str, application: str | None
) -> Permit | None:
    """What may run next; None if nothing waits."""
    execution, complete = parts.loop.execution, parts.ingest.seal()
    execution.stepper.fold(complete)
    if application is not None and application in parts.attachments:
        return _attached_permit(parts, application)
    held, served = watch.held(), watch.served()
    due = [
        span
        for span in execution.stepper.due(complete)
        if span.superbox.name in held
        and (application is None or application in served[span.superbox.name])
    ]
    if not due:
        return None
    store = parts.context.store
    waiting = {span.superbox.name: first_waiting(store, span) for span in due}
    if kind == "train":
        full = [name for name, first in waiting.items() if first is not None]
        return Permit(frozenset({full[-1] if full else due[0].superbox.name}), starts=1)
    moments = [first for first in waiting.values() if first is not None]
    names = [name for name in held if application is None or application in served[name]]
    moment = min(moments) + 1 if moments else max(span.last for span in due)
    return Permit(frozenset(names), limit=moment)


def _attached_permit(parts: EngineParts, application: str) -> Permit | None:
    """An attached query takes its next train."""
    if parts.attachments.has_reached(application, NEVER):
        return None
    names = [s.name for s in parts.attachments.superboxes_of(application)]
    assert all(AttachmentId.of(name) is not None for name in names)
    return Permit(frozenset(names), starts=len(names))


def first_waiting(store: Store, span: DueSpan) -> int | None:
    """The moment of the first tuple that waits for a superbox; None if only time has passed."""
    found: int | None = None
    for source in span.superbox.sources:
        for segment in store.segments(source, span.first):
            last = span.last if found is None else min(found, span.last)
            if segment.file and segment.first < last:
                moments = cut(store.table(segment, ["_seq"]), span.first, last)["_seq"]
                if len(moments):
                    found = int(moments.to_numpy().min())
    return found
