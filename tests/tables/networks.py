"""Random networks of reads and updates, random tuples, and random ways to run them."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

import auroral as au
from auroral.network.arc import Arc

PAIR = "k int, v int"
TABLES = {"t": "k int, n int, label string", "u": "k int, n int"}
UPDATES = [
    "INSERT INTO t (k, n, label) VALUES (:k, :v, 'new') ON CONFLICT (k) DO UPDATE"
    " SET n = t.n + excluded.n, label = NULL",
    "INSERT INTO t VALUES (:k, :v, 'only')",
    "UPDATE t SET n = n + :v WHERE k = :k",
    "UPDATE t SET n = n * 1000000 WHERE k = :k",
    "DELETE FROM t WHERE k = :k AND n > :v",
    "UPDATE u SET n = coalesce(n, 0) - 1 WHERE k >= :k",
    "INSERT INTO u (k, n) VALUES (:k, :v) ON CONFLICT (k) DO UPDATE SET n = excluded.n",
    "INSERT INTO u (k, n) SELECT k, n FROM t WHERE k = :k ON CONFLICT (k) DO NOTHING",
]
READS = [
    ("SELECT n FROM t WHERE k = :k", "n"),
    ("SELECT k AS kk, n FROM t WHERE n >= :v ORDER BY n DESC LIMIT 2", "n"),
    ("SELECT max(n) AS n, count(*) AS c FROM t", "n"),
    ("SELECT label, n FROM t", "n"),
    ("SELECT n FROM u WHERE k <> :k OR :v IS NULL", "n"),
    ("SELECT t.n AS n FROM t JOIN u ON t.k = u.k WHERE t.k = :k", "n"),
]


@dataclass(frozen=True)
class Batch:
    """Rows that are enqueued together."""

    stream: str
    rows: tuple[tuple[Any, ...], ...]
    drain: bool


@dataclass(frozen=True)
class TableScenario:
    """A network, what arrives, and the first rows of its tables."""

    network: au.Network
    batches: tuple[Batch, ...]
    tables: dict[str, list[tuple[Any, ...]]]


def scenario(rng: Random, store: str | None = None, most: int = 6) -> TableScenario:
    """Boxes that use two tables, in any order and one behind another."""
    net = au.Network("tables")
    for name, schema in TABLES.items():
        net.table(name, schema, key=["k"], store=store)
    arcs = [net.stream(name, PAIR) for name in ("a", "b")]
    outputs: list[Arc] = []
    for n in range(rng.randint(1, most)):
        source = rng.choice(arcs[-4:])
        # Names decide on the order within a moment, so they must not follow that of making.
        name = f"{rng.choice('pqrst')}{n}"
        kind = rng.random()
        if kind < 0.4:
            arc = source.update(rng.choice(UPDATES), name=name, order=_order(rng), k="k", v="v + 1")
            arcs.append(arc)
        elif kind < 0.75:
            sql, value = rng.choice(READS)
            arc = source.read(sql, keep=["k"], name=name, order=_order(rng))
            arcs.append(arc.map(name=f"{name}m", keep=["k"], v=value))
        elif kind < 0.85:
            arc = source.filter(rng.choice(["k > 1", "v % 2 = 0", "v IS NOT NULL"]), name=name)
            arcs.append(arc)
        elif kind < 0.92:
            arc = net.union(source, rng.choice(arcs), name=name)
            arcs.append(arc)
        else:
            table = Arc(net, rng.choice(sorted(TABLES)))
            arc = source.join(table, "left.k = right.k AND left.v < 100", name=name)
        if rng.random() < 0.8:
            outputs.append(arc)
    for n, arc in enumerate(outputs or arcs[-1:]):
        net.output(f"o{n}", arc)
    keys, values = [0, 1, 2, 3, None], [-3, 0, 1, 5, 7, None]
    batches = [
        Batch(
            rng.choice("ab"),
            tuple((rng.choice(keys), rng.choice(values)) for _ in range(rng.randint(1, 5))),
            rng.random() < 0.3,
        )
        for _ in range(rng.randint(1, 6))
    ]
    first: dict[str, list[tuple[Any, ...]]] = {
        "t": [(k, rng.choice(values), "old") for k in rng.sample(range(4), rng.randint(0, 3))],
        "u": [(k, rng.choice(values)) for k in rng.sample(range(4), rng.randint(0, 3))],
    }
    return TableScenario(net, tuple(batches), first)


def _order(rng: Random) -> Any:
    return {"on": "v", "slack": rng.choice([0, 1, 2])} if rng.random() < 0.15 else None
