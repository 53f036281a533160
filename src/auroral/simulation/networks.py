"""A network file, simulated with the costs that its state directory has measured."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from auroral.eddy.query_index import QueryIndex
from auroral.engine.lifecycle.epochs import MOVES
from auroral.engine.queries.registrar import Registrar
from auroral.engine.shedding.places import objection
from auroral.engine.topology.assembly import expanded_network
from auroral.engine.topology.superboxes import running_outputs, running_superboxes
from auroral.errors import UsageError, closest
from auroral.network.check import CheckedNetwork
from auroral.network.data_sets import with_data_sets
from auroral.network.network import Network
from auroral.optimizer import Move, as_moved
from auroral.scheduling.costs import BoxCost
from auroral.scheduling.flow import FlowModel
from auroral.scheduling.flow_models import DEFAULT_CALL_S, DEFAULT_COST_S, flow_model
from auroral.scheduling.policies import SchedulerSettings, make_scheduler
from auroral.scheduling.superboxes import Superbox
from auroral.simulation.arrivals import ArrivalProcess
from auroral.simulation.prediction import measured_machine, simulated_run
from auroral.simulation.report import SimulationReport, SimulationTable
from auroral.simulation.results import SimulationResult
from auroral.simulation.shedding import ControlledShedder
from auroral.storage.snapshot import ManifestSnapshot
from auroral.storage.statistics import KeptStatistics
from auroral.storage.temporary import TemporaryDirectory

_COUNTED = ("tuples", "in")


@dataclass(frozen=True)
class MeasuredNetwork:
    """The superboxes of a network as a flow model, and which of them were measured."""

    model: FlowModel
    superboxes: tuple[Superbox, ...]
    measured: frozenset[str]
    """Boxes of the network whose costs are known."""
    rates: Mapping[str, float]
    """Tuples per second that streams had when they were measured."""
    loop_s: float | None
    """What the loop of the engine took for each step, besides its work; None: not measured."""
    checked: CheckedNetwork
    """The network of boxes alone."""
    boxes: FlowModel
    """The same flow with each box by itself."""

    def may_drop(self, superbox: str, arc: str) -> bool:
        """Whether the load shedder may drop tuples of an arc in front of a superbox."""
        found = next((one for one in self.superboxes if one.name == superbox), None)
        return found is not None and objection(self.checked, found, arc) is None

    @property
    def assumed(self) -> tuple[str, ...]:
        """Superboxes of which nothing was measured."""
        return tuple(
            one.name for one in self.superboxes if one.boxes and not self.measured & {*one.boxes}
        )


def measured_network(network: Network, state: Path | None) -> MeasuredNetwork:
    """What runs of a network, queries included, with the costs in a state directory, if any."""
    network = with_data_sets(network.flattened())
    with TemporaryDirectory() as directory:
        entries, standalone = Registrar(network).read(network.queries)
        index = QueryIndex(directory / "filters")
        first = 1
        for entry in entries:
            entry.first, first = first, first + entry.count
        index.change(added=entries)
        eddies = index.flows()
    plain = {query.name: query.query for query in standalone}
    costs, counted, kept, moves = _measured(state)
    checked = as_moved(expanded_network(network, None, plain, eddies).check(), moves)
    fused = running_superboxes(checked)
    rates = {name: one.rate for name, one in kept.rates.items()}
    outputs = running_outputs(checked)
    model = flow_model(checked, costs, outputs, fused, tuples=counted)
    boxes = flow_model(checked, costs, outputs, tuples=counted)
    return MeasuredNetwork(model, fused, frozenset(costs), rates, kept.loop_s, checked, boxes)


def _measured(
    state: Path | None,
) -> tuple[dict[str, BoxCost], dict[str, int], KeptStatistics, tuple[Move, ...]]:
    """Costs of boxes, tuples of arcs, statistics, and what the optimiser had moved at the end."""
    if state is None:
        return {}, {}, KeptStatistics(), ()
    with ManifestSnapshot(state) as manifest:
        counted = {log: n for (log, name), n in manifest.counters().items() if name in _COUNTED}
        moves = tuple(map(Move.parse, json.loads(manifest.meta(MOVES) or "[]")))
        return manifest.costs(), counted, manifest.statistics(), moves


def stream_rates(
    network: Network,
    model: FlowModel,
    given: Mapping[str, float],
    measured: Mapping[str, float] = MappingProxyType({}),
) -> dict[str, float]:
    """Tuples per second of each stream that boxes read.

    What is not given is what was measured, or else what a source of format `rate` says.
    """
    for stream in given:
        if stream not in network.streams:
            raise UsageError(
                "UNKNOWN_STREAM",
                f"there is no stream {stream}; there are {', '.join(network.streams)}",
                hint=closest(stream, network.streams),
            )
    found: dict[str, float] = {}
    for stream in model.streams:
        if stream in given:
            found[stream] = given[stream]
            continue
        if measured.get(stream):
            found[stream] = measured[stream]
            continue
        declared = network.streams.get(stream)
        sources = declared.sources if declared is not None else ()
        rates = [float(source.get("rows_per_second", 0)) for source in sources]
        if not sum(rates):
            raise UsageError(
                "MISSING_OPTION",
                f"it is not known how many tuples per second come on stream {stream}",
                hint=f"give --rates {stream}=1000",
            )
        found[stream] = sum(rates)
    return found


def network_report(
    network: Network,
    rates: Mapping[str, float],
    *,
    state: Path | None,
    duration_s: float,
    workers: int,
    process: ArrivalProcess,
    seed: int,
) -> SimulationReport:
    """Simulate a network; `rates` are those of streams as far as they are given."""
    measured = measured_network(network, state)
    model = measured.model
    options = network.engine
    settings = replace(SchedulerSettings.of(options), is_fused=True)  # as in the engine
    arriving = stream_rates(network, model, rates, measured.rates)
    headroom = options.headroom
    shedder = ControlledShedder(
        options.shedding,
        model,
        workers * headroom,
        headroom=headroom,
        may_drop=measured.may_drop,
    )
    result = simulated_run(
        model,
        arriving,
        settings,
        duration_s,
        workers,
        process=process,
        seed=seed,
        machine=measured_machine(measured.loop_s),
        shedder=shedder if shedder.active else None,
    )
    report = SimulationReport("network", f"{network.name}, {duration_s:g} s of virtual time")
    _tell(report, arriving, result, duration_s, workers)
    chooser = make_scheduler(settings)
    chooser.serve(model)
    report.notes += chooser.settings.reasons
    if used := [s for s in arriving if s not in rates and measured.rates.get(s)]:
        report.notes.append(f"rates were measured of {', '.join(used)}")
    if measured.assumed:
        call, cost = f"{DEFAULT_CALL_S * 1000:g} ms", f"{DEFAULT_COST_S * 1e6:g} µs"
        report.notes.append(
            f"never measured, taken to cost {call} for a call and {cost} for a tuple and box: "
            + ", ".join(measured.assumed)
        )
    return report


def _tell(
    report: SimulationReport,
    rates: Mapping[str, float],
    result: SimulationResult,
    duration_s: float,
    workers: int,
) -> None:
    outputs = SimulationTable(
        "outputs", ["output", "tuples", "mean latency [s]", "95 % within [s]", "utility"]
    )
    for name, output in result.outputs.items():
        latencies = (output.mean_latency_s, output.latency_quantile_s(0.95))
        outputs.rows.append([name, output.tuples, *latencies, output.utility])
    boxes = SimulationTable(
        "superboxes", ["superbox", "tuples", "calls", "busy [%]", "most queued"]
    )
    end_s = max(result.end_s, duration_s)
    for name, load in result.boxes.items():
        busy = 100 * load.busy_s / end_s
        boxes.rows.append([name, load.tuples, load.calls, busy, load.most_queued])
    report.tables += [outputs, boxes]
    if result.dropped:
        dropped = SimulationTable("dropped", ["superbox", "arc", "tuples"])
        dropped.rows += [[box, arc, count] for (box, arc), count in result.dropped.items()]
        report.tables.append(dropped)
    spent = result.spent
    used = (spent.total_s - spent.scheduler_s) / (workers * end_s)
    behind_s = result.end_s - duration_s
    report.find(
        "the machine keeps up with its input",
        behind_s < max(0.05 * duration_s, 1.0),
        f"{workers} workers are busy for {used:.0%} of the time".replace("%", " %")
        + (
            f", the last results came {behind_s:.2g} s after the last tuple" if behind_s > 0 else ""
        ),
    )
    shown = ", ".join(f"{stream} {rate:,g}/s" for stream, rate in rates.items())
    report.notes.append(f"input: {shown}; {result.decisions:,} decisions, {result.calls:,} calls")
