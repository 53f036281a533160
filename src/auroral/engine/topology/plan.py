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
from auroral.engine.lifecycle.epochs import Epoch
from auroral.engine.lifecycle.fates import NetworkChange, compare
from auroral.engine.lifecycle.standalone import ActiveStandalone
from auroral.engine.runtime.watermarks import WatermarkTracker
from auroral.engine.topology.assembly import expanded_network, kernel_runner
from auroral.engine.topology.superboxes import all_superboxes, output_arcs
from auroral.ids import file_name
from auroral.network.box import Resolver
from auroral.network.check import CheckedNetwork
from auroral.network.queries import Query
from auroral.scheduling.superboxes import Superbox
from auroral.spark.running.executor import KernelRunner, PlainRunner
from auroral.storage import Store

_NUMBERS = count()
"""Slots of compiled plans are in directories with different numbers."""


@dataclass(frozen=True)
class ExecutionPlan:
    """A network, and what runs those of its superboxes that are not the same as before."""

    epoch: Epoch
    standalone: ActiveStandalone
    checked: CheckedNetwork
    arcs: Mapping[str, str]
    """What outputs deliver."""
    superboxes: tuple[Superbox, ...]
    same: frozenset[Superbox]
    """Those that stay as they were."""
    changed: NetworkChange | None
    """What becomes of the network before it, if this one is another."""
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
                if superbox not in self.same and not superbox.tables:
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
    epoch: Epoch,
    standalone: ActiveStandalone,
    before: ExecutionPlan | None = None,
) -> ExecutionPlan:
    """The network of an epoch with the boxes of some queries and its eddies."""
    settings, store = context.settings, context.store
    queries = {name: query.query for name, query in standalone.queries.items()}
    checked = check_expanded(settings.executor.resolver, epoch, queries)
    arcs = output_arcs(checked, epoch.declared.bound)
    superboxes = all_superboxes(checked, arcs, standalone)
    changed = None
    if before is not None and before.epoch.declared is not epoch.declared:
        declared = before.epoch.declared.network, epoch.declared.network
        changed = compare(before.checked, checked, declared)
    same = frozenset(
        s for s in superboxes if before is not None and _is_same(s, standalone, before, changed)
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
            place / file_name(superbox.stateful),
            buckets=store.buckets,
            progressing=progressing,
        )
        for superbox in superboxes
        if superbox.stateful and superbox not in same
    }
    runner = settings.executor.plain(checked, place / "plain@")
    return ExecutionPlan(
        epoch,
        standalone,
        checked,
        arcs,
        superboxes,
        same,
        changed,
        progressing,
        runner,
        stateful,
        place,
    )


def check_expanded(
    resolver: Resolver | None, epoch: Epoch, queries: Mapping[str, Query]
) -> CheckedNetwork:
    """The network of boxes alone that runs in an epoch, checked."""
    network = expanded_network(epoch.declared.network, resolver, queries, epoch.flows)
    return network.check(resolver)


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


def _is_same(
    superbox: Superbox,
    standalone: ActiveStandalone,
    before: ExecutionPlan,
    changed: NetworkChange | None,
) -> bool:
    """Whether a superbox is what it was; there may be other boxes under the same names."""
    if superbox not in before.superboxes:
        return False
    if changed is not None and not changed.is_untouched(superbox.boxes, superbox.sources):
        return False
    return all(standalone.is_same(before.standalone, box) for box in superbox.boxes)
