"""Queries of many shapes: what one more costs does not depend on how many there are."""

from __future__ import annotations

import itertools

import auroral as au
from auroral.engine import Engine
from tests.conformance import sparkless
from tests.effort import operations

from .market import batch, ticks

OPS = ("<", ">", "<=", ">=", "=", "<>")
SHAPES = [
    f"SELECT n FROM ticks WHERE n {one} 3 {joined} price {other} {literal} AND sym {third} 'B'"
    for one, joined, other, literal, third in itertools.product(
        OPS, ("AND", "OR"), OPS, ("5", "5.0"), OPS
    )
]


def having(engine: Engine, shapes: int) -> None:
    engine.modify(
        add={f"q{k}": au.Query(sql, results="count") for k, sql in enumerate(SHAPES[:shapes])}
    )
    engine.enqueue("ticks", batch(0, 30))
    engine.drain()


def test_one_more_query_looks_at_no_other() -> None:
    def effort(shapes: int) -> int:
        with sparkless.make_engine(ticks()) as engine:
            having(engine, shapes)
            sql = "SELECT n FROM ticks WHERE n > 7"
            for name in ("first", "second"):
                engine.modify(add={name: sql})
            return operations(lambda: engine.modify(add={"more": sql}))

    assert effort(800) < 1.2 * effort(20)


def test_what_is_read_follows_the_queries() -> None:
    """Fields are counted as queries come and go, in whatever order."""
    with sparkless.make_engine(ticks()) as engine:
        having(engine, 40)
        names = [f"q{k}" for k in range(40)]
        engine.modify(remove=names[1::2], add={"texts": "SELECT sym FROM ticks WHERE n = 31"})
        engine.modify(remove=names[::2])
        engine.enqueue("ticks", batch(30, 34))
        engine.drain()
        assert engine.dequeue("texts")["sym"].to_pylist() == ["B"]
        engine.modify(remove=["texts"], add={"prices": "SELECT price AS p FROM ticks"})
        engine.enqueue("ticks", batch(34, 36))
        engine.drain()
        assert engine.dequeue("prices")["p"].to_pylist() == [18.0, 5.0]
