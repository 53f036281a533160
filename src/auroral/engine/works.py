"""What depends on which boxes there are, put together; made anew when boxes come or go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from auroral.engine.assembly import running, stateful_boxes
from auroral.engine.dead import DeadLetters
from auroral.engine.delivery import Outputs
from auroral.engine.plane import ProgressPlane
from auroral.engine.queries import Queries
from auroral.engine.sinks import Sinks
from auroral.engine.stateful import StatefulBox
from auroral.engine.stepper import Stepper, slots_directory
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
class Basis:
    """What a running network is made from, whatever boxes there are."""

    settings: Settings
    store: Store
    queries: Queries
    dead: DeadLetters


@dataclass(frozen=True)
class Works:
    """A running network: its boxes, their progress, their steps, their outputs."""

    basis: Basis
    checked: CheckedNetwork
    plane: ProgressPlane
    superboxes: tuple[Superbox, ...]
    runner: Runner
    stateful: Mapping[str, StatefulBox]
    stepper: Stepper
    sinks: Sinks

    @property
    def outputs(self) -> Outputs:
        return self.sinks.outputs


def checked_network(basis: Basis) -> CheckedNetwork:
    """The boxes that run, those of queries and eddies too."""
    settings, queries = basis.settings, basis.queries
    boxed, flows = queries.boxed.queries(), queries.versions.flows
    boxes = running(settings.network, settings.resolver, boxed, flows)
    return boxes.check(settings.resolver)


def build(
    basis: Basis, checked: CheckedNetwork, *, ended: int | None, before: Works | None = None
) -> Works:
    """Put a network together; boxes that are new begin where boxes changed last.

    What was compiled for the network before, and learnt, is kept.
    """
    settings, store, queries = basis.settings, basis.store, basis.queries
    forget_boxes(store, queries)
    forget_eddies(store, queries)
    arcs = output_arcs(checked, settings.bound)
    superboxes = all_superboxes(checked, arcs, queries)
    boxes = {box for superbox in superboxes for box in superbox.boxes}
    plane = ProgressPlane(checked, store.manifest.progress(), boxes)
    store.progressing = {arc: list(marks) for arc, marks in plane.arcs().items()}
    begin = lambda box: max(queries.versions.settled, queries.boxed.began(box))  # noqa: E731
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
        basis.dead,
        plane,
        superboxes,
        stateful,
        train=settings.train,
        driver_bytes=settings.driver_bytes,
    )
    sources = {output: queries.boxed.owner(arc) or arc for output, arc in arcs.items()}
    sources |= {n: o.from_ for n, o in settings.network.outputs.items() if n not in arcs}

    def outputs(sinks: Sinks) -> Outputs:
        return Outputs(
            checked,
            store,
            sources,
            settings.now_us,
            stepper,
            queries,
            sinks.open,
            sinks.known,
        )

    sinks = Sinks(store, queries, outputs) if before is None else before.sinks
    if before is not None:
        sinks.outputs = outputs(sinks)
        sinks.outputs.lag_s = before.outputs.lag_s
        stepper.take_over(before.stepper)
    return Works(basis, checked, plane, superboxes, runner, stateful, stepper, sinks)


def _kept(
    before: Works | None, superboxes: Sequence[Superbox], queries: Queries
) -> tuple[set[Superbox], dict[str, StatefulBox]]:
    """The superboxes that stay as they were, and what runs them.

    The boxes of queries may be others under the same names.
    """
    if before is None:
        return set(), {}
    own = {s for s in superboxes if not any(map(queries.boxed.owner, s.boxes))}
    same = own.intersection(before.superboxes)
    return same, {s.stateful: before.stateful[s.stateful] for s in same if s.stateful}


def due(works: Works) -> int | None:
    """The moment before which all has to be done, as there are other boxes from then on."""
    return works.basis.queries.versions.coming


def moved_on(before: Works) -> Works | None:
    """The network with the boxes that come next; None if there are none, or not yet."""
    moment, stepper = due(before), before.stepper
    if moment is None or stepper.done_before() < moment or not stepper.settled:
        return None
    queries = before.basis.queries
    queries.come()
    queries.versions.forget_before(moment)
    return rebuild(before)


def without_failed(before: Works, error: RunError) -> Works:
    """The same network without the queries whose boxes failed; an error if none did by itself."""
    boxed = before.basis.queries.boxed
    culprits = before.stepper.culprits(boxed.owner) if error.code == "SPARK_FAILED" else {}
    if not culprits:
        raise error
    boxed.fail(culprits)
    return rebuild(before)


def rebuild(before: Works) -> Works:
    """Put a network together whose boxes have changed."""
    return build(
        before.basis, checked_network(before.basis), ended=before.plane.ended, before=before
    )


def _forget_steps(store: Store, superboxes: Sequence[Superbox]) -> None:
    """Steps that a crash left behind of boxes that are no more are nobody's to run again."""
    names = {superbox.name for superbox in superboxes}
    for step, box, _, _ in store.manifest.open_steps():
        if box not in names:
            store.commit(Change(finished_step=step))
