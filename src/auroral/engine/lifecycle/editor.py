"""Putting another network in the place of the one that runs, step by step."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from auroral.engine.ingest.data_sets import StoredDataSets
from auroral.engine.ingest.declared_sources import named_apart
from auroral.engine.inspect.cautions import log_infeasible
from auroral.engine.lifecycle.edits import NetworkEdit
from auroral.engine.lifecycle.epochs import DeclaredNetwork
from auroral.engine.lifecycle.network_changes import PlannedChange
from auroral.engine.lifecycle.stored_network import bound_arcs
from auroral.engine.lifecycle.stored_qos import with_graphs, with_qos_set
from auroral.engine.locks import EngineLocks
from auroral.engine.parts import EngineParts
from auroral.engine.queries.modification import requested
from auroral.engine.sinks.headers import require_output_fields
from auroral.io.sources.source import Source
from auroral.network.check import check
from auroral.network.data_sets import with_data_sets
from auroral.network.endpoints import with_late_outputs
from auroral.network.network import Network
from auroral.qos.graphs import QoS
from auroral.scheduling.fusion import RULE
from auroral.storage import Store


class NetworkEditor:
    """Makes changes of the network; one at a time."""

    def __init__(
        self,
        parts: EngineParts,
        store: Store,
        locks: EngineLocks,
        sinks: Collection[str],
        *,
        require: Callable[[Network], None],
        bind: Callable[[bool], None],
        sources_of: Callable[[Network], list[Source]],
        made: Callable[[Network, StoredDataSets | None], None],
    ):
        """`sinks` are outputs and arcs that were given a sink.

        `require` refuses a network that cannot run, `bind` gives outputs their sinks (and refuses
        what is no output if it is told so), `sources_of` finds the sources of a network, and
        `made` is called when the network is another.
        """
        self._parts = parts
        self._store = store
        self._locks = locks
        self._sinks = sinks
        self._require = require
        self._bind = bind
        self._sources_of = sources_of
        self._made = made

    def edit(self, edit: NetworkEdit, *, by_file: bool) -> dict[str, list[str]]:
        """Make a change, wholly or not at all; returns what it did.

        `by_file` if it is the network file that says so.
        """
        parts, queries = self._parts, self._parts.context.queries
        before = queries.epochs.latest.declared
        planned, going = self._plan(edit, by_file=by_file)
        network = planned.declared.network
        parts.loop.require_unpaused(parts.ingest.next_moment)
        stored = StoredDataSets(network, self._store.directory, sync=self._store.power)
        touched = parts.network_changes.queries_touched(planned, going)
        if touched:  # what they read is no more
            parts.changing.change({}, touched)
        removed = {*before.network.streams} - {*network.streams}
        if removed:  # else a feeder would bring tuples of a stream that is no more
            parts.loop.change_sources(removed, (), network.streams)
        moment = parts.network_changes.make(planned, edit.network if by_file else None)
        self._made(network, stored)
        parts.loop.await_epoch(moment)
        stored.push(parts.ingest, parts.loop.execution.checked)
        self._bind_more(last=False)
        if edit.whole:
            parts.changing.change(*queries.declared(restore=not by_file), declared=True)
            self._bind_more(last=by_file)
        left = [name for name in edit.remove if name not in touched]
        if edit.add or left:
            parts.changing.change(*requested(edit.add, left))
        self._follow_sources(before.network, network, by_file=by_file)
        self._log_infeasible()
        parts.loop.wake()
        return edit.merged_report(planned.report(before))

    def set_qos(self, output: str, qos: QoS | Mapping[str, Any] | None) -> None:
        """Judge an output by other graphs at once; boxes may run as one with others from then on.

        If other outputs are of the same worth than before, the superboxes are others from the next
        moment on, as after any change of the network. A sink cannot change it: if it sets graphs,
        superboxes stay until the next change.
        """
        parts = self._parts
        parts.context.quality.set_qos(output, qos)
        self._log_infeasible()
        if not parts.loop.in_round:
            with self._locks.network:
                self._fuse_anew()

    def _fuse_anew(self) -> None:
        """Let other boxes run as one if that follows from the graphs that hold now."""
        parts, context = self._parts, self._parts.context
        before = context.queries.epochs.latest.declared
        network = with_graphs(before.network, context.quality.outputs)
        declared = replace(before, network=network, fusion_rule=RULE)
        if declared.fusion == before.fusion:
            return
        parts.network_changes.make(parts.network_changes.plan(declared))
        self._made(network, None)

    def _log_infeasible(self) -> None:
        """Warn of graphs that ask for more than was measured."""
        execution = self._parts.loop.execution
        outputs = execution.context.quality.flow_outputs()
        log_infeasible(execution.checked, self._store.costs, outputs)

    def preview(self, edit: NetworkEdit) -> dict[str, list[str]]:
        """What a change would do; what `edit` would refuse is refused."""
        before = self._parts.context.queries.epochs.latest.declared
        planned, _ = self._plan(edit, by_file=False)
        return edit.merged_report(planned.report(before))

    def _plan(self, edit: NetworkEdit, *, by_file: bool) -> tuple[PlannedChange, list[str]]:
        """Find out what a change does, and which queries go; nothing has happened yet."""
        assert edit.network is not None
        parts, queries = self._parts, self._parts.context.queries
        network = with_data_sets(edit.network.importing().flattened())
        network = with_late_outputs(network, self._sinks)
        resolver = parts.context.settings.executor.resolver
        check(network, resolver)  # what is required takes a network without mistakes for granted
        self._require(network)
        if by_file:
            network = with_qos_set(network, parts.context.quality.chosen, resolver)
        bound = bound_arcs(network, self._sinks)
        declared = DeclaredNetwork(network, bound, self._demanded(network))
        if edit.whole:
            parts.changing.check({}, edit.remove)
        going = [*edit.remove, *queries.undeclared(network)]
        planned = parts.network_changes.plan(declared, going)
        require_output_fields(parts.loop.execution.sinks, planned.output_fields)
        return planned, going

    def _demanded(self, network: Network) -> frozenset[str]:
        """The views of another network that keep nothing and have to run."""
        running = self._parts.context.queries.epochs.latest.declared.demanded
        attached = self._parts.context.attachments
        resting = [name for name, v in network.views.items() if v.materialized == "none"]
        return frozenset(name for name in resting if name in running or attached.on(name))

    def _bind_more(self, *, last: bool) -> None:
        """Give outputs that have come their sinks."""
        with self._parts.loop.between_rounds(), self._locks.changes:
            self._bind(last)

    def _follow_sources(self, before: Network, network: Network, *, by_file: bool) -> None:
        """Read the sources of streams that have come or changed, and not of those that are gone."""
        kept = [name for name in network.streams if not by_file and name in before.streams]
        kept = [n for n in kept if before.streams[n].sources == network.streams[n].sources]
        sources: Sequence[Source] = self._sources_of(network)
        fresh = [source for source in sources if source.stream not in kept]
        gone = {*before.streams} - {*kept}
        if fresh or gone:
            named = named_apart(network, fresh, sources)
            self._parts.loop.change_sources(gone, named, network.streams)
