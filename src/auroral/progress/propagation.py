"""How marks pass through boxes: one small rule each. Rules are pure: marks in, marks out.

An arc's progress is a mapping from attribute to mark; `joint` adds what holds of pairs of
attributes, which only joins make and only boxes grouped on both use [3 §7].
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from auroral.progress.advances import FARTHEST, ROUNDING, advances_in
from auroral.progress.lowwater import GroupedLowWater, JointLowWater, LowWater, Mark, minimum

ArcProgress = Mapping[str, Mark]
Joint = Mapping[tuple[str, str], tuple[LowWater, LowWater]]


class Promises(dict[str, Mark]):
    """Marks by attribute, and joint ones: after any moment a tuple has a >= first or b >= second.

    A joint promise stands under both orders of its attributes.
    """

    def __init__(self, marks: ArcProgress | None = None, joint: Joint | None = None):
        super().__init__(marks or {})
        self.joint: Joint = joint or {}


def passed(progress: ArcProgress) -> ArcProgress:
    """Filter, dedup: what holds of all tuples holds of some of them."""
    return progress


def renamed(progress: ArcProgress, names: Mapping[str, Sequence[str]]) -> ArcProgress:
    """Map: an attribute's mark goes to every output field that is a plain copy of it.

    `names` maps an input field to the output fields that copy it. A grouped mark survives
    only if its grouping fields are copied too.
    """
    result: dict[str, Mark] = {}
    for attribute, mark in progress.items():
        for copy in names.get(attribute, ()):
            if isinstance(mark, LowWater):
                result[copy] = mark
            elif all(names.get(field) for field in mark.by):
                by = tuple(names[field][0] for field in mark.by)
                result[copy] = GroupedLowWater(by, mark.groups, mark.others)
    pairs = {
        (one, other): marks
        for (a, b), marks in joint_of(progress).items()
        for one in names.get(a, ())
        for other in names.get(b, ())
    }
    return Promises(result, pairs)


def united(inputs: Sequence[ArcProgress]) -> ArcProgress:
    """Union: the least mark of all inputs; an input without one stops it [3 §5.4]."""
    # Names match without regard to case; the first input's are the union's.
    folded = [{name.lower(): mark for name, mark in progress.items()} for progress in inputs]
    result: dict[str, Mark] = {}
    for attribute in inputs[0]:
        if all(attribute.lower() in progress for progress in folded):
            mark = _least([progress[attribute.lower()] for progress in folded])
            if mark is not None:
                result[attribute] = mark
    return result


def windowed(
    progress: ArcProgress, on: str, by: Iterable[str], size: Any, advance: Any, history: Any = 0
) -> ArcProgress:
    """Aggregate: windows come out while a + size + history is above the mark [3 §A.2.2].

    >>> windowed({"ts": LowWater.of([(3, 25)])}, "ts", (), 10, 10)["ts"].steps()
    [(3, 20)]
    """
    mark = progress.get(on)
    if mark is None:
        return {}
    mark = mark if isinstance(mark, GroupedLowWater) and _within(mark.by, by) else least(mark)

    return {on: _mapped(mark, lambda values: _first_open(values, size, advance, history))}


def paired(
    left: ArcProgress,
    right: ArcProgress,
    on: tuple[str, str],
    named: tuple[str, str],
    before: Any,
    after: Any,
) -> ArcProgress:
    """Join: the two individual punctuations of OOP-Join, and the joint one [3 Fig. 4, §7].

    `on` are the ordered attributes of the sides, `named` what they are called in the result.

    >>> left, right = {"l": LowWater.of([(1, 10)])}, {"r": LowWater.of([(2, 7)])}
    >>> made = paired(left, right, ("l", "r"), ("l", "r"), 2, 4)
    >>> made["l"].steps(), made["r"].steps()
    ([(2, 3)], [(2, 7)])
    """
    if on[0] not in left or on[1] not in right:
        return {}
    one, other = least(left[on[0]]), least(right[on[1]])
    marks = {
        named[0]: minimum([one, _reaching(other, after)]),
        named[1]: minimum([other, _shifted(one, before)]),
    }
    return Promises(marks, {named: (one, other), (named[1], named[0]): (other, one)})


def resampled(
    left: ArcProgress, right: ArcProgress, on: tuple[str, str], within: Any
) -> ArcProgress:
    """Resample: a left tuple waits until the right has passed it by `within`."""
    if on[0] not in left or on[1] not in right:
        return {}
    marks = [least(left[on[0]]), _reaching(least(right[on[1]]), within)]
    return {on[0]: minimum(marks)}


def only(progress: ArcProgress, on: str, by: Iterable[str]) -> ArcProgress:
    """Sort by punctuation: tuples come later than they did, but still before the mark of `on`."""
    if on not in progress:
        return {}
    mark = progress[on]
    return {on: mark if isinstance(mark, GroupedLowWater) and _within(mark.by, by) else least(mark)}


def relied_on(progress: ArcProgress, on: str | None, by: Iterable[str]) -> Mark | JointLowWater:
    """The mark by which a box judges its tuples; an empty one if nothing is promised.

    A grouped mark serves a box that is grouped at least as finely, a joint one a box grouped on
    the other attribute of the pair.
    """
    if on is None:
        return LowWater()
    mark = next((m for name, m in progress.items() if name.lower() == on.lower()), LowWater())
    for (own, other), (first, second) in joint_of(progress).items():
        if own.lower() == on.lower() and _within((other,), by):
            return JointLowWater(other, least(mark), first, second)
    return mark if isinstance(mark, GroupedLowWater) and _within(mark.by, by) else least(mark)


def joint_of(progress: ArcProgress) -> Joint:
    return progress.joint if isinstance(progress, Promises) else {}


def least(mark: Mark) -> LowWater:
    """What holds of every group, known or not."""
    if isinstance(mark, LowWater):
        return mark
    if mark.others == LowWater():
        return LowWater()  # whatever the many groups that are known promise
    return minimum([*mark.groups.values(), mark.others])


def _first_open(marks: Any, size: Any, advance: Any, history: Any) -> Any:
    """The least window start k * advance whose end, and history, is above the mark."""
    if not isinstance(size, float):
        return advance * (np.floor_divide(_less(marks, size + history), advance) + 1)
    marks = np.asarray(marks, np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        # No window lies beyond the farthest; marks above it must still rise.
        told = np.minimum(marks, FARTHEST * advance)
        first = _first_start(told, size, advance, history)
        far = np.maximum(first, _lowered(marks, size, advance, history))
        return np.where(marks > told, far, first)


def _first_start(marks: Any, size: float, advance: float, history: Any) -> Any:
    """The same for doubles: look for it around where it should be, as windows themselves do."""
    advances = advances_in(size, advance)
    k = np.floor((marks - (size + history)) / advance)
    told = k > -FARTHEST
    k -= 2
    for _ in range(5):
        ends = k * advance + size if advances is None else (k + advances) * advance
        k = np.where(ends + history > marks, k, k + 1)
    return np.where(told, k * advance, _lowered(marks, size, advance, history))


def _lowered(marks: Any, size: float, advance: float, history: Any) -> Any:
    """A value that no window that is open or remembered starts below, however doubles round."""
    reach = size + history + advance
    lowered = marks - reach - (np.abs(marks) * ROUNDING + reach * ROUNDING)
    return np.where(np.isinf(marks), marks, lowered)


def _within(fields: Iterable[str], by: Iterable[str]) -> bool:
    return {name.lower() for name in fields} <= {name.lower() for name in by}


def _mapped(mark: Mark, change: Any) -> Mark:
    if isinstance(mark, GroupedLowWater):
        groups = {group: _steps(m, change) for group, m in mark.groups.items()}
        return GroupedLowWater(mark.by, groups, _steps(mark.others, change))
    return _steps(mark, change)


def _steps(mark: LowWater, change: Any) -> LowWater:
    if not len(mark.values):
        return mark
    return LowWater(ended=mark.ended).then(mark.moments, change(mark.values))


def _shifted(mark: LowWater, distance: Any) -> LowWater:
    return _steps(mark, lambda values: _less(values, distance))


def _reaching(mark: LowWater, distance: Any) -> LowWater:
    """Lower every value so that nothing below it, plus the distance, is at or above the value.

    Sums of doubles are rounded: 3.4 + 1.0 is 4.4, but 4.4 - 1.0 is above 3.4.
    """

    def lowered(values: Any) -> Any:
        found = _less(values, distance)
        if found.dtype != np.float64:
            return found
        values = values.astype(np.float64)
        with np.errstate(over="ignore"):
            reaches = np.nextafter(found, -np.inf) + distance >= values
            return np.where(reaches, np.nextafter(values, -np.inf) - distance, found)

    return _steps(mark, lowered)


def _less(values: Any, distance: Any) -> Any:
    """Values less a distance; near the ends of 64 bits as objects, which do not wrap round."""
    if values.dtype == np.int64:
        least, most = int(values.min()) - int(distance), int(values.max()) - int(distance)
        if least < -(2**63) or most >= 2**63:
            values = values.astype(object)
    with np.errstate(over="ignore"):  # a double below all others promises nothing
        return values - distance


def _least(marks: Sequence[Mark]) -> Mark | None:
    plain = [mark for mark in marks if isinstance(mark, LowWater)]
    grouped = [mark for mark in marks if isinstance(mark, GroupedLowWater)]
    if not grouped:
        return minimum(plain)
    if len({tuple(name.lower() for name in mark.by) for mark in grouped}) > 1:
        return None
    every = dict.fromkeys(group for mark in grouped for group in mark.groups)
    groups = {g: minimum([*(mark.of(g) for mark in grouped), *plain]) for g in every}
    others = minimum([*(mark.others for mark in grouped), *plain])
    return GroupedLowWater(grouped[0].by, groups, others)
