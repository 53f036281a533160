"""The network of boxes that runs, or is to run: what is decided and compiled before it does."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from pathlib import Path

from auroral.disk import PRIVATE_DIRECTORY
from auroral.engine.context import EngineContext
from auroral.engine.lifecycle.epochs import Epoch
from auroral.engine.lifecycle.fates import NetworkChange, compare, reordered
from auroral.engine.lifecycle.standalone import ActiveStandalone
from auroral.engine.points.kept_arc import kept_arcs
from auroral.engine.runtime.watermarks import WatermarkTracker
from auroral.engine.topology.assembly import expanded_network, kernel_runner
from auroral.engine.topology.superboxes import all_superboxes, output_arcs
from auroral.ids import QueryBoxId, file_name, is_eddy
from auroral.network.box import Resolver
from auroral.network.check import CheckedNetwork, what_boxes_see
from auroral.network.network import Network
from auroral.network.point_names import point_arcs
from auroral.network.queries import Query
from auroral.optimizer import Probe, Subnetworks, as_moved, probes, unread_fields
from auroral.scheduling.fusion import Fusion
from auroral.scheduling.superboxes import Superbox
from auroral.spark.plans.column_boxes import in_columns
from auroral.spark.plans.physical import mark_fields
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
    """As it runs: the optimiser may have moved boxes."""
    arcs: Mapping[str, str]
    """What outputs deliver."""
    superboxes: tuple[Superbox, ...]
    same: frozenset[Superbox]
    """Those that stay as they were."""
    changed: NetworkChange | None
    """What becomes of the network before it, if this one is another."""
    stopped: frozenset[str]
    """Boxes that ran in the network before it, and do not in this one: they forget everything."""
    progressing: Mapping[str, Sequence[str]]
    runner: PlainRunner
    stateful: Mapping[str, KernelRunner]
    place: Path
    """Where the plans that these compile have their slots."""
    declared: CheckedNetwork | None = None
    """The network with all boxes where they are declared, if the optimiser has moved some."""
    resolver: Resolver | None = None

    @property
    def unmoved(self) -> CheckedNetwork:
        """The network with all boxes where they are declared."""
        return self.declared or self.checked

    @cached_property
    def subnetworks(self) -> Subnetworks | None:
        """Where boxes may change places; None if they are to stay."""
        network = self.unmoved.network
        if not network.engine.optimize:
            return None
        fixed = [*self.arcs.values(), *_seen_arcs(network)]
        separate = Fusion.of(network).mode == "box"
        return Subnetworks(
            self.unmoved, fixed, self.resolver, separate=separate, in_columns=in_columns
        )

    @cached_property
    def probes(self) -> Mapping[str, Probe]:
        """What tells how long boxes take that may change places."""
        if self.subnetworks is None:
            return {}
        boxes = [name for name in self.unmoved.order if name in self.subnetworks.of_box]
        return {probe.box: probe for probe in probes(self.unmoved, boxes)}

    def warm_up(self) -> None:
        """Let Spark compile what is new, while others work.

        What fails here fails again in its step, which finds out whose fault it is.
        """
        if self.subnetworks is not None:
            _ = self.probes  # found out here, not in the thread that decides
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
    resolver = settings.executor.resolver
    unmoved = check_expanded(resolver, epoch, queries)
    checked = as_moved(unmoved, epoch.moves, resolver)
    arcs = output_arcs(checked, epoch.declared.bound)
    changed = None
    if before is not None and before.epoch.declared is not epoch.declared:
        declared = before.epoch.declared.network, epoch.declared.network
        changed = compare(before.checked, checked, declared)
    elif before is not None and before.epoch.moves != epoch.moves:
        changed = reordered(before.checked, checked)
    watermarks = WatermarkTracker(checked)
    if checked.network.engine.optimize:
        checked = replace(checked, unread=_unread(checked, watermarks, arcs, epoch, resolver))
    progressing = {arc: list(marks) for arc, marks in watermarks.arcs().items()}
    place = new_place(store)
    apart: frozenset[str] = frozenset()
    fusion = Fusion.of(checked.network, epoch.declared.fusion_rule)
    while True:
        superboxes = all_superboxes(
            checked, arcs, standalone, epoch.declared.demanded, apart, fusion
        )
        same = frozenset(
            superbox
            for superbox in superboxes
            if before is not None
            and _is_same(superbox, standalone, before, changed)
            and all(_unread_same(before.checked, checked, arc) for arc in superbox.terminals)
        )
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
        # Only Spark can compute what these read, and then it is not there to be written, too.
        spoilt = [name for name, one in stateful.items() if not one.writes_all]
        if not spoilt:
            break
        apart |= frozenset(spoilt)
        for one in stateful.values():
            one.discard()
    runner = settings.executor.plain(checked, place / "plain@")
    return ExecutionPlan(
        epoch,
        standalone,
        checked,
        arcs,
        superboxes,
        same,
        changed,
        _boxes(before.superboxes) - _boxes(superboxes) if before is not None else frozenset(),
        progressing,
        runner,
        stateful,
        place,
        unmoved,
        resolver,
    )


def _unread(
    checked: CheckedNetwork,
    watermarks: WatermarkTracker,
    outputs: Mapping[str, str],
    epoch: Epoch,
    resolver: Resolver | None,
) -> dict[str, frozenset[str]]:
    """The fields of arcs between boxes that need not be written."""
    progressing = {
        arc: [*marks, *(field for mark in marks.values() for field in mark_fields(mark))]
        for arc, marks in watermarks.arcs().items()
    }
    kept = kept_arcs(checked.network, epoch.declared.demanded).values()
    fixed = {*outputs.values(), *(one.arc for one in kept), *_seen_arcs(checked.network)}
    return unread_fields(checked, fixed, what_boxes_see(checked.network, resolver), progressing)


def _seen_arcs(network: Network) -> list[str]:
    """The arcs of connection points and views."""
    points = [point.arc for point in kept_arcs(network).values()]
    views = [view.from_ for view in network.views.values()]
    return [*point_arcs(network).values(), *points, *views]


def check_expanded(
    resolver: Resolver | None, epoch: Epoch, queries: Mapping[str, Query]
) -> CheckedNetwork:
    """The network of boxes alone that an epoch has, as they are declared, checked."""
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


def _boxes(superboxes: Iterable[Superbox]) -> frozenset[str]:
    """The boxes of superboxes, without those of queries and eddies."""
    every = (box for superbox in superboxes for box in superbox.boxes)
    return frozenset(box for box in every if not QueryBoxId.query_of(box) and not is_eddy(box))


def _unread_same(before: CheckedNetwork, after: CheckedNetwork, arc: str) -> bool:
    return before.unread.get(arc) == after.unread.get(arc)


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
