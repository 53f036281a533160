"""The network of boxes that runs, or is to run: what is decided and compiled before it does."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from auroral.disk import PRIVATE_DIRECTORY
from auroral.engine.context import EngineContext
from auroral.engine.lifecycle.epochs import Flows
from auroral.engine.lifecycle.standalone import ActiveStandalone
from auroral.engine.runtime.watermarks import WatermarkTracker
from auroral.engine.topology.assembly import expanded_network, kernel_runner
from auroral.engine.topology.superboxes import all_superboxes, output_arcs
from auroral.network.check import CheckedNetwork
from auroral.scheduling.superboxes import Superbox
from auroral.spark.running.executor import KernelRunner, PlainRunner
from auroral.storage import Store

_NUMBERS = count()
"""Slots of compiled plans are in directories with different numbers."""


@dataclass(frozen=True)
class ExecutionPlan:
    """A network, and what runs those of its superboxes that are not the same as before."""

    standalone: ActiveStandalone
    flows: Flows
    checked: CheckedNetwork
    arcs: Mapping[str, str]
    """What outputs deliver."""
    superboxes: tuple[Superbox, ...]
    same: frozenset[Superbox]
    """Those that stay as they were."""
    progressing: Mapping[str, Sequence[str]]
    runner: PlainRunner
    stateful: Mapping[str, KernelRunner]
    place: Path
    """Where the plans that these compile have their slots."""

    def warm_up(self) -> None:
        """Let Spark compile what is new, while others work.

        What fails here fails again in its step, which finds out whose fault it is.
        """
        for superbox in self.superboxes:
            with suppress(Exception):
                if superbox not in self.same:
                    if superbox.stateful:
                        self.stateful[superbox.stateful].warm_up()
                    else:
                        self.runner.warm_up(superbox)

    def discard(self) -> None:
        """It will not be."""
        for runner in self.stateful.values():
            runner.discard()
        self.runner.discard()
        shutil.rmtree(self.place, ignore_errors=True)


def make_plan(
    context: EngineContext,
    standalone: ActiveStandalone,
    flows: Flows,
    before: ExecutionPlan | None = None,
) -> ExecutionPlan:
    """The network with the boxes of some queries and some eddies."""
    settings, store = context.settings, context.store
    queries = {name: query.query for name, query in standalone.queries.items()}
    checked = expanded_network(settings.network, settings.executor.resolver, queries, flows).check(
        settings.executor.resolver
    )
    arcs = output_arcs(checked, settings.bound)
    superboxes = all_superboxes(checked, arcs, standalone)
    same = frozenset(
        s for s in superboxes if before is not None and _is_same(s, standalone, before)
    )
    watermarks = WatermarkTracker(checked)
    progressing = {arc: list(marks) for arc, marks in watermarks.arcs().items()}
    place = new_place(store)
    stateful = {
        superbox.stateful: kernel_runner(
            settings.executor,
            checked,
            watermarks,
            superbox,
            place / superbox.stateful,
            buckets=store.buckets,
            progressing=progressing,
        )
        for superbox in superboxes
        if superbox.stateful and superbox not in same
    }
    runner = settings.executor.plain(checked, place / "plain@")
    return ExecutionPlan(
        standalone, flows, checked, arcs, superboxes, same, progressing, runner, stateful, place
    )


def new_place(store: Store) -> Path:
    """Where the plans of another network have their slots."""
    return slots(store) / str(next(_NUMBERS))


def slots(store: Store) -> Path:
    """Where compiled plans have their slots."""
    return store.directory / "slots"


def empty_slots(store: Store) -> None:
    """Forget what an earlier run has compiled."""
    shutil.rmtree(slots(store), ignore_errors=True)
    slots(store).mkdir(mode=PRIVATE_DIRECTORY)


def _is_same(superbox: Superbox, standalone: ActiveStandalone, before: ExecutionPlan) -> bool:
    """Whether a superbox is what it was; a query's boxes may be others under the same names."""
    there = superbox in before.superboxes
    return there and all(standalone.is_same(before.standalone, box) for box in superbox.boxes)
