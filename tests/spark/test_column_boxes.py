"""Boxes that remember nothing, on whole columns: which ones, and that they give the same."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from auroral import Network
from auroral.network.check import CheckedNetwork
from auroral.scheduling.superboxes import Superbox, superboxes
from auroral.shedding.choosing import droppers
from auroral.shedding.drops import Drop, DropInterval
from auroral.spark.plans.column_boxes import columns_of_superbox
from auroral.spark.running.column_boxes import ColumnBoxes
from auroral.spark.running.column_runner import ColumnJob, column_task
from auroral.storage.segment import encode, read_file, write_file
from auroral.testing import run

ROWS = [(k, v) for k in (None, 0, 1, 2) for v in (None, -3, 0, 7, 12)]


def built(net: Network, *outputs: str) -> tuple[CheckedNetwork, Superbox, ColumnBoxes | None]:
    checked = net.check()
    (superbox,) = superboxes(checked, outputs)
    return checked, superbox, columns_of_superbox(checked, superbox)


def arrived() -> pa.Table:
    """The rows as a log has them."""
    moments = pa.array(range(len(ROWS)), pa.int64())
    k, v = zip(*ROWS, strict=True)
    return pa.table(
        {
            "_seq": moments,
            "_ts": moments,
            "k": pa.array(k, pa.int32()),
            "v": pa.array(v, pa.int32()),
        }
    )


def routed() -> Network:
    """Routes, a map over one of them, and a union that one moment reaches by two ways."""
    net = Network("routed")
    net.stream("s", "k int, v int")
    net.box("filter", "f", input="s", routes={"high": "v > 5", "some": "k = 1 OR v < 0"})
    net.box("map", "m", input="f.high", keep=("k",), compute={"v": "v * 2 - k"})
    net.box("union", "u", inputs=("s", "m", "f.some"))
    for arc in ("f.rest", "m", "u"):
        net.output(arc.replace(".", "_"), arc)
    return net


DROPS = (Drop("f", "s", 0.4, 5, ()), Drop("f", "s", 1.0, 0, (), DropInterval("v", 7.0, 9.0)))


@pytest.mark.parametrize("drops", [(), DROPS], ids=["all", "shed"])
@pytest.mark.parametrize("tasks", [1, 3])
def test_tasks_write_what_the_reference_gives(
    tasks: int, drops: tuple[Drop, ...], tmp_path: Path
) -> None:
    """What drop boxes leave of it, if there are some."""
    checked, superbox, boxes = built(routed(), "f.rest", "m", "u")
    assert boxes is not None
    table, files = arrived(), []
    for start in range(0, table.num_rows, 8):
        files.append(str(tmp_path / f"{start}.parquet"))
        write_file(Path(files[-1]), encode(table.slice(start, 8)), sync=False)
    targets = {arc: str(tmp_path / arc) for arc in superbox.terminals}
    for target in targets.values():
        Path(target).mkdir()
    job = tmp_path / "job"
    ColumnJob({"s": files}, targets, {"s": drops}).write(job)
    fields = {arc: checked.arcs[arc].schema.arrow() for arc in superbox.terminals}
    hidden = [pa.field("_seq", pa.int64()), pa.field("_ts", pa.int64())]
    schemas = {arc: pa.schema([*hidden, *own]) for arc, own in fields.items()}
    work = column_task(boxes, schemas, (), str(job), tasks)
    batches = [pa.record_batch([pa.array([number])], ["id"]) for number in range(tasks)]
    told = [json.loads(note[0][0].as_py()) for b in batches for note in work(iter([b]))]
    kept = (droppers(table, drops) < 0).tolist()
    assert sum(note["read"]["s"] for note in told) == sum(kept)
    gone = sum(sum(by.values()) for note in told for by in note["dropped"].values())
    assert gone == len(ROWS) - sum(kept)
    assert bool(gone) is bool(drops)
    expected = run(routed(), {"s": [row for row, k in zip(ROWS, kept, strict=True) if k]})
    for arc in superbox.terminals:
        parts = [read_file(str(path)) for path in sorted(Path(targets[arc]).iterdir())]
        made = pa.concat_tables(parts)
        keys = ["_seq", *(["_sub"] if "_sub" in made.column_names else [])]
        made = made.sort_by([(key, "ascending") for key in keys]).select(["k", "v"])
        assert made.to_pylist() == expected[arc.replace(".", "_")], arc


@pytest.mark.parametrize(
    "where",
    [
        "v % 2 = 0",
        "k IN (1, 2) AND NOT v < 0",
        "coalesce(v, k) >= CASE WHEN k > 1 THEN 2 ELSE 0 END",
    ],
)
def test_plain_predicates_are_computed_on_columns(where: str) -> None:
    net = Network("plain")
    net.stream("s", "k int, v int")
    net.box("filter", "f", input="s", where=where)
    assert built(net, "f")[2] is not None


@pytest.mark.parametrize(
    ("where", "why"),
    [
        ("CAST(t AS int) > 3", "a text may be no number"),
        ("t RLIKE 'a+'", "computed tuple by tuple"),
        ("CAST(t AS timestamp) > timestamp '2024-01-01 00:00:00'", "Spark may raise"),
    ],
)
def test_what_may_fail_for_a_tuple_stays_with_spark(where: str, why: str) -> None:
    net = Network("spark")
    net.stream("s", "t string")
    net.box("filter", "f", input="s", where=where)
    assert built(net, "f")[2] is None, why


def test_only_the_fields_that_are_needed_are_read() -> None:
    net = Network("few")
    net.stream("s", "a int, b int, c int")
    net.box("filter", "f", input="s", where="a > 1")
    net.box("map", "m", input="f", keep=("b",))
    boxes = built(net, "m")[2]
    assert boxes is not None
    assert boxes.reads["s"].names == ["a", "b"]
