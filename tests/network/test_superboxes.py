"""Superboxes: what an instance means, what is refused, and that no parameter changes a template."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import auroral as au
from auroral.errors import NetworkError
from auroral.network.substitution import ParameterValue, substituted
from auroral.testing import Collector, run
from tests.conformance.sparkless import make_engine

NETWORK = """\
network: border
streams:
  reports: {schema: {sid: int, time: bigint, pos: int}}
superboxes:
  crowding:
    description: places where many are
    parameters: {limit: 30, least: {type: int, default: 3}, where: {type: field}}
    inputs: {in: {pos: int, time: bigint}}
    boxes:
      across: {box: filter, input: in, where: "${where} >= ${limit}"}
      crowd:
        {box: aggregate, input: across, order: {on: time, slack: 1}, window: {size: 2}, compute: {cnt: "count(*)"}}
      enough: {box: filter, input: crowd, where: "cnt >= ${least}"}
    outputs: {out: enough, few: enough.rest}
  doubled:
    parameters: {limit: 5}
    inputs: [in]
    boxes:
      one: {box: crowding, input: in, limit: "${limit}", where: pos}
      two: {box: map, input: one, keep: "*", compute: {more: "cnt + ${limit}"}}
    outputs: two
boxes:
  north: {box: crowding, input: reports, limit: 40, least: 1, where: pos, tags: [cold]}
  south: {box: doubled, input: reports}
  after: {box: filter, input: north, where: "cnt > 1"}
queries:
  counts: "SELECT cnt FROM north WHERE north.cnt > 1"
  low: "SELECT f.cnt FROM north.few AS f"
groups:
  all: [north, south, rest]
  rest: {members: [after], description: what comes after}
outputs:
  alerts: {from: south}
  few: {from: north.few}
  later: {from: after}
"""  # noqa: E501

WRITTEN_OUT = """\
network: border
streams:
  reports: {schema: {sid: int, time: bigint, pos: int}}
boxes:
  n_across: {box: filter, input: reports, where: "pos >= 40"}
  n_crowd:
    {box: aggregate, input: n_across, order: {on: time, slack: 1}, window: {size: 2}, compute: {cnt: "count(*)"}}
  n_enough: {box: filter, input: n_crowd, where: "cnt >= 1"}
  s_across: {box: filter, input: reports, where: "pos >= 5"}
  s_crowd:
    {box: aggregate, input: s_across, order: {on: time, slack: 1}, window: {size: 2}, compute: {cnt: "count(*)"}}
  s_enough: {box: filter, input: s_crowd, where: "cnt >= 3"}
  two: {box: map, input: s_enough, keep: "*", compute: {more: "cnt + 5"}}
  after: {box: filter, input: n_enough, where: "cnt > 1"}
queries:
  counts: "SELECT cnt FROM n_enough WHERE cnt > 1"
  low: "SELECT f.cnt FROM n_enough.rest AS f"
outputs:
  alerts: {from: two}
  few: {from: n_enough.rest}
  later: {from: after}
"""  # noqa: E501
ROWS = [(n % 5, n // 4, (n * 7) % 60) for n in range(300)]


def load(directory: Path, text: str = NETWORK) -> au.Network:
    path = directory / "net.yaml"
    path.write_text(text)
    return au.Network.load(path)


def changed(old: str, new: str) -> str:
    assert NETWORK.count(old) == 1, old
    return NETWORK.replace(old, new)


def mistake(directory: Path, text: str) -> NetworkError:
    with pytest.raises(NetworkError) as found:
        load(directory, text).check()
    return found.value


# ── meaning ──


def test_instances_give_what_their_boxes_written_out_give(tmp_path: Path) -> None:
    found = run(load(tmp_path), {"reports": ROWS})
    wanted = run(load(tmp_path, WRITTEN_OUT), {"reports": ROWS})
    assert dict(found) == dict(wanted)
    assert found["north"] == wanted["n_enough"] != []
    assert found["south/one/across.rest"] == wanted["s_across.rest"] != []


@pytest.mark.parametrize("train", [7, 1_000])
def test_an_engine_gives_the_same_over_a_restart(tmp_path: Path, train: int) -> None:
    wanted = run(load(tmp_path, WRITTEN_OUT), {"reports": ROWS}, hold=True)
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in wanted}
    for part in (ROWS[:130], ROWS[130:]):
        with make_engine(load(tmp_path), state=tmp_path / "state", train=train) as engine:
            engine.enqueue("reports", part)
            engine.drain()
            for name, rows in found.items():
                rows += engine.dequeue(name).to_pylist()
    assert found == dict(wanted)


def test_an_output_of_an_instance_can_have_a_sink(tmp_path: Path) -> None:
    collector = Collector()
    with make_engine(load(tmp_path), bind=[("north", collector)]) as engine:
        engine.enqueue("reports", ROWS)
        engine.drain()
    assert collector.rows == run(load(tmp_path), {"reports": ROWS}, hold=True)["north"] != []


def test_boxes_of_instances_are_seen_in_statistics_and_descriptions(tmp_path: Path) -> None:
    with make_engine(load(tmp_path)) as engine:
        boxes = engine.stats()["boxes"]
        instance, template = engine.describe("north"), engine.describe("crowding")
        group, names = engine.describe("rest"), engine.list_entities()
    assert {"north/across", "south/one/crowd", "south/two"} <= set(boxes)
    assert instance["kind"] == "instance"
    assert instance["limit"] == 40
    assert instance["boxes"] == ["north/across", "north/crowd", "north/enough"]
    assert instance["arcs"]["north.few"]["arc"] == "north/enough.rest"
    assert instance["tags"] == ["cold"]
    assert template["instances"] == ["north"]
    assert template["description"] == "places where many are"
    assert group["group"] == {"members": ["after"], "description": "what comes after"}
    assert names["superboxes"] == ["crowding", "doubled"]
    assert {"north", "north/across"} <= set(names["boxes"])


def test_python_builds_what_the_file_says(tmp_path: Path) -> None:
    text = """\
network: n
streams: {s: {schema: {pos: int}}}
superboxes:
  far: {parameters: {limit: 30}, inputs: [in], boxes: {b: {box: filter, input: in, where: "pos > ${limit}"}}, outputs: b}
boxes:
  north: {box: far, input: s, limit: 40}
  south: {box: filter, input: north, where: "pos < 60"}
outputs: {o: {from: south}}
"""  # noqa: E501
    net = au.Network("n")
    stream = net.stream("s", schema="pos int")
    body = {"b": {"box": "filter", "input": "in", "where": "pos > ${limit}"}}
    net.superbox("far", inputs=["in"], boxes=body, outputs="b", parameters={"limit": 30})
    north = net.box("far", "north", input=stream, limit=40)
    net.output("o", north.filter("pos < 60", name="south"))
    assert net == load(tmp_path, text)
    assert str(north.schema) == "pos int"
    with pytest.raises(NetworkError, match="BAD_PARAMETER"):
        net.box("far", "east", input=stream, limit="many")
    assert "east" not in net.instances
    assert str(net.box("far", input=stream)) == "far_2"


def test_files_keep_superboxes_compact(tmp_path: Path) -> None:
    net = load(tmp_path)
    for name in ("again.yaml", "again.json"):
        net.save(tmp_path / name)
        again = au.Network.load(tmp_path / name)
        assert again == net
        assert list(again.superboxes) == ["crowding", "doubled"]
        assert again.document()["boxes"]["north"]["limit"] == 40
        assert again.document() == net.document()


def test_an_input_may_pass_through(tmp_path: Path) -> None:
    text = """\
network: n
streams: {s: {schema: {pos: int}}}
superboxes:
  split: {inputs: [in], boxes: {b: {box: filter, input: in, where: "pos > 3"}}, outputs: {out: b, all: in}}
boxes:
  one: {box: split, input: s}
  two: {box: split, input: one.all}
outputs: {o: {from: two.all}, p: {from: two}}
"""  # noqa: E501
    assert run(load(tmp_path, text), {"s": [(2,), (5,)]}) == {
        "o": [{"pos": 2}, {"pos": 5}],
        "p": [{"pos": 5}],
    }
    loop = text.replace("one: {box: split, input: s}", "one: {box: split, input: two.all}")
    error = mistake(tmp_path, loop)
    assert error.code == "CYCLE"
    assert "circle" in error.message


def test_inputs_by_name_or_in_order(tmp_path: Path) -> None:
    text = """\
network: n
streams: {s: {schema: {pos: int}}, t: {schema: {pos: int}}}
superboxes:
  merged: {inputs: [a, b], boxes: {u: {box: union, inputs: [b, a]}}, outputs: u}
boxes:
  one: {box: merged, inputs: [s, t]}
  two: {box: merged, inputs: {b: t, a: s}}
outputs: {o: {from: one}, p: {from: two}}
"""
    plain = load(tmp_path, text).check().network
    assert plain.boxes["one/u"].sources() == plain.boxes["two/u"].sources() == ("t", "s")
    for wrong in ("inputs: [s]", "inputs: {a: s}", "inputs: {a: s, b: t, c: s}", "input: s"):
        error = mistake(tmp_path, text.replace("inputs: [s, t]", wrong))
        assert error.code in ("BAD_PARAMETER", "MISSING_KEY")
        assert "net.yaml:6, box one" in str(error.where)


# ── mistakes ──

MISTAKES = [
    ("limit: 40, least: 1", "limit: many", "BAD_PARAMETER", ":23, box north, key limit", "number"),
    ("limit: 40, least: 1", "least: 1.5", "BAD_PARAMETER", ":23, box north, key least", "whole"),
    ("limit: 40, least: 1", "limt: 40", "UNKNOWN_KEY", ":23, box north, key limt", "limit"),
    ("least: 1, where: pos", "least: 1", "MISSING_KEY", ":23, box north, key where", "no default"),
    ("north: {box: crowding, input: reports", "north: {box: crowdin, input: reports", "UNKNOWN_BOX",
     ":23, box north, key box", "did you mean crowding"),
    ("north: {box: crowding, input: reports", "north: {box: crowding, input: report", "UNKNOWN_ARC",
     ":23, box north, key input", "reports"),
    ("least: 1, where: pos", "least: 1, where: poss", "UNKNOWN_FIELD",
     "net.yaml:23, box north: NET:10, superbox crowding, box across, key where", "poss"),
    ("input: across, order", "input: acros, order", "UNKNOWN_ARC",
     "net.yaml:23, box north: NET:12, superbox crowding, box crowd, key input", "across"),
    ("cnt >= ${least}", "cnt >= ${lest}", "UNKNOWN_PARAMETER",
     ":13, superbox crowding, box enough", "least"),
    ("cnt >= ${least}", "cnt >= '${least}'", "BAD_PARAMETER",
     "box north: NET:13, superbox crowding, box enough, key where", "outside of quotes"),
    ("cnt >= ${least}", "cnt${least} > 1", "BAD_PARAMETER",
     "box north: NET:13, superbox crowding, box enough, key where", "joined"),
    ("cnt >= ${least}", "${where}(cnt) > 1", "BAD_PARAMETER",
     "box north: NET:13, superbox crowding, box enough, key where", "function"),
    ("input: crowd,", 'input: "${where}",', "BAD_PARAMETER",
     "box north: NET:13, superbox crowding, box enough, key input", "cannot stand here"),
    ("outputs: {out: enough, few: enough.rest}", "outputs: {out: enuf}", "UNKNOWN_ARC",
     ":14, superbox crowding, key outputs.out", "enough"),
    ("inputs: {in: {pos: int, time: bigint}}", "inputs: {in: {pos: int, at: bigint}}",
     "SCHEMA_MISMATCH", ":23, box north", "the field at bigint"),
    ('one: {box: crowding, input: in, limit: "${limit}", where: pos}',
     "one: {box: doubled, input: in}", "CYCLE", ":15, superbox doubled", "doubled → doubled"),
    ("limit: 30, least", "input: 30, least", "BAD_NAME", "superbox crowding", "such a key"),
    ("  doubled:", "  filter:", "DUPLICATE_NAME", "superbox filter", "kind of box"),
    ("few: {from: north.few}", "few: {from: north.fow}", "UNKNOWN_ARC", "output few", "north.few"),
    ("two: {box: map,", "two: {box: mapp,", "UNKNOWN_BOX", "superbox doubled, box two", "map"),
    ("rest: {members: [after]", "rest: {members: [all]", "CYCLE", "group", "all → rest → all"),
    ("all: [north, south, rest]", "all: [north, south, rset]", "UNKNOWN_BOX", "group all", "rest"),
    ("rest: {members: [after]", "rest: {member: [after]", "UNKNOWN_KEY", "group rest", "members"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "code", "place", "said"), MISTAKES)
def test_mistakes_say_where_they_stand(
    tmp_path: Path, old: str, new: str, code: str, place: str, said: str
) -> None:
    error = mistake(tmp_path, changed(old, new))
    assert error.code == code, error
    assert place.replace("NET", str(tmp_path / "net.yaml")) in str(error.where)
    assert said in str(error)


def test_nested_mistakes_say_all_places(tmp_path: Path) -> None:
    error = mistake(
        tmp_path, changed('limit: "${limit}", where: pos', 'limit: "${limit}", where: x')
    )
    path = tmp_path / "net.yaml"
    assert error.where == (
        f"{path}:24, box south: {path}:19, superbox doubled, box one:"
        f" {path}:10, superbox crowding, box across, key where"
    )


def test_a_template_that_nobody_uses_is_checked(tmp_path: Path) -> None:
    text = """\
network: n
streams: {s: {schema: {pos: int}}}
superboxes:
  far: {inputs: [in], boxes: {b: {box: filtre, input: in}}, outputs: b}
"""
    assert mistake(tmp_path, text).code == "UNKNOWN_BOX"


def test_names_that_become_too_long_are_refused() -> None:
    net = au.Network("n")
    stream = net.stream("s", schema="pos int")
    inner = {"box": "filter", "input": "in", "where": "pos > 1"}
    for level in range(3):
        net.superbox(f"t{level}", inputs=["in"], boxes={"b" * 90: inner}, outputs="b" * 90)
        inner = {"box": f"t{level}", "input": "in"}
    with pytest.raises(NetworkError, match="BAD_NAME"):
        net.box("t2", "north", input=stream)


# ── parameters are values ──


@given(st.text(), st.text())
@example("x' OR '1' = '1", "x")
@example("\\", "x")
@example("it's", "")
def test_any_text_is_one_literal(wanted: str, other: str) -> None:
    if any("\ud800" <= letter <= "\udfff" for letter in wanted + other):
        return
    net = au.Network("n")
    stream = net.stream("s", schema="name string")
    box = {"box": "filter", "input": "in", "where": "name = ${who} OR ${who} = name"}
    net.superbox("is", inputs=["in"], boxes={"b": box}, outputs="b", parameters={"who": "nobody"})
    net.output("o", net.box("is", "one", input=stream, who=wanted))
    found = run(net, {"s": [(wanted,), (other,)]})["o"]
    assert [row["name"] for row in found] == [name for name in (wanted, other) if name == wanted]


@given(st.integers(-(2**31), 2**31 - 1))
def test_any_number_is_one_literal(number: int) -> None:
    net = au.Network("n")
    stream = net.stream("s", schema="x bigint")
    box = {"box": "map", "input": "in", "compute": {"y": "x -${n}"}}
    net.superbox("less", inputs=["in"], boxes={"b": box}, outputs="b", parameters={"n": 1})
    net.output("o", net.box("less", "one", input=stream, n=number))
    assert run(net, {"s": [(7,)]})["o"] == [{"y": 7 - number}]


@pytest.mark.parametrize(
    ("declared", "found"),
    [
        ({"box": "bsort", "order": {"on": "${f}", "slack": "${n}"}}, {"on": "pos", "slack": 5}),
        (
            {"box": "bsort", "order": {"on": "a", "by": ["${f}", "b"]}},
            {"on": "a", "by": ["pos", "b"]},
        ),
    ],
)
def test_keys_that_are_no_expressions_take_the_value(declared: Any, found: Any) -> None:
    values = {"n": ParameterValue("int", 5), "f": ParameterValue("field", "pos")}
    assert substituted(declared, values, instance=False)["order"] == found


def test_a_window_takes_lengths_and_never_becomes_a_predicate() -> None:
    values = {
        "n": ParameterValue("int", 5),
        "long": ParameterValue("string", "5 minutes"),
        "odd": ParameterValue("string", "pos > 3"),
    }

    def advance(text: str) -> Any:
        window = {"advance": text}
        return substituted({"box": "aggregate", "window": window}, values, instance=False)["window"]

    assert advance("${n}") == {"advance": 5}
    assert advance("${n} minutes") == advance("${long}") == {"advance": "5 minutes"}
    assert advance("${odd}") == {"advance": "'pos > 3'"}, "text, not a predicate"
    assert advance("pos > ${n}") == {"advance": "pos > 5"}


def test_dollars_can_be_written() -> None:
    declared = {"box": "map", "compute": {"y": "concat('$${', ${n})"}}
    values = {"n": ParameterValue("int", 5)}
    assert substituted(declared, values, instance=False)["compute"] == {"y": "concat('${', 5)"}
