"""Load: how many tuples flow through a network, and what they cost [1 §4.4] (pure).

Loads are seconds of one core for each second, so that 2.0 keeps two cores busy. A box that is
called once in a `period_s` gets trains of rate × period_s tuples, and a tuple costs it
`cost_s + call_s / train`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from auroral.scheduling.flow import FlowBox, FlowModel

DEFAULT_PERIOD_S = 1.0
"""How often a box is called if nothing else is said."""

Kept = Mapping[tuple[str, str], float]
"""By box and arc that it reads, the share of the arc's tuples that the box gets; else all."""


def flow_rates(
    model: FlowModel,
    rates: Mapping[str, float],
    kept: Kept | None = None,
    *,
    most: Mapping[str, float] | None = None,
) -> dict[str, float]:
    """Tuples per second on each arc, if `rates` come in on the streams.

    `most` is how many tuples per second a box can take, at most; without it boxes take all.

    >>> model = FlowModel({"far": FlowBox("far", ("reports",), {"far": 0.5}, 0.01)})
    >>> flow_rates(model, {"reports": 200})
    {'reports': 200.0, 'far': 100.0}
    >>> flow_rates(model, {"reports": 200}, most={"far": 100})
    {'reports': 200.0, 'far': 50.0}
    """
    found = {stream: float(rates.get(stream, 0.0)) for stream in model.streams}
    for box in model.boxes.values():
        taken = rate_into(box, found, kept)
        if most is not None:
            taken = min(taken, most.get(box.name, taken))
        found |= {arc: taken * share for arc, share in box.selectivities.items()}
    return found


def rate_into(box: FlowBox, arcs: Mapping[str, float], kept: Kept | None = None) -> float:
    """Tuples per second that a box gets on all of its inputs."""
    shares = kept or {}
    return sum(
        arcs.get(arc, 0.0) * shares.get((box.name, arc), 1.0) for arc in dict.fromkeys(box.inputs)
    )


def effective_cost_s(box: FlowBox, train: float) -> float:
    """Seconds for a tuple of a train: c(n) = call_s / n + cost_s."""
    return box.cost_s + box.call_s / max(train, 1.0)


def train_size(rate: float, period_s: float) -> float:
    """Tuples of a train if a box is called once in a period; at least one."""
    return max(rate * period_s, 1.0)


def load_of(
    model: FlowModel,
    rates: Mapping[str, float],
    kept: Kept | None = None,
    period_s: float = DEFAULT_PERIOD_S,
) -> float:
    """Seconds of one core for each second that a network needs to take all of its input."""
    arcs = flow_rates(model, rates, kept)
    taken = {box.name: rate_into(box, arcs, kept) for box in model.boxes.values()}
    return sum(_utilisation(box, taken[box.name], period_s) for box in model.boxes.values())


def cost_to_go_s(model: FlowModel, kept: Kept | None = None) -> dict[str, float]:
    """By box, the seconds that a tuple in front of it costs there and in all boxes after it.

    The cost of calls is left out.

    >>> boxes = {
    ...     "far": FlowBox("far", ("reports",), {"far": 0.5}, 0.01, 1.0),
    ...     "count": FlowBox("count", ("far",), {"count": 0.1}, 0.02),
    ... }
    >>> cost_to_go_s(FlowModel(boxes))
    {'count': 0.02, 'far': 0.02}
    """
    shares = kept or {}
    found: dict[str, float] = {}
    for name in reversed(list(model.boxes)):
        box = model.boxes[name]
        found[name] = box.cost_s + sum(
            share * shares.get((reader, arc), 1.0) * found[reader]
            for arc, share in box.selectivities.items()
            for reader in model.readers.get(arc, ())
        )
    return found


@dataclass(frozen=True)
class BoxLoad:
    """What a box has to do."""

    rate: float
    """Tuples per second that come to it if all before it keep up."""
    served: float
    """Tuples per second that it takes if each box has one core: min(1/c, r)."""
    train: float
    """Tuples of a call."""
    cost_s: float
    """Seconds for a tuple, with its part of the call."""
    utilisation: float
    """Seconds of one core for each second; above 1 it cannot keep up on one core."""


@dataclass(frozen=True)
class LoadAnalysis:
    """Whether a machine is large enough for a network: static introspection [1 §4.4].

    >>> model = FlowModel({"far": FlowBox("far", ("reports",), {"far": 0.5}, 0.001)})
    >>> found = analyzed(model, {"reports": 1200.0}, cores=2, headroom=0.8)
    >>> found.min_cap, found.capacity, found.fits
    (1.2, 1.6, True)
    >>> print(found.verdict)
    The machine is large enough: the network needs 1.2 of 1.6 cores (2 × headroom 0.8).
    """

    boxes: Mapping[str, BoxLoad]
    arcs: Mapping[str, float]
    """Tuples per second on each arc if all boxes keep up."""
    served: Mapping[str, float]
    """Tuples per second on each arc if each box has one core: min(1/c, r) × s."""
    cores: float
    headroom: float
    rates: Mapping[str, float]
    network_limit: float | None
    """The rates at which C·H is used up, as a multiple of the given ones; None: never."""
    box_limits: Mapping[str, float] = field(default_factory=dict)
    """By box the rates at which it uses up one core, as a multiple of the given ones."""

    @property
    def min_cap(self) -> float:
        """Seconds of one core for each second that the network needs."""
        return sum(box.utilisation for box in self.boxes.values())

    @property
    def capacity(self) -> float:
        """C·H: what the steady load may use of the cores."""
        return self.cores * self.headroom

    @property
    def fits(self) -> bool:
        """Whether the steady load leaves the headroom free."""
        return self.min_cap <= self.capacity * (1 + 1e-9)

    @property
    def first_saturated(self) -> str | None:
        """The box that saturates first if all rates rise alike; None if no box ever does."""
        return min(self.box_limits, key=self.box_limits.__getitem__, default=None)

    @property
    def verdict(self) -> str:
        """Whether the machine is large enough, in a sentence."""
        needs = f"{self.min_cap:.3g} of {self.capacity:.3g} cores"
        how = f"({self.cores:g} × headroom {self.headroom:g})"
        if self.fits:
            return f"The machine is large enough: the network needs {needs} {how}."
        if self.min_cap <= self.cores:
            return (
                f"The machine is too small for queries to come: the network needs {needs} {how},"
                f" and there are {self.cores:g}."
            )
        return f"The machine is too small: the network needs {needs} {how}, so queues grow."

    @property
    def saturation(self) -> str:
        """Which box saturates first and at which rates, in a sentence."""
        first = self.first_saturated
        if first is None:
            return "No box saturates at any multiple of these rates."
        found = f"Box {first} saturates first, at {self._rates_at(self.box_limits[first])}."
        if self.network_limit is None:
            return found
        return f"{found} C·H is used up at {self._rates_at(self.network_limit)}."

    def _rates_at(self, factor: float) -> str:
        rates = (f"{name} {_number(rate * factor)}/s" for name, rate in self.rates.items() if rate)
        return f"{factor:.3g} times these rates ({', '.join(rates)})"

    def document(self) -> dict[str, Any]:
        """The analysis as plain data."""
        return {
            "rates": dict(self.rates),
            "arcs": {
                arc: {"rate": rate, "served": self.served[arc]} for arc, rate in self.arcs.items()
            },
            "boxes": {name: dict(vars(box)) for name, box in self.boxes.items()},
            "min_cap": self.min_cap,
            "cores": self.cores,
            "headroom": self.headroom,
            "capacity": self.capacity,
            "fits": self.fits,
            "first_saturated": self.first_saturated,
            "box_limits": dict(self.box_limits),
            "network_limit": self.network_limit,
            "verdict": self.verdict,
            "saturation": self.saturation,
        }


def analyzed(
    model: FlowModel,
    rates: Mapping[str, float],
    *,
    cores: float,
    headroom: float,
    period_s: float = DEFAULT_PERIOD_S,
) -> LoadAnalysis:
    """Follow the rates from the streams through all boxes, and add up what they need."""
    arcs = flow_rates(model, rates)
    boxes: dict[str, BoxLoad] = {}
    most: dict[str, float] = {}
    for box in model.boxes.values():
        rate = rate_into(box, arcs)
        train = train_size(rate, period_s)
        cost_s = effective_cost_s(box, train)
        most[box.name] = 1 / cost_s if cost_s else rate
        boxes[box.name] = BoxLoad(rate, 0.0, train, cost_s, rate * cost_s)
    served = flow_rates(model, rates, most=most)
    boxes = {
        name: BoxLoad(
            load.rate,
            min(most[name], rate_into(model.boxes[name], served)),
            load.train,
            load.cost_s,
            load.utilisation,
        )
        for name, load in boxes.items()
    }
    limits = {
        name: limit
        for name, load in boxes.items()
        if (limit := _limit([(model.boxes[name], load.rate)], 1.0, period_s)) is not None
    }
    taken = [(model.boxes[name], load.rate) for name, load in boxes.items()]
    whole = _limit(taken, cores * headroom, period_s)
    return LoadAnalysis(boxes, arcs, served, cores, headroom, dict(rates), whole, limits)


def _utilisation(box: FlowBox, rate: float, period_s: float) -> float:
    return rate * effective_cost_s(box, train_size(rate, period_s))


def _limit(taken: list[tuple[FlowBox, float]], capacity: float, period_s: float) -> float | None:
    """The multiple of rates at which boxes need a capacity; None if they never do."""

    def need(factor: float) -> float:
        return sum(_utilisation(box, rate * factor, period_s) for box, rate in taken)

    low, high = 0.0, 1.0
    while need(high) < capacity:
        if high > 1e12:
            return None
        low, high = high, high * 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if need(middle) >= capacity else (middle, high)
    return high


def _number(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}"
