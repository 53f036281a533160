"""`auroral analyze`: whether a machine is large enough for a network at given rates [1 §4.4]."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from auroral.catalog import CatalogSnapshot, read_catalog
from auroral.cli.check import NetworkFile
from auroral.engine.topology.assembly import expanded_network
from auroral.errors import UsageError, closest, list_existing
from auroral.network.network import Network
from auroral.scheduling.costs import BoxCost
from auroral.scheduling.flow_models import DEFAULT_CALL_S, DEFAULT_COST_S, flow_model
from auroral.scheduling.superboxes import Superbox, superboxes
from auroral.shedding.load import DEFAULT_PERIOD_S, LoadAnalysis, analyzed, flow_rates
from auroral.shedding.planning import SheddingPlan, plan_table


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
    catalog = read_catalog(state) if state is not None else None
    measured = {} if catalog is None or rates else measured_rates(catalog, network)
    given = measured or _rates(rates or [], list(network.streams))
    machine = float(os.cpu_count() or 1) if cores is None else cores
    for option, number in (("--cores", machine), ("--period", period)):
        if not (number > 0 and math.isfinite(number)):
            raise UsageError("BAD_OPTION", f"{option} takes a number above 0, found {number:g}")
    found = _analyzed(network, given, machine, period, catalog)
    if measured:
        shown = ", ".join(f"{stream} {rate:,.4g}/s" for stream, rate in measured.items())
        found = replace(found, notes=(f"rates were measured: {shown}", *found.notes))
    if as_json:
        typer.echo(json.dumps(found.document(), indent=2, ensure_ascii=False))
    else:
        typer.echo("\n".join(found.lines()))


@dataclass(frozen=True)
class _Found:
    """What was found, to be printed."""

    network: Network
    load: LoadAnalysis
    arcs: Mapping[str, float]
    superboxes: Sequence[Superbox]
    plan: SheddingPlan
    notes: tuple[str, ...]

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
    given: Mapping[str, float],
    cores: float,
    period_s: float,
    catalog: CatalogSnapshot | None,
) -> _Found:
    checked = expanded_network(network, None, {}).check()
    costs: Mapping[str, BoxCost] = {}
    tuples: dict[str, int] = {}
    if catalog is not None:
        costs = catalog.costs
        tuples = {arc: n for (arc, what), n in catalog.counters.items() if what in ("tuples", "in")}
    outputs = [out.from_ for out in checked.network.outputs.values() if out.from_ in checked.arcs]
    fused = superboxes(checked, outputs)
    model = flow_model(checked, costs, superboxes=fused, tuples=tuples)
    headroom = network.engine.headroom
    load = analyzed(model, given, cores=cores, headroom=headroom, period_s=period_s)
    level = max(load.min_cap / load.capacity, 1.0)
    table = plan_table(
        model,
        given,
        capacity=load.capacity,
        mode=network.engine.shedding,
        levels=[level],
        period_s=period_s,
    )
    arcs = flow_rates(flow_model(checked, costs, tuples=tuples), given)
    names = [name for one in fused for name in one.boxes]
    read = {arc.name for name in names for arc in checked.inputs_of(name)}
    shown = {arc: rate for arc, rate in arcs.items() if arc in read or arc in outputs}
    notes = _notes(network, given, [name for name in names if name not in costs], catalog)
    return _Found(network, load, shown, fused, table.at(level), tuple(notes))


def _notes(
    network: Network,
    given: Mapping[str, float],
    unmeasured: Sequence[str],
    catalog: CatalogSnapshot | None,
) -> Iterable[str]:
    missing = [stream for stream in network.streams if stream not in given]
    if missing:
        yield f"no rate was given for {', '.join(missing)}: taken for 0"
    defaults = f"{DEFAULT_COST_S * 1e6:g} µs per tuple and {DEFAULT_CALL_S * 1e3:g} ms per call"
    if catalog is None:
        yield f"costs are defaults: {defaults}; --state DIR takes measured ones"
    elif unmeasured:
        yield f"never measured, so taken for {defaults}: {', '.join(unmeasured)}"
    if network.queries:
        yield "continuous queries are left out"


def measured_rates(catalog: CatalogSnapshot, network: Network) -> dict[str, float]:
    """The tuples per second that the streams of a network had lately, as far as any came."""
    streams = network.streams
    return {name: rate for name, rate in catalog.rates.items() if name in streams and rate > 0}


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
