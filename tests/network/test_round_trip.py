"""Laws of any network: saved and loaded it is the same, in YAML and in JSON."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auroral import Network
from auroral.network.types import Field, Schema, Type

names = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,5}", fullmatch=True)
# Words that YAML could take for something else, and text that tries its quoting.
words = """
on off yes no null ~ true 1 1e5 0x1F 1_000 2020-01-01 ' " % @ ` !x &a *a | > { [ << = ? - größe 😀
""".split()  # noqa: SIM905
words += ["", " ", "- a", "a: b", "a #b", "a ", "\n", "a\nb\n", "\t", "\u2028", "\x85", "\ufeff"]
awkward = st.sampled_from([*words, "\x7f"])
text = awkward | st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**62), 2**62),
    st.floats(allow_nan=False, allow_infinity=False),
    text,
)
options = st.dictionaries(
    text,
    st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
        max_leaves=5,
    ),
    max_size=3,
)
field_names = text.filter(lambda name: name and "`" not in name)
field_names = field_names.filter(
    lambda n: n.lower() not in ("a", "t", "_at", "_seq", "_sub", "_ts")
)
types = st.recursive(
    st.sampled_from(["int", "bigint", "string", "double", "timestamp", "decimal(10,2)"]),
    lambda inner: (
        st.builds("array<{}>".format, inner)
        | st.builds("map<string,{}>".format, inner)
        | st.builds("struct<x:{},`y z`:{}>".format, inner, inner)
    ),
    max_leaves=3,
)


@st.composite
def schemas(draw: st.DrawFn) -> dict[str, str]:
    fields = draw(st.dictionaries(field_names, types, max_size=3))
    distinct = {name.lower(): (name, type) for name, type in fields.items()}
    return {"a": "int", "t": "bigint", **dict(distinct.values())}


lengths = st.integers(1, 9)
numbers = st.integers(0, 5)


@st.composite
def boxes(draw: st.DrawFn, arc: str) -> dict[str, Any]:
    order = {"on": "t", "slack": draw(numbers), "by": draw(st.sampled_from([[], ["a"]]))}
    kind = draw(st.sampled_from(["filter", "routes", "map", "bsort", "aggregate", "join", "union"]))
    if kind == "filter":
        return {"box": "filter", "input": arc, "where": f"a > {draw(numbers)}"}
    if kind == "routes":
        routes = draw(st.dictionaries(names.filter(lambda n: n != "rest"), numbers, min_size=1))
        predicates = {name: f"a >\n {number}" for name, number in routes.items()}
        return {"box": "filter", "input": arc, "routes": predicates}
    if kind == "map":
        literal = draw(text).replace("\\", "").replace("'", "")
        return {
            "box": "map",
            "input": arc,
            "keep": "*",
            "compute": {"a": "a + 1", "m": f"'{literal}'"},
        }
    if kind == "bsort":
        return {"box": "bsort", "input": arc, "order": order}
    if kind == "aggregate":
        window = {"size": draw(lengths), "advance": draw(lengths), "timeout": draw(lengths)}
        compute = {"a2": "sum(a)", draw(st.sampled_from(["n", "on", "größe"])): "count(*)"}
        return {"box": kind, "input": arc, "order": order, "window": window, "compute": compute}
    if kind == "join":
        sides = {"left": {"on": "t"}, "right": order, "within": draw(numbers)}
        return {"box": "join", "inputs": [arc, arc], "on": "left.a = right.a", **sides}
    return {"box": "union", "inputs": [arc, arc]}


sources = options.map(lambda spec: {**spec, "format": "delta"})


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    taken = draw(st.lists(names, min_size=3, max_size=7, unique=True))
    stream, query, point, *named = taken
    progress = st.sampled_from([None, {"on": "t", "ordered": True}, {"on": "t", "delay": 2.5}])
    declared = {"schema": draw(schemas()), "progress": draw(progress), "source": draw(sources)}
    document: dict[str, Any] = {"network": draw(names), "streams": {stream: declared}}
    document["boxes"] = {name: draw(boxes(stream)) for name in named}
    document["queries"] = {query: f"SELECT a, '{draw(numbers)}' AS b\nFROM {stream}"}
    keep = draw(st.sampled_from(["1 h", {"rows": 7}]))
    document["connection_points"] = {point: {"on": stream, "keep": keep}}
    document["groups"] = {draw(names): named}
    qos = {"latency": [[0, 1], [draw(lengths), 0.5]]}
    output = draw(names.filter(lambda name: name != query))
    sink = {**draw(options), "format": "kafka"}
    document["outputs"] = {output: {"from": stream, "qos": qos, "sink": sink}}
    document["engine"] = {"headroom": draw(st.floats(0.01, 1)), "train": draw(lengths)}
    return document


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return tmp_path_factory.mktemp("networks")


@settings(max_examples=150)
@given(document=documents())
def test_saved_and_loaded_it_is_the_same(directory: Any, document: dict[str, Any]) -> None:
    network = Network.parse(document)
    arcs = network.check().arcs
    for name in ("net.yaml", "net.json"):
        network.save(directory / name)
        again = Network.load(directory / name)
        assert again == network
        assert again.document() == network.document()
        assert {n: arc.schema for n, arc in again.check().arcs.items()} == {
            n: arc.schema for n, arc in arcs.items()
        }


@settings(max_examples=100)
@given(st.dictionaries(field_names.map(str.lower), types, max_size=4))
def test_a_schema_reads_as_it_is_written(fields: dict[str, str]) -> None:
    schema = Schema(tuple(Field(name, Type.parse(type)) for name, type in fields.items()))
    assert Schema.parse(schema.declaration()) == schema
    assert Schema.parse(str(schema)) == schema
