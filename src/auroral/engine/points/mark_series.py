"""The marks of an arc as plain series of moves, and back (pure).

An arc has marks of several attributes, each for all tuples, by groups, or of pairs. A series is one
non-decreasing function of the moment under a text of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from auroral.progress.lowwater import GroupedLowWater, LowWater, Mark
from auroral.progress.propagation import ArcProgress, Joint, Promises, joint_of

CLOCK = json.dumps(["clock"])
"""The series of the clock, by which timeouts go."""


def series_of(progress: ArcProgress) -> dict[str, LowWater]:
    """The marks of an arc, one by one.

    >>> {name: mark.steps() for name, mark in series_of({"t": LowWater.of([(3, 10)])}).items()}
    {'["t", "all"]': [(3, 10)]}
    """
    found: dict[str, LowWater] = {}
    for attribute, mark in progress.items():
        if isinstance(mark, LowWater):
            found[_text(attribute, "all")] = mark
        else:
            found[_text(attribute, "others")] = mark.others
            for group, own in mark.groups.items():
                found[_text(attribute, "group", list(group))] = own
    for (one, other), marks in joint_of(progress).items():
        for number, mark in enumerate(marks):
            found[_text(one, "joint", other, number)] = mark
    return found


def has_groups(shape: ArcProgress) -> bool:
    """Whether an arc has marks by groups, of which there may be any number."""
    return any(isinstance(mark, GroupedLowWater) for mark in shape.values())


def progress_of(shape: ArcProgress, series: Mapping[str, LowWater]) -> ArcProgress:
    """The marks that series say, of an arc whose marks have a `shape`.

    >>> shape = {"t": LowWater(), "u": GroupedLowWater(("k",), {})}
    >>> marks = {"t": LowWater.of([(3, 10)]), "u": GroupedLowWater(("k",), {(1,): LowWater()})}
    >>> back = progress_of(shape, series_of(marks))
    >>> back["t"].steps(), back["u"].groups.keys()
    ([(3, 10)], dict_keys([(1,)]))
    """
    groups: dict[str, dict[tuple[Any, ...], LowWater]] = {}
    for text, mark in series.items():
        attribute, kind, *more = json.loads(text) if text != CLOCK else ("", "clock")
        if kind == "group":
            groups.setdefault(attribute, {})[tuple(more[0])] = mark
    found: dict[str, Mark] = {}
    for attribute, own in shape.items():
        if isinstance(own, LowWater):
            found[attribute] = series.get(_text(attribute, "all"), LowWater())
        else:
            others = series.get(_text(attribute, "others"), LowWater())
            found[attribute] = GroupedLowWater(own.by, groups.get(attribute, {}), others)
    joint: Joint = {
        (one, other): (
            series.get(_text(one, "joint", other, 0), LowWater()),
            series.get(_text(one, "joint", other, 1), LowWater()),
        )
        for one, other in joint_of(shape)
    }
    return Promises(found, joint) if joint else found


def single_series(shape: ArcProgress, *, clock: bool) -> set[str]:
    """The series that there are whatever groups come."""
    return {*series_of(shape), *([CLOCK] if clock else [])}


def until_moment(series: Mapping[str, LowWater], before: int) -> dict[str, Any]:
    """The values that hold just before a moment, of the series that have one."""
    found = {name: mark.at(before - 1) for name, mark in series.items()}
    return {name: value for name, value in found.items() if value is not None}


def names_in(series: Iterable[str]) -> list[str]:
    """The texts of series in a fixed order."""
    return sorted(series)


def _text(*parts: Any) -> str:
    return json.dumps(parts)
