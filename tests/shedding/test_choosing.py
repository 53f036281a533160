"""Which tuples a drop box drops."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from auroral.shedding.choosing import (
    chosen_moments,
    columns_of,
    dropped_rows,
    droppers,
    hashes,
    without_dropped,
)
from auroral.shedding.drops import Drop, DropInterval


def test_the_hash_is_the_same_for_ever() -> None:
    """A state directory of another version must drop the same: never change these numbers."""
    found = hashes(np.array([0, 1, 2, 2**40, 2**62]), 7)
    assert found.tolist() == [
        13309476754707697221,
        2875738036014693257,
        16129155333475108587,
        14003158643953237838,
        12799461164224918833,
    ]


def splitmix64(value: int) -> int:
    """As published, with Python's numbers."""
    mask = 2**64 - 1
    value = (value + 0x9E3779B97F4A7C15) & mask
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & mask
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & mask
    return value ^ (value >> 31)


@pytest.mark.parametrize("seed", [0, 7, 2**63 - 1, 2**64 - 1, -1])
def test_the_hash_is_splitmix64_of_seed_and_moment(seed: int) -> None:
    moments = [0, 1, 5, 10**6, 2**62, 2**63 - 1]
    ours = [splitmix64((splitmix64(seed % 2**64) + m) % 2**64) for m in moments]
    assert hashes(np.array(moments), seed).tolist() == ours


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("rate", [0.01, 0.3, 0.5, 0.95])
def test_about_the_wanted_share_is_chosen(rate: float, seed: int) -> None:
    count = 100_000
    found = chosen_moments(np.arange(count) * 2, rate, seed).sum()
    assert abs(found - count * rate) < 5 * (count * rate * (1 - rate)) ** 0.5


def test_rates_of_nothing_and_everything_are_exact() -> None:
    moments = np.arange(1000)
    assert not chosen_moments(moments, 0.0, 1).any()
    assert chosen_moments(moments, 1.0, 1).all()


def test_seeds_choose_independently() -> None:
    moments = np.arange(100_000)
    one, two = chosen_moments(moments, 0.5, 1), chosen_moments(moments, 0.5, 2)
    assert abs((one & two).mean() - 0.25) < 0.01


def test_a_larger_rate_chooses_the_same_and_more() -> None:
    moments = np.arange(10_000)
    smaller, larger = chosen_moments(moments, 0.2, 3), chosen_moments(moments, 0.6, 3)
    assert not (smaller & ~larger).any()


DAY_US = 86_400_000_000


@pytest.mark.parametrize(
    ("type", "values", "low", "high", "dropped"),
    [
        (pa.int32(), [1, 2, 3, None], 2, 3, [False, True, False, False]),
        (pa.int64(), [-5, 2**60, None], None, 0, [True, False, False]),
        (pa.float64(), [1.5, float("nan"), None, 9.0], 1.0, None, [True, False, False, True]),
        (pa.float64(), [float("inf"), float("-inf"), 0.0], None, None, [True, True, True]),
        (
            pa.decimal128(10, 2),
            [Decimal("1.50"), None, Decimal("-0.01")],
            0,
            1.51,
            [True, False, False],
        ),
        (
            pa.timestamp("us", "UTC"),
            [datetime(1970, 1, 2, tzinfo=UTC), datetime(1970, 1, 3, tzinfo=UTC), None],
            DAY_US,
            2 * DAY_US,
            [True, False, False],
        ),
        (pa.timestamp("ms"), [datetime(1970, 1, 2), None], 0, 2 * DAY_US, [True, False]),
        (pa.date32(), [date(1970, 1, 3), date(1970, 1, 5), None], 2, 4, [True, False, False]),
    ],
    ids=str,
)
def test_intervals_of_every_type(
    type: pa.DataType, values: list[Any], low: Any, high: Any, dropped: list[bool]
) -> None:
    table = pa.table({"_seq": range(len(values)), "f": pa.array(values, type)})
    drop = Drop("b", "s", 1.0, 0, (), DropInterval("f", low, high))
    assert dropped_rows(table, drop).tolist() == dropped
    kept = [value for value, gone in zip(table["f"].to_pylist(), dropped, strict=True) if not gone]
    assert str(without_dropped(table, [drop])[0]["f"].to_pylist()) == str(kept)


def test_of_an_interval_only_the_chosen_moments_are_dropped() -> None:
    table = pa.table({"_seq": range(1000), "f": [float(n % 2) for n in range(1000)]})
    drop = Drop("b", "s", 0.5, 4, (), DropInterval("f", 1.0, None))
    chosen = chosen_moments(np.arange(1000), 0.5, 4)
    assert dropped_rows(table, drop).tolist() == (chosen & (np.arange(1000) % 2 == 1)).tolist()
    assert columns_of([drop]) == ["_seq", "f"]


def test_tuples_of_one_moment_share_their_fate() -> None:
    table = pa.table({"_seq": np.repeat(np.arange(500), 3), "f": [0] * 1500})
    found = dropped_rows(table, Drop("b", "s", 0.4, 4, ())).reshape(500, 3)
    assert (found == found[:, :1]).all()
    assert 100 < found[:, 0].sum() < 300


def test_an_empty_table_stays_empty() -> None:
    table = pa.table({"_seq": pa.array([], pa.int64()), "f": pa.array([], pa.float64())})
    drop = Drop("b", "s", 0.5, 4, (), DropInterval("f", 1.0, None))
    kept, dropped = without_dropped(table, [drop])
    assert (kept.num_rows, dropped) == (0, {})


def test_of_several_drop_boxes_the_first_that_drops_a_tuple_counts() -> None:
    table = pa.table({"_seq": range(1000), "f": [float(n % 4) for n in range(1000)]})
    by_value = Drop("b", "s", 1.0, 0, (), DropInterval("f", 1.0, 2.0), "semantic")
    others = [Drop("b", "s", 0.5, 1, ()), Drop("b", "s", 0.5, 2, (), None, "admission")]
    kept, dropped = without_dropped(table, [by_value, *others])
    one, two = (chosen_moments(np.arange(1000), 0.5, seed) for seed in (1, 2))
    left = np.arange(1000) % 4 != 1
    assert kept["_seq"].to_pylist() == np.flatnonzero(left & ~one & ~two).tolist()
    assert dropped == {
        "semantic": 250,
        "random": int((left & one).sum()),
        "admission": int((left & two & ~one).sum()),
    }
    assert droppers(table, []).tolist() == [-1] * 1000


def test_drops_are_found_again_as_plain_data() -> None:
    drop = Drop("b", "s", 0.5, 4, ("o", "p"), DropInterval("f", None, 2.5), "semantic")
    assert Drop.parse(drop.document()) == drop
