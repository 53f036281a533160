"""Networks built in Python: arcs as handles, names made up, mistakes refused at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

import auroral as au
from auroral import AuroralError, Network, NetworkError
from auroral.boxes import Filter
from auroral.network.arc import Arc


@pytest.fixture
def net() -> Network:
    return Network("soldiers")


@pytest.fixture
def reports(net: Network) -> Arc:
    schema = "sid int, time bigint, pos int"
    return net.stream("reports", schema=schema, progress=au.Ordered("time"))


def test_the_example_reads_as_in_the_manual(net: Network, reports: Arc) -> None:
    crowd = reports.filter("pos >= 30").aggregate(
        order=au.Order("time", slack=1), window=au.Window(size=1), cnt="count(*)"
    )
    qos = au.QoS(latency=[(0, 1), (2, 1), (10, 0)])
    alerts = net.output("alerts", crowd.filter("cnt >= 3"), qos=qos)
    assert list(net.boxes) == ["filter_1", "aggregate_1", "filter_2"]
    assert str(alerts) == "filter_2"
    assert str(alerts.schema) == "time bigint, cnt bigint"
    assert net.outputs["alerts"].qos == qos
    net.check()


def test_every_box_is_a_method(net: Network, reports: Arc) -> None:
    accounts = net.table("accounts", "sid int, balance double", store="sqlite:///a.db")
    positions = net.table("positions", "sid int, at bigint, n bigint", key=["sid"])
    on_time = au.Order("time")
    assert str(accounts.schema) == "sid int, balance double"
    made = {
        "filter": reports.filter(routes={"far": "pos > 9", "near": "pos < 3"}).port("far"),
        "map": reports.map(keep=["sid"], twice="pos * 2"),
        "union": reports.union(reports.filter("pos > 1")),
        "bsort": reports.bsort(au.Order("time", slack=2)),
        "join": reports.join(
            reports, "left.sid = right.sid", left=on_time, right=on_time, within=5
        ),
        "table": reports.join(accounts, on="left.sid = right.sid"),
        "resample": reports.resample(reports, left=on_time, right=on_time, within=1, n="count(*)"),
        "read": reports.read("SELECT balance FROM accounts WHERE sid = :sid"),
        "update": reports.update("DELETE FROM accounts WHERE sid = :sid", sid="sid"),
        "latch": reports.latch(positions, by=["sid"], at="max(time)", n="count(*)"),
        "wait_for": reports.wait_for(reports, "held.sid = signal.sid", timeout=3),
        "late": reports.aggregate(on_time, au.Window(size=5), n="count(*)").late,
        "rest": reports.filter("pos > 2").rest,
    }
    fields = {name: ", ".join(arc.schema.names) for name, arc in made.items()}
    assert fields == {
        "filter": "sid, time, pos",
        "map": "sid, twice",
        "union": "sid, time, pos",
        "bsort": "sid, time, pos",
        "join": "sid, time, pos, right_sid, right_time, right_pos",
        "table": "sid, time, pos, right_sid, balance",
        "resample": "time, n",
        "read": "balance",
        "update": "sid",
        "latch": "sid, at, n",
        "wait_for": "sid, time, pos",
        "late": "sid, time, pos",
        "rest": "sid, time, pos",
    }


def test_union_takes_arcs_and_names(net: Network, reports: Arc) -> None:
    high = reports.filter("pos > 9", name="high")
    assert str(net.union(high, "high.rest", reports, name="all")) == "all"
    assert net.boxes["all"].sources() == ("high", "high.rest", "reports")


def test_names_made_up_are_free(net: Network, reports: Arc) -> None:
    net.stream("filter_1", "a int")
    assert str(reports.filter("pos > 1")) == "filter_2"
    assert str(reports.filter("pos > 1")) == "filter_3"


def test_an_arc_of_another_network_is_refused(net: Network, reports: Arc) -> None:
    other = Network("other").stream("reports", "sid int, time bigint, pos int")
    order = au.Order("time")
    attempts: list[Callable[[], object]] = [
        lambda: net.union(reports, other),
        lambda: reports.union(other),
        lambda: reports.join(other, left=order, right=order, within=1),
        lambda: net.output("o", other),
        lambda: net.connection_point("c", other, keep="1 h"),
        lambda: net.box("filter", input=other, where="pos > 1"),
        lambda: net.group("g", [other]),
    ]
    for attempt in attempts:
        with pytest.raises(
            NetworkError, match=r"belongs to the network other, not to soldiers"
        ) as e:
            attempt()
        assert e.value.code == "FOREIGN_ARC"
    assert not net.boxes
    assert not net.outputs


def test_a_refused_box_leaves_no_trace(net: Network, reports: Arc) -> None:
    with pytest.raises(NetworkError, match=r"box filter_1, key where: there is no field poz"):
        reports.filter("poz > 1")
    assert not net.boxes
    reports.filter("pos > 1", name="good")
    with pytest.raises(NetworkError, match=r"there are good, good.rest, reports"):
        net.box("filter", "bad", input="god", where="true")
    assert list(net.boxes) == ["good"]


def test_an_input_without_a_name_is_not_connected(net: Network, reports: Arc) -> None:
    with pytest.raises(NetworkError, match=r"an input is not connected; there are reports"):
        net.box("union", "both", inputs=[reports.name, ""])


def test_a_missing_port_lists_what_exists(reports: Arc) -> None:
    with pytest.raises(NetworkError, match=r"there is no arc reports\.late; there are reports"):
        _ = reports.late


@pytest.mark.parametrize(
    ("make", "code", "message"),
    [
        (lambda: au.Order("time", slak=1), "UNKNOWN_KEY", "did you mean slack"),
        (lambda: au.Order("time", slack=-1), "BAD_PARAMETER", "expected at least 0, found -1"),
        (lambda: au.Order(slack=1), "MISSING_KEY", "the key on is missing"),
        (lambda: au.Window(size=[]), "BAD_PARAMETER", "expected a number or text"),
        (lambda: au.Window(size=math.nan), "BAD_PARAMETER", "finite number"),
        (lambda: au.Window(timeout=0), "BAD_WINDOW", "more than 0 seconds"),
        (lambda: au.QoS.model_validate({"latencyy": []}), "BAD_QOS", "latencyy"),
        (lambda: au.QoS(latency=[(0, 1)]), "BAD_QOS", "two points"),
        (lambda: au.QoS(latency=[(0, "a"), (1, 0)]), "BAD_QOS", "latency"),
        (lambda: Network("2 many"), "BAD_NAME", "cannot name a network"),
        (lambda: Network("n").query("q" * 101, "SELECT"), "BAD_NAME", "qqq cannot name"),
        (lambda: Network("n").stream("s", "a it"), "UNKNOWN_TYPE", "stream s, key schema"),
        (
            lambda: Network("n").stream("s", "a int", progress=cast(Any, 5)),
            "BAD_PARAMETER",
            "expected keys",
        ),
        (lambda: Network("n").output("o", cast(Any, 5)), "BAD_PARAMETER", "expected text, found 5"),
        (lambda: Network("n").box("sort"), "UNKNOWN_BOX", "did you mean bsort"),
    ],
)
def test_mistakes_are_our_errors(make: Any, code: str, message: str) -> None:
    with pytest.raises(AuroralError) as raised:
        make()
    assert raised.value.code == code
    assert message in str(raised.value)


def test_what_a_file_cannot_say_is_not_saved(net: Network, reports: Arc, tmp_path: Path) -> None:
    @au.function("int")
    def inner(pos: Any) -> Any:
        return pos

    reports.map(x=inner)
    with pytest.raises(NetworkError, match=r"box map_1: the function .*inner cannot be named") as e:
        net.save(tmp_path / "net.yaml")
    assert e.value.code == "CANNOT_SAVE"
    assert not (tmp_path / "net.yaml").exists()


def test_building_stays_quick(reports: Arc, monkeypatch: pytest.MonkeyPatch) -> None:
    # Each box is checked with what feeds it, not with all the boxes there are.
    calls: list[str] = []
    original = Filter.ports

    def counted(box: Filter, inputs: Any, scope: Any) -> Any:
        calls.append(str(box.where))
        return original(box, inputs, scope)

    monkeypatch.setattr(Filter, "ports", counted)
    for number in range(50):
        reports.filter(f"pos > {number}")
    assert len(calls) == 50
