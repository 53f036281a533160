"""Data of the continuous queries: random streams, random predicates, rules, and what must match.

Streams are those of [5 §3.2.5, §5]; whatever is counted is counted again by numpy.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

FIELDS = tuple("abcde")
SCHEMA = "index bigint, a int, b int, c int, d int, e int"
TICKS = "sym string, price double, id bigint, v double"
STOCKS = "symbol string, price double"
ARTICLES = "symbol string, body string"
SYMBOLS = 20_000
IDS = 100_000
_DOMAIN = 100
_RANGE = 1_000
_STEPS = 4
"""Values are multiples of a quarter: exact, and some are equal."""
_SLICE = 1 << 18
"""So many tuples are counted at a time: their bits fit into a cache."""
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}


@dataclass(frozen=True)
class Predicate:
    """`field op constant`."""

    field: str
    op: str
    constant: int

    @property
    def sql(self) -> str:
        return f"{self.field} {self.op} {self.constant}"


Conjunction = tuple[Predicate, ...]
"""The predicates of one query; none: every tuple."""
Queries = Literal["each", "merged", "by hand"]
"""What a system is given: each query by itself, so that it may come and go; one statement that
holds them all; or numpy does the work by hand and the system only carries data."""


def random_queries(count: int, seed: int = 5) -> list[Conjunction]:
    """Queries with a predicate on each field by the toss of a coin [5 §3.2.8]."""
    random = np.random.default_rng(seed)
    has = random.random((count, len(FIELDS))) < 0.5
    ops = random.integers(0, len(_OPERATORS), has.shape)
    constants = random.integers(0, _DOMAIN, has.shape)
    names = list(_OPERATORS)
    return [
        tuple(
            Predicate(field, names[ops[query, at]], int(constants[query, at]))
            for at, field in enumerate(FIELDS)
            if has[query, at]
        )
        for query in range(count)
    ]


def condition(query: Conjunction) -> str:
    """The predicates as SQL."""
    return " and ".join(predicate.sql for predicate in query) or "true"


def select(query: Conjunction, source: str = "S") -> str:
    """The query as SQL."""
    where = f" where {condition(query)}" if query else ""
    return f"select index from {source}{where}"


def uniform(rows: int, seed: int, first: int = 0) -> pa.Table:
    """Tuples of S: a number, and five integers uniform in [0, 100)."""
    random = np.random.default_rng(seed)
    columns = {"index": np.arange(first, first + rows)}
    columns |= {name: random.integers(0, _DOMAIN, rows, dtype=np.int32) for name in FIELDS}
    return pa.table(columns)


def uniform_trains(trains: int, rows: int, seed: int = 17) -> list[pa.Table]:
    """Trains of S, one after the other."""
    return [uniform(rows, seed + number, number * rows) for number in range(trains)]


def count_matches(tables: Sequence[pa.Table], queries: Sequence[Conjunction]) -> list[int]:
    """How many tuples satisfy each query, counted by numpy; a table may occur many times."""
    totals = np.zeros(len(queries), dtype=np.int64)
    times = Counter(map(id, tables))
    for table in {id(table): table for table in tables}.values():
        for start in range(0, table.num_rows, _SLICE):
            totals += times[id(table)] * _count_in(table.slice(start, _SLICE), queries)
    return [int(total) for total in totals]


def _count_in(table: pa.Table, queries: Sequence[Conjunction]) -> np.ndarray:
    """A bit for each tuple that satisfies a predicate, and queries are ANDs of them."""
    columns = {name: table[name].to_numpy() for name in FIELDS}
    every = _packed(np.ones(table.num_rows, dtype=bool))
    known: dict[Predicate, np.ndarray] = {}
    found = np.zeros(len(queries), dtype=np.int64)
    for number, query in enumerate(queries):
        bits = every
        for predicate in query:
            if predicate not in known:
                compare = _OPERATORS[predicate.op]
                satisfied = compare(columns[predicate.field], predicate.constant)
                known[predicate] = _packed(satisfied)
            bits = bits & known[predicate]
        found[number] = np.bitwise_count(bits).sum(dtype=np.int64)
    return found


def _packed(flags: np.ndarray) -> np.ndarray:
    """Flags as bits of words."""
    bits = np.packbits(flags)
    return np.pad(bits, (0, -len(bits) % 8)).view(np.uint64)


# ── alerts ──


def ticks(rows: int, seed: int, symbols: int = SYMBOLS, ids: int = IDS) -> pa.Table:
    """What the rules of alerts are about."""
    random = np.random.default_rng(seed)
    symbol = random.integers(0, symbols, rows)
    price = _quarters(random, 0, _RANGE, rows)
    id_ = random.integers(0, ids, rows)
    columns = {"sym": symbol_names(symbols).take(pa.array(symbol)), "price": price}
    return pa.table(columns | {"id": id_, "v": _quarters(random, 0, _RANGE, rows)})


def price_rules(count: int, symbols: int = SYMBOLS, seed: int = 3) -> pa.Table:
    """`sym = :sym AND price > :limit`; of all of them about half a one fires per tuple."""
    random = np.random.default_rng(seed)
    rare = _RANGE * symbols / count
    limit = _quarters(random, max(_RANGE - rare, 0), _RANGE, count)
    columns = {"rule": np.arange(count), "sym": _spread(symbol_names(symbols), count)}
    return pa.table(columns | {"limit": limit})


def range_rules(count: int, ids: int = IDS, seed: int = 4) -> pa.Table:
    """`id = :id AND v BETWEEN :low AND :high`; about half a one fires per tuple."""
    random = np.random.default_rng(seed)
    width = min(_RANGE * ids / count / 2, _RANGE)
    low = _quarters(random, 0, max(_RANGE - width, 1), count)
    rule = np.arange(count)
    return pa.table({"rule": rule, "id": rule % ids, "low": low, "high": low + width})


def symbol_names(count: int) -> pa.Array:
    """Symbols as exchanges have them, here all of one length."""
    return pa.array([f"SYM{number:05d}" for number in range(count)])


def fired(table: pa.Table, prices: pa.Table, ranges: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """How often each rule fires, counted by numpy: of prices, and of ranges."""
    names = prices["sym"].combine_chunks()
    symbols = names.unique()
    # One number per (symbol, price), in the order of rules: all values are exact.
    side = 2 * _RANGE
    rule_key = _places(names, symbols) * side + prices["limit"].to_numpy()
    order = np.argsort(rule_key, kind="stable")
    symbol = _places(table["sym"].combine_chunks(), symbols)
    known = symbol >= 0
    first = np.searchsorted(rule_key[order], symbol[known] * side, "left")
    last = np.searchsorted(
        rule_key[order], symbol[known] * side + table["price"].to_numpy()[known], "left"
    )
    by_price = np.bincount(order[_spans(first, last)], minlength=len(order))
    id_order = np.argsort(ranges["id"].to_numpy(), kind="stable")
    sorted_ids = ranges["id"].to_numpy()[id_order]
    ids, values = table["id"].to_numpy(), table["v"].to_numpy()
    first, last = (np.searchsorted(sorted_ids, ids, side) for side in ("left", "right"))
    rule, value = id_order[_spans(first, last)], np.repeat(values, last - first)
    within = (ranges["low"].to_numpy()[rule] <= value) & (value <= ranges["high"].to_numpy()[rule])
    return by_price, np.bincount(rule[within], minlength=len(id_order))


def _quarters(random: np.random.Generator, low: float, high: float, count: int) -> np.ndarray:
    return random.integers(int(low * _STEPS), int(high * _STEPS), count) / _STEPS


def _spread(values: pa.Array, count: int) -> pa.Array:
    return values.take(pa.array(np.arange(count) % len(values)))


def _places(values: pa.Array, among: pa.Array) -> np.ndarray:
    found = pc.index_in(values, among)
    return np.asarray(pc.fill_null(found, -1).cast(pa.int64()))


def _spans(first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """All indices from each `first` to before its `last`."""
    lengths = last - first
    starts = np.repeat(first - np.concatenate(([0], np.cumsum(lengths)[:-1])), lengths)
    return starts + np.arange(lengths.sum())


# ── stocks and articles ──


def stocks(count: int, update: int) -> pa.Table:
    """Quotes of so many stocks, prices in (0, 100]; every update has symbols of its own."""
    random = np.random.default_rng(1_000 + update)
    names = [f"U{update}.{number}" for number in range(count)]
    return pa.table({"symbol": names, "price": 100.0 - random.random(count) * 100})


def articles(count: int, update: int, per_stock: int = 1) -> pa.Table:
    """Articles of 200 to 1,000 bytes, so many about each stock."""
    random = np.random.default_rng(2_000 + update)
    text = "the quick brown fox jumps over the lazy dog " * 24
    total = count * per_stock
    starts, lengths = random.integers(0, 40, total), random.integers(200, 1_000, total)
    bodies = [text[at : at + length] for at, length in zip(starts, lengths, strict=True)]
    return pa.table({"symbol": [f"U{update}.{n % count}" for n in range(total)], "body": bodies})


def thresholds(count: int, seed: int = 9) -> list[float]:
    """Constants of `price > x`, uniform in [0, 100); one of them selects everything."""
    random = np.random.default_rng(seed)
    return [0.0, *(float(x) for x in random.random(count - 1) * 100)]


def count_joined(quotes: pa.Table, limits: Sequence[float], per_stock: int = 1) -> int:
    """Results of all queries together, counted by numpy."""
    prices = quotes["price"].to_numpy()
    return per_stock * sum(int((prices > x).sum()) for x in limits)
