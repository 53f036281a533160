"""What depends on which boxes there are, put together; made anew when boxes come or go."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from auroral.continuous.boxing.gates import gated
from auroral.engine.context import EngineContext
from auroral.engine.inspect.step_stories import concerned_names
from auroral.engine.lifecycle.epochs import Epoch
from auroral.engine.lifecycle.standalone import ActiveStandalone
from auroral.engine.points.kept_arc import kept_arcs
from auroral.engine.results.outputs import Outputs
from auroral.engine.runtime.eddy_step import EddyStep
from auroral.engine.runtime.stateful_step import StatefulStep
from auroral.engine.runtime.stepper import Stepper
from auroral.engine.runtime.watermarks import WatermarkTracker
from auroral.engine.sinks.sinks import Sinks
from auroral.engine.tables.step import TableStep
from auroral.engine.topology.consumers import (
    drop_unused_eddy_state,
    register_consumers,
    release_retained,
    retain,
)
from auroral.engine.topology.deciding import step_scheduler, step_stories
from auroral.engine.topology.plan import ExecutionPlan, empty_slots, make_plan
from auroral.engine.topology.steps import Step, superbox_steps
from auroral.errors import RunError
from auroral.ids import AttachmentId
from auroral.network.check import CheckedNetwork
from auroral.scheduling.superboxes import Superbox
from auroral.storage import Change, Store


@dataclass(frozen=True)
class Execution:
    """A running network: its boxes, their progress, their steps, their outputs."""

    context: EngineContext
    plan: ExecutionPlan
    watermarks: WatermarkTracker
    steps: Mapping[str, Step]
    """Of superboxes, by name."""
    stepper: Stepper
    outputs: Outputs
    sinks: Sinks
    generation: int
    """How often boxes had come or gone when it was put together."""

    @property
    def checked(self) -> CheckedNetwork:
        return self.plan.checked

    @property
    def unmoved(self) -> CheckedNetwork:
        """The network with all boxes where they are declared."""
        return self.plan.unmoved

    @property
    def stateful(self) -> dict[str, StatefulStep | EddyStep]:
        """The steps of boxes that remember, by the name of the box."""
        return {
            step.name: step
            for step in self.steps.values()
            if isinstance(step, StatefulStep | EddyStep)
        }

    @property
    def table_steps(self) -> dict[str, TableStep]:
        """The steps of boxes that use tables, by the name of the superbox."""
        return {name: step for name, step in self.steps.items() if isinstance(step, TableStep)}

    @property
    def superboxes(self) -> tuple[Superbox, ...]:
        return self.plan.superboxes

    def require_well(self) -> None:
        """Tell of a superbox that was halted, or a sink that failed."""
        for error in list(self.stepper.halted.values()):
            raise error
        self.sinks.require_well()


def initial_plan(context: EngineContext) -> ExecutionPlan:
    """The network as it was when an earlier run ended, or as it is without queries."""
    empty_slots(context.store)
    queries = context.queries
    return make_plan(context, queries.epochs.current, queries.standalone.running)


def build_execution(
    context: EngineContext,
    plan: ExecutionPlan,
    *,
    ended: int | None,
    before: Execution | None = None,
) -> Execution:
    """Put a network together; boxes that are new begin where boxes changed last.

    What was compiled for the network before, and learnt, is kept.
    """
    settings, store, queries = context.settings, context.store, context.queries
    checked, superboxes, arcs = plan.checked, plan.superboxes, plan.arcs
    drop_unused_eddy_state(store, queries)
    boxes = {box for superbox in superboxes for box in superbox.boxes}
    watermarks = WatermarkTracker(checked, store.manifest.progress(), boxes)
    store.progressing = plan.progressing
    begin = lambda box: max(queries.epochs.current.start, plan.standalone.began(box))  # noqa: E731
    register_consumers(store, superboxes, arcs, watermarks.logs(), begin)
    context.history.serve(checked, watermarks, begin, plan.epoch.declared.demanded)
    release_retained(store, queries.epochs.next_start)
    _forget_steps(store, superboxes)
    if ended is not None:
        watermarks.end(ended)
    kept = {s.name: before.steps[s.name] for s in plan.same} if before is not None else {}
    if before is not None:
        plan.runner.take_over(before.plan.runner, plan.same)
    steps = superbox_steps(context, plan, watermarks, kept)
    written = kept_arcs(checked.network, plan.epoch.declared.demanded)
    views = {name: one.arc for name, one in written.items() if name in checked.network.views}
    context.shedding.serve(checked, superboxes, {**views, **arcs})
    if context.memory is not None:
        context.memory.serve(superboxes, checked.network.engine, settings.train)
    concerned = concerned_names(superboxes, {**views, **arcs}, plan.standalone.owner)
    scheduler = step_scheduler(context, plan, concerned)
    stories = step_stories(context, concerned, scheduler)
    stepper = Stepper(
        checked,
        store,
        settings.executor,
        context.pool,
        context.dead,
        watermarks,
        list(steps.values()),
        train=settings.train,
        timeout_s=settings.step_timeout_s,
        recorder=context.history,
        scheduler=scheduler,
        observers=[context.quality, context.optimizer, context.shedding.tally, stories],
        halting=stories.halted,
        shedding=context.shedding,
        memory=context.memory,
        watch=context.watch,
        statistics=context.statistics,
    )
    sources = {output: plan.standalone.source(arc) for output, arc in arcs.items()}
    sources |= {n: o.from_ for n, o in plan.epoch.declared.network.outputs.items() if n not in arcs}

    sinks = Sinks(store, queries) if before is None else before.sinks
    outputs = Outputs(
        checked,
        store,
        sources,
        settings.now_us,
        stepper,
        queries,
        sinks.bound,
        context.locks,
        lambda: context.history.arcs,
        context.attachments,
        context.shedding,
    )
    if before is not None:
        outputs.lag_s = before.outputs.lag_s
        outputs.latest = before.outputs.latest
        stepper.take_over(before.stepper, kept)
        for name, step in before.steps.items():
            if name not in kept:
                step.discard()
    sinks.serve(outputs)
    quality, declared = context.quality, plan.epoch.declared.network
    quality.serve(declared, checked, arcs, superboxes, stepper.stuck)
    return Execution(
        context, plan, watermarks, steps, stepper, outputs, sinks, queries.epochs.generation
    )


def next_epoch_start(execution: Execution) -> int | None:
    """The moment from which on there are other boxes."""
    return execution.context.queries.epochs.next_start


def is_latest(execution: Execution) -> bool:
    """Whether no others have come, which may just be put together."""
    return execution.generation == execution.context.queries.epochs.generation


def plan_next(execution: Execution) -> ExecutionPlan:
    """The network with the boxes that come next."""
    return make_plan(execution.context, *_next(execution), execution.plan)


def is_planned_next(execution: Execution, following: ExecutionPlan) -> bool:
    """Whether it is still the one that comes next."""
    return (following.epoch, following.standalone) == _next(execution)


def _next(execution: Execution) -> tuple[Epoch, ActiveStandalone]:
    queries = execution.context.queries
    with queries.lock:
        moment = next_epoch_start(execution)
        standalone = queries.standalone.running if moment is None else queries.standalone.at(moment)
        return queries.epochs.next, standalone


def retain_for_next(execution: Execution) -> None:
    """Keep what boxes that are to come will need, so that others need not wait for them."""
    moment = next_epoch_start(execution)
    if moment is not None:
        arcs = [arc for superbox in execution.superboxes for arc in superbox.terminals]
        streams = dict.fromkeys([*execution.checked.network.streams, *next_streams(execution)])
        retain(execution.context.store, [*streams, *arcs], moment)


def next_streams(execution: Execution) -> list[str]:
    """The streams of the network of the next epoch, by the names of their logs."""
    declared = execution.context.queries.epochs.next.declared
    return list(gated(declared.network).streams)


def is_epoch_complete(execution: Execution, following: ExecutionPlan | None = None) -> bool:
    """Whether there are boxes to come, and all before them is done.

    Sinks of outputs that are no more, or give other fields, have got everything too.
    """
    moment, stepper = next_epoch_start(execution), execution.stepper
    staying = following.same if following else execution.superboxes
    done = moment is not None and stepper.done_before() >= moment and stepper.is_settled(staying)
    if not done or following is None or following.changed is None:
        return done
    leaving = following.changed.leaving_outputs
    return not any(execution.sinks.is_behind(output) for output in leaving)


def next_execution(before: Execution, following: ExecutionPlan) -> Execution | None:
    """The network with the boxes that come next; None if it is too early, or these are others."""
    queries = before.context.queries
    with queries.lock:
        if not is_epoch_complete(before, following) or not is_planned_next(before, following):
            return None
        progress = before.stepper.progress(queries.epochs.next.start)
        sunk = list(before.sinks.open)
        queries.enter_epoch(progress, following.changed, before.plan.arcs, sunk, following.stopped)
        if following.changed is not None:
            before.sinks.let_go(following.changed.removed_outputs)
    return build_execution(before.context, following, ended=before.watermarks.ended, before=before)


def reorder(execution: Execution, at: Callable[[], AbstractContextManager[int]]) -> bool:
    """Let boxes change places from the moment that `at` gives on, if that is better by now."""
    context, plan = execution.context, execution.plan
    queries = context.queries
    if queries.epochs.planned or not is_latest(execution) or execution.watermarks.ended is not None:
        return False
    _probe(context, plan)
    found = context.optimizer.decide(plan.subnetworks, plan.epoch.moves)
    if found is None:
        return False
    with queries.lock, at() as moment:
        if queries.epochs.planned:  # something else has changed meanwhile, and begins anew
            return False
        queries.change_order(moment, found.moves)
    for box, why in found.reasons:
        context.decisions.note([box], "moved", why)
    return True


def _probe(context: EngineContext, plan: ExecutionPlan) -> None:
    """Let expressions be timed in the background, and tell the optimiser what was found."""
    expressions, executor, pool = context.expressions, context.settings.executor, context.pool
    if expressions is None or context.watch is None:
        return
    expressions.tend(
        plan.probes,
        context.optimizer.steps,
        context.watch.sampler,
        executor.probe,
        has_slack=pool.free > 0 and len(pool.names) < executor.cores,
    )
    context.optimizer.expression_s = expressions.known()


def without_failed_queries(before: Execution, error: RunError) -> Execution:
    """The same network without the queries whose boxes failed; an error if none did by itself."""
    queries = before.context.queries
    owner = before.plan.standalone.owner
    tried = error.code in ("SPARK_FAILED", "STEP_TIMEOUT")
    culprits = before.stepper.culprits(owner) if tried else {}
    if not culprits and error.code == "STEP_TIMEOUT":
        before.stepper.halt()
        return before
    if not culprits:
        raise error
    queries.fail(culprits)
    for name, why in culprits.items():
        boxes = [box for box in before.checked.network.boxes if owner(box) == name]
        before.context.decisions.note([name, *boxes], "failed", why)
    running = queries.standalone.running
    reduced = make_plan(before.context, before.plan.epoch, running, before.plan)
    return build_execution(before.context, reduced, ended=before.watermarks.ended, before=before)


def _forget_steps(store: Store, superboxes: Sequence[Superbox]) -> None:
    """Steps that a crash left behind of boxes that are no more are nobody's to run again."""
    names = {superbox.name for superbox in superboxes}
    for step in store.manifest.open_steps():
        if step.superbox not in names and AttachmentId.of(step.superbox) is None:
            store.commit(Change(finished_step=step.id))
