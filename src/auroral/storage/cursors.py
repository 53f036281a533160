"""How far each consumer of each log has come."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from auroral.ids import HELD, MemberId

Place = tuple[str, str]
"""A log and one of its consumers."""


class Cursors:
    """Head and tail of every consumer; what is asked about some takes no look at the others.

    >>> cursors = Cursors({("s", "a"): (9, 4), ("s", "b"): (6, 6), ("t", "b[1]"): (1, 1)})
    >>> cursors.oldest("s"), sorted(cursors.named("b"))
    (4, [('s', 'b'), ('t', 'b[1]')])
    """

    def __init__(self, given: Mapping[Place, tuple[int, int]]):
        self._by_log: dict[str, dict[str, tuple[int, int]]] = {}
        self._logs: dict[str, set[str]] = {}
        """Which logs a consumer reads."""
        self._members: dict[str, set[str]] = {}
        """Consumers whose names end with something in brackets, by what is before these."""
        for place, (head, tail) in given.items():
            self.set(place, head, tail)

    def head(self, log: str, consumer: str) -> int:
        return self._by_log.get(log, {}).get(consumer, (0, 0))[0]

    def oldest(self, log: str, moved: Mapping[str, int] = MappingProxyType({})) -> int:
        """The first moment of a log that is needed, once some consumers have moved to others.

        If one consumer decides alone, the others are not asked.
        """
        held = self._by_log.get(log, {})
        if HELD in moved:
            return moved[HELD]
        if HELD in held:
            return held[HELD][1]
        staying = [tail for name, (_, tail) in held.items() if name not in moved]
        return min([*staying, *moved.values()], default=0)

    def named(self, consumer: str) -> list[Place]:
        """A consumer in all its logs, and those of its members, `name[…]`."""
        names = [consumer, *self._members.get(consumer, ())]
        return [(log, name) for name in names for log in self._logs.get(name, ())]

    def held(self) -> set[str]:
        """The logs of which one consumer decides alone what they keep."""
        return {log for log, consumers in self._by_log.items() if HELD in consumers}

    def __contains__(self, place: Place) -> bool:
        return place[1] in self._by_log.get(place[0], ())

    def __iter__(self) -> Iterator[Place]:
        return ((log, name) for log, held in self._by_log.items() for name in held)

    def set(self, place: Place, head: int, tail: int) -> None:
        log, consumer = place
        held = self._by_log.setdefault(log, {})
        if consumer not in held:
            self._logs.setdefault(consumer, set()).add(log)
            member = MemberId.parse(consumer)
            if member.key is not None:
                self._members.setdefault(member.family, set()).add(consumer)
        held[consumer] = head, tail

    def drop(self, place: Place) -> None:
        log, consumer = place
        if place not in self:
            return
        del self._by_log[log][consumer]
        if not self._by_log[log]:
            del self._by_log[log]
        _take(self._logs, consumer, log)
        if consumer not in self._logs:
            _take(self._members, MemberId.parse(consumer).family, consumer)


def _take(held: dict[str, set[str]], key: str, value: str) -> None:
    """Take a value out of a set, and the set if nothing is left in it."""
    if key in held:
        held[key].discard(value)
        if not held[key]:
            del held[key]
