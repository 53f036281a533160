"""Functions of a resample over fields of both sides."""

from __future__ import annotations

from typing import Any

import pytest

from auroral import AuroralError, Network, Order
from auroral.testing import run

MARKS: dict[str, Any] = {"left": Order("t"), "right": Order("t")}
LEFT = [(10, 2, "a"), (20, 3, None)]
RIGHT = [(9, 5), (11, 7), (20, 1), (21, None)]


def resampled(right: str = "t int, v int", **compute: Any) -> list[tuple[Any, ...]]:
    net = Network("n")
    one = net.stream("l", "t int, w int, g string")
    other = net.stream("r", right)
    net.output("o", one.resample(other, **MARKS, within=2, **compute))
    out = run(net, {"l": LEFT, "r": RIGHT})["o"]
    return [tuple(row.values())[1:] for row in out]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("avg(right.v) - left.w", [4.0, -2.0]),
        ("avg(v) - left.w", [4.0, -2.0]),
        ("sum(right.v * left.w)", [24, 3]),
        ("sum(v * left.w) + left.w", [26, 6]),
        ("count(*) FILTER (WHERE right.t >= left.t)", [1, 2]),
        ("max_by(v, abs(right.t - left.t))", [5, None]),
        ("sum(v)", [12, 1]),
        ("left.w", [2, 3]),
        ("concat(left.g, cast(count(*) AS string))", ["a2", None]),
        ("first('right.v')", ["right.v", "right.v"]),
    ],
)
def test_left_fields_are_constants_of_a_window(text: str, expected: list[Any]) -> None:
    assert resampled(x=text) == [(value,) for value in expected]


def test_fields_of_both_sides_side_by_side() -> None:
    made = resampled(n="count(*)", w="left.w", far="max(abs(t - left.t))", sum="sum(v)")
    assert made == [(2, 2, 1, 12), (2, 3, 1, 1)]


def test_a_field_of_the_right_called_left_is_meant_by_its_name() -> None:
    assert resampled("t int, left int", x="sum(left)") == [(12,), (1,)]


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("sum(v) + left.no", "UNKNOWN_FIELD", "no"),
        ("sum(v) + v", "NOT_AGGREGATED", "v"),
        ("first(left)", "TYPE_MISMATCH", "left.t"),
        ("sum(right.no)", "UNKNOWN_FIELD", "no"),
    ],
)
def test_mistakes_are_named(text: str, code: str, says: str) -> None:
    with pytest.raises(AuroralError) as refused:
        resampled(x=text)
    assert refused.value.code == code
    assert says in str(refused.value)
