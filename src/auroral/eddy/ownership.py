"""Which bucket looks at a tuple, for which queries (pure).

Equal keys of a join or of an aggregate meet in one bucket. Selections need no other tuple, so any
bucket can decide on them; best one that filters the tuple anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from auroral.continuous.sharing.template import JoinShape
from auroral.eddy.registered import place
from auroral.eddy.version import Version
from auroral.kernels.grouping import Ids, buckets_of

Mask = npt.NDArray[np.bool_]
Keys = Mapping[str, tuple[str, ...]]

_UNEVEN = 1.5
"""A key may give a bucket so many times its even share for selections to go by it, too."""


def keys_of(version: Version, arc: str) -> dict[str, tuple[str, ...]]:
    """By kind of joins and aggregates, the fields of an arc of which equal values must meet."""
    found: dict[str, tuple[str, ...]] = {}
    for group in version.joins:
        keys = key_of(group.shape)
        for n, source in enumerate(group.shape.arcs):
            if source == arc:
                by = () if keys is None else (keys[n],)
                found[place(group.name, group.shape.arcs, n)] = by
    for aggregate in version.aggregates:
        if aggregate.shape.arc == arc:
            found[aggregate.name] = tuple(aggregate.shape.by)
    return found


def places_of(
    table: pa.Table, keys: Keys, selections: Iterable[str], buckets: int, *, together: bool
) -> dict[str, Ids]:
    """The bucket of each tuple, by kind: those that have keys, and kinds of selections.

    It follows from the tuples of a step alone, as all buckets must agree on it. `together` says
    that one task does all buckets.
    """
    rows = table.num_rows
    known = {
        by: buckets_of([table[name] for name in by], rows, buckets) for by in set(keys.values())
    }
    found = {kind: known[by] for kind, by in keys.items()}
    chosen = next(
        (by for by in keys.values() if together or _is_even(known[by], buckets)), ("_seq",)
    )
    for kind in selections:
        if chosen not in known:
            known[chosen] = buckets_of([table["_seq"]], rows, buckets)
        found[kind] = known[chosen]
    return found


def _is_even(places: Ids, buckets: int) -> bool:
    """Whether no bucket would have much more to do than others."""
    largest = int(np.bincount(places, minlength=buckets).max())
    return largest * buckets <= _UNEVEN * len(places)


def key_of(shape: JoinShape) -> tuple[str, ...] | None:
    """A field of each source such that all parts of a result have the same value in it.

    >>> equal = ((0, "a", 1, "b"), (1, "b", 2, "c"))
    >>> key_of(JoinShape(("S", "T", "U"), equal, "rows"))
    ('a', 'b', 'c')
    """
    groups: list[set[tuple[int, str]]] = []
    for i, one, j, other in shape.equal:
        pair = {(i, one), (j, other)}
        near = [group for group in groups if group & pair]
        groups = [group for group in groups if not group & pair] + [pair.union(*near)]
    for group in groups:
        fields = dict(sorted(group, reverse=True))
        if len(fields) == len(shape.arcs):
            return tuple(fields[n] for n in range(len(shape.arcs)))
    return None
