"""Python functions in SELECT, rules that are read from files, and bands of timestamps."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.csv
import pytest

import auroral as au
from auroral.errors import NetworkError, StateError
from tests.conformance import sparkless

from .market import ALERTS, RULES, alerts, batch, numbers, ticks


def _root(values: Any) -> Any:
    if pc.any(pc.less(values, 0)).as_py():
        raise ValueError("negative")
    return pc.sqrt(values)


def test_a_function_in_select_gives_null_where_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    net = ticks()
    net.function("root", _root, returns="double")
    net.query("roots", "SELECT n, root(price) AS r FROM ticks WHERE n < 9")
    with sparkless.make_engine(net) as engine:
        rows = [{"n": 1, "price": 4.0}, {"n": 2, "price": -1.0}, {"n": 3}, {"n": 9, "price": -1.0}]
        assert engine.enqueue("ticks", rows) == 4, "keys that a row lacks are NULL"
        engine.drain()
        found = [tuple(row.values()) for row in engine.dequeue("roots").to_pylist()]
        assert found == [(1, 2.0), (2, None), (3, None)]
        assert engine.matches("roots").to_pylist() == [
            {"query": "roots", "matches": 3, "errors": 1}
        ]


def test_more_rules_come_from_a_file_that_was_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    net = ticks()
    net.family("alerts", ALERTS, RULES[:1], "rule")
    path = tmp_path / "more.csv"
    path.write_text("rule,sym,limit\n2,B,15\n3,A,0\n")
    with sparkless.make_engine(net) as engine:
        engine.modify(add={"alerts": pyarrow.csv.read_csv(str(path))})
        engine.enqueue("ticks", batch(0, 30))
        engine.drain()
        expected = sorted(n for _, n in alerts(RULES[:3], (0, 30)))
        assert sorted(numbers(engine.dequeue("alerts"))) == expected


def test_timestamps_are_near_by_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    net = au.Network("n")
    for name in "ST":
        net.stream(name, "id int, ts timestamp", progress=au.Ordered("ts"))
    net.query(
        "near",
        "SELECT S.id, T.id AS other FROM S, T WHERE S.ts >= T.ts - INTERVAL 30 SECONDS"
        " AND S.ts <= T.ts + INTERVAL 30 SECONDS",
    )
    start = datetime(2024, 1, 1, tzinfo=UTC)
    with sparkless.make_engine(net) as engine:
        for n, seconds in enumerate((0, 15, 30, 31)):
            engine.enqueue("S", [(n, start + timedelta(seconds=seconds))])
        engine.enqueue("T", [(9, start)])
        engine.drain()
        assert sorted(engine.dequeue("near")["id"].to_pylist()) == [0, 1, 2]


@pytest.mark.parametrize(
    ("call", "found"),
    [("root(price, n)", "2 arguments: too many"), ("root()", "0 arguments: missing a required")],
)
def test_a_function_is_called_with_what_it_takes(
    monkeypatch: pytest.MonkeyPatch, call: str, found: str
) -> None:
    net = ticks()
    net.function("root", _root, returns="double")
    with sparkless.make_engine(net) as engine:
        for sql in (f"SELECT {call} AS r FROM ticks", f"SELECT n FROM ticks WHERE {call} > 1"):
            with pytest.raises(NetworkError, match=f"WRONG_ARITY: query q.*root .* {found}"):
                engine.modify(add={"q": sql})


def test_functions_of_the_program_itself_go_with_a_state_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def is_odd(values: Any) -> Any:
        return pc.equal(pc.bit_wise_and(values, 1), 1)

    net = ticks()
    net.function("odd", is_odd, returns="boolean")
    net.query("odds", "SELECT n FROM ticks WHERE odd(n)")
    for k in range(2):
        with sparkless.make_engine(net, state=tmp_path) as engine:
            engine.enqueue("ticks", batch(4 * k, 4 * k + 4))
            engine.drain()
            assert numbers(engine.dequeue("odds")) == [4 * k + 1, 4 * k + 3]
    other = ticks()
    other.function("odd", _root, returns="boolean")
    other.query("odds", "SELECT n FROM ticks WHERE odd(n)")
    with (
        pytest.raises(StateError, match="STATE_OF_OTHER_NETWORK"),
        sparkless.make_engine(other, state=tmp_path),
    ):
        pass
