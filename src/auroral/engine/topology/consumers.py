"""Consumers of logs: superboxes, outputs, and boxes of the next epoch."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence

from auroral.engine.lifecycle.standalone import UNBOXED
from auroral.engine.queries.registry import QueryRegistry
from auroral.engine.results.readers import consumer
from auroral.ids import (
    NEXT_EPOCH,
    WATERMARKS,
    EddyId,
    PendingReader,
    QueryBoxId,
    StateLogId,
    is_superbox,
)
from auroral.scheduling.superboxes import Superbox
from auroral.storage import Change, Store


def register_consumers(
    store: Store,
    boxes: Sequence[Superbox],
    outputs: Mapping[str, str],
    watermarks: Sequence[str],
    begin: Callable[[str], int] = lambda _box: 0,
) -> None:
    """A log keeps what any consumer needs, so all are known before anything is deleted.

    New ones begin where `begin` says; an eddy where the one before it on an arc has come to.
    Boxes that are no more need nothing.
    """
    wanted = {(source, box.name) for box in boxes for source in box.sources}
    wanted |= {(log, WATERMARKS) for log in watermarks}
    _, cursors = store.names()
    heads = {
        (log, name): max(
            (store.head(log, n) for o, n in cursors if o == log and _is_before(n, name)),
            default=begin(name),
        )
        for log, name in wanted - set(cursors)
    }
    arcs = {(arc, consumer(output)) for output, arc in outputs.items()}
    heads |= {(arc, name): begin(arc) for arc, name in arcs - set(cursors)}
    if heads:
        store.commit(Change(heads=heads))
    stale = [key for key in cursors if key not in wanted and is_superbox(key[1])]
    if stale:
        store.forget([], stale)


def retain(store: Store, logs: Iterable[str], moment: int) -> None:
    """Keep for boxes that are to come what comes from their moment on, though others pass it."""
    heads = {(log, NEXT_EPOCH): moment for log in logs if not store.has_cursor(log, NEXT_EPOCH)}
    if heads:
        store.commit(Change(heads=heads))


def release_retained(store: Store, moment: int | None) -> None:
    """The boxes that were to come are there; others are to come at a moment, or none."""
    held = store.readers(NEXT_EPOCH)
    if held and moment is not None:
        store.commit(Change(heads=dict.fromkeys(held, moment)))
    elif held:
        store.forget([], held)


def _is_before(one: str, other: str) -> bool:
    """Whether one eddy served some of the arcs that are another's now."""
    before, after = EddyId.parse(one), EddyId.parse(other)
    return before is not None and after is not None and bool({*before.arcs} & {*after.arcs})


def drop_removed_boxes(store: Store, queries: QueryRegistry) -> None:
    """Drop what boxes of queries that were removed have written and remembered.

    What sinks have still to get of it is kept for them.
    """
    removed = set(json.loads(store.manifest.meta(UNBOXED) or "[]"))

    def is_removed(name: str) -> bool:
        return QueryBoxId.query_of(name) in removed

    if not removed:
        return
    with queries.lock:  # a sink's thread records where a delivery lies that is moved here
        queries.pending.keep(is_removed, queries.versions.epoch_start)
        logs, cursors = store.names()
        gone = [log for log in logs if is_removed(log)]
        kept = store.manifest.progress()
        store.forget(
            gone,
            [(log, r) for log, r in cursors if is_removed(log) and not PendingReader.parse(r)],
            [name for name in kept if is_removed(name.partition(" of ")[2])],
            [key for key in store.counters if is_removed(key[0])],
            [box for box in store.costs if is_removed(box)],
        )
        store.commit(Change(meta={UNBOXED: "[]"}))


def drop_unused_eddy_state(store: Store, queries: QueryRegistry) -> None:
    """Drop the panes and SteMs of queries that went with a change of boxes, or before a restart."""
    logs, _ = store.names()
    wanted = queries.versions.tables()
    state = {log: StateLogId.parse(log) for log in logs}
    gone = [log for log, id in state.items() if id and id.box is None and id.table not in wanted]
    if gone:
        store.forget(gone, [])
