"""Quality of service while the engine runs: steps tell how old their results are."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from auroral.boxes.eddy import Eddy
from auroral.eddy.report import unpacked
from auroral.engine.inspect.paused_times import PausedTimes
from auroral.engine.inspect.stories import DecisionLog
from auroral.engine.inspect.waiting_ages import WaitingAges
from auroral.engine.lifecycle.stored_qos import declared_qos, qos_set, remember_qos_set
from auroral.engine.points.kept_arc import kept_arcs
from auroral.engine.queries.registry import QueryRegistry
from auroral.engine.results.views import View
from auroral.engine.runtime.arrival_times import ArrivalTimes
from auroral.engine.runtime.stepping import CommittedStep
from auroral.engine.runtime.train import Train, cut
from auroral.engine.shedding.dropping import LOST_BY
from auroral.errors import NetworkError, StateError, UsageError, closest, list_existing
from auroral.ids import is_eddy
from auroral.network.check import CheckedNetwork
from auroral.network.endpoints import require_value_field
from auroral.network.network import Network
from auroral.network.types import Schema
from auroral.qos.graphs import QoS
from auroral.qos.monitor import QoSMonitor
from auroral.qos.output_monitor import Floats, gathered
from auroral.scheduling.flow import FlowOutput
from auroral.scheduling.superboxes import Superbox
from auroral.storage import Segment, Store

MOST_VALUES = 10_000
"""So many values of an output are looked at in a second."""
_LARGEST_SHARED = 100_000
"""Results of shared queries are taken apart for their values only up to so many rows."""
_MOST_DELAYS = 64
"""Arrival times of one step that are told apart."""
_WAITING_S = 1.0
"""How often queues are looked at for what waits on the way to outputs …"""
_PAUSE = 100.0
"""… but so many times as long as a look took nobody looks again."""


@dataclass(frozen=True)
class _Served:
    """Where the results of outputs are in the network that runs."""

    checked: CheckedNetwork
    declared: Mapping[str, QoS | None]
    by_log: Mapping[str, tuple[str, ...]]
    """Outputs by the log that a superbox writes for them."""
    by_stream: Mapping[tuple[str, str], tuple[str, ...]]
    """Outputs that give a stream itself; by the superbox that tells of it, and the stream."""
    shared: Mapping[str, str]
    """Outputs that read what eddies write: the query or family."""
    ages: WaitingAges
    stuck: Callable[[], Collection[str]]
    """Superboxes for which tuples wait in vain: those that were halted, and those behind them."""


@dataclass
class _Told:
    """What one step tells of an output."""

    delays: list[tuple[float, float]] = field(default_factory=list)
    shed: dict[str, float] = field(default_factory=dict)
    """By reason."""
    segments: list[Segment] = field(default_factory=list)


class OutputQuality:
    """Tells the QoS monitor of every step, and knows the graphs that hold now.

    The delay of a result is the time from the arrival of its tuples to the commit of the step that
    made it. A result that is lost as a step drops tuples is counted in its change, by reason.
    """

    def __init__(
        self,
        store: Store,
        queries: QueryRegistry,
        times: ArrivalTimes,
        decisions: DecisionLog,
        now_s: Callable[[], float] = time.monotonic,
    ):
        self.monitor = QoSMonitor()
        self.version = 0
        """Rises whenever outputs or their graphs change."""
        self._store = store
        self._queries = queries
        self._times = times
        self._decisions = decisions
        self._now_s = now_s
        self._lock = threading.Lock()
        self._set = qos_set(store)
        self._set_after: dict[str, QoS | None] = {}
        """What was declared, in the latest network that was planned, when graphs were set."""
        self._served: _Served | None = None
        self._matches: dict[str, int] = {}
        """How often shared queries had matched when they were asked last."""
        self._looked: dict[str, tuple[int, int]] = {}
        """By output: a second, and how many values were looked at in it."""
        self._pauses = PausedTimes()
        self._next_look_s = -math.inf
        """When queues are looked at again for what waits."""

    # ── which outputs there are ──

    def serve(
        self,
        declared: Network,
        checked: CheckedNetwork,
        arcs: Mapping[str, str],
        superboxes: Sequence[Superbox],
        stuck: Callable[[], Collection[str]] = tuple,
    ) -> None:
        """Watch the outputs of another network; `arcs` are what they deliver.

        `stuck` tells the superboxes that were halted, and those behind them.
        """
        found = dict(declared_qos(declared))
        viewed = {name for name in self._set if name in declared.views}
        found |= {name: None for name in (*arcs, *viewed) if name not in found}
        kept = {name: one.arc for name, one in kept_arcs(checked.network).items() if name in found}
        places = {**kept, **arcs}
        shared = {n: o.from_ for n, o in declared.outputs.items() if n not in arcs}
        matches = {
            name: self._matches.get(name) or self._queries.catalogue.match_count(query)
            for name, query in shared.items()
        }
        with self._lock:
            before = self._served.declared if self._served is not None else found
            left = {
                name: qos
                for name, qos in self._set.items()
                if name in found
                and (
                    found[name] in (before.get(name), qos)
                    or (name in self._set_after and found[name] == self._set_after[name])
                )
            }
            after = self._set_after.items()
            self._set_after = {n: q for n, q in after if n in left and found[n] != left[n]}
            if left != self._set:
                self._set = left
                remember_qos_set(self._store, left)
            self._served = _Served(
                checked,
                found,
                _grouped((place, name) for name, place in places.items()),
                _told_by(checked, superboxes, places),
                shared,
                WaitingAges(checked, superboxes, self._store, self._times),
                stuck,
            )
            self._next_look_s = -math.inf
            self._matches = matches
            self._looked = {n: one for n, one in self._looked.items() if n in found}
            self.version += 1
            self.monitor.serve({**found, **left}, self._now_s())

    @property
    def outputs(self) -> Mapping[str, QoS | None]:
        """The graphs that hold now, by output; None: the default."""
        return self.monitor.outputs

    @property
    def chosen(self) -> Mapping[str, QoS | None]:
        """The graphs that were set and still hold."""
        return dict(self._set)

    def flow_outputs(self) -> dict[str, FlowOutput]:
        """The outputs for a flow model of the boxes that run; shared queries give their eddy's."""
        served = self._served
        if served is None:
            return {}
        now = self.outputs
        places = {name: log for log, names in served.by_log.items() for name in names}
        for name, query in served.shared.items():
            eddy = self._eddy_of(served.checked, query)
            if eddy is not None:
                places[name] = eddy
        return {n: FlowOutput(n, places[n], qos) for n, qos in now.items() if n in places}

    def eddy_behind(self, name: str) -> str | None:
        """The eddy that computes a shared query or an output that reads one, if an eddy does."""
        served = self._served
        if served is None:
            return None
        return self._eddy_of(served.checked, served.shared.get(name, name))

    def _eddy_of(self, checked: CheckedNetwork, query: str) -> str | None:
        read = self._queries.catalogue.arcs_of(query)
        if not read:
            return None
        boxes = checked.network.boxes.items()
        eddies = [n for n, box in boxes if isinstance(box, Eddy) and read <= {*box.sources()}]
        return next(iter(eddies), None)

    def set_qos(self, output: str, qos: QoS | Mapping[str, Any] | None) -> None:
        """Let other graphs hold from now on, also after a restart with the same network file."""
        chosen = _read(qos)
        served = self._served
        if served is None or output not in served.declared:
            names = [] if served is None else list(served.declared)
            raise UsageError(
                "UNKNOWN_OUTPUT",
                f"there is no output {output}; {list_existing(names)}",
                hint=closest(output, names),
            )
        schema = self._schema(served, output)
        if chosen is not None and schema is not None:
            require_value_field(chosen, schema)
        latest = declared_qos(self._queries.epochs.latest.declared.network)
        with self._lock:
            self._set[output] = chosen
            self._set_after[output] = latest.get(output)
            remember_qos_set(self._store, self._set)
            self.version += 1
            self.monitor.set_qos(output, chosen, self._now_s())
        graphs = ", ".join(chosen.kinds) if chosen is not None and chosen.kinds else "the default"
        self._decisions.note([output], "changed", f"it is judged by other graphs: {graphs}")

    def _schema(self, served: _Served, output: str) -> Schema | None:
        if output in served.shared:
            return self._queries.catalogue.schema(served.shared[output])
        place = next((log for log, names in served.by_log.items() if output in names), None)
        arc = served.checked.arcs.get(place) if place is not None else None
        return None if arc is None else arc.schema

    def paused(self, applications: frozenset[str] | None) -> None:
        """Some outputs, all (None) or none are paused from now on: that is no delay."""
        self._pauses.change(applications, self._now_s())

    # ── what steps tell ──

    def committed(self, step: CommittedStep) -> None:
        """A step was committed: its results are delivered."""
        served = self._served
        if served is None:
            return
        now_s = self._now_s()
        change, name = step.outcome.change, step.train.superbox.name
        told: dict[str, _Told] = {}
        for segment in change.written:
            for output in served.by_log.get(segment.log, ()) if segment.rows else ():
                one = told.setdefault(output, _Told())
                span = segment.first, segment.last + 1
                one.delays += self._delays(output, span, segment.rows, now_s)
                one.segments.append(segment)
        for (superbox, stream), outputs in served.by_stream.items():
            if superbox == name:  # what a stream brings is there as soon as it arrives
                held = [s for s in step.train.segments[stream] if s.file]
                rows = sum(self._rows_within(segment, step.train) for segment in held)
                for output in outputs if rows else ():
                    told[output] = _Told([(0.0, rows)], segments=held)
        if is_eddy(name):
            self._tell_shared(served, step, told, now_s)
        for (output, what), count in change.counts.items():
            if what.startswith(LOST_BY) and output in served.declared:
                told.setdefault(output, _Told()).shed[what.removeprefix(LOST_BY)] = count
        graphs = self.outputs if told else {}
        for output, one in told.items():
            values = self._values(served, output, graphs.get(output), one.segments, now_s)
            self.monitor.record(output, now_s, one.delays, shed=one.shed, values=values)

    def _rows_within(self, segment: Segment, train: Train) -> int:
        if train.first <= segment.first and segment.last < train.last:
            return segment.rows
        with suppress(StateError):  # somebody has taken it already
            moments = self._store.table(segment, ["_seq"])
            return int(cut(moments, train.first, train.last).num_rows)
        return 0

    def _tell_shared(
        self, served: _Served, step: CommittedStep, told: dict[str, _Told], now_s: float
    ) -> None:
        """Results of shared queries: as old as the train that they come from."""
        change = step.outcome.change
        if change.tally is None or not served.shared:
            return
        found, counts = unpacked(*change.tally)
        order = np.argsort(found, kind="stable")
        ids, total = found[order], np.concatenate([[0], np.cumsum(counts[order])])
        for output, query in served.shared.items():
            spans = self._queries.catalogue.id_spans(query)
            borders = np.searchsorted(ids, spans) if spans else np.zeros((0, 2), np.int64)
            counted = int((total[borders[:, 1]] - total[borders[:, 0]]).sum())
            before = self._matches.get(output, 0)
            # Now and then a step tells everything so far, of queries that were not removed.
            more = max(counted - before, 0) if change.tally_instead else counted
            self._matches[output] = counted if change.tally_instead else before + counted
            if more:
                span = step.train.first, step.train.last
                delays = self._delays(output, span, more, now_s)
                told[output] = _Told(delays, segments=list(change.written))

    def _delays(
        self, output: str, span: tuple[int, int], rows: int, now_s: float
    ) -> list[tuple[float, float]]:
        """The delays of some results of moments; few enough to be quick."""
        spread = self._times.spread(*span) or [(self._times.at(span[0]), 1)]
        weight = rows / sum(count for _, count in spread)
        found = gathered(((at, count * weight) for at, count in spread), now_s)
        paused_s = self._pauses.within
        found = [(max(d - paused_s(output, now_s - d, now_s), 0.0), n) for d, n in found]
        if len(found) <= _MOST_DELAYS:
            return found
        width = -(-len(found) // _MOST_DELAYS)
        return [_merged(found[at : at + width]) for at in range(0, len(found), width)]

    def _values(
        self,
        served: _Served,
        output: str,
        qos: QoS | None,
        segments: Sequence[Segment],
        now_s: float,
    ) -> Floats | None:
        """Some values of the field that an output's value graph is about."""
        if qos is None or qos.value is None:
            return None
        second, seen = self._looked.get(output, (0, 0))
        seen = seen if second == int(now_s) else 0
        found: list[Floats] = []
        view = None
        if output in served.shared:
            with suppress(UsageError):  # its results are counted, not kept
                view = self._queries.catalogue.view(served.shared[output])
            segments = [one for one in segments if view is not None and one.log == view.log]
        for segment in segments:
            if segment.file and seen < MOST_VALUES:
                # Somebody has taken it already, or a query was replaced that lacks the field.
                with suppress(StateError, NetworkError):
                    values = self._column(served, view, qos.value.on, segment)
                    found.append(values[:: -(-len(values) // (MOST_VALUES - seen)) or 1])
                    seen += len(found[-1])
        self._looked[output] = int(now_s), seen
        return np.concatenate(found) if found else None

    def _column(self, served: _Served, view: View | None, field: str, segment: Segment) -> Floats:
        """The values of a field; `view` is how the results of a shared query look."""
        if view is None:
            name = served.checked.arcs[segment.log].schema.field(field).name
            return _numbers(self._store.table(segment, [name])[name])
        if segment.rows > _LARGEST_SHARED:
            return np.zeros(0)
        found = [name for name in view.schema.names if name.lower() == field.lower()]
        if not found:
            return np.zeros(0)
        return _numbers(view.rows(self._store.table(segment))[found[0]])

    # ── how outputs do ──

    def outside(self) -> float:
        """The share of outputs outside their good zone now."""
        self._look()
        return self.monitor.outside(self._now_s())

    def value_counts(self, output: str) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
        """Edges of cells and how many values of an output are in each; None: no value graph."""
        return self.monitor.value_counts(output, self._now_s())

    def doing(self) -> list[tuple[str, float, bool]]:
        """By output its delay, and whether it is in its good zone.

        Those that have not delivered lately are told only if tuples wait for too long: how long.
        """
        self._look()
        now_s = self._now_s()
        found: list[tuple[str, float, bool]] = []
        for name in self.outputs:
            delay_s = self.monitor.delay_s(name, now_s)
            is_good = self.monitor.in_good_zone(name, now_s)
            if delay_s is not None or not is_good:
                waiting_s = self.monitor.waiting_s(name)
                found.append((name, waiting_s if delay_s is None else delay_s, is_good))
        return found

    def _look(self, *, now: bool = False) -> None:
        """Tell the monitor what waits on the way to outputs, if it is time, or `now`."""
        served, began_s = self._served, time.monotonic()
        if served is None or (began_s < self._next_look_s and not now):
            return
        arrivals = served.ages.arrivals(self.flow_outputs(), served.stuck())
        now_s = self._now_s()
        waits = {
            name: max(now_s - at_s - self._pauses.within(name, at_s, now_s), 0.0)
            for name, at_s in arrivals.items()
        }
        self.monitor.wait(waits)
        spent_s = time.monotonic() - began_s
        self._next_look_s = began_s + max(_WAITING_S, _PAUSE * spent_s)

    def statistics(self) -> dict[str, dict[str, Any]]:
        """How all outputs do."""
        self._look(now=True)
        return self.monitor.statistics(self._now_s())

    def described(self, output: str) -> dict[str, Any]:
        """The graphs that hold for an output, the course of its utility, and its delays."""
        qos, now_s = self.outputs.get(output), self._now_s()
        return {
            "qos": None if qos is None else qos.document(),
            "history": self.monitor.history(output, now_s),
            "delays": self.monitor.delay_counts(output, now_s),
        }


def _read(qos: Any) -> QoS | None:
    if qos is None or isinstance(qos, QoS):
        return qos
    if not isinstance(qos, Mapping):
        raise UsageError("BAD_CALL", f"qos is a QoS, its keys as a mapping, or None, not {qos!r}")
    return QoS.model_validate(dict(qos))


def _grouped(pairs: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for key, name in pairs:
        found[key] = (*found.get(key, ()), name)
    return found


def _told_by(
    checked: CheckedNetwork, superboxes: Sequence[Superbox], places: Mapping[str, str]
) -> dict[tuple[str, str], tuple[str, ...]]:
    """Outputs of streams, by the first superbox that reads the stream; every stream has one."""
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for name, place in places.items():
        reader = next((one.name for one in superboxes if place in one.sources), None)
        if place in checked.network.streams and reader is not None:
            found[reader, place] = (*found.get((reader, place), ()), name)
    return found


def _merged(delays: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Some delays as one, their mean."""
    total = sum(count for _, count in delays)
    return sum(delay * count for delay, count in delays) / total, total


def _numbers(column: pa.ChunkedArray) -> Floats:
    """The values of a column of numbers that are not NULL."""
    return np.asarray(column.drop_null().cast(pa.float64()).to_numpy(), dtype=np.float64)
