"""Latch: as a one-at-a-time model does it, however the tuples are cut into steps."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from auroral.kernels.accumulators.choice import CallSpec
from auroral.kernels.latch import LatchKernel
from auroral.network.types import Schema
from auroral.sql.aggregates.analysis import aggregate_evaluator, analyze_aggregate

from . import driving
from .driving import NAN, as_table, drive, plain

SCHEMA = Schema.parse("f0 string, f1 double, f2 bigint, f3 double")
TYPES = {field.name: field.type.arrow() for field in SCHEMA}
TEXTS = [
    "count(*)", "sum(f2)", "avg(f3)", "max(f0)", "min(f3)", "first(f0)", "last(f2, true)",
    "stddev(f3)", "count(DISTINCT f2)", "collect_list(f2)", "mode(f0)", "max_by(f0, f2)",
]  # fmt: skip
CALLS = [analyze_aggregate(text, SCHEMA).calls[0] for text in TEXTS]
REFERENCE = [aggregate_evaluator(text, SCHEMA) for text in TEXTS]


def kernel(by: tuple[str, ...]) -> LatchKernel:
    return LatchKernel(
        by,
        tuple(CallSpec.of(call) for call in CALLS),
        tuple(tuple(call.args) for call in CALLS),
        tuple(TYPES.items()),
    )


def zeroed(value: Any) -> Any:
    return 0.0 if value == 0 and isinstance(value, float) else value


def modelled(rows: list[dict[str, Any]], by: tuple[str, ...]) -> list[dict[str, Any]]:
    kept: dict[Any, list[dict[str, Any]]] = {}
    made = []
    for row in rows:
        key = {name: zeroed(row[name]) for name in by}
        mine = kept.setdefault(tuple("nan" if v != v else v for v in key.values()), [])
        mine.append(row)
        hidden = {name: row[name] for name in ("_seq", "_ts", "_sub")}
        values = {f"agg{n}": compute(mine) for n, compute in enumerate(REFERENCE)}
        made.append(hidden | key | values)
    return made


def shown(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows by their text: the sign of zero counts."""
    return plain([{name: repr(value) for name, value in row.items()} for row in rows])


@given(st.data())
def test_as_one_at_a_time(data: st.DataObject) -> None:
    columns = {
        "f0": st.sampled_from([None, "x", "é"]),
        "f1": st.sampled_from([None, NAN, -0.0, 0.0, 1.5]),
        "f2": st.sampled_from([None, 1, 2, 2**62]),
        "f3": st.sampled_from([None, NAN, -0.0, 0.1, 0.7, 1e300]),
    }
    rows = data.draw(driving.arrivals(columns))
    by = data.draw(st.sampled_from([("f0",), ("f1",), ("f1", "f0")]))
    cuts = data.draw(driving.cuts(driving.end_of(rows)))
    parquet = data.draw(st.booleans())
    ran = drive(kernel(by), [as_table(rows, TYPES)], [], cuts, parquet=parquet)
    expected = modelled(rows, by)
    assert shown(ran.ports.get("", [])) == shown(expected)
    names = {tuple(repr(row[name]) for name in by): row["_seq"] for row in expected[::-1]}
    assert ran.held == [sum(seq < cut for seq in names.values()) for cut in cuts]


def test_the_state_has_a_row_for_each_key_and_a_few_old_ones() -> None:
    rows = [
        {"_seq": at, "_ts": 0, "_sub": b"", "f0": "xyz"[at % 3], "f1": 0.0, "f2": at, "f3": 1.0}
        for at in range(1, 60)
    ]
    ran = drive(kernel(("f0",)), [as_table(rows, TYPES)], [], range(2, 62))
    assert ran.held[-1] == 3
    assert max(stored["values"] for stored in ran.stored) <= 12
