"""Aggregate queries from their text to their results, shared and as boxes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from auroral.continuous.sharing.aggregate_reading import ReadAggregate, read_shared_aggregate
from auroral.eddy.filters.index import Selection, Statistics, build, match
from auroral.eddy.lineage import Lineage
from auroral.eddy.panes.step import AggregateGroup, step
from auroral.eddy.vectors.evaluation import TupleColumns
from auroral.kernels.kernel import Context
from auroral.network.network import Network
from auroral.network.types import Schema
from auroral.progress.declaration import Delayed
from auroral.progress.lowwater import LowWater
from auroral.testing import run

from .pane_model import stored

FIELDS = "at timestamp_ntz, sym string, region int, price double"
SCHEMA = Schema.parse(FIELDS)
QUERIES = (
    "SELECT sym, count(*) AS n, avg(price) AS p FROM s [RANGE 4 s, SLIDE 2 s, WA at]"
    " WHERE region = 1 GROUP BY sym",
    "SELECT at AS w, sym, max(price) - min(price) AS spread FROM s [RANGE 6 s, SLIDE 2 s, WA at]"
    " WHERE price > 0.5 OR sym IS NULL GROUP BY sym HAVING count(*) > 1",
    "SELECT sym, sum(price) / count(price) AS m, at FROM s [RANGE 3 s, WA at]"
    " WHERE region IN (0, 2) AND NOT (price < 1) GROUP BY sym HAVING sum(price) < 5",
    "SELECT upper(sym) AS s, count_if(price * 2 > 3) AS n FROM s [RANGE 6 s, SLIDE 3 s, WA at]"
    " GROUP BY sym",
)
US = 1_000_000


@st.composite
def rows(draw: st.DrawFn) -> list[dict[str, Any]]:
    now, found = 0, []
    for _ in range(draw(st.integers(0, 25))):
        now += draw(st.integers(0, 2))
        found.append(
            {
                "at": np.datetime64((now - draw(st.integers(0, 5))) * US, "us").item(),
                "sym": draw(st.sampled_from(["a", "b", None])),
                "region": draw(st.integers(0, 2)),
                "price": draw(st.sampled_from([None, 0.25, 1.0, 1.5, 3.75])),
            }
        )
    return found


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_shared_queries_answer_as_boxes_do(data: st.DataObject) -> None:
    arrived = data.draw(rows())
    delay = data.draw(st.integers(0, 4))
    texts = data.draw(st.lists(st.sampled_from(QUERIES), min_size=1, max_size=4))
    train = data.draw(st.integers(1, 12))
    net = Network("test")
    net.stream("s", FIELDS, progress=Delayed("at", f"{delay} s"))
    for at, text in enumerate(texts):
        net.query(f"q{at}", text)
    expected = run(net, {"s": arrived})
    found = _shared(arrived, delay, texts, train)
    for at in range(len(texts)):
        assert found[at] == expected[f"q{at}"]


def _shared(
    arrived: list[dict[str, Any]], delay: int, texts: list[str], train: int
) -> list[list[dict[str, Any]]]:
    reads = [read_shared_aggregate(text, {"s": SCHEMA}, {"s": ["at"]}) for text in texts]
    ids = [10 + at for at in range(len(reads))]
    group = AggregateGroup(
        "aggregate",
        reads[0].shape,
        tuple({call: None for read in reads for call in read.calls}),
        {id: (read.size, read.advance) for id, read in zip(ids, reads, strict=True)},
    )
    whole = TupleColumns(pa.Table.from_pylist(arrived, SCHEMA.arrow()))
    lineage = _matched([read.clauses for read in reads], reads, ids, whole)
    seconds = np.asarray(whole.column("at").cast(pa.int64()), np.int64)
    mark = LowWater()
    if arrived:
        mark = mark.then(np.arange(len(arrived)), np.maximum.accumulate(seconds) - delay * US)
    table = whole.table
    for name, values in (
        ("_sub", [b""] * len(arrived)),
        ("_ts", seconds),
        ("_seq", range(len(arrived))),
    ):
        kind = pa.binary() if name == "_sub" else pa.int64()
        table = table.add_column(0, name, pa.array(list(values), kind))
    state: dict[str, pa.Table] = {}
    results, whose = [], []
    end = len(arrived)
    for first in range(0, end + 1, train):
        last = min(first + train, end + 1)
        context = Context(first, last, (), None, end)
        part = np.arange(first, min(last, end))
        made = step(
            group, table.take(pa.array(part)), lineage.take(part), state, mark.until(last), context
        )
        for name, changed in made.state.items():
            state[name] = stored(state.get(name), changed)
        results.append(made.results)
        whose.append(made.lineage)
    return [_results(read, id, group, results, whose) for read, id in zip(reads, ids, strict=True)]


def _results(
    read: ReadAggregate,
    id: int,
    group: AggregateGroup,
    tables: list[pa.Table],
    whose: list[Lineage],
) -> list[dict[str, Any]]:
    """What one query makes of the windows that are its own."""
    mine = []
    for table, lineage in zip(tables, whose, strict=True):
        offsets, ids = lineage.lists()
        rows = [r for r in range(lineage.rows) if id in ids[offsets[r] : offsets[r + 1]]]
        mine.append(table.take(pa.array(rows, pa.int64())))
    table = pa.concat_tables(mine).sort_by([("_seq", "ascending"), ("_sub", "ascending")])
    columns = TupleColumns(table)
    satisfied = _matched([read.having], [read], [id], columns).alive()
    fields = {item.name: columns.evaluate(item.attribute).values for item in read.items}
    assert pa.table(fields).schema.equals(read.schema().arrow())
    return list(pa.table(fields).filter(pa.array(satisfied)).to_pylist())


def _matched(
    clauses: list[Any], reads: list[ReadAggregate], ids: list[int], columns: TupleColumns
) -> Lineage:
    selections = [
        Selection("aggregate", own, np.array([id], np.int32), read.constants_table())
        for own, read, id in zip(clauses, reads, ids, strict=True)
    ]
    part = build(selections, Statistics())
    return match([part], {}, columns, ()).lineages["aggregate"]
