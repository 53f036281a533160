"""`auroral analyze`: whether a machine is large enough for a network at given rates [1 §4.4]."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from auroral.cli.check import NetworkFile
from auroral.errors import UsageError, closest, list_existing
from auroral.network.network import Network
from auroral.scheduling.flow_models import DEFAULT_CALL_S, DEFAULT_COST_S
from auroral.scheduling.superboxes import Superbox
from auroral.shedding.load import DEFAULT_PERIOD_S, LoadAnalysis, analyzed, flow_rates
from auroral.shedding.planning import SheddingPlan, plan_table
from auroral.simulation.networks import MeasuredNetwork, measured_network


def analyze(
    file: NetworkFile,
    rates: Annotated[
        list[str] | None,
        typer.Option(
            "--rates",
            metavar="S=N",
            help="tuples per second of streams, by commas; by default those measured in --state",
        ),
    ] = None,
    cores: Annotated[
        float | None, typer.Option(metavar="N", help="of the machine; by default those of this one")
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="take measured costs and rates from a state directory"),
    ] = None,
    period: Annotated[
        float, typer.Option(metavar="SECONDS", help="how often each superbox is called")
    ] = DEFAULT_PERIOD_S,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Tell what a network needs at given rates, which box saturates first, and what to shed."""
    network = Network.load(file)
    found = measured_network(network, state)
    measured = {} if rates else measured_rates(found.rates, network)
    given = measured or _rates(rates or [], list(network.streams))
    machine = float(os.cpu_count() or 1) if cores is None else cores
    for option, number in (("--cores", machine), ("--period", period)):
        if not (number > 0 and math.isfinite(number)):
            raise UsageError("BAD_OPTION", f"{option} takes a number above 0, found {number:g}")
    notes = list(_notes(network, given, found, state))
    if measured:
        shown = ", ".join(f"{stream} {rate:,.4g}/s" for stream, rate in measured.items())
        notes.insert(0, f"rates were measured: {shown}")
    told = _analyzed(network, found, given, machine, period, notes)
    if as_json:
        typer.echo(json.dumps(told.document(), indent=2, ensure_ascii=False))
    else:
        typer.echo("\n".join(told.lines()))


@dataclass(frozen=True)
class _Found:
    """What was found, to be printed."""

    network: Network
    load: LoadAnalysis
    arcs: Mapping[str, float]
    superboxes: Sequence[Superbox]
    plan: SheddingPlan
    notes: Sequence[str]

    def document(self) -> dict[str, Any]:
        """All of it as plain data."""
        document = self.load.document()
        loads = document.pop("boxes")
        members = {one.name: list(one.boxes) for one in self.superboxes}
        return {
            "network": self.network.name,
            **document,
            "arcs": dict(self.arcs),
            "superboxes": {name: {"boxes": members[name], **own} for name, own in loads.items()},
            "shedding": {"mode": self.network.engine.shedding, **self.plan.document()},
            "notes": list(self.notes),
        }

    def lines(self) -> list[str]:
        """The same for people."""
        load, capacity = self.load, self.load.capacity
        rows = [[name, f"{rate:,.6g}"] for name, rate in self.arcs.items()]
        found = [f"network {self.network.name}", "", *_table(["arc", "tuples/s"], rows), ""]
        members = {one.name: ", ".join(one.boxes) for one in self.superboxes}
        rows = [
            [
                name,
                f"{own.rate:,.6g}",
                f"{own.train:,.6g}",
                f"{own.cost_s * 1e6:,.4g}",
                f"{own.utilisation:.3g}",
                members[name],
            ]
            for name, own in load.boxes.items()
        ]
        heads = ["superbox", "tuples/s", "train", "µs/tuple", "load", "boxes"]
        found += [*_table(heads, rows), ""]
        found.append(f"min_cap {load.min_cap:.3g}, C·H {load.cores:g} × {load.headroom:g}")
        found[-1] += f" = {capacity:.3g}"
        found += [load.verdict, load.saturation]
        if not load.fits:
            found.append(f"Shedding ({self.network.engine.shedding}): {self.plan.why}.")
        return [*found, *(f"note: {note}" for note in self.notes)]


def _analyzed(
    network: Network,
    measured: MeasuredNetwork,
    given: Mapping[str, float],
    cores: float,
    period_s: float,
    notes: Sequence[str],
) -> _Found:
    model, headroom = measured.model, network.engine.headroom
    load = analyzed(model, given, cores=cores, headroom=headroom, period_s=period_s)
    level = max(load.min_cap / load.capacity, 1.0)
    table = plan_table(
        model,
        given,
        capacity=load.capacity,
        mode=network.engine.shedding,
        may_drop=measured.may_drop,
        levels=[level],
        period_s=period_s,
    )
    arcs = flow_rates(measured.boxes, given)
    read = {arc for box in measured.boxes.boxes.values() for arc in box.inputs}
    outputs = {output.arc for output in model.outputs.values()}
    shown = {arc: rate for arc, rate in arcs.items() if arc in read | outputs}
    return _Found(network, load, shown, measured.superboxes, table.at(level), notes)


def _notes(
    network: Network,
    given: Mapping[str, float],
    measured: MeasuredNetwork,
    state: Path | None,
) -> Iterable[str]:
    missing = [stream for stream in network.streams if stream not in given]
    if missing:
        yield f"no rate was given for {', '.join(missing)}: taken for 0"
    defaults = f"{DEFAULT_COST_S * 1e6:g} µs per tuple and {DEFAULT_CALL_S * 1e3:g} ms per call"
    names = [name for one in measured.superboxes for name in one.boxes]
    unmeasured = [name for name in names if name not in measured.measured]
    if state is None:
        yield f"costs are defaults: {defaults}; --state DIR takes measured ones"
    elif unmeasured:
        yield f"never measured, so taken for {defaults}: {', '.join(unmeasured)}"


def measured_rates(rates: Mapping[str, float], network: Network) -> dict[str, float]:
    """The tuples per second that the streams of a network had lately, as far as any came."""
    return {name: rate for name, rate in rates.items() if name in network.streams and rate > 0}


def _rates(given: Sequence[str], streams: Sequence[str]) -> dict[str, float]:
    found: dict[str, float] = {}
    for part in (part.strip() for text in given for part in text.split(",")):
        stream, _, number = (one.strip() for one in part.partition("="))
        try:
            rate = float(number)
        except ValueError:
            rate = math.nan
        if not stream or not (rate >= 0 and math.isfinite(rate)):
            message = f"--rates takes STREAM=TUPLES_PER_SECOND, as in reports=5000; found {part!r}"
            raise UsageError("BAD_OPTION", message)
        if stream not in streams:
            message = f"--rates: there is no stream {stream}; {list_existing(streams)}"
            raise UsageError("UNKNOWN_STREAM", message, hint=closest(stream, streams))
        if stream in found:
            raise UsageError("BAD_OPTION", f"--rates {stream} is given twice")
        found[stream] = rate
    if not any(found.values()):
        example = f"--rates {streams[0]}=1000" if streams else "--rates STREAM=1000"
        message = "give the tuples per second of streams, of one above 0 at least"
        raise UsageError("MISSING_OPTION", message, hint=f"as in {example}")
    return found


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of columns; numbers to the right, the first and the column of names to the left."""
    cells = [list(heads), *(list(row) for row in rows)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(heads))]
    left = {0, 5}
    return [
        "  ".join(
            f"{cell:<{width}}" if at in left else f"{cell:>{width}}"
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]
