"""Values of families that cannot be: the message tells the row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import auroral as au
from tests.conformance import sparkless

SQL = "SELECT id FROM r WHERE id = :sid"


def network() -> au.Network:
    net = au.Network("n")
    net.stream("r", "id int")
    return net


def refused(values: Any, directory: Path | None = None) -> str:
    net = network()
    net.directory = directory
    net.family("f", SQL, values, "rule")
    with pytest.raises(au.NetworkError) as raised:
        net.check()
    return str(raised.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("rule,sid\n1,2\n°,4\n", "BAD_ENCODING: query f, key values: v.csv is not UTF-8: row 2,"),
        ("rule,sid,°\n1,2,3\n", "BAD_ENCODING: query f, key values: v.csv is not UTF-8: the head"),
        ("rule,sid\n", "BAD_VALUES: query f, key values: v.csv has no rows, and without rows"),
        ("rule,sid\n1,2\n,4\n", "BAD_VALUES: query f, key key: row 2 has no rule"),
        ("rule,sid\n1,2\n,4\n,5\n", "2 rows have no rule, the first is row 2"),
        ("rule,sid\n1,2\n2,n/a\n3,x\n", "expected a value of type int; there are rule bigint, s"),
        ("rule,sid\n1,2\n2,n/a\n3,x\n", "(column sid: row 2 has 'n/a')"),
        ("rule,sid\n1,\n2,\n", "(column sid: it has no values)"),
        ("rule,sid,SID\n1,2,3\n", "DUPLICATE_FIELD: query f, key values: the values have two col"),
        ("rule,rule,sid\n1,2,3\n", "DUPLICATE_FIELD: query f, key values: the values have two col"),
        ("rule,sid\n1,2\n2,3\n1,4\n", "DUPLICATE_NAME: query f, key values: the rule 1 occurs t"),
        ("rule,sid\n1,2\n2,3\n1,4\n", "the rule 1 occurs twice, in rows 1 and 3"),
        ("rule, sid\n1,2\n", "there are ' sid', rule (did you mean ' sid'?)"),
        (" rule,sid\n1,2\n", "no column rule; there are ' rule', sid (did you mean ' rule'?)"),
    ],
)
def test_mistakes_in_a_file_are_told_with_their_row(
    content: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "v.csv").write_bytes(content.encode("latin-1"))
    assert said in refused("v.csv", tmp_path)


@pytest.mark.parametrize("name", ["no.csv", "no.parquet", "no.arrow"])
def test_a_file_that_is_not_there(name: str, tmp_path: Path) -> None:
    said = f"BAD_FILE: query f, key values: there is no file {name}"
    assert refused(name, tmp_path) == said


def test_rows_are_dicts() -> None:
    said = "expected a dict of columns and values as row 2, found tuple"
    with pytest.raises(au.NetworkError, match=f"BAD_PARAMETER: query f, key values: {said}"):
        network().family("f", SQL, [{"rule": 1, "sid": 2}, (2, 3)], "rule")
    with pytest.raises(au.NetworkError, match="or a list of rows, found int"):
        network().family("f", SQL, 5, "rule")


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            [("a", 1), (1, 2)],
            "the rows do not agree: row 2, column rule has 1, unlike those before",
        ),
        ([(1, 1), (2, 2.5), (3, None), (4, "x"), (5, "y")], "row 4, column sid has 'x', unlike"),
        ([(1, 2), (2, 2**70)], "row 2, column sid has 1180591620717411303424, which is too large"),
    ],
)
def test_rows_that_do_not_agree_are_named(rows: list[tuple[Any, Any]], said: str) -> None:
    values = [{"rule": rule, "sid": sid} for rule, sid in rows]
    assert said in refused(values)


def test_the_columns_of_a_frame_must_agree_too() -> None:
    pandas = pytest.importorskip("pandas")
    with pytest.raises(au.NetworkError, match=r"BAD_VALUES.*row 2, column rule has 1, unlike"):
        au.Family(SQL, pandas.DataFrame({"rule": ["a", 1], "sid": [1, 2]}), "rule")
    with pytest.raises(au.NetworkError, match="DUPLICATE_FIELD"):
        au.Family(SQL, pandas.DataFrame([[1, 2]], columns=["rule", "rule"]), "rule")


def test_what_only_later_rows_say_is_not_lost() -> None:
    found = au.Family(SQL, [{"rule": 1}, {"rule": 2, "sid": 5}], "rule").table().to_pylist()
    assert found == [{"rule": 1, "sid": None}, {"rule": 2, "sid": 5}]


def test_keys_in_bytes_are_text_or_refused() -> None:
    table = pa.table({"rule": [b"a", b"b"], "sid": [1, 2]})
    assert au.Family(SQL, table, "rule").table()["rule"].to_pylist() == ["a", "b"]
    assert "the bytes in column rule are no text" in refused(
        pa.table({"rule": [b"\xb0"], "sid": [1]})
    )


def test_an_engine_goes_on_after_such_a_mistake(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "v.csv"
    path.write_bytes("rule,sid\n1,2\n°,4\n".encode("latin-1"))
    net = network()
    net.query("all", "SELECT id FROM r")
    with sparkless.make_engine(net) as engine:
        with pytest.raises(au.NetworkError, match="BAD_ENCODING: query f"):
            engine.modify(add={"f": au.Family(SQL, str(path), "rule")})
        engine.enqueue("r", [{"id": 1}])
        engine.drain()
        assert engine.list_entities()["queries"] == ["all"]
        assert engine.dequeue("all").num_rows == 1
