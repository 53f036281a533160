"""What depends on which boxes there are, put together; made anew when boxes come or go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from auroral.engine.assembly import stateful_boxes
from auroral.engine.boxed import Running
from auroral.engine.delivery import Outputs
from auroral.engine.design import Basis, Design, design, empty_slots
from auroral.engine.plane import ProgressPlane
from auroral.engine.sinks import Sinks
from auroral.engine.stateful import StatefulBox
from auroral.engine.stepper import Stepper
from auroral.engine.versions import Flows
from auroral.engine.wiring import (
    forget_boxes,
    forget_eddies,
    hold,
    let_go,
    register_consumers,
)
from auroral.errors import RunError
from auroral.network.check import CheckedNetwork
from auroral.scheduling.superboxes import Superbox
from auroral.storage import Change, Store


@dataclass(frozen=True)
class Works:
    """A running network: its boxes, their progress, their steps, their outputs."""

    basis: Basis
    design: Design
    plane: ProgressPlane
    stateful: Mapping[str, StatefulBox]
    stepper: Stepper
    sinks: Sinks
    turn: int
    """How often boxes had come or gone when it was put together."""

    @property
    def checked(self) -> CheckedNetwork:
        return self.design.checked

    @property
    def superboxes(self) -> tuple[Superbox, ...]:
        return self.design.superboxes

    @property
    def outputs(self) -> Outputs:
        return self.sinks.outputs


def first(basis: Basis) -> Design:
    """The network as it was when an earlier run ended, or as it is without queries."""
    empty_slots(basis.store)
    return design(basis, basis.queries.boxed.running, basis.queries.versions.flows)


def build(basis: Basis, design: Design, *, ended: int | None, before: Works | None = None) -> Works:
    """Put a network together; boxes that are new begin where boxes changed last.

    What was compiled for the network before, and learnt, is kept.
    """
    settings, store, queries = basis.settings, basis.store, basis.queries
    checked, superboxes, arcs = design.checked, design.superboxes, design.arcs
    forget_boxes(store, queries)
    forget_eddies(store, queries)
    boxes = {box for superbox in superboxes for box in superbox.boxes}
    plane = ProgressPlane(checked, store.manifest.progress(), boxes)
    store.progressing = design.progressing
    begin = lambda box: max(queries.versions.settled, design.boxed.began(box))  # noqa: E731
    register_consumers(store, superboxes, arcs, plane.logs(), begin)
    let_go(store, queries.versions.coming)
    _forget_steps(store, superboxes)
    if ended is not None:
        plane.end(ended)
    kept = {s.stateful: before.stateful[s.stateful] for s in design.same if before and s.stateful}
    if before is not None:
        design.runner.take_over(before.design.runner, design.same)
    tables = settings.tables
    stateful = stateful_boxes(
        checked, store, plane, superboxes, design.stateful, kept, tables=tables, queries=queries
    )
    stepper = Stepper(
        checked,
        store,
        design.runner,
        basis.dead,
        plane,
        superboxes,
        stateful,
        train=settings.train,
        driver_bytes=settings.driver_bytes,
    )
    sources = {output: design.boxed.source(arc) for output, arc in arcs.items()}
    sources |= {n: o.from_ for n, o in settings.network.outputs.items() if n not in arcs}

    def outputs(sinks: Sinks) -> Outputs:
        now_us, known = settings.now_us, sinks.known
        return Outputs(checked, store, sources, now_us, stepper, queries, sinks.open, known)

    sinks = Sinks(store, queries, outputs) if before is None else before.sinks
    if before is not None:
        sinks.outputs = outputs(sinks)
        sinks.outputs.lag_s = before.outputs.lag_s
        stepper.take_over(before.stepper)
        for name, box in before.stateful.items():
            if name not in kept:
                box.discard()
    return Works(basis, design, plane, stateful, stepper, sinks, queries.versions.turn)


def due(works: Works) -> int | None:
    """The moment from which on there are other boxes."""
    return works.basis.queries.versions.coming


def is_latest(works: Works) -> bool:
    """Whether no others have come, which may just be put together."""
    return works.turn == works.basis.queries.versions.turn


def next_design(works: Works) -> Design:
    """The network with the boxes that come next."""
    return design(works.basis, *_next(works), works.design)


def is_next(works: Works, following: Design) -> bool:
    """Whether it is still the one that comes next."""
    return (following.boxed, following.flows) == _next(works)


def _next(works: Works) -> tuple[Running, Flows]:
    queries = works.basis.queries
    with queries.lock:
        moment = due(works)
        boxed = queries.boxed.running if moment is None else queries.boxed.at(moment)
        return boxed, queries.versions.next_flows


def hold_for_next(works: Works) -> None:
    """Keep what boxes that are to come will need, so that others need not wait for them."""
    moment = due(works)
    if moment is not None:
        arcs = [arc for superbox in works.superboxes for arc in superbox.terminals]
        hold(works.basis.store, [*works.checked.network.streams, *arcs], moment)


def is_done(works: Works, following: Design | None = None) -> bool:
    """Whether there are boxes to come, and all before them is done."""
    moment, stepper = due(works), works.stepper
    staying = following.same if following else works.superboxes
    return moment is not None and stepper.done_before() >= moment and stepper.is_settled(staying)


def moved_on(before: Works, following: Design) -> Works | None:
    """The network with the boxes that come next; None if it is too early, or these are others."""
    queries = before.basis.queries
    with queries.lock:
        if not is_done(before, following) or not is_next(before, following):
            return None
        queries.come(before.stepper.progress(queries.versions.starts[0]))
    return build(before.basis, following, ended=before.plane.ended, before=before)


def without_failed(before: Works, error: RunError) -> Works:
    """The same network without the queries whose boxes failed; an error if none did by itself."""
    boxed = before.basis.queries.boxed
    owner = before.design.boxed.owner
    culprits = before.stepper.culprits(owner) if error.code == "SPARK_FAILED" else {}
    if not culprits:
        raise error
    boxed.fail(culprits)
    reduced = design(before.basis, boxed.running, before.design.flows, before.design)
    return build(before.basis, reduced, ended=before.plane.ended, before=before)


def _forget_steps(store: Store, superboxes: Sequence[Superbox]) -> None:
    """Steps that a crash left behind of boxes that are no more are nobody's to run again."""
    names = {superbox.name for superbox in superboxes}
    for step, box, _, _ in store.manifest.open_steps():
        if box not in names:
            store.commit(Change(finished_step=step))
