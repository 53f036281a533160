"""Connection points and views as they are declared, and the names of points as arcs."""

from __future__ import annotations

from typing import Any

import pytest

import auroral as au
from auroral.errors import NetworkError
from auroral.network.point_names import live_arc, point_arcs


def declared(**sections: Any) -> au.Network:
    return au.Network.parse(
        {
            "network": "border",
            "streams": {"reports": {"schema": {"sid": "int", "pos": "int"}}},
            "boxes": {"across": {"box": "filter", "input": "reports", "where": "pos >= 30"}},
            **sections,
        }
    )


@pytest.mark.parametrize(
    "keep", ["2 hours", "all", {"rows": 5}, {"time": "1 h"}, {"time": "1 h", "rows": 5}]
)
def test_history_is_kept_by_time_by_rows_or_both(keep: Any) -> None:
    net = declared(connection_points={"recent": {"on": "across", "keep": keep, "key": "sid"}})
    net.check()
    assert net.document()["connection_points"]["recent"]["keep"] == keep


def test_a_point_may_stand_for_a_stored_data_set() -> None:
    point = {"store": "parquet:prices/", "schema": {"sym": "string"}, "key": "sym"}
    net = declared(connection_points={"prices": point})
    assert net.connection_points["prices"].dangling
    assert str(net.check().arcs["prices"].schema) == "sym string"


@pytest.mark.parametrize(
    ("point", "code", "said"),
    [
        ({"on": "across"}, "MISSING_KEY", "keep"),
        ({"keep": "1 h"}, "MISSING_KEY", "on"),
        ({"on": "across", "keep": {}}, "MISSING_KEY", "time, rows or both"),
        ({"on": "across", "keep": "0 s"}, "BAD_DURATION", "some time"),
        ({"on": "across", "keep": {"time": "soon"}}, "BAD_DURATION", "soon"),
        ({"on": "across", "keep": "1 h", "schema": "a int"}, "BAD_PARAMETER", "schema"),
        ({"on": "nowhere", "keep": "1 h"}, "UNKNOWN_ARC", "nowhere"),
        ({"on": "across", "keep": "1 h", "key": "x"}, "UNKNOWN_FIELD", "x"),
        ({"store": "parquet:p", "schema": "a int"}, "MISSING_KEY", "key"),
        ({"store": "parquet:p", "key": "a"}, "MISSING_KEY", "schema"),
        ({"store": "parquet:p", "schema": "a int", "key": "b"}, "UNKNOWN_FIELD", "b"),
        ({"store": "ftp:p", "schema": "a int", "key": "a"}, "BAD_STORE", "ftp:p"),
        (
            {"store": "csv:p", "schema": "a int", "key": "a", "keep": "1 h"},
            "BAD_PARAMETER",
            "keep",
        ),
    ],
)
def test_mistakes_of_points(point: Any, code: str, said: str) -> None:
    with pytest.raises(NetworkError, match=said) as raised:
        declared(connection_points={"recent": point}).check()
    assert raised.value.code == code
    assert "connection point recent" in str(raised.value)


@pytest.mark.parametrize(
    ("view", "code", "said"),
    [
        ({"from": "nowhere"}, "UNKNOWN_ARC", "nowhere"),
        ({"from": "across", "materialize": "full"}, "MISSING_KEY", "keep"),
        ({"from": "across", "materialize": "none", "keep": "1 h"}, "BAD_PARAMETER", "keep"),
        ({"from": "across", "materialize": "half"}, "BAD_PARAMETER", "half"),
    ],
)
def test_mistakes_of_views(view: Any, code: str, said: str) -> None:
    with pytest.raises(NetworkError, match=said) as raised:
        declared(views={"crowds": view}).check()
    assert raised.value.code == code


def test_a_view_is_materialized_as_far_as_it_keeps_something() -> None:
    net = declared(views={"a": {"from": "across"}, "b": {"from": "across", "keep": "1 h"}})
    assert [view.materialized for view in net.views.values()] == ["none", "full"]


@pytest.mark.parametrize("size", ["lots", "0 MB", ""])
def test_a_size_is_some_bytes(size: str) -> None:
    with pytest.raises(NetworkError, match="expected some bytes"):
        declared(engine={"view_memory": size})


def test_the_name_of_a_point_is_the_arc_it_is_on() -> None:
    net = au.Network("border")
    reports = net.stream("reports", "sid int, pos int")
    recent = net.connection_point("recent", reports, keep="1 h")
    far = recent.filter("pos > 90", name="far")
    net.output("all", recent)
    net.output("far", far)
    net.query("hot", "SELECT recent.sid FROM recent WHERE pos > 3")
    checked = net.check()
    assert checked.network.boxes["far"].sources() == ("reports",)
    assert checked.network.outputs["all"].from_ == "reports"
    assert str(checked.queries["hot"]) == "sid int"
    assert "recent" not in checked.arcs, "it is the same arc"
    assert net.document()["boxes"]["far"]["input"] == "recent", "as it was written"
    assert live_arc(net, "recent") == live_arc(net, "reports") == "reports"
    assert str(recent.schema) == "sid int, pos int"


def test_points_that_name_each_other_are_refused() -> None:
    points = {"a": {"on": "b", "keep": "1 h"}, "b": {"on": "a", "keep": "1 h"}}
    with pytest.raises(NetworkError, match="name each other"):
        point_arcs(declared(connection_points=points))


def test_a_point_has_a_name_of_its_own() -> None:
    with pytest.raises(NetworkError, match="is taken"):
        declared(connection_points={"across": {"on": "reports", "keep": "1 h"}})
    with pytest.raises(NetworkError, match="is taken"):
        declared(views={"across": {"from": "reports"}})
