"""What Python builds without a network is refused in the words that files are refused with."""

from __future__ import annotations

from typing import Any

import pytest

from auroral import Delayed, Heartbeat, NetworkError, Ordered, Progress, Punctuated


@pytest.mark.parametrize(
    ("make", "given", "code", "said"),
    [
        (Heartbeat, {"unit": "x"}, "MISSING_KEY", "the keys here are lag, unit"),
        (Heartbeat, {"lag": 5, "unit": "x"}, "BAD_PARAMETER", "key unit: expected 's', 'ms'"),
        (Heartbeat, {"lagg": 5}, "UNKNOWN_KEY", "did you mean lag?"),
        (Heartbeat, {"lag": -1}, "BAD_PARAMETER", "must not be negative"),
        (Heartbeat, {"lag": "soon"}, "BAD_DURATION", "'soon'"),
        (Heartbeat, {"lag": float("inf")}, "BAD_PARAMETER", "a finite number"),
        (Heartbeat, {"lag": 1e300}, "BAD_PARAMETER", "too large"),
        (Ordered, {"on": 5}, "BAD_PARAMETER", "key on: expected text, found 5"),
        (Ordered, {"on": "t", "by": "g"}, "BAD_PARAMETER", "key by: expected a list"),
        (Ordered, {"on": "t", "heartbeat": []}, "BAD_PARAMETER", "expected a number or text"),
        (Delayed, {"on": "t", "delay": [1]}, "BAD_PARAMETER", "key delay"),
        (Delayed, {"on": "t", "delay": float("nan")}, "BAD_PARAMETER", "a finite number"),
        (Punctuated, {"on": "t", "below": "drop"}, "BAD_PARAMETER", "key below: expected 'route'"),
        (Progress, {"on": "t", "order": True}, "UNKNOWN_KEY", "did you mean ordered?"),
    ],
)
def test_a_mistake_is_one_sentence(make: Any, given: dict[str, Any], code: str, said: str) -> None:
    with pytest.raises(NetworkError) as raised:
        make(**given)
    assert raised.value.code == code
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)
