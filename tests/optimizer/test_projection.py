"""Fields that nobody reads: found from the end of the flow, NULL in logs, there after a change."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import auroral as au
from auroral.engine.runtime.in_process import InProcessExecutor, InProcessPlainRunner
from auroral.network.check import CheckedNetwork, what_boxes_see
from auroral.optimizer import unread_fields
from auroral.scheduling.superboxes import Superbox
from auroral.spark.running.executor import Files
from auroral.spark.running.runner import StepResult
from tests.conformance.sparkless import make_engine

SCHEMA = "t bigint, k int, x bigint, s string"


def unread(net: au.Network, *fixed: str) -> dict[str, set[str]]:
    checked: CheckedNetwork = net.check()
    outputs = [output.from_ for output in net.outputs.values()]
    scope = what_boxes_see(checked.network, None)
    found = unread_fields(checked, [*outputs, *fixed], scope, {"f": ["t"]})
    return {arc: set(fields) for arc, fields in found.items() if "." not in arc}


def counts(arc: Any, name: str = "count", of: str = "x") -> Any:
    window = au.Window(size=4)
    return arc.aggregate(order=au.Order("t"), window=window, n=f"sum({of})", name=name)


def chain() -> tuple[au.Network, Any]:
    net = au.Network("n")
    ticks = net.stream("a", schema=SCHEMA, progress=au.Ordered("t"))
    return net, ticks.filter("k > 1", name="f")


def test_an_aggregate_needs_what_it_computes_and_what_orders_it() -> None:
    net, some = chain()
    net.output("o", counts(some))
    assert unread(net) == {"f": {"k", "s"}}


def test_maps_need_only_what_the_fields_that_are_read_are_made_of() -> None:
    net, some = chain()
    made = some.map(keep=("t", "k"), y="x + 1", z="length(s)", name="m")
    net.output("o", counts(made, of="y"))
    assert unread(net) == {"f": {"k", "s"}, "m": {"k", "z"}}


def test_unions_need_the_fields_at_the_same_places() -> None:
    net, some = chain()
    other = net.stream("b", schema="T bigint, K int, X bigint, S string", progress=au.Ordered("T"))
    up = other.map(keep="*", K="K + 1", name="up")
    net.output("o", counts(net.union(some, up, name="u")))
    assert unread(net) == {"f": {"k", "s"}, "u": {"k", "s"}, "up": {"K", "S"}}


@pytest.mark.parametrize("reason", ["output", "fixed", "late", "sort", "join", "function", "rest"])
def test_who_may_need_all_fields_gets_them(reason: str) -> None:
    net, some = chain()
    counted = counts(some)
    net.output("o", counted)
    fixed = ["f"] if reason == "fixed" else []
    if reason == "output":
        net.output("all", some)
    elif reason == "late":
        net.output("missed", counted.late)
    elif reason == "sort":
        net.output("more", counts(some.bsort(au.Order("t"), name="sorted"), "again"))
    elif reason == "join":
        right = net.stream("b", schema=SCHEMA, progress=au.Ordered("t"))
        orders: dict[str, Any] = {"left": au.Order("t"), "right": au.Order("t")}
        net.output("more", counts(some.join(right, within=1, name="j", **orders), "again"))
    elif reason == "function":
        net.function("odd", "tests.conformance.plain_functions:odd", returns="boolean")
        net.output("more", counts(some.filter("odd(x)", name="called"), "again"))
    elif reason == "rest":
        net.output("others", "f.rest")
        assert "f" in unread(net), "the rest is another arc"
        return
    assert "f" not in unread(net, *fixed)


def test_pairs_have_the_fields_that_are_read_behind_the_join() -> None:
    net, some = chain()
    right = net.stream("b", schema=SCHEMA, progress=au.Ordered("t"))
    orders: dict[str, Any] = {"left": au.Order("t"), "right": au.Order("t")}
    joined = some.join(right, "left.k = right.k", within=1, name="j", **orders)
    net.output("o", counts(joined, of="right_x"))
    assert unread(net) == {"j": {"k", "x", "s", "right_t", "right_k", "right_s"}}


class WatchedRunner(InProcessPlainRunner):
    """Shows what was written of an arc."""

    def __init__(self, checked: CheckedNetwork, seen: list[pa.Table]):
        super().__init__(checked)
        self._seen = seen

    def run(self, superbox: Superbox, train: Files, *, through_driver: bool) -> StepResult:
        result = super().run(superbox, train, through_driver=through_driver)
        self._seen += [table for arc, table in result.tables.items() if arc == "f"]
        return result


class WatchedExecutor(InProcessExecutor):
    """Runs steps in this process, and shows what they write."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[pa.Table] = []

    def plain(self, checked: CheckedNetwork, _directory: Path) -> WatchedRunner:
        return WatchedRunner(checked, self.seen)


def rows(first: int, last: int) -> list[dict[str, Any]]:
    rng = Random(first)
    return [{"t": n, "k": rng.randint(0, 3), "x": n, "s": f"s{n}"} for n in range(first, last)]


@pytest.mark.parametrize("optimized", [True, False])
def test_arcs_between_superboxes_have_null_where_nobody_reads(optimized: bool) -> None:
    net, some = chain()
    net.output("o", counts(some))
    net.output("p", counts(some, "again", of="x + 1"))
    net.engine = net.engine.model_copy(update={"optimize": optimized})
    executor = WatchedExecutor()
    seen = executor.seen
    with make_engine(net, executor=executor) as engine:
        engine.enqueue("a", rows(0, 40))
        engine.drain()
        written = pa.concat_tables(seen)
        assert written["s"].null_count == (written.num_rows if optimized else 0)
        assert written["x"].null_count == 0
        engine.modify(add={"all": {"from": "f"}})
        seen.clear()
        engine.enqueue("a", rows(40, 80))
        engine.finish()
        assert pa.concat_tables(seen)["s"].null_count == 0
        wanted = [row for row in rows(40, 80) if row["k"] > 1]
        assert engine.dequeue("all").to_pylist() == wanted
        totals = [row["n"] for row in engine.dequeue("o").to_pylist()]
    given = [*rows(0, 40), *rows(40, 80)]
    assert sum(totals) == sum(row["x"] for row in given if row["k"] > 1)


def test_who_looks_at_an_arc_sees_no_null_for_a_field_that_nobody_reads() -> None:
    net, some = chain()
    right = net.stream("b", schema=SCHEMA, progress=au.Ordered("t"))
    orders: dict[str, Any] = {"left": au.Order("t"), "right": au.Order("t")}
    net.output("o", counts(some))
    net.output("p", counts(some, "again"))
    joined = right.join(right, "left.k = right.k", within=1, name="j", **orders)
    net.output("q", counts(joined, "third", of="right_x"))
    with make_engine(net) as engine:
        engine.sample("f")
        engine.sample("j")
        for stream in "ab":
            engine.enqueue(stream, rows(0, 40))
        engine.drain()
        assert engine.sample("f")["s"].null_count == 0, "it is made of the stream"
        shown = engine.sample("j")
    assert shown.num_rows
    assert shown.column_names == ["_seq", "_at", "t", "right_t", "right_x"]
