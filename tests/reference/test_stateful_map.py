"""Maps with state: the paper's "Count 100", groups, failures, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest

import auroral as au
from auroral.errors import NetworkError
from auroral.network.json_schema import network_schema
from auroral.testing import run
from tests.network.test_json_schema import fits


class Count100:
    """Gives the number of reports at every hundredth [4 §3.1]."""

    returns = "sid int, n bigint"

    def init(self) -> int:
        return 0

    def step(self, count: int, row: dict[str, Any]) -> tuple[int, dict[str, Any] | None]:
        count += 1
        return count, {"sid": row["sid"], "n": count} if count % 100 == 0 else None


class Differences:
    """How much more each value is than the one before; a sentinel fails."""

    def init(self) -> dict[str, int]:
        return {}

    def step(self, state: dict[str, int], row: dict[str, Any]) -> Any:
        before = state.get("last")
        state["last"] = row["v"]
        if row["v"] < 0:
            raise ValueError("negative")
        return state, None if before is None else {"more": row["v"] - before}


def reports() -> tuple[au.Network, Any]:
    net = au.Network("soldiers")
    return net, net.stream("reports", "sid int, time bigint", progress=au.Ordered("time"))


def test_count_100() -> None:
    net, arc = reports()
    net.output("hundreds", arc.stateful_map(Count100, by=["sid"]))
    rows = [(time % 3, time) for time in range(650)]
    assert run(net, {"reports": rows})["hundreds"] == [
        {"sid": 0, "n": 100},
        {"sid": 1, "n": 100},
        {"sid": 2, "n": 100},
        {"sid": 0, "n": 200},
        {"sid": 1, "n": 200},
        {"sid": 2, "n": 200},
    ]
    net.output("all", arc.stateful_map(Count100))
    assert run(net, {"reports": rows})["all"] == [
        {"sid": time % 3, "n": time + 1} for time in range(99, 650, 100)
    ]


class OneListForAll:
    """Gives every group the same object as its first state."""

    returns = "n int"
    first: ClassVar[list[int]] = []

    def init(self) -> list[int]:
        return self.first

    def step(self, state: list[int], row: dict[str, Any]) -> tuple[list[int], dict[str, int]]:
        state.append(1)
        return state, {"n": len(state)}


def test_groups_share_no_state() -> None:
    net = au.Network("shared")
    s = net.stream("s", "k int")
    s.stateful_map(OneListForAll, by=("k",), name="m")
    for _ in range(2):
        out = run(net, {"s": [(1,), (2,), (1,), (2,)]})
        assert [row["n"] for row in out["m"]] == [1, 1, 2, 2]


def test_a_call_that_fails_leaves_the_state_as_it_was() -> None:
    net = au.Network("meters")
    arc = net.stream("s", "k string, v int")
    net.output("o", arc.stateful_map(Differences, by=["k"], returns={"more": "int"}, keep=["v"]))
    found = run(net, {"s": [("a", 5), ("b", 1), ("a", -1), ("a", 7), ("b", 4), ("a", 8)]})
    assert found["o"] == [{"v": 7, "more": 2}, {"v": 4, "more": 3}, {"v": 8, "more": 1}]
    (dead,) = found.dead_letters
    assert (dead.reason, dead.row) == ("ValueError: negative", '{"k": "a", "v": -1}')


def test_marks_of_kept_fields_pass() -> None:
    net, arc = reports()
    every = arc.stateful_map(Count100, keep=["time"], name="every")
    net.output("tens", every.aggregate(au.Order("time"), au.Window(size=300), n="count(*)"))
    rows = [(1, time) for time in range(650)]
    found = run(net, {"reports": rows}, hold=True)
    assert found["tens"] == [{"time": 0, "n": 3}, {"time": 300, "n": 3}]
    assert found.reference.mark("every", "time") == 649
    assert found.reference.mark("every", "n") is None


def test_a_file_and_the_builder_say_the_same(tmp_path: Path) -> None:
    net, arc = reports()
    arc.stateful_map(Count100, by=["sid"], returns="sid int, n bigint", name="every_100")
    net.save(tmp_path / "net.yaml")
    assert net.document()["boxes"]["every_100"] == {
        "box": "map",
        "input": "reports",
        "state": True,
        "udf": "tests.reference.test_stateful_map:Count100",
        "by": ["sid"],
        "returns": {"sid": "int", "n": "bigint"},
    }
    loaded = au.Network.load(tmp_path / "net.yaml")
    assert loaded == net
    assert str(loaded.check().arcs["every_100"].schema) == "sid int, n bigint"
    schema = network_schema()
    assert fits(net.document(), schema, schema)
    stateless = {**net.document()["boxes"]["every_100"], "state": False}
    assert not fits({**net.document(), "boxes": {"every_100": stateless}}, schema, schema)


def test_a_map_may_say_that_it_has_no_state() -> None:
    net, arc = reports()
    made = net.box("map", "plain", input=arc, state=False, keep="*")
    assert made.schema.names == ("sid", "time")


@pytest.mark.parametrize(
    ("keys", "code", "said"),
    [
        ({}, "MISSING_KEY", "udf"),
        ({"udf": "rules:Count"}, "MISSING_KEY", "add returns: {field: type}, or allow the import"),
        ({"udf": Count100, "compute": {"x": "1"}}, "UNKNOWN_KEY", "compute"),
        ({"udf": Count100, "by": ["who"]}, "UNKNOWN_FIELD", "who"),
        ({"udf": Count100, "keep": ["sid"]}, "DUPLICATE_FIELD", "sid is both kept and returned"),
        ({"udf": Differences}, "MISSING_KEY", "the fields that it returns are not known"),
        ({"udf": dict, "returns": "n int"}, "BAD_FUNCTION", "init, step missing"),
        ({"udf": "rules", "returns": "n int"}, "BAD_FUNCTION", "expected module:function"),
        ({"udf": Count100, "returns": "n nothing"}, "UNKNOWN_TYPE", "nothing"),
        ({"udf": Count100, "state": "yes"}, "BAD_PARAMETER", "state"),
    ],
)
def test_mistakes(keys: dict[str, Any], code: str, said: str) -> None:
    net, arc = reports()
    with pytest.raises(NetworkError) as raised:
        net.box("map", "every", **{"input": arc, "state": True, **keys})
    assert raised.value.code == code
    assert said in str(raised.value)
    assert "every" in str(raised.value)
