"""Routing policies of the eddy: in which order tuples visit its operators (pure) [paper 5 §4].

Orders change what work is done, never the results.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, TypeVar

from auroral.eddy.routes.backpressure import speeds
from auroral.eddy.routes.lottery import drawn
from auroral.eddy.routes.tickets import Account, OperatorRecord, kept
from auroral.errors import UsageError, closest, list_existing

POLICIES = ("tickets", "random", "fixed", "optimal")
CHUNK = 16_384
"""How many tuples go the same way."""

Query = TypeVar("Query", bound=Hashable)


@dataclass(frozen=True)
class RoutedOperator:
    """What tuples are routed to: a grouped filter, a Python predicate, a SteM."""

    name: str
    """The text of its attribute."""
    predicates: int
    """How many predicates of queries it applies."""
    costly: bool = False
    """Whether it calls a Python function."""


@dataclass(frozen=True)
class Visit:
    """What an operator did with the tuples of a train.

    A tuple is *returned* if one of the queries that `returning` gives for the operator may still
    be satisfied after the visit; otherwise the operator has taken it out of the eddy.
    """

    routed: int
    """Tuples sent to it: some query they may still satisfy has a predicate here."""
    returned: int
    seconds: float


def added(one: Visit | None, other: Visit) -> Visit:
    """Two visits of one operator as one."""
    if one is None:
        return other
    return Visit(
        one.routed + other.routed, one.returned + other.returned, one.seconds + other.seconds
    )


def returning(
    order: Sequence[str], serves: Mapping[str, Collection[Query]]
) -> dict[str, frozenset[Query]]:
    """The queries of which one must be left after a visit for the tuple to count as returned.

    `serves` has for each operator the queries (or templates) with a predicate there. A query
    with nothing more to visit is output, and an operator can only spare a tuple the visits that
    its own queries need; so what counts are the queries of this operator and of those after it
    with which it has a query in common. For one query this is the textbook's rule: whoever
    rejects the tuple has consumed it.

    >>> both = {"a": {1, 2}, "b": {2}, "c": {3}}
    >>> {name: sorted(queries) for name, queries in returning("abc", both).items()}
    {'a': [1, 2], 'b': [2], 'c': [3]}
    >>> {name: sorted(queries) for name, queries in returning("cba", both).items()}
    {'c': [3], 'b': [1, 2], 'a': [1, 2]}
    """
    sets = {name: frozenset(serves[name]) for name in order}
    return {
        name: sets[name].union(
            *(sets[later] for later in order[place + 1 :] if sets[later] & sets[name])
        )
        for place, name in enumerate(order)
    }


class Router:
    """Decides for every chunk of a train the order of operators, and learns what came of it.

    - `tickets`: a lottery by what operators earned (`Account`), held back by their slowness
      (`speeds`);
    - `random`: any order; `fixed`: the order in which operators were given;
    - `optimal`: what cost least when it was tried on a sample (`asks`, `know`); for comparison, as
      trying every order takes longer than a good one saves.
    """

    def __init__(self, policy: str, seed: int = 0):
        if policy not in POLICIES:
            message = f"there is no routing policy {policy!r}; {list_existing(POLICIES)}"
            raise UsageError("UNKNOWN_ROUTING", message, hint=closest(policy, POLICIES))
        self.policy = policy
        self._random = Random(seed)
        self._operators: dict[str, RoutedOperator] = {}
        self._accounts: dict[str, Account] = {}
        self._best: tuple[str, ...] = ()
        self._due = 0
        """How often orders are to be tried before it is time again."""
        self._first: Counter[str] = Counter()
        """How often each operator is first in the train under way."""
        self._tuples = 0
        self._trains = 0
        self._recent_tuples = 0.0
        self._visits = 0
        self._recent_visits = 0.0

    def have(self, operators: Sequence[RoutedOperator]) -> None:
        """Queries have come or gone: these are the operators from the next train on.

        A new operator starts with as many tickets as the others have on average.
        """
        old = {o.name: self._accounts[o.name] for o in operators if o.name in self._accounts}
        for operator in operators:
            if operator.name in old:
                old[operator.name].apply(operator.predicates)
        tickets = sum(a.tickets for a in old.values()) / max(len(old), 1)
        exposure = sum(a.exposure for a in old.values()) / max(len(old), 1)
        if {operator.name: operator for operator in operators} != self._operators:
            self._due = 2  # the second time it is known how fast they are
        self._operators = {operator.name: operator for operator in operators}
        self._accounts = {
            name: old.get(name)
            or Account(operator.predicates, max(tickets, 1.0), max(exposure, 1.0))
            for name, operator in self._operators.items()
        }

    def asks(self, time: bool) -> dict[str, float] | None:
        """What a visit of each operator costs, if orders are to be tried; as it is `time` to.

        Like `speeds` it takes operators for equal that are nearly as fast as the fastest.
        """
        if self.policy != "optimal" or len(self._operators) < 2 or not (time or self._due):
            return None
        speed = speeds({name: account.recent for name, account in self._accounts.items()})
        return {name: 1 / speed[name] for name in self._operators}

    def know(self, order: Sequence[str]) -> None:
        """Tell `optimal` which order cost least."""
        self._best = tuple(order)
        self._due = max(self._due - 1, 0)

    def orders(self, chunks: int) -> list[tuple[str, ...]]:
        """Give for each chunk of the next train the order of operators."""
        names = list(self._operators)
        if self.policy == "tickets" and names:
            orders = self._lottery(chunks)
        elif self.policy == "random":
            orders = [tuple(self._random.sample(names, len(names))) for _ in range(chunks)]
        elif self.policy == "optimal":
            place = {name: at for at, name in enumerate(self._best)}
            best = sorted(names, key=lambda name: place.get(name, len(place)))
            orders = [tuple(best)] * chunks
        else:
            orders = [tuple(names)] * chunks
        self._first = Counter(order[0] for order in orders if order)
        return orders

    def _lottery(self, chunks: int) -> list[tuple[str, ...]]:
        """Draw for each chunk who is first, evenly and up to its speed; then the others."""
        speed = speeds({name: account.recent for name, account in self._accounts.items()})
        weights = {name: account.weight(speed[name]) for name, account in self._accounts.items()}
        return drawn(weights, speed, chunks, self._random)

    def learn(self, tuples: int, visits: Mapping[str, Visit]) -> None:
        """Take note of a train of `tuples`: what each operator did. Unknown ones have gone."""
        keep = kept(tuples)
        chunks = sum(self._first.values())
        for name, account in self._accounts.items():
            visit = visits.get(name, Visit(0, 0, 0.0))
            tally = OperatorRecord(
                visit.routed, visit.returned, visit.seconds, self._first[name], float(chunks)
            )
            account.earn(tally, keep)
        sent = sum(visit.routed for visit in visits.values())
        self._trains += 1
        self._tuples += tuples
        self._visits += sent
        self._recent_tuples = keep * self._recent_tuples + tuples
        self._recent_visits = keep * self._recent_visits + sent
        self._first = Counter()

    def shares(self) -> dict[str, float]:
        """The fraction of all tickets that each operator holds."""
        total = sum(account.tickets for account in self._accounts.values())
        return {name: account.tickets / total for name, account in self._accounts.items()}

    def statistics(self) -> dict[str, Any]:
        """What users see: since the start, and of recent trains (older ones fade) alone."""
        shares = self.shares()
        return {
            "policy": self.policy,
            "trains": self._trains,
            "tuples": self._tuples,
            "filters_per_tuple": _ratio(self._visits, self._tuples),
            "filters": {
                name: {
                    "predicates": account.predicates,
                    "costly": self._operators[name].costly,
                    "share": shares[name],
                    **_shown(account.total),
                }
                for name, account in self._accounts.items()
            },
            "recent": {
                "tuples": round(self._recent_tuples),
                "filters_per_tuple": _ratio(self._recent_visits, self._recent_tuples),
                "filters": {name: _shown(a.recent) for name, a in self._accounts.items()},
            },
        }


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _shown(tally: OperatorRecord) -> dict[str, Any]:
    cost = tally.seconds_per_tuple
    return {
        "routed": round(tally.routed),
        "returned": round(tally.returned),
        "pass_rate": tally.pass_rate,
        "us_per_tuple": None if cost is None else cost * 1e6,
        "first": round(tally.first),
    }
