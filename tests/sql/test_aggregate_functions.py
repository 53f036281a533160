"""Every entry of the table of aggregate functions has all implementations, and they agree."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pytest

from auroral.continuous.sharing.aggregate_reading import read_shared_aggregate
from auroral.continuous.sharing.predicates import NotShared
from auroral.eddy.panes.merging import MERGEABLE_MAKERS, Partials
from auroral.eddy.vectors.evaluation import TupleColumns
from auroral.errors import NetworkError
from auroral.kernels.accumulators.choice import MAKERS, Accumulators, CallSpec
from auroral.network.types import Schema
from auroral.sql.aggregates.analysis import aggregate_evaluator, analyze_aggregate
from auroral.sql.aggregates.calls import AggregateCall
from auroral.sql.aggregates.functions import (
    AGGREGATE_FUNCTIONS,
    TABLE,
    VARIANTS,
    AccumulatorKind,
)
from auroral.sql.expressions.expression import evaluator

SCHEMA = Schema.parse("b boolean, i int, d double, m decimal(8,2), s string, o bigint")
ROWS: list[dict[str, Any]] = [
    {"b": True, "i": 5, "d": 2.5, "m": Decimal("1.25"), "s": "7", "o": 1},
    {"b": None, "i": None, "d": None, "m": None, "s": None, "o": 2},
    {"b": False, "i": 3, "d": -1.0, "m": Decimal("0.50"), "s": "4", "o": None},
    {"b": True, "i": 5, "d": 2.5, "m": Decimal("1.25"), "s": "7", "o": 0},
    {"b": True, "i": 6, "d": 4.0, "m": Decimal("-3.00"), "s": "9", "o": 3},
]
CUT = 2
REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "expressions.md"


def calls(name: str) -> dict[str, AggregateCall]:
    """Calls by text: as few arguments as possible, over each column that the function takes."""
    function = AGGREGATE_FUNCTIONS[name]
    least = max(function.arguments[0], 1)
    columns = least if function.columns is None else function.columns
    found = {}
    for column in SCHEMA.names:
        given = [column, *["o"] * (columns - 1), *["0.5"] * (least - columns)]
        text = f"{name}({', '.join(given)})"
        try:
            (found[text],) = analyze_aggregate(text, SCHEMA).calls
        except NetworkError as error:
            if error.code != "TYPE_MISMATCH":
                raise
    return found


def arguments(call: AggregateCall, rows: list[dict[str, Any]]) -> list[pa.Array]:
    pairs = [
        (evaluator(text, SCHEMA), type) for text, type in zip(call.args, call.types, strict=True)
    ]
    return [pa.array([run(row) for row in rows], type.arrow()) for run, type in pairs]


@pytest.mark.parametrize("name", sorted(AGGREGATE_FUNCTIONS))
def test_every_function_has_an_accumulator_that_agrees_with_its_evaluator(name: str) -> None:
    found = calls(name)
    assert found, f"no column of {SCHEMA} fits {name}"
    for text, call in found.items():
        accumulators = Accumulators([CallSpec.of(call)])
        state = accumulators.fresh(1)
        for part in (ROWS[:CUT], ROWS[CUT:]):
            state = accumulators.fold(state, [arguments(call, part)], np.zeros(len(part), np.int64))
        (column,), _ = accumulators.final(state)
        assert column.type == call.type.arrow(), text
        assert column.to_pylist() == [aggregate_evaluator(text, SCHEMA)(ROWS)], text


@pytest.mark.parametrize("name", sorted(AGGREGATE_FUNCTIONS))
def test_functions_that_merge_have_partial_aggregates_that_agree(name: str) -> None:
    for text, call in calls(name).items():
        sql = f"SELECT {text} AS value FROM S [RANGE 60, WA o]"
        merges = AGGREGATE_FUNCTIONS[name].merges(call.types) and not call.distinct
        if not merges:
            with pytest.raises(NotShared, match="can not be merged"):
                read_shared_aggregate(sql, {"S": SCHEMA}, {})
            continue
        partials = Partials(read_shared_aggregate(sql, {"S": SCHEMA}, {}).calls)
        fields = [(field.name, field.type.arrow()) for field in SCHEMA.fields]
        tuples = TupleColumns(pa.Table.from_pylist(ROWS, pa.schema(fields)))
        panes = np.array([0] * CUT + [1] * (len(ROWS) - CUT))
        state = partials.fold(tuples, panes, 2)
        state = partials.merge(state, np.array([1, 0]), np.zeros(2, np.int64), 1)
        (column,) = partials.final(state)
        assert column.to_pylist() == [aggregate_evaluator(text, SCHEMA)(ROWS)], text


def test_every_kind_of_accumulator_has_a_maker_and_is_used() -> None:
    kinds = set(get_args(AccumulatorKind))
    assert set(MAKERS) == kinds
    assert {function.accumulator for function in AGGREGATE_FUNCTIONS.values()} == kinds


def test_every_kind_that_merges_has_a_maker() -> None:
    merging = {
        AGGREGATE_FUNCTIONS[call.name].accumulator
        for name in AGGREGATE_FUNCTIONS
        for call in calls(name).values()
        if AGGREGATE_FUNCTIONS[name].merges(call.types)
    }
    assert set(MERGEABLE_MAKERS) == merging


def test_no_name_stands_twice_in_the_table() -> None:
    names = [name for entry in TABLE for name in (entry.name, *entry.aliases)] + [*VARIANTS]
    assert sorted(names) == sorted(AGGREGATE_FUNCTIONS)


def test_the_reference_page_lists_every_function() -> None:
    section = REFERENCE.read_text(encoding="utf-8").partition("## Aggregate functions\n")[2]
    table = section.partition("All functions see the tuples")[0]
    assert set(re.findall(r"`(\w+)`", table)) - {"compute"} - {"DISTINCT"} == set(
        AGGREGATE_FUNCTIONS
    )
