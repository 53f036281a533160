"""What an engine says when somebody asks for a query that is not there, or not so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import auroral as au
from tests.conformance import sparkless

from .market import ALERTS, RULES, ticks

BOXED = "SELECT count(*) AS n FROM ticks [ROWS 1]"


def market() -> au.Network:
    net = ticks()
    net.output("cheap", net.box("filter", input="ticks", where="price < 5"))
    net.query("all", "SELECT n FROM ticks")
    net.output("every", "all")
    net.query("boxed", BOXED)
    net.family("alerts", ALERTS, RULES, "rule")
    return net


CALLS: list[tuple[Callable[[au.Engine], Any], str]] = [
    (lambda e: e.matches("boxed"), "NOT_SHARED: the query boxed runs as boxes of its own"),
    (lambda e: e.dequeue_all("boxed"), "NOT_SHARED: the query boxed runs as boxes of its own"),
    (lambda e: e.dequeue("alerts[77]"), "no query alerts[77]: the family alerts has no member 77"),
    (lambda e: e.matches("alerts[77]"), "no query alerts[77]: the family alerts has no member 77"),
    (lambda e: e.dequeue(None), "BAD_CALL: expected the name of an output or a query, found None"),  # type: ignore[arg-type]
    (lambda e: e.matches(5), "BAD_CALL: expected the name of a query, found 5"),  # type: ignore[arg-type]
    (lambda e: e.describe(None), "BAD_CALL: expected the name of"),  # type: ignore[arg-type]
    (lambda e: e.bind_sink(None, print), "BAD_CALL: expected the name of"),  # type: ignore[arg-type]
    (lambda e: e.enqueue(["ticks"], []), "expected the name of a stream, found ['ticks']"),  # type: ignore[arg-type]
    (
        lambda e: e.enqueue("ticks", [], position={1}),
        "BAD_CALL: ticks: a position is any JSON value, found {1}",
    ),
    (
        lambda e: e.enqueue("ticks", [], position=[float("nan")]),
        "BAD_CALL: ticks: a position is any JSON value, found [nan]",
    ),
    (
        lambda e: e.position("tick"),
        "UNKNOWN_STREAM: there is no stream tick; there are news, ticks (did you mean ticks?)",
    ),
    (
        lambda e: e.modify(remove=["alerts[77]"]),
        "no query alerts[77]: the family alerts has no member 77",
    ),
    (
        lambda e: e.modify(remove=["alertz[1]"]),
        "UNKNOWN_QUERY: there is no query alertz[1]; there are alerts, all, boxed",
    ),
    (
        lambda e: e.modify(remove=["alertz"]),
        "there is no query alertz; there are alerts, all, boxed (did you mean alerts?)",
    ),
    (
        lambda e: e.modify(add={"alerts": "rules.parquet"}),
        "DUPLICATE_NAME: there is a query alerts already (to replace it, remove it in the same"
        " call; for more members give rows, an Arrow table or a pandas frame, not a path)",
    ),
    (
        lambda e: e.modify(add={"alerts": [(1, 2)]}),
        "BAD_PARAMETER: query alerts, key values: expected a dict of columns and values as row 1",
    ),
    (
        lambda e: e.modify(add={"alerts": [{"rule": None}]}),
        "BAD_VALUES: query alerts, key key: row 1 has no rule",
    ),
    (
        lambda e: e.modify(add={"all": "SELECT n FROM ticks"}),
        "there is a query all already (to replace it, remove it in the same call)",
    ),
    (
        lambda e: e.modify(add={"cheap": "SELECT n FROM ticks"}),
        "DUPLICATE_NAME: there is an output cheap, which reads filter_1 and not the query cheap",
    ),
]


@pytest.mark.parametrize(("call", "said"), CALLS)
def test_mistakes_lead_nobody_astray(
    call: Callable[[au.Engine], Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sparkless.make_engine(market()) as engine:
        with pytest.raises(au.AuroralError) as raised:
            call(engine)
        assert said in str(raised.value)
        if "did you" not in said:
            assert "did you" not in str(raised.value)
        assert sorted(engine.list_entities()["queries"]) == ["alerts", "all", "boxed"]


@pytest.mark.parametrize("train", [0, 1.5, "x"])
def test_a_train_is_a_number_of_tuples(train: Any) -> None:
    with pytest.raises(au.UsageError, match="BAD_OPTION: a train needs at least one tuple"):
        au.Engine(market(), train=train)


def test_an_output_may_have_the_name_of_the_query_it_reads() -> None:
    net = market()
    net.output("all", "all")
    net.check()
    net.query("cheap", "SELECT n FROM ticks")
    with pytest.raises(au.NetworkError, match="DUPLICATE_NAME: query cheap: there is an output"):
        net.check()
