"""Families: parameters, their types, and the constants of their members."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

import auroral as au
from auroral.continuous.sharing.reading import (
    Constant,
    Derived,
    constants_table,
    family_constants,
    read_family,
)
from auroral.errors import NetworkError
from auroral.network.types import Schema
from auroral.sql.expressions.expression import evaluator

from .naive import selects
from .texts import ARCS, PROGRESS, ROWS, WIDE, read, where

VALUES = pa.table(
    {
        "rule": ["r1", "r2", "r3"],
        "low": pa.array([1, None, 3], pa.int64()),
        "word": ["a", "b", None],
        "since": ["2024-01-01", "2024-02-01 12:00:00", None],
        "factor": [0.5, 1.5, 2.5],
        "flag": [True, False, True],
    }
)
COLUMNS = Schema.parse(
    "rule string, low bigint, word string, since string, factor double, flag boolean"
)


def family(condition: str, select: str = "i") -> Any:
    sql = f"SELECT {select} FROM W WHERE {condition}"
    return read_family(sql, ARCS, PROGRESS, columns=COLUMNS)


def test_parameters_take_the_types_they_are_compared_with() -> None:
    found = family("i > :low AND s = :WORD AND t >= :since AND b = :flag AND d < 2.5 AND i <> 3")
    assert found.parameters == ("low", "word", "since", "flag", Constant(2.5), Constant(3))
    assert [str(t) for t in found.template.slots] == [
        "int", "string", "timestamp", "boolean", "double", "int",
    ]  # fmt: skip
    table = family_constants(found, VALUES)
    assert table.column_names == ["0", "1", "2", "3", "4", "5"]
    assert table.schema.field("0").type == pa.int32()
    assert table["0"].to_pylist() == [1, None, 3]
    assert table["2"].to_pylist()[1] == datetime(2024, 2, 1, 12, tzinfo=UTC)
    assert table["4"].to_pylist() == [2.5] * 3


def test_parameters_in_expressions() -> None:
    found = family(
        "d * :factor > 3 AND i > :low * 2 AND s IN (:word, 'z') AND i < j + :low",
        "i, i * :factor AS scaled",
    )
    table = family_constants(found, VALUES)
    clauses = found.template.sources[0].clauses
    assert [(a.attribute.text, a.op) for (a,) in clauses] == [
        ("d * :0", ">"), ("i", ">="), ("s", "in"), ("i < (j + :4)", "="),
    ]  # fmt: skip
    assert clauses[0][0].attribute.slots == (0,)
    assert found.parameters[2] == Derived((":low * 2",))
    assert table["2"].to_pylist() == [3, None, 7]
    assert table["3"].to_pylist() == [["a", "z"], ["b", "z"], ["z"]]
    assert found.template.items[1].attribute.text == "i * :0"
    assert found.template.items[1].attribute.slots == (0,)


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("i > :lo", "UNKNOWN_PARAMETER: line 1, column 27: there is no parameter :lo; there are"),
        (
            "i > :word",
            "TYPE_MISMATCH: line 1, column 23: :word is string, expected a value of type",
        ),
        ("s = :low AND i > 1", "there are factor double, flag boolean, low bigint"),
        ("i + :word > :since", "TYPE_MISMATCH"),
    ],
)
def test_mistakes_with_parameters(condition: str, said: str) -> None:
    with pytest.raises(NetworkError) as raised:
        family(condition)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("condition", "column", "value", "said"),
    [
        ("i > :low", "low", 2**40, "row 2, column low: 1099511627776 does not fit int"),
        ("i > :factor", "factor", 1.5, "row 2, column factor: 1.5 does not fit int"),
        ("dec > :factor", "factor", 1.555, "row 2, column factor: 1.555 does not fit"),
        ("d > :low", "low", 2**53 + 1, "row 2, column low: 9007199254740993 does not fit double"),
        ("f > :factor", "factor", 0.1, "row 2, column factor: 0.1 does not fit float"),
        ("t > :since", "since", "soon", "row 2, column since: 'soon' is no timestamp"),
    ],
)
def test_values_that_do_not_fit(condition: str, column: str, value: Any, said: str) -> None:
    table = pa.table({column: pa.array([None, value], VALUES.schema.field(column).type)})
    with pytest.raises(NetworkError) as raised:
        family_constants(family(condition), table)
    assert said in str(raised.value)


def test_members_of_a_family_select_what_the_literals_would() -> None:
    found = family("i > :low AND (s = :word OR d > :factor)")
    rows = family_constants(found, VALUES).to_pylist()
    for member, values in zip(rows, VALUES.to_pylist(), strict=True):
        constants = [member[str(at)] for at in range(len(member))]
        word = "null" if values["word"] is None else f"'{values['word']}'"
        low = "null" if values["low"] is None else values["low"]
        wanted = evaluator(f"i > {low} and (s = {word} or d > {values['factor']}D)", WIDE)
        for row in ROWS:
            assert selects(found.template, constants, row, WIDE) is (wanted(row) is True)


def test_constants_as_a_table() -> None:
    found = [where(f"i > {n} AND s IN ('a', 'b{n}') AND t > '2024-01-0{n}'") for n in (1, 2)]
    table = constants_table(found[0].template, [one.constants for one in found])
    assert table.schema.field("1").type == pa.list_(pa.string())
    assert table["1"].to_pylist() == [["a", "b1"], ["a", "b2"]]
    assert table["2"].to_pylist()[1] - table["2"].to_pylist()[0] == timedelta(days=1)
    assert constants_table(read("SELECT a FROM S").template, [(), ()]).num_rows == 2


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT a AS rule FROM s WHERE a = :p", "DUPLICATE_FIELD: query f: .*besides the key"),
        ("SELECT a AS _seq FROM s WHERE a = :p", "RESERVED_FIELD: query f: "),
        (
            "SELECT count(*) AS n FROM s [RANGE :p, WA a] WHERE a = :p",
            "BAD_WINDOW: query f: all members of a family have the same windows; found :p",
        ),
    ],
)
def test_mistakes_say_which_query_they_are_in(sql: str, said: str) -> None:
    net = au.Network("n")
    net.stream("s", "a bigint", progress=au.Ordered("a"))
    net.family("f", sql, [{"rule": 1, "p": 2}], "rule")
    with pytest.raises(au.NetworkError, match=said):
        net.check()
