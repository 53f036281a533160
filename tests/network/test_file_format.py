"""The file format: what parses to what, in YAML, in JSON and in Python."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import auroral as au
from auroral import Network

from .documents import EVERY, SOLDIERS, written

REPORTS = "sid int, time bigint, pos int"
CARS = "vid int, seg int, at timestamp, speed double"
TOLLS = "vid int, at timestamp, toll decimal(8,2)"
SCHEMAS = {
    "cars": CARS,
    "tolls": TOLLS,
    "signals": "vid int, n bigint",
    "lanes.slow": CARS,
    "lanes.fast": CARS,
    "lanes.rest": CARS,
    "tagged": "vid int, seg int, at timestamp, speed double, far boolean",
    "slim": "vid int, at timestamp",
    "some": CARS,
    "sorted": CARS,
    "once": CARS,
    "once.late": CARS,
    "counted": "vid int, seg int, at timestamp, speed double, nth bigint",
    "means": "at timestamp, seg int, mean double, cars bigint",
    "means.late": CARS,
    "hundreds": "tup bigint, top double",
    "hundreds.late": CARS,
    "trips": "n bigint, vid int, least bigint",
    "trips.late": "vid int, n bigint",
    "paid": f"{CARS}, right_vid int, right_at timestamp, toll decimal(8,2)",
    "paid.left_late": CARS,
    "paid.right_late": TOLLS,
    "numbered": "vid int, seg int, at timestamp, speed double, right_vid int,"
    " right_at timestamp, toll decimal(8,2)",
    "ahead": "vid int, n bigint, right_vid int, right_n bigint",
    "ahead.left_late": "vid int, n bigint",
    "ahead.right_late": "vid int, n bigint",
    "known": f"{TOLLS}, right_vid int, balance double",
    "known.left_late": TOLLS,
    "nearby": "seg int, at timestamp, mean double, off double",
    "nearby.left_late": TOLLS,
    "nearby.right_late": CARS,
    "balance": "balance double, toll decimal(8,2)",
    "charge": "vid int, charged decimal(8,2)",
    "held": TOLLS,
    "totals": "vid int, balance double",
    "held.late": TOLLS,
    "late": CARS,
    "late.rest": CARS,
}


def load(directory: Path, text: str) -> Network:
    return Network.load(written(directory, text))


def test_the_example_gets_its_schemas(tmp_path: Path) -> None:
    checked = load(tmp_path, SOLDIERS).check()
    assert {name: str(arc.schema) for name, arc in checked.arcs.items()} == {
        "reports": REPORTS,
        "across": REPORTS,
        "across.rest": REPORTS,
        "crowd": "time bigint, cnt bigint",
        "crowd.late": REPORTS,
        "enough": "time bigint, cnt bigint",
        "enough.rest": "time bigint, cnt bigint",
    }
    assert {name: str(schema) for name, schema in checked.queries.items()} == {
        "hot": "sid int, pos int"
    }
    assert checked.order == ("across", "crowd", "enough")


def test_every_box_gets_its_schemas(tmp_path: Path) -> None:
    checked = load(tmp_path, EVERY).check()
    assert {name: str(arc.schema) for name, arc in checked.arcs.items()} == SCHEMAS
    assert str(checked.queries["fast"]) == "vid int, n bigint"


def test_every_kind_of_box_is_in_the_example() -> None:
    from auroral.network.box import BOXES

    assert not [kind for kind in BOXES if f"box: {kind}" not in EVERY]


def test_the_example_gives_its_values(tmp_path: Path) -> None:
    net = load(tmp_path, SOLDIERS)
    stream, output = net.streams["reports"], net.outputs["alerts"]
    assert stream.progress == au.Delayed("time", 5)
    assert stream.source == {"format": "kafka", "topic": "reports"}
    assert net.tables["accounts"].key == ("vid",)
    assert net.groups["border"].members == ("across", "crowd", "enough")
    assert (net.connection_points["recent"].on, net.connection_points["recent"].keep) == (
        "across",
        "2 hours",
    )
    assert output.from_ == "enough"
    assert output.qos is not None
    assert output.qos.latency == ((0, 1), (2, 1), (10, 0))
    assert output.qos.value is not None
    assert output.qos.value.on == "cnt"
    assert (net.engine.headroom, net.engine.scheduler) == (0.8, "auto")


def test_the_key_on_is_no_boolean(tmp_path: Path) -> None:
    text = SOLDIERS.replace("{on: time, slack: 1}", "{on: on, slack: 1}").replace("time:", "on:")
    net = load(tmp_path, text.replace("on: time", "on: on").replace("time <", "pos <"))
    assert net.check().schema_of("crowd").names == ("on", "cnt")


@pytest.mark.parametrize("text", [SOLDIERS, EVERY], ids=["soldiers", "every"])
@pytest.mark.parametrize("name", ["saved.yaml", "saved.json", "saved.JSON"])
def test_what_is_saved_loads_as_it_was(tmp_path: Path, text: str, name: str) -> None:
    net = load(tmp_path, text)
    net.save(tmp_path / name)
    again = Network.load(tmp_path / name)
    assert again == net
    assert again.document() == net.document()
    again.check()
    if name.lower().endswith("json"):
        json.loads((tmp_path / name).read_text(encoding="utf-8"))


def test_a_saved_file_leaves_defaults_out(tmp_path: Path) -> None:
    net = load(tmp_path, SOLDIERS)
    assert "engine" not in net.document()
    assert net.document()["boxes"]["across"] == {
        "box": "filter",
        "input": "reports",
        "where": "pos >= 30",
    }


def test_python_builds_what_the_file_says(tmp_path: Path) -> None:
    net = Network("soldiers")
    reports = net.stream(
        "reports",
        schema="sid int, time bigint, pos int",
        progress=au.Delayed("time", 5),
        source={"format": "kafka", "topic": "reports"},
    )
    net.table(
        "accounts", {"vid": "int", "balance": "double"}, key=["vid"], store="sqlite:///accounts.db"
    )
    across = reports.filter("pos >= 30", name="across")
    crowd = across.aggregate(
        order=au.Order("time", slack=1), window=au.Window(size=1), cnt="count(*)", name="crowd"
    )
    enough = crowd.filter("cnt >= 3", name="enough")
    net.query("hot", "SELECT sid, pos FROM reports WHERE pos > 90 AND time < 100")
    net.connection_point("recent", across, keep="2 hours", key="sid")
    net.group("border", [across, crowd, enough])
    qos = au.QoS.model_validate(
        {
            "latency": [(0, 1), (2, 1), (10, 0)],
            "loss": [(1, 1), (0, 0)],
            "value": {"on": "cnt", "graph": [(3, 0.2), (10, 1)]},
        }
    )
    net.output("alerts", enough, qos=qos, sink={"format": "kafka", "topic": "alerts"})
    assert net == load(tmp_path, SOLDIERS)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("delay: 5 ", "delay: 6 "),
        ("slow: speed < 40, fast: speed > 100", "fast: speed > 100, slow: speed < 40"),
        ("{vid: int, balance: double}", "{balance: double, vid: int}"),
        ("timeout: 2.5", "timeout: 2.6"),
        ("train: 500", "train: 501"),
        ("{rows: 1000}", "{rows: 1001}"),
    ],
)
def test_networks_that_differ_are_not_equal(tmp_path: Path, old: str, new: str) -> None:
    assert old in EVERY
    assert load(tmp_path, EVERY) != load(tmp_path, EVERY.replace(old, new))


def test_the_order_of_boxes_means_nothing(tmp_path: Path) -> None:
    net = load(tmp_path, SOLDIERS)
    document = net.document()
    document["boxes"] = dict(reversed(document["boxes"].items()))
    turned = Network.parse(document)
    assert turned == net
    assert turned.check().order == ("across", "crowd", "enough")


@pytest.mark.parametrize("name", ["across", "reports", "accounts", "recent", "border", "alerts2"])
def test_an_output_may_have_any_name_but_a_query_s(tmp_path: Path, name: str) -> None:
    net = load(tmp_path, SOLDIERS.replace("  alerts:", f"  {name}:"))
    net.check()
    assert list(net.outputs) == [name]
    with pytest.raises(au.NetworkError, match=r"DUPLICATE_NAME: .*net.yaml:\d+, query hot: "):
        load(tmp_path, SOLDIERS.replace("  alerts:", "  hot:")).check()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("\ufeff" + SOLDIERS, "byte order mark"),
        (SOLDIERS.replace("\n", "\r\n"), "CRLF"),
        ("%YAML 1.2\n---\n" + SOLDIERS + "...\n", "directive and end"),
        ("network: soldiers\n", "only a name"),
        ("network: soldiers\nstreams:\nboxes: ~\nengine:\n", "empty sections"),
    ],
)
def test_unusual_files_load(tmp_path: Path, text: str, wanted: str) -> None:
    path = tmp_path / "net.yaml"
    path.write_bytes(text.encode())
    assert Network.load(path).name == "soldiers", wanted


def test_anchors_and_merges_are_plain(tmp_path: Path) -> None:
    text = """\
network: n
streams:
  a: &stream {schema: {t: bigint}, progress: &progress {on: t, ordered: &yes true}}
  b: {<<: *stream, source: {format: rate, since: 2020-01-02}}
  c: {schema: {t: bigint}, progress: {on: t, punctuated: *yes}}
"""
    net = load(tmp_path, text)
    assert net.streams["a"].progress == net.streams["b"].progress == au.Ordered("t")
    assert net.streams["b"].source == {"format": "rate", "since": "2020-01-02"}
    net.save(tmp_path / "again.yaml")
    assert Network.load(tmp_path / "again.yaml") == net


def test_json_escapes_are_json(tmp_path: Path) -> None:
    document = {"network": "n", "streams": {"s": {"schema": {"größe 😀": "int"}}}}
    path = tmp_path / "net.json"
    path.write_text(json.dumps(document, indent="\t"), encoding="utf-8")
    assert Network.load(path).streams["s"].schema_.names == ("größe 😀",)
