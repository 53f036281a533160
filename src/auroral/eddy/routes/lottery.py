"""The lottery that decides the order of operators (pure)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from random import Random
from typing import TypeVar

EXPLORED = 0.005
"""The part of the chunks in which any operator may be first, whatever its tickets."""

Name = TypeVar("Name", bound=Hashable)


def drawn(
    weights: Mapping[Name, float], speeds: Mapping[Name, float], draws: int, random: Random
) -> list[tuple[Name, ...]]:
    """Draw orders: first operators evenly, limited by speed; then the others by weight."""
    return [
        (name, *ranked({o: w for o, w in weights.items() if o != name}, random))
        for name in winners(first_chances(weights, speeds), draws, random)
    ]


def first_chances(weights: Mapping[Name, float], speeds: Mapping[Name, float]) -> dict[Name, float]:
    """The chance of each to be first: by weight, at most its speed, and never zero."""
    fair = sum(speeds.values())
    return {
        name: (1 - EXPLORED) * chance + EXPLORED * speeds[name] / fair
        for name, chance in capped(weights, speeds).items()
    }


def capped(weights: Mapping[Name, float], caps: Mapping[Name, float]) -> dict[Name, float]:
    """Chances in proportion to the weights, none above its cap; what is cut off goes to the rest.

    If the caps leave no other way, chances exceed them in proportion.

    >>> capped({"a": 8, "b": 1, "c": 1}, {"a": 0.5, "b": 1, "c": 1})
    {'a': 0.5, 'b': 0.25, 'c': 0.25}
    """
    chances: dict[Name, float] = {}
    free = dict(weights)
    left = 1.0
    while free:
        total = sum(free.values())
        over = [name for name in free if left * free[name] / total > caps[name]]
        if not over:
            chances.update({name: left * weight / total for name, weight in free.items()})
            break
        for name in over:
            chances[name] = caps[name]
            del free[name]
        left = max(1 - sum(chances.values()), 0.0)
    whole = sum(chances.values())
    return {name: chances[name] / whole for name in weights}


def winners(chances: Mapping[Name, float], draws: int, random: Random) -> list[Name]:
    """Draw with the given chances, evenly: in n draws each wins n × its chance, up to one.

    Draws are systematic (one random start, then equal steps) and shuffled. A train has few
    chunks; independent draws would give a rare loser too much of one train, none of the next.
    """
    names = list(chances)
    random.shuffle(names)
    start = random.random()
    won: list[Name] = []
    passed = 0.0
    for name in names:
        passed += chances[name] * draws
        while len(won) < draws and len(won) + start < passed:
            won.append(name)
    won += names[-1:] * (draws - len(won))  # sums of floats may fall short of 1
    random.shuffle(won)
    return won


def ranked(weights: Mapping[Name, float], random: Random) -> tuple[Name, ...]:
    """Draw all, one after the other without replacement, with chances by weight.

    Times until the first event of processes with these rates come in such an order.
    """
    times = {name: random.expovariate(1.0) / weight for name, weight in weights.items()}
    return tuple(sorted(times, key=times.__getitem__))
