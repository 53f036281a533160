"""SteMs: as brute force has it, whatever the cuts, the encodings and the order of probes."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auroral.continuous.sharing.template import JoinShape
from auroral.eddy.stems import probe
from auroral.eddy.stems.step import JoinGroup, NewTuples, step_stems
from auroral.kernels.kernel import Appended, Context
from auroral.progress.lowwater import LowWater

from .nway_model import NEVER, JoinQuery, Model, Row
from .stem_driving import encoded, group_name, run

TYPES = {"k": pa.int64(), "w": pa.string(), "t": pa.int64(), "u": pa.int64(), "v": pa.int64()}
LESS: list[Callable[[Row], bool]] = [
    lambda row: True,
    lambda row: row["v"] < 5,
    lambda row: row["v"] >= 3,
    lambda row: row["v"] % 2 == 0,
    lambda row: row["k"] is not None and row["k"] > 0,
]
WHOLE: list[Callable[[Any], bool]] = [
    lambda parts: True,
    lambda parts: True,
    lambda parts: parts[0]["v"] <= parts[-1]["v"],
]


@st.composite
def arrivals(draw: st.DrawFn, most: int, on: st.SearchStrategy[Any]) -> list[Row]:
    """Tuples in order of arrival, sometimes several of one moment."""
    rows: list[Row] = []
    moment = 1
    for _ in range(draw(st.integers(0, most))):
        again = rows and draw(st.integers(0, 4)) == 0
        moment += 0 if again else draw(st.integers(1, 2))
        sub = rows[-1]["_sub"] + bytes([len(rows) % 3]) if again else b""
        rows.append(
            {
                "_seq": moment, "_ts": draw(st.integers(0, 50)), "_sub": sub,
                "k": draw(st.sampled_from([None, 0, 1, 1, 2])),
                "w": draw(st.sampled_from([None, "x", "x", "y"])),
                "t": draw(on), "u": draw(on), "v": draw(st.integers(0, 9)),
            }
        )  # fmt: skip
    return rows


@st.composite
def shapes(draw: st.DrawFn, kind: str, arcs: str, most: int) -> JoinShape:
    """A way of joining; often a chain of equalities, sometimes more or less than that."""
    count = draw(st.integers(2, most))
    chosen = tuple(draw(st.sampled_from(arcs)) for _ in range(count))
    equal = []
    for j in range(1, count):
        for _ in range(draw(st.sampled_from([0, 1, 1, 1, 2]))):
            name = draw(st.sampled_from(["k", "k", "w"]))
            other = draw(st.sampled_from([name, name, "v" if name == "k" else name]))
            equal.append((draw(st.integers(0, j - 1)), name, j, other))
    on = tuple(draw(st.sampled_from(["t", "t", "u"])) for _ in chosen) if kind == "range" else ()
    return JoinShape(chosen, tuple(dict.fromkeys(equal)), kind, on)  # type: ignore[arg-type]


@st.composite
def queries_of(
    draw: st.DrawFn, shape: JoinShape, first: int, versions: list[int]
) -> list[JoinQuery]:
    count = len(shape.arcs)
    made = []
    for number in range(draw(st.integers(1, 4))):
        since = draw(st.sampled_from(versions))
        until = draw(st.sampled_from([NEVER, NEVER, *versions]))
        made.append(
            JoinQuery(
                first + number,
                shape,
                tuple(draw(st.sampled_from(LESS)) for _ in shape.arcs),
                tuple(draw(st.integers(1, 5)) for _ in shape.arcs) if shape.kind == "rows" else (),
                tuple(
                    tuple(0 if i == j else draw(st.integers(0, 4)) for j in range(count))
                    for i in range(count)
                )
                if shape.kind == "range"
                else (),
                draw(st.sampled_from(WHOLE)),
                since,
                until if until > since else NEVER,
            )
        )
    return made


@st.composite
def marks(draw: st.DrawFn, last: int, ended: int | None) -> LowWater:
    moments = sorted(draw(st.sets(st.integers(0, last), max_size=6)))
    made = LowWater.of([(moment, draw(st.integers(-6, 9))) for moment in moments])
    return made if ended is None else made.end(ended)


def check(data: st.DataObject, kinds: list[str], arcs: str, most: int, sources: int) -> None:
    on = st.one_of(*[st.integers(-6, 9)] * 5, st.none())
    rows = {arc: data.draw(arrivals(most, on), label=arc) for arc in arcs}
    last = max((row["_seq"] for own in rows.values() for row in own), default=0) + 3
    versions = sorted({0, *data.draw(st.sets(st.integers(1, last), max_size=2))})
    queries: list[JoinQuery] = []
    for shape in dict.fromkeys(data.draw(shapes(kind, arcs, sources)) for kind in kinds):
        queries += data.draw(queries_of(shape, 100 * len(queries) + 7, versions))
    ended = data.draw(st.sampled_from([None, last - 1]))
    of = {(arc, name): data.draw(marks(last - 1, ended)) for arc in arcs for name in "tu"}
    cuts = sorted({*data.draw(st.sets(st.integers(1, last), max_size=5)), *versions[1:], last})
    ran = run(
        queries,
        rows,
        dict.fromkeys(arcs, TYPES),
        cuts,
        marks=of,
        ended=ended,
        encodings=data.draw(
            st.lists(st.sampled_from(["lists", "bits", "half", "reversed"]), min_size=1, max_size=3)
        ),
        parquet=data.draw(st.booleans()),
        cached_as=data.draw(st.sampled_from([None, object()])),
        dropped=data.draw(st.booleans()),
    )
    model = Model(queries, rows, of)
    expected = {shape: found for shape, found in model.results().items() if found}
    assert ran.results == expected
    assert ran.late == model.late()
    if versions == [0]:
        for cut, held in zip(cuts, ran.held, strict=True):
            assert held == model.held(cut, ended is not None and cut > ended)
    for held, stored in zip(ran.held, ran.stored, strict=True):
        for arc, count in held.items():
            assert count <= stored.get(f"stem:{arc}", 0) <= max(2 * count, 40)


@settings(max_examples=50)
@given(st.data())
def test_row_windows(data: st.DataObject) -> None:
    check(data, ["rows"] * data.draw(st.integers(1, 3)), "AB", 12, 3)


@settings(max_examples=50)
@given(st.data())
def test_bands(data: st.DataObject) -> None:
    check(data, ["range"] * data.draw(st.integers(1, 3)), "AB", 12, 3)


@settings(max_examples=40)
@given(st.data())
def test_many_sources_of_both_kinds(data: st.DataObject) -> None:
    check(data, ["rows", "range", "range"], "ABCD", 5, 4)


@settings(max_examples=20)
@given(st.data())
def test_the_order_of_probes_changes_nothing(data: st.DataObject) -> None:
    on = st.integers(0, 9)
    rows = {arc: data.draw(arrivals(6, on)) for arc in "ABC"}
    last = max((row["_seq"] for own in rows.values() for row in own), default=0) + 1
    shape = data.draw(shapes("range", "ABC", 4))
    queries = data.draw(queries_of(shape, 0, [0]))
    types = dict.fromkeys("ABC", TYPES)
    cuts = sorted({last, *data.draw(st.sets(st.integers(1, last), max_size=2))})
    expected = run(queries, rows, types, cuts).results
    places = range(len(shape.arcs))
    orders = {
        (group_name(shape), place): [
            tuple(data.draw(st.permutations([p for p in places if p != place])))
            for _ in range(data.draw(st.integers(0, 3)))
        ]
        for place in places
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(probe, "CHUNK", data.draw(st.integers(1, 3)))
        patch.setattr(probe, "_AT_ONCE", data.draw(st.sampled_from([2, 100])))
        patch.setattr(probe, "_TOO_MANY", data.draw(st.sampled_from([0, 1000])))
        assert run(queries, rows, types, cuts, orders=orders).results == expected


def test_state_is_appended_to_and_written_anew_when_half_of_it_is_dead() -> None:
    shape = JoinShape(("A", "B"), ((0, "k", 1, "k"),), "rows")
    query = JoinQuery(1, shape, (LESS[0], LESS[0]), (10, 10))
    rows = {
        arc: [
            {"_seq": 2 * n + at, "_ts": n, "_sub": b"", "k": n % 3, "w": "", "t": n, "u": n, "v": n}
            for n in range(60)
        ]
        for at, arc in enumerate("AB")
    }
    cuts = list(range(1, 122, 3))
    ran = run([query], rows, dict.fromkeys("AB", TYPES), cuts)
    assert ran.results == Model([query], rows).results()
    assert ran.held[-1] == {"A": 10, "B": 10}
    assert max(n for stored in ran.stored for n in stored.values()) <= 22
    assert ran.appends > 20


def test_a_join_that_nobody_needs_any_more_is_forgotten() -> None:
    shape = JoinShape(("A", "B"), ((0, "k", 1, "k"),), "rows")
    query = JoinQuery(1, shape, (LESS[0], LESS[0]), (9, 9), until=4)
    rows: dict[str, list[Row]] = {
        arc: [
            {"_seq": n, "_ts": n, "_sub": b"", "k": 1, "w": "", "t": n, "u": n, "v": n}
            for n in range(6)
        ]
        for arc in "AB"
    }
    again = JoinQuery(2, shape, (LESS[0], LESS[0]), (9, 9), since=5)
    ran = run([query, again], rows, dict.fromkeys("AB", TYPES), [2, 4, 5, 7])
    assert ran.results == Model([query, again], rows).results()
    assert list(ran.stored[2].values()) == [0, 0]


def test_combinations_are_found_once() -> None:
    """Of one key and no window to speak of, every combination of four sources."""
    arcs = ("A", "B", "A", "C")
    shape = JoinShape(arcs, tuple((n, "k", n + 1, "k") for n in range(3)), "rows")
    query = JoinQuery(1, shape, (LESS[0],) * 4, (99,) * 4)
    rows: dict[str, list[Row]] = {
        arc: [
            {"_seq": n, "_ts": n, "_sub": b"", "k": 1, "w": "", "t": n, "u": n, "v": n}
            for n in range(start, 9, 3)
        ]
        for start, arc in enumerate("ABC")
    }
    ran = run([query], rows, dict.fromkeys("ABC", TYPES), [3, 4, 8, 9])
    found = [tuple(row["parts"]) for row in ran.results[shape]]
    assert sorted(found) == sorted(
        itertools.product(*([row["v"] for row in rows[arc]] for arc in arcs))
    )


def test_what_is_dead_goes_with_the_next_write() -> None:
    shape = JoinShape(("A", "B"), ((0, "k", 1, "k"),), "range", ("t", "t"))
    query = JoinQuery(1, shape, (LESS[0], LESS[0]), (), ((0, 1), (1, 0)))
    rows: dict[str, list[Row]] = {
        arc: [
            {"_seq": n, "_ts": n, "_sub": b"", "k": n % 2, "w": "", "t": n, "u": n, "v": n}
            for n in range(40)
        ]
        for arc in "AB"
    }
    marks = {(arc, "t"): LowWater.of([(29, 25), (34, 35)]) for arc in "AB"}
    ran = run([query], rows, dict.fromkeys("AB", TYPES), [20, 30, 40], marks=marks)
    assert ran.results == Model([query], rows, marks).results()
    assert ran.held == [{"A": n, "B": n} for n in (20, 6, 6)]
    assert [stored["stem:A"] for stored in ran.stored] == [20, 6, 6]


def test_an_id_used_again_means_nothing_to_earlier_tuples() -> None:
    shape = JoinShape(("A", "B"), (), "rows")
    other = JoinShape(("A", "B"), ((0, "k", 1, "k"),), "rows")
    stays = JoinQuery(5, other, (LESS[0], LESS[0]), (9, 9))
    rows: dict[str, list[Row]] = {
        arc: [
            {"_seq": n, "_ts": n, "_sub": b"", "k": 1, "w": "", "t": n, "u": n, "v": n}
            for n in range(6)
        ]
        for arc in "AB"
    }
    queries = [
        stays,
        JoinQuery(1, shape, (LESS[0], LESS[0]), (9, 9), until=2),
        JoinQuery(1, shape, (LESS[0], LESS[0]), (9, 9), since=4),
    ]
    ran = run(queries, rows, dict.fromkeys("AB", TYPES), [2, 4, 6])
    assert ran.results == Model(queries, rows).results()


def test_many_candidates_are_looked_at_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    shape = JoinShape(("A", "B", "A"), ((0, "k", 1, "k"),), "rows")
    query = JoinQuery(1, shape, (LESS[0], LESS[1], LESS[2]), (9, 7, 5))
    rows: dict[str, list[Row]] = {
        arc: [
            {"_seq": n, "_ts": n, "_sub": b"", "k": n % 3, "w": "", "t": n, "u": n, "v": n % 10}
            for n in range(start, 30, 2)
        ]
        for start, arc in enumerate("AB")
    }
    expected = Model([query], rows).results()
    monkeypatch.setattr(probe, "_AT_ONCE", 3)
    assert run([query], rows, dict.fromkeys("AB", TYPES), [17, 30]).results == expected


def test_fields_of_later_queries_are_null_in_earlier_tuples() -> None:
    shape = JoinShape(("A", "B"), ((0, "k", 1, "k"),), "rows")
    state: dict[str, pa.Table] = {}
    found: list[Any] = []
    for step, fields in enumerate([("v",), ("v", "w")]):
        group = JoinGroup("g", shape, (fields, fields), (9, 9))
        columns = {"_seq": [2 * step], "_ts": [0], "k": [1], "v": [step], "w": [f"w{step}"]}
        arrived = {
            arc: NewTuples(pa.table(columns), {"g": encoded([[1]], [1], "bits")}, step)
            for arc in "AB"
        }
        context = Context(2 * step, 2 * step + 2)
        made = step_stems([group], arrived, state, {}, context, lambda g, t, of: of)
        for name, changed in made.state.items():
            assert isinstance(changed, Appended)
            state[name] = changed.table
        table = made.results["g"][0].drop_columns(["_ts"])
        found += table.sort_by([("_seq", "ascending"), ("_sub", "ascending")]).to_pylist()
    assert [(row["s0.v"], row.get("s0.w"), row["s1.v"], row.get("s1.w")) for row in found] == [
        (0, None, 0, None),
        (1, "w1", 0, None),
        (0, None, 1, "w1"),
        (1, "w1", 1, "w1"),
    ]
