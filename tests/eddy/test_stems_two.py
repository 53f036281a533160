"""A join of two by SteMs is the join box: the same tuples in the same order."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auroral import Network, Order, Punctuated
from auroral.continuous.sharing.template import JoinShape
from auroral.eddy.lineage import Lineage
from auroral.eddy.stems.step import JoinGroup, NewTuples, StemStep, step_stems
from auroral.kernels.join import JoinKernel
from auroral.kernels.kernel import Appended, Context, Emitted
from auroral.progress.lowwater import LowWater
from auroral.reference import Reference

from ..kernels import driving
from ..kernels.driving import KINDS, as_table, drive
from .nway_model import JoinQuery
from .stem_driving import encoded, run

Rows = list[dict[str, Any]]
ARCS = ("L", "R")


class Stems:
    """A join group of one query as a kernel, so that it can be driven like one."""

    def __init__(self, group: JoinGroup):
        self.group = group
        self.counts = dict.fromkeys(group.shape.arcs, 0)
        self.state: dict[str, pa.Table] = {}

    def tables(self) -> dict[str, pa.Schema]:
        return {}

    def step(self, inputs: Any, state: Any, context: Context) -> Emitted:
        arcs = self.group.shape.arcs
        arrived: dict[str, NewTuples] = {}
        marks = {}
        for arc, table, place in zip(arcs, inputs, self.group.places, strict=True):
            lineages = arrived[arc].lineages if arc in arrived else {}
            lineage = encoded([[1]] * table.num_rows, [1], "bits")
            arrived[arc] = NewTuples(table, {**lineages, place: lineage}, self.counts[arc])
        for arc, on, mark in zip(arcs, self.group.shape.on, context.marks, strict=False):
            marks[arc, on] = mark
        made = step_stems([self.group], arrived, self.state, marks, context, lambda g, t, of: of)
        for name, changed in made.state.items():
            table = changed.table if isinstance(changed, Appended) else changed
            if isinstance(changed, Appended) and name in self.state:
                table = pa.concat_tables([self.state[name], table])
            self.state[name] = table
        for arc, each in arrived.items():
            self.counts[arc] += each.table.num_rows
        return _emitted(made, self.group.name)

    def __reduce__(self) -> Any:
        return Stems, (self.group,)


def _emitted(made: StemStep, name: str) -> Emitted:
    emitted = Emitted(held=sum(made.held.values()))
    if name in made.results:
        table = made.results[name][0]
        names = [n.replace("s0.", "l_").replace("s1.", "r_") for n in table.column_names]
        emitted.ports[""] = table.rename_columns(names)
    for counts in made.late.values():
        for why, count in counts.items():
            emitted.late[why] = emitted.late.get(why, 0) + count
    return emitted


def draw_rows(data: st.DataObject, kind: pa.DataType) -> Rows:
    columns = {
        "f0": driving.ons(kind),
        "f2": st.sampled_from([None, "x", "x", "y"]),
        "f3": st.integers(0, 9),
    }
    rows: Rows = data.draw(driving.arrivals(columns, most=14))
    return rows


@settings(max_examples=60)
@given(st.data())
def test_as_the_join_kernel_does_it(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(list(KINDS)))
    kinds = [kind, data.draw(st.sampled_from([kind, kind, *KINDS]))]
    by_rows = data.draw(st.booleans())
    if not by_rows and kinds[0] != kinds[1]:
        whole = [pa.int32(), pa.int64(), pa.float64()]
        kinds = [data.draw(st.sampled_from(whole)) for _ in kinds]
    rows = [draw_rows(data, each) for each in kinds]
    last = driving.end_of(*rows)
    ended = data.draw(st.sampled_from([None, last - 1]))
    cuts = data.draw(driving.cuts(last))
    before, after = (float(data.draw(st.integers(0, 5))) for _ in (0, 1))
    if pa.float64() not in kinds:
        before, after = int(before), int(after)
    else:
        before, after = before / 2, after / 2
    sizes = (data.draw(st.integers(1, 5)), data.draw(st.integers(1, 5))) if by_rows else None
    keys: tuple[str, ...] = data.draw(st.sampled_from([("f2",), ("f2", "f3"), ("f3",), ()]))
    marks = [data.draw(driving.marks(each, last - 1, ended)) for each in kinds]
    types = [{"f0": each, "f2": pa.string(), "f3": pa.int64()} for each in kinds]
    kernel = JoinKernel(
        on=("f0", "f0"), by=((), ()), slack=(None, None), before=before, after=after, rows=sizes,
        keys=(keys, keys), fields=(("f3", "f0"), ("f3", "f2")),
        types=(tuple(types[0].items()), tuple(types[1].items())),
    )  # fmt: skip
    group = JoinGroup(
        "g",
        JoinShape(
            ARCS,
            tuple((0, key, 1, key) for key in keys),
            "rows" if by_rows else "range",
            () if by_rows else ("f0", "f0"),
        ),
        (("f3", "f0"), ("f3", "f2")),
        sizes or (),
        () if by_rows else ((0, after), (before, 0)),
    )
    tables = [as_table(own, kinds) for own, kinds in zip(rows, types, strict=True)]
    expected = drive(kernel, tables, marks, cuts, ended=ended)
    ran = drive(Stems(group), tables, marks, cuts, ended=ended)
    assert driving.plain(ran.ports.get("", [])) == driving.plain(expected.ports.get("", []))
    assert ran.late == expected.late
    if not (by_rows and keys):  # there the box also counts tuples whose key is NULL
        assert ran.held == expected.held


@settings(max_examples=30)
@given(st.data())
def test_as_the_reference_does_it(data: st.DataObject) -> None:
    itself, by_rows = data.draw(st.booleans()), data.draw(st.booleans())
    net = Network("n")
    progress = Punctuated("t")
    schema = "t bigint, k int, v int"
    left = net.stream("L", schema=schema, progress=progress)
    right = left if itself else net.stream("R", schema=schema, progress=progress)
    sizes = (data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4)))
    how: dict[str, Any] = {"rows": sizes}
    if not by_rows:
        how = {"range": sizes, "left": Order("t"), "right": Order("t")}
    net.output("o", left.join(right, "left.k = right.k", name="j", **how))
    reference = Reference(net)
    arcs = ("L", "L") if itself else ARCS
    rows: dict[str, Rows] = {arc: [] for arc in arcs}
    steps: dict[str, list[tuple[int, int]]] = {arc: [] for arc in arcs}
    for moment in range(data.draw(st.integers(0, 14))):
        arc = data.draw(st.sampled_from(arcs))
        t, k = data.draw(st.integers(0, 9)), data.draw(st.sampled_from([None, 1, 1, 2]))
        if data.draw(st.integers(0, 4)) == 0:
            reference.punctuate(arc, t)
            steps[arc].append((moment, t))
            continue
        reference.push(arc, (t, k, moment))
        row = {"_seq": moment, "_ts": 0, "_sub": b"", "t": t, "k": k, "v": moment}
        rows[arc].append(row)
    last = 16
    shape = JoinShape(
        arcs, ((0, "k", 1, "k"),), "rows" if by_rows else "range", () if by_rows else ("t", "t")
    )
    bands = () if by_rows else ((0, sizes[1]), (sizes[0], 0))
    query = JoinQuery(
        1, shape, (lambda row: True, lambda row: True), sizes if by_rows else (), bands
    )
    types = {"t": pa.int64(), "k": pa.int32(), "v": pa.int32()}
    ran = run(
        [query],
        rows,
        dict.fromkeys(arcs, types),
        data.draw(driving.cuts(last)),
        marks={(arc, "t"): LowWater.of(own) for arc, own in steps.items()},
    )
    expected = [[row["v"], row["right_v"]] for row in reference.collected("o")]
    assert [row["parts"] for row in ran.results.get(shape, [])] == expected


@pytest.mark.parametrize(
    ("left", "right", "met"),
    [
        (pa.array([1, 2], pa.int8()), pa.array([2, 3], pa.int64()), [(1, 0)]),
        (pa.array([1, 2]), pa.array([2.0, float("nan")]), [(1, 0)]),
        (pa.array([-0.0, float("nan")]), pa.array([0.0, float("nan")]), [(0, 0), (1, 1)]),
        (pa.array([0.5, None], pa.float32()), pa.array([0.5, None]), [(0, 0)]),
        (pa.array(["a", "b"]), pa.array(["b", "b"], pa.large_string()), [(1, 0), (1, 1)]),
        (pa.array([True, None]), pa.array([True, False]), [(0, 0)]),
        (
            pa.array([1, 2]).cast(pa.decimal128(20, 0)).cast(pa.decimal128(20, 2)),
            pa.array([2, 3]),
            [(1, 0)],
        ),
        (
            pa.array([5, 6]).cast(pa.timestamp("us")),
            pa.array([6, 5]).cast(pa.timestamp("us", "UTC")),
            [(0, 1), (1, 0)],
        ),
        (pa.array([b"\x00", b""]), pa.array([b"", b"\x00\x00"]), [(1, 0)]),
        (pa.nulls(2), pa.array([1, 2]), []),
    ],
)
def test_keys_of_all_types(left: pa.Array, right: pa.Array, met: list[tuple[int, int]]) -> None:
    equal = ((0, "k", 1, "k"), (0, "n", 1, "n"))
    for shape in (JoinShape(ARCS, equal, "rows"), JoinShape(ARCS, equal[:1], "rows")):
        for first in (0, 1):
            group = JoinGroup("g", shape, (("v",), ("v",)), (9, 9))
            state: dict[str, pa.Table] = {}
            found = []
            for step in (0, 1):
                arrived = {}
                for place, (arc, key) in enumerate(zip(ARCS, (left, right), strict=True)):
                    count = 2 if place == (first + step) % 2 else 0
                    columns: dict[str, Any] = {
                        "_seq": [4 * step + place + 1, 4 * step + place + 2],
                        "_ts": [0, 0],
                    }
                    columns |= {"k": key, "n": ["n", "n"], "v": [0, 1]}
                    lineage = {"g": encoded([[1]] * count, [1], "lists")}
                    seen = 2 * step if not count else 0
                    arrived[arc] = NewTuples(pa.table(columns).slice(0, count), lineage, seen)
                context = Context(4 * step, 4 * step + 4)
                made = step_stems([group], arrived, state, {}, context, lambda g, t, of: of)
                for name, changed in made.state.items():
                    state[name] = changed.table if isinstance(changed, Appended) else changed
                for table, _ in made.results.values():
                    found += [(row["s0.v"], row["s1.v"]) for row in table.to_pylist()]
            assert sorted(found) == met


def test_bands_on_floats_are_rounded_as_the_box_rounds() -> None:
    ons = [n * 0.1 for n in range(30)] + [n / 7 for n in range(20)]
    rows = [
        [
            {"_seq": 2 * n + side + 1, "_ts": 0, "_sub": b"", "f0": on, "f3": n}
            for n, on in enumerate(ons if side else ons[::-1])
        ]
        for side in (0, 1)
    ]
    types = {"f0": pa.float64(), "f3": pa.int64()}
    tables = [as_table(own, types) for own in rows]
    for before, after in ((0.1, 0.2), (0.3, 0.7), (1 / 7, 0.0)):
        kernel = JoinKernel(
            on=("f0", "f0"), by=((), ()), slack=(None, None), before=before, after=after, rows=None,
            keys=((), ()), fields=(("f3",), ("f3",)),
            types=(tuple(types.items()), tuple(types.items())),
        )  # fmt: skip
        shape = JoinShape(ARCS, (), "range", ("f0", "f0"))
        group = JoinGroup("g", shape, (("f3",), ("f3",)), (), ((0, after), (before, 0)))
        none = [LowWater(), LowWater()]
        expected = drive(kernel, tables, none, [50, 200]).ports[""]
        assert drive(Stems(group), tables, none, [50, 200]).ports[""] == expected


def test_nothing_arrives_nothing_happens() -> None:
    group = JoinGroup(
        "g", JoinShape(ARCS, (), "range", ("t", "t")), (("t",), ()), (), ((0, 1),) * 2
    )
    made = step_stems([group], {}, {}, {}, Context(0, 5), lambda g, t, of: Lineage.none(of.rows))
    assert made == StemStep(held={"L": 0, "R": 0})
