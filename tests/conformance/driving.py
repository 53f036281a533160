"""Driving an engine through a scenario, as often as it dies, and comparing query by query."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from auroral import Family
from auroral.engine import Engine

from .alone import Model
from .running import Crash, Faults, plain
from .shared import Action, Feed, Look, Modify, Row, Scenario

MakeEngine = Callable[..., AbstractContextManager[Engine]]


@dataclass(frozen=True)
class Manner:
    """How an engine goes through a scenario."""

    train: int | None = None
    crashes: frozenset[int] = frozenset()
    background: bool = False
    drains: float = 0.2
    """How often it is drained between actions."""


def manner(rng: Random) -> Manner:
    """Some way of running."""
    crashing = rng.random() < 0.45
    crashes = frozenset(rng.sample(range(90), rng.choice([1, 2, 4]))) if crashing else frozenset()
    return Manner(
        rng.choice([1, 2, 3, 5, 8, 20, None]),
        crashes,
        not crashing and rng.random() < 0.15,
        rng.choice([0, 0.1, 0.3, 1]),
    )


class Drive:
    """An engine and the model side by side; the model is fed once, however often it dies."""

    def __init__(
        self,
        make_engine: MakeEngine,
        scenario: Scenario,
        manner: Manner,
        rng: Random,
        model: Model | None = None,
    ) -> None:
        self._make_engine, self._scenario, self._manner = make_engine, scenario, manner
        self._rng = rng
        self._network = scenario.network()
        self._model = model or Model(scenario)
        for name, query in scenario.queries.items():
            self._model.add(name, query)
        self._faults = Faults(manner.crashes)
        self._done = 0
        self._taken: dict[str, list[Any]] = {}
        """By query (of a family, the family): the rows it gave, or the `u` of a tuple."""
        self.starts = 0

    def go(self, state: Path) -> None:
        """Run to the end."""
        while True:
            with contextlib.suppress(Crash):
                self._attempt(state)
                return

    def _attempt(self, state: Path) -> None:
        manner = self._manner
        self.starts += 1
        with self._make_engine(
            self._network,
            state=state,
            train=manner.train,
            background=manner.background,
            fault=self._faults,
        ) as engine:
            self._begin(engine)
            actions = self._scenario.actions
            while self._done < len(actions):
                self._act(engine, actions[self._done])
                if self._rng.random() < manner.drains:
                    engine.drain()
            engine.drain()
            if not engine.ended:
                self._compare(engine)
            if self._scenario.ends:
                engine.finish()
                self._model.end()
                self._compare(engine)

    def _begin(self, engine: Engine) -> None:
        """What is done first after every start."""

    def _act(self, engine: Engine, action: Action) -> None:
        match action:
            case Feed(stream, rows):
                if engine.position(stream) != self._done:
                    engine.enqueue(stream, rows, position=self._done)
                for row in rows:
                    self._model.feed(stream, row)
            case Modify(add, remove):
                if self.starts == 1 or not self._changed(engine, action):
                    engine.modify(add={n: _given(q) for n, q in add.items()}, remove=remove)
                self._forget(action)
                self._model.modify(action)
            case Look(name, together):
                self._faults.armed = False
                if together:
                    self._take_together(engine, name)
                elif name in self._model.alone:
                    self._take(engine, name)
                self._faults.armed = True
        self._done += 1

    def _changed(self, engine: Engine, change: Modify) -> bool:
        """Whether a modification that an engine died in came true: all of it or nothing."""
        texts = {name: held["sql"] for name, held in engine.stats()["queries"].items()}
        both = [name for name in change.add if name in change.remove]
        if both:
            return all(texts.get(name) == change.add[name].sql for name in both)
        there = set(texts)
        there |= set(engine.matches()["query"].to_pylist())
        wanted = set()
        for name, given in change.add.items():
            rows = given if isinstance(given, list) else getattr(given, "values", None)
            wanted |= {name} if rows is None else {f"{name}[{row['rule']}]" for row in rows}
        signs = [name in there for name in wanted] + [name not in there for name in change.remove]
        assert all(signs) or not any(signs), (change, there)
        return all(signs)

    def _forget(self, change: Modify) -> None:
        for name in change.remove:
            self._taken.pop(name, None)
            family, _, key = name.partition("[")
            held = self._taken.get(family, [])
            gone = [entry for entry in held if key and entry[0] == name]
            self._taken[family] = [entry for entry in held if entry not in gone]

    # ── results ──

    def _take(self, engine: Engine, name: str) -> None:
        held = self._taken.setdefault(name, [])
        held += self._by_query(name, engine.dequeue(name).to_pylist())

    def _by_query(self, name: str, rows: list[Row]) -> list[tuple[str, Row]]:
        """Rows with the query that gave each: of a family, the member."""
        if not isinstance(self._model.alone[name][0].query, Family):
            return [(name, row) for row in rows]
        shown = [{n: value for n, value in row.items() if n != "rule"} for row in rows]
        return [(f"{name}[{r['rule']}]", row) for r, row in zip(rows, shown, strict=True)]

    def _take_together(self, engine: Engine, stream: str) -> None:
        kept = {n: c for n, c in self._model.alone.items() if c[0].query.results == "keep"}
        if not any(_is_select(c[0].query.sql, stream) for c in kept.values()):
            return
        table = engine.dequeue_all(stream).to_pylist()
        for row in table:
            assert row["queries"], row
            for name in row["queries"]:
                family = name.partition("[")[0]
                assert family in self._model.alone, (name, "is no more")
                self._taken.setdefault(family, []).append((name, row.get("u", ...)))

    def _compare(self, engine: Engine) -> None:
        """Everything that every query has given so far is what it would have given alone."""
        self._faults.armed = False
        expected = self._model.queries()
        matches = {r["query"]: r["matches"] for r in engine.matches().to_pylist()}
        shared = {n for n in expected if engine.stats()["queries"][n.partition("[")[0]]["shared"]}
        found = {name: n for name, n in matches.items() if name in shared}
        assert matches == found, "matches of what is no more"
        assert found == {name: len(expected[name]) for name in shared}, "matches"
        errors = {r["query"]: r["errors"] for r in engine.matches().to_pylist()}
        for name, failed in self._model.errors().items():
            assert errors[name] == failed, f"errors of {name}"
        for name, chunks in self._model.alone.items():
            if chunks[0].query.results == "count":
                continue
            self._take(engine, name)
            members = [member for chunk in chunks for member in chunk.names]
            held = [entry for entry in self._taken[name] if entry[0] in members]
            for member in members:
                mine = [row for key, row in held if key == member]
                ours = [row for _, row in expected[member]]
                _require_same(mine, ours, f"{member}: {chunks[0].query.sql}")
            if isinstance(chunks[0].query, Family):
                self._require_order(held, expected, name)
        self._faults.armed = True

    def _require_order(self, held: Sequence[Any], expected: Any, name: str) -> None:
        """The results of a family come in the order of the moments that made them."""
        at = dict.fromkeys(expected, 0)
        moments = []
        for member, _ in held:
            moments.append(expected[member][at[member]][0])
            at[member] += 1
        assert moments == sorted(moments), f"{name}: out of order"


def _require_same(mine: list[Any], ours: list[Row], what: str) -> None:
    """Row by row; of what was taken together with others the number is known, if anything."""
    rows = [row if isinstance(row, dict) else {} for row in mine]
    full = [ours[n] if isinstance(row, dict) else {} for n, row in enumerate(mine) if n < len(ours)]
    assert plain(rows) == plain([*full, *ours[len(mine) :]]), what
    for row, our in zip(mine, ours, strict=True):
        if not isinstance(row, dict) and row is not ... and isinstance(our.get("u"), int):
            assert row == our["u"], what


def _is_select(sql: str, stream: str) -> bool:
    source = sql.partition(" FROM ")[2]
    return source == stream or source.startswith(f"{stream} WHERE")


def _given(query: Any) -> Any:
    """As an application gives it."""
    if isinstance(query, list):
        return [{k: v for k, v in row.items() if k != "_of"} for row in query]
    return query
