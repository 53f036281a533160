"""Routing of joins: in which order new tuples probe the SteMs of the other sources (pure).

SteMs are routed to as filters are [paper 5 §3.3.2, §4]: a lottery by tickets. A SteM gets a ticket
for every tuple that probes it and gives one back for every joined tuple it returns; it keeps at
least one. Orders change what work is done, never the results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from auroral.eddy.routes.lottery import drawn, first_chances
from auroral.eddy.routes.routing import CHUNK, Visit, added
from auroral.eddy.routes.tickets import Account, OperatorRecord, kept

Place = int
"""A source of a join by its place in FROM."""
Order = tuple[Place, ...]
Prober = tuple[str, Place]
"""A join group, and the source whose new tuples look for partners."""
Orders = Mapping[Prober, Sequence[Order]]
"""For each chunk of a prober's new tuples, in which order they prefer to probe the others.

Without an order, a sample of the tuples decides where they are processed.
"""


@dataclass
class Probes:
    """The probes that the new tuples of one source made in a train."""

    stems: dict[Place, Visit] = field(default_factory=dict)
    """`routed` are the tuples that probed the SteM, `returned` the joined tuples that came back."""
    orders: dict[Order, int] = field(default_factory=dict)
    """How many tuples went in each order."""

    def add(self, other: Probes) -> None:
        for place, visit in other.stems.items():
            self.stems[place] = added(self.stems.get(place), visit)
        for order, tuples in other.orders.items():
            self.orders[order] = self.orders.get(order, 0) + tuples


class ProbeRouter:
    """Decides in which order the new tuples of one source probe the SteMs of a join.

    - `tickets`: a lottery by what SteMs earned, held back by the tuples they return;
    - `random`: any order; `fixed`: the order of FROM;
    - `optimal`: a sample of the tuples is tried in every step, before they are sent anywhere.

    With `tickets`, too, a sample decides as long as no SteM was probed.
    """

    def __init__(self, policy: str, sources: Sequence[str], prober: Place, seed: int = 0):
        self._policy = policy
        self._sources = sources
        self.source = sources[prober]
        self._random = Random(seed + prober)
        stems = [place for place in range(len(sources)) if place != prober]
        self._accounts = {place: Account(predicates=1) for place in stems}
        self._orders: dict[Order, int] = {}

    def orders(self, chunks: int) -> list[Order]:
        """Give for each chunk of new tuples an order of the SteMs; none: a sample decides."""
        stems = list(self._accounts)
        if self._policy == "fixed":
            return [tuple(stems)] * chunks
        if self._policy == "random":
            return [tuple(self._random.sample(stems, len(stems))) for _ in range(chunks)]
        if self._policy == "optimal" or not self._orders:
            return []
        return drawn(self._weights(), self._speeds(), chunks, self._random)

    def chances(self) -> dict[Place, float]:
        """With which chance each SteM is the first that a chunk of tuples probes."""
        return first_chances(self._weights(), self._speeds())

    def learn(self, probes: Probes) -> None:
        """Take note of what the new tuples of a train did."""
        keep = kept(sum(probes.orders.values()))
        for place, account in self._accounts.items():
            visit = probes.stems.get(place, Visit(0, 0, 0.0))
            first = sum(tuples for order, tuples in probes.orders.items() if order[0] == place)
            account.earn(OperatorRecord(visit.routed, visit.returned, visit.seconds, first), keep)
        for order, tuples in probes.orders.items():
            self._orders[order] = self._orders.get(order, 0) + tuples

    def statistics(self) -> dict[str, Any]:
        """Statistics for users, by name of the source."""
        names, orders = self._sources, list(self._orders.items())
        total = sum(account.tickets for account in self._accounts.values())
        return {
            "tuples": sum(tuples for _, tuples in orders),
            "stems": {
                names[place]: {
                    "tickets": round(account.tickets),
                    "share": account.tickets / total,
                    "probed": round(account.total.routed),
                    "matched": round(account.total.returned),
                    "first": round(account.total.first),
                    "recent_matches_per_tuple": account.recent.pass_rate,
                }
                for place, account in self._accounts.items()
            },
            "orders": {
                ", ".join(names[place] for place in order): tuples for order, tuples in orders
            },
        }

    def _speeds(self) -> dict[Place, float]:
        """Back-pressure: the part of a train that each SteM may be the first for.

        A SteM is busy with a tuple as long as it returns matches of it, so the number of these
        stands for the time. Measured times would add nothing but noise.
        """
        busy = {place: 1 + (a.recent.pass_rate or 0.0) for place, a in self._accounts.items()}
        least = min(busy.values())
        return {place: least / work for place, work in busy.items()}

    def _weights(self) -> dict[Place, float]:
        """What counts in the lottery: tickets × speed⁴.

        SteMs that return more tuples than they get have one ticket each; only speed tells which of
        them comes first.
        """
        speeds = self._speeds()
        return {place: a.tickets * speeds[place] ** 4 for place, a in self._accounts.items()}


class JoinRouter:
    """Routes the joins of an eddy: those of three and more sources, as two leave no choice."""

    def __init__(self, policy: str):
        self._policy = policy
        self._joins: dict[str, tuple[ProbeRouter, ...]] = {}
        """By group, a router for the new tuples of each source."""

    def orders(
        self, joins: Mapping[str, tuple[str, ...]], tuples: Mapping[str, int]
    ) -> dict[Prober, list[Order]]:
        """The orders of the next train: `joins` has the arcs of each group, `tuples` their rows.

        Of joins that are not named any more, everything is forgotten.
        """
        self._joins = {
            name: self._joins.get(name) or self._routers(arcs)
            for name, arcs in joins.items()
            if len(arcs) > 2
        }
        return {
            (name, place): router.orders(max(1, -(-tuples.get(joins[name][place], 0) // CHUNK)))
            for name, routers in self._joins.items()
            for place, router in enumerate(routers)
        }

    def learn(self, probes: Mapping[Prober, Probes]) -> None:
        """Take note of a train."""
        for (name, place), told in probes.items():
            self._joins[name][place].learn(told)

    def statistics(self) -> dict[str, Any]:
        """By join and source of the new tuples, what its SteMs and orders did."""
        return {
            name: {router.source: router.statistics() for router in routers}
            for name, routers in self._joins.items()
        }

    def _routers(self, arcs: Sequence[str]) -> tuple[ProbeRouter, ...]:
        names = _names(arcs)
        return tuple(ProbeRouter(self._policy, names, place) for place in range(len(names)))


def _names(arcs: Sequence[str]) -> list[str]:
    """What to call the sources of a join: an arc that is joined with itself has numbers."""
    return [
        arc if arcs.count(arc) == 1 else f"{arc} ({arcs[: place + 1].count(arc)})"
        for place, arc in enumerate(arcs)
    ]
