"""Marks of computed fields: a function that keeps order carries its argument's mark along.

If no tuple with A < v comes any more and f never decreases, no tuple with f(A) < f(v) comes.
`Derived` says how a field is made of others; where the functions come from is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from auroral.progress.lowwater import (
    GroupedLowWater,
    LowWater,
    Mark,
    Values,
    maximum,
    minimum,
)
from auroral.progress.propagation import ArcProgress, Promises, joint_of, least

Change = Callable[[Values], Values]
"""A non-decreasing function of ascending marks."""


@dataclass(frozen=True)
class FieldTerm:
    """A field as it is."""

    name: str


@dataclass(frozen=True)
class Applied:
    """A non-decreasing function of one field or expression."""

    to: Derived
    change: Change


@dataclass(frozen=True)
class LeastTerm:
    """The least of several; NULLs are left out, as SQL does."""

    parts: tuple[Derived, ...]


@dataclass(frozen=True)
class Greatest:
    """The greatest of several; NULLs are left out, as SQL does.

    `parts` are those that keep order; `all_known` says whether there are no others.
    """

    parts: tuple[Derived, ...]
    all_known: bool = True


Derived = FieldTerm | Applied | LeastTerm | Greatest


def derived(progress: ArcProgress, made: Mapping[str, Derived]) -> ArcProgress:
    """The marks of a map's fields, each of which is made of the input's fields.

    A grouped mark survives only if its grouping fields are copied too.

    >>> halved = Applied(FieldTerm("ts"), lambda marks: marks // 2)
    >>> marks = {"ts": LowWater.of([(1, 10), (2, 11), (3, 12)])}
    >>> derived(marks, {"half": halved})["half"].steps()
    [(1, 5), (3, 6)]
    """
    copies: dict[str, str] = {}
    for name, how in made.items():
        if isinstance(how, FieldTerm):
            copies.setdefault(how.name, name)
    found: dict[str, Mark] = {}
    for name, how in made.items():
        mark = _mark(how, progress)
        if isinstance(mark, GroupedLowWater):
            if not all(field in copies for field in mark.by):
                continue
            by = tuple(copies[field] for field in mark.by)
            mark = GroupedLowWater(by, mark.groups, mark.others)
        if mark is not None:
            found[name] = mark
    pairs = {}
    chains = {name: chain for name, how in made.items() if (chain := _chain(how)) is not None}
    for (a, b), (own, other) in joint_of(progress).items():
        for one, (first, changes) in chains.items():
            for two, (second, others) in chains.items():
                if (first, second) == (a, b):
                    pairs[one, two] = (_through(own, changes), _through(other, others))
    return Promises(found, pairs)


def _mark(how: Derived, progress: ArcProgress) -> Mark | None:
    match how:
        case FieldTerm(name):
            return progress.get(name)
        case Applied(to, change):
            return _changed(_mark(to, progress), change)
        case LeastTerm(parts):
            return _least([_mark(part, progress) for part in parts])
        case Greatest(parts, all_known):
            return _greatest(parts, all_known, progress)


def _least(marks: Sequence[Mark | None]) -> LowWater | None:
    """What holds of whichever of them it is, and of those that are there if some are NULL."""
    known = [least(mark) for mark in marks if mark is not None]
    return minimum(known) if len(known) == len(marks) else None


def _greatest(parts: Sequence[Derived], all_known: bool, progress: ArcProgress) -> LowWater | None:
    """The least of all marks, as the greatest may be NULL; of a join's pairs, which are not, more.

    Every pair has a >= own or b >= other, so that its greatest is at or above the lesser [3 §7];
    and it is at or above the mark of either side.
    """
    found = _least([_mark(part, progress) for part in parts]) if all_known else None
    chains = [(part, chain) for part in parts if (chain := _chain(part)) is not None]
    for (one, (a, changes)), (two, (b, others)) in combinations(chains, 2):
        joint = joint_of(progress).get((a, b))
        if joint is not None:
            jointly = minimum([_through(joint[0], changes), _through(joint[1], others)])
            alone = [_mark(one, progress), _mark(two, progress)]
            for mark in (jointly, *(least(m) for m in alone if m is not None)):
                found = mark if found is None else maximum(found, mark)
    return found


def _chain(how: Derived) -> tuple[str, tuple[Change, ...]] | None:
    """The field and the functions, if it is functions of one field alone."""
    changes: tuple[Change, ...] = ()
    while isinstance(how, Applied):
        changes = (how.change, *changes)
        how = how.to
    return (how.name, changes) if isinstance(how, FieldTerm) else None


def _through(mark: LowWater, changes: Sequence[Change]) -> LowWater:
    for change in changes:
        mark = _steps(mark, change)
    return mark


def _changed(mark: Mark | None, change: Change) -> Mark | None:
    if isinstance(mark, GroupedLowWater):
        groups = {group: _steps(m, change) for group, m in mark.groups.items()}
        return GroupedLowWater(mark.by, groups, _steps(mark.others, change))
    return None if mark is None else _steps(mark, change)


def _steps(mark: LowWater, change: Change) -> LowWater:
    if not len(mark.values):
        return mark
    return LowWater(ended=mark.ended).then(mark.moments, change(mark.values))
