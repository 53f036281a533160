"""What depends on which boxes there are, put together; made anew when boxes come or go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyspark.sql import SparkSession

from auroral.engine.assembly import running, stateful_boxes, stateful_runner
from auroral.engine.dead import DeadLetters
from auroral.engine.delivery import Outputs
from auroral.engine.modification import Modification
from auroral.engine.plane import ProgressPlane
from auroral.engine.queries import Queries
from auroral.engine.stateful import StatefulBox
from auroral.engine.stepper import Stepper, slots_directory
from auroral.engine.versions import SETTLED
from auroral.engine.wiring import (
    all_superboxes,
    forget_boxes,
    forget_eddies,
    output_arcs,
    register_consumers,
)
from auroral.errors import RunError
from auroral.network.box import Resolver
from auroral.network.check import CheckedNetwork
from auroral.network.network import Network
from auroral.network.queries import Query
from auroral.scheduling.superboxes import Superbox
from auroral.spark.runner import Runner
from auroral.storage import Change, Store

_PLAIN = "plain@"
"""Where boxes that remember nothing have their slots."""


@dataclass(frozen=True)
class Settings:
    """What an engine was given and never changes."""

    network: Network
    session: SparkSession
    resolver: Resolver
    tables: Mapping[str, Any]
    bound: Iterable[str]
    """Outputs that have a sink."""
    train: int
    driver_bytes: int
    reuse_plans: bool | None
    now_us: Callable[[], int]


@dataclass(frozen=True)
class Works:
    """A running network: its boxes, their progress, their steps, their outputs."""

    checked: CheckedNetwork
    plane: ProgressPlane
    superboxes: tuple[Superbox, ...]
    runner: Runner
    stateful: Mapping[str, StatefulBox]
    stepper: Stepper
    outputs: Outputs
    made_from: tuple[Settings, Store, Queries, DeadLetters]


def checked_network(
    settings: Settings, boxed: Mapping[str, Query], flows: Sequence[tuple[str, ...]]
) -> CheckedNetwork:
    """The boxes that run, of some queries and eddies too."""
    boxes = running(settings.network, settings.resolver, boxed, flows)
    return boxes.check(settings.resolver)


def build(
    settings: Settings,
    store: Store,
    queries: Queries,
    dead: DeadLetters,
    checked: CheckedNetwork,
    *,
    moment: int,
    ended: int | None,
    before: Works | None = None,
) -> Works:
    """Put a network together; boxes that are new begin at a moment.

    After a crash in the middle of that, where boxes changed last. What was compiled for the network
    before, and learnt, is kept.
    """
    moment = max(moment, int(store.manifest.meta(SETTLED) or 0))
    forget_boxes(store)
    forget_eddies(store, queries)
    arcs = output_arcs(checked, settings.bound)
    superboxes = all_superboxes(checked, arcs, queries)
    boxes = {box for superbox in superboxes for box in superbox.boxes}
    plane = ProgressPlane(checked, store.manifest.progress(), boxes)
    store.progressing = {arc: list(marks) for arc, marks in plane.arcs().items()}
    begin = lambda box: max(moment, queries.began(box))  # noqa: E731
    register_consumers(store, superboxes, arcs, plane.logs(), begin)
    _forget_steps(store, superboxes)
    if ended is not None:
        plane.end(ended)
    same, kept = _kept(before, superboxes, queries)
    slots = slots_directory(store, [_PLAIN, *kept] if before else ())
    if before is not None:
        runner = before.runner
        runner.go_on(checked, same)
    else:
        runner = Runner(settings.session, checked, slots / _PLAIN, reuse_plans=settings.reuse_plans)
    stateful = stateful_boxes(
        settings.session,
        checked,
        store,
        plane,
        superboxes,
        slots,
        kept,
        tables=settings.tables,
        queries=queries,
        reuse_plans=settings.reuse_plans,
    )
    stepper = Stepper(
        checked,
        store,
        runner,
        dead,
        plane,
        superboxes,
        stateful,
        train=settings.train,
        driver_bytes=settings.driver_bytes,
    )
    shared = {n: o.from_ for n, o in settings.network.outputs.items() if n not in arcs}
    outputs = Outputs(
        checked, store, arcs | shared, settings.now_us, stepper.emitted_before, queries
    )
    made_from = (settings, store, queries, dead)
    return Works(checked, plane, superboxes, runner, stateful, stepper, outputs, made_from)


def _kept(
    before: Works | None, superboxes: Sequence[Superbox], queries: Queries
) -> tuple[set[Superbox], dict[str, StatefulBox]]:
    """The superboxes that stay as they were, and what runs them.

    The boxes of queries may be others under the same names.
    """
    if before is None:
        return set(), {}
    own = {s for s in superboxes if not any(map(queries.owner, s.boxes))}
    same = own.intersection(before.superboxes)
    return same, {s.stateful: before.stateful[s.stateful] for s in same if s.stateful}


def rehearse(works: Works, wanted: Modification) -> None:
    """Let Spark compile what boxes that come will need, while the others work.

    What fails here fails again in its step, which finds out whose fault it is.
    """
    settings, store, queries, _ = works.made_from
    with TemporaryDirectory() as made, suppress(Exception):
        place = Path(made)
        with queries.lock:
            boxed = {name: q for name, q in queries.boxed.items() if name not in wanted.unboxed}
        checked = checked_network(settings, {**boxed, **wanted.boxed}, queries.versions.flows)
        plane = ProgressPlane(checked)
        arcs = output_arcs(checked, settings.bound)
        runner = Runner(settings.session, checked, place, reuse_plans=settings.reuse_plans)
        for superbox in all_superboxes(checked, arcs, queries):
            if wanted.boxed.keys().isdisjoint(box.partition("#")[0] for box in superbox.boxes):
                continue
            if superbox.stateful is None:
                runner.warm_up(superbox)
                continue
            stateful_runner(
                settings.session,
                checked,
                plane,
                superbox,
                place / superbox.stateful,
                buckets=store.buckets,
                progressing=store.progressing,
                reuse_plans=settings.reuse_plans,
            ).warm_up()


def due(works: Works) -> int | None:
    """The moment before which all has to be done, as there are other eddies from then on."""
    return works.made_from[2].versions.coming


def moved_on(before: Works) -> Works | None:
    """The network with the eddies that come next; None if there are none, or not yet."""
    moment, stepper = due(before), before.stepper
    if moment is None or stepper.done_before() < moment or not stepper.settled:
        return None
    return rebuild(before, before.made_from[2].versions.come())


def without_failed(before: Works, error: RunError) -> Works:
    """The same network without the queries whose boxes failed; an error if none did by itself."""
    queries = before.made_from[2]
    culprits = before.stepper.culprits(queries.owner) if error.code == "SPARK_FAILED" else {}
    if not culprits:
        raise error
    queries.fail(culprits)
    return rebuild(before)


def rebuild(before: Works, moment: int = 0) -> Works:
    """Put a network together whose boxes have changed, from a moment on; sinks stay."""
    settings, store, queries, dead = before.made_from
    queries.versions.forget_before(moment)
    checked = checked_network(settings, queries.boxed, queries.versions.flows)
    ended = before.plane.ended
    given = (settings, store, queries, dead, checked)
    works = build(*given, moment=moment, ended=ended, before=before)
    works.stepper.take_over(before.stepper)
    works.outputs.take_over(before.outputs)
    return works


def _forget_steps(store: Store, superboxes: Sequence[Superbox]) -> None:
    """Steps that a crash left behind of boxes that are no more are nobody's to run again."""
    names = {superbox.name for superbox in superboxes}
    for step, box, _, _ in store.manifest.open_steps():
        if box not in names:
            store.commit(Change(finished_step=step))
