"""How marks pass through boxes that keep tuples: filter, map and union.

An arc's progress is a mapping from attribute to mark. Rules are pure: marks in, marks out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from auroral.progress.lowwater import GroupedLowWater, LowWater, Mark, minimum

ArcProgress = Mapping[str, Mark]


def passed(progress: ArcProgress) -> ArcProgress:
    """Filter: what holds of all tuples holds of some of them."""
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
    return result


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
