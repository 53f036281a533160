"""Tuples sent through a flow model one array at a time, to see what a plan does to them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auroral.qos.graphs import QoS
from auroral.scheduling.flow import FlowModel
from auroral.shedding.drops import Drop
from auroral.shedding.histograms import Histogram
from auroral.shedding.sites import CarriedField, CarryInterval

EDGES = tuple(float(edge) for edge in range(11))
SECONDS = 40.0
"""How long tuples arrive."""
Moments = NDArray[np.uint64]
Values = NDArray[np.float64]


@dataclass(frozen=True)
class SampleRun:
    """What came out, and what it took."""

    load: float
    outputs: Mapping[str, tuple[Moments, Values]]

    def histograms(self) -> dict[str, Histogram]:
        """How often outputs had which values."""
        counted = {name: np.histogram(v, EDGES)[0] for name, (_, v) in self.outputs.items()}
        return {name: Histogram(EDGES, tuple(map(float, own))) for name, own in counted.items()}


def sampled(
    model: FlowModel, rates: Mapping[str, float], drops: Collection[Drop] = (), skew: float = 1.0
) -> SampleRun:
    """Let tuples flow; boxes pass them by chance, whatever their values, which stay the same.

    Values are between 0 and 10; with a `skew` above 1 small ones come more often.
    """
    arcs: dict[str, tuple[Moments, Values]] = {}
    begin = 0
    for stream in model.streams:
        count = int(rates[stream] * SECONDS)
        moments = np.arange(begin, begin + count, dtype=np.uint64)
        arcs[stream] = moments, 10 * _chance(moments, 99) ** skew
        begin += count
    load = 0.0
    for at, (name, box) in enumerate(model.boxes.items()):
        parts = [
            _kept(arcs[arc], [d for d in drops if (d.superbox, d.arc) == (name, arc)])
            for arc in box.inputs
        ]
        moments = np.concatenate([part[0] for part in parts])
        values = np.concatenate([part[1] for part in parts])
        load += box.cost_s * len(moments) / SECONDS
        for arc, share in box.selectivities.items():
            passed = _chance(moments, 1000 + at) < share
            arcs[arc] = moments[passed], values[passed]
    return SampleRun(load, {name: arcs[out.arc] for name, out in model.outputs.items()})


def utilities(model: FlowModel, whole: SampleRun, left: SampleRun) -> dict[str, float]:
    """What outputs have left of their utility, by counting."""
    found = {}
    for name, output in model.outputs.items():
        assert output.qos is not None
        before, after = whole.outputs[name][1], left.outputs[name][1]
        parts = []
        if output.qos.loss is not None:
            parts.append(output.qos.utility("loss", len(after) / len(before) if len(before) else 1))
        if output.qos.value is not None:
            total = _worth(output.qos, before)
            parts.append(_worth(output.qos, after) / total if total else 1.0)
        found[name] = sum(parts) / len(parts)
    return found


def same_value(model: FlowModel) -> CarryInterval:
    """Values are the same on all arcs: they are dropped as far upstream as they may be."""

    def carry(output: str, arcs: Collection[str]) -> Mapping[str, CarriedField] | None:
        found = _cut(model, model.outputs[output].arc, arcs)
        return None if found is None else {arc: CarriedField("v") for arc in found}

    return carry


def _cut(model: FlowModel, arc: str, arcs: Collection[str]) -> set[str] | None:
    writer = model.writers.get(arc)
    if writer is not None:
        parts = [_cut(model, one, arcs) for one in model.boxes[writer].inputs]
        found = [part for part in parts if part is not None]
        if found and len(found) == len(parts):
            return set().union(*found)
    return {arc} if arc in arcs else None


def _worth(qos: QoS, values: Values) -> float:
    points = qos.curves["value"].points
    return float(np.interp(values, [x for x, _ in points], [y for _, y in points]).sum())


def _kept(tuples: tuple[Moments, Values], drops: Collection[Drop]) -> tuple[Moments, Values]:
    moments, values = tuples
    kept = np.ones(len(moments), bool)
    for drop in drops:
        chosen = _chance(moments, drop.seed) < drop.rate
        if drop.interval is not None:
            low, high = drop.interval.low, drop.interval.high
            chosen &= (low is None) | (values >= (low or 0))
            chosen &= (high is None) | (values < (high or 0))
        kept &= ~chosen
    return moments[kept], values[kept]


def _chance(moments: Moments, seed: int) -> Values:
    """Numbers within [0, 1) that look like chance (splitmix64)."""
    with np.errstate(over="ignore"):
        x = (moments + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15) + _mixed(seed)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x ^= x >> np.uint64(31)
    return x.astype(np.float64) / 2**64


def _mixed(seed: int) -> np.uint64:
    return np.uint64(seed * 0xD1B54A32D192ED03 % 2**64)
