"""Which bucket looks at a tuple."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from auroral.eddy.ownership import places_of
from auroral.kernels.grouping import buckets_of

ROWS = 6000
TABLE = pa.table(
    {
        "_seq": pa.array(range(ROWS)),
        "k": pa.array([n // 3 for n in range(ROWS)]),
        "side": pa.array([n % 10 == 0 for n in range(ROWS)]),
    }
)


def by(*names: str) -> list[int]:
    return list(buckets_of([TABLE[name] for name in names], ROWS, 3))


@pytest.mark.parametrize("together", [False, True])
def test_selections_go_where_the_tuple_goes_anyway(together: bool) -> None:
    keys = {"join": ("k",), "panes": ("k",)}
    found = places_of(TABLE, keys, ["select", "count"], 3, together=together)
    assert {kind: list(places) for kind, places in found.items()} == dict.fromkeys(
        ["join", "panes", "select", "count"], by("k")
    )


@pytest.mark.parametrize("key", [(), ("side",)])
def test_a_key_that_leaves_buckets_idle_does_not_decide_on_selections(key: tuple[str, ...]) -> None:
    """Most tuples of the join go to one bucket; the others can do the selections meanwhile."""
    found = places_of(TABLE, {"join": key}, ["select"], 3, together=False)
    assert list(found["join"]) == (by("side") if key else [0] * ROWS)
    assert list(found["select"]) == by("_seq")


def test_one_task_filters_tuples_once_however_uneven_the_key() -> None:
    found = places_of(TABLE, {"join": ("side",)}, ["select"], 3, together=True)
    assert list(found["select"]) == by("side")


def test_of_several_keys_one_that_is_even_decides() -> None:
    keys = {"join": ("side",), "other": ("k",)}
    found = places_of(TABLE, keys, ["select"], 3, together=False)
    assert list(found["select"]) == by("k")


def test_no_bucket_takes_what_nobody_asks_for() -> None:
    assert places_of(TABLE, {}, [], 3, together=False) == {}
    assert set(places_of(TABLE, {"join": ("k",)}, [], 3, together=False)) == {"join"}


def test_of_no_tuples_none_is_anywhere() -> None:
    found = places_of(TABLE.slice(0, 0), {"join": ("k",)}, ["select"], 3, together=False)
    assert [len(places) for places in found.values()] == [0, 0]
    assert np.bincount(found["select"]).sum() == 0
