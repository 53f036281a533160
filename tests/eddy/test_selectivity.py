"""Estimates from samples, and what is made of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from auroral.continuous.sharing.template import Op
from auroral.eddy.filters.selections import constants_of
from auroral.eddy.filters.selectivity import Sample, may_pay, pays

VALUES = pa.array([*range(100), None])


def _fraction(sample: Sample, op: Op, constant: Any) -> float:
    type = pa.list_(pa.int64()) if isinstance(constant, list) else pa.int64()
    return float(sample.fraction(op, constants_of(pa.array([constant], type), op, "int"))[0])


@pytest.mark.parametrize(
    ("op", "constant", "expected"),
    [
        ("<", 50, 0.5),
        (">=", 90, 0.1),
        ("=", 7, 0.01),
        ("=", 1000, 0.005),
        ("!=", 7, 0.99),
        ("in", [1, 2, 3], 0.03),
        ("<", None, 0.0),
    ],
)
def test_from_a_sample(op: Op, constant: Any, expected: float) -> None:
    assert _fraction(Sample(VALUES, "int"), op, constant) == pytest.approx(expected, abs=0.015)


def test_ranges_from_a_sample() -> None:
    low = constants_of(pa.array([10, 90, 200]), ">", "int").keys
    high = constants_of(pa.array([20, 80, 300]), "<", "int").keys
    found = Sample(VALUES, "int").between(low, high)
    assert found == pytest.approx([0.1, 0.0, 0.0], abs=0.015)
    assert (found > 0).all()


def test_without_a_sample_the_constants_tell() -> None:
    known = constants_of(pa.array(range(1000)), "=", "int")
    assert Sample(None, "int").fraction("=", known) == pytest.approx(np.full(1000, 0.001))
    assert _fraction(Sample(None, "int"), "<", 5) > 0.1
    few = constants_of(pa.array([True, False] * 500), "=", "int")
    assert Sample(None, "int").fraction("=", few) == pytest.approx(np.full(1000, 0.5))


def test_it_pays_for_many_selective_queries() -> None:
    fractions = np.array([1e-5] * 5000 + [0.5] * 10)
    assert pays(fractions, 5000).tolist() == [True] * 5000 + [False] * 10
    assert not pays(fractions[:100], 100).any()
    assert may_pay(5000)
    assert not may_pay(100)


def test_without_a_sample_bounds_tell_how_narrow_ranges_are() -> None:
    low = np.arange(0.0, 1000.0)
    for width, expected in ((0.5, 0.001), (100.0, 0.1), (-1.0, 0.0)):
        bounds = [constants_of(pa.array(c), ">", "float").keys for c in (low, low + width)]
        found = Sample(None, "float").between(*bounds)
        assert float(np.median(found)) == pytest.approx(expected, abs=0.001)
        assert (found > 0).all()
