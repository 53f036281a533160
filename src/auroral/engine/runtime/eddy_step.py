"""Steps of an eddy: its queries as of the train's moments, routes decided, reports learnt from."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from auroral.eddy.filters.index import CHUNK
from auroral.eddy.kernel import EddyKernel, Turn
from auroral.eddy.report import Report
from auroral.eddy.routes.probing import JoinRouter
from auroral.eddy.routes.routing import Router, Visit, added
from auroral.eddy.version import Version
from auroral.engine.queries.registry import QueryRegistry
from auroral.engine.runtime.stateful_step import StatefulBox, _Result
from auroral.engine.runtime.train import Train
from auroral.engine.runtime.watermarks import WatermarkTracker
from auroral.ids import StateLogId
from auroral.kernels.kernel import Context
from auroral.network.box import Box
from auroral.progress.lowwater import moved_since
from auroral.progress.propagation import least
from auroral.spark.running.stateful_runner import StatefulRunner
from auroral.spark.running.train_file import TrainFile
from auroral.spark.running.worker import Job
from auroral.storage import Store

_SAMPLE_EVERY = 16
"""Values are sampled in the first steps and then in one of so many, or as queries need it."""


class EddyBox(StatefulBox):
    """The eddy of some arcs in a running network."""

    def __init__(
        self,
        store: Store,
        watermarks: WatermarkTracker,
        runner: StatefulRunner,
        box: Box,
        queries: QueryRegistry,
        policy: str,
    ):
        super().__init__(store, watermarks, runner, box, (), {})
        self.arcs = box.sources()
        self._versions = queries.versions
        self._tally = queries.tally
        self._policy = policy
        self._routers: dict[str, Router] = {}
        self._join_router = JoinRouter(policy)
        self._steps = 0
        self._report = Report()
        self._seen = {arc: store.manifest.progress().get(seen_key(arc), 0) for arc in self.arcs}
        self._turn: Turn | None = None
        self._had: set[str] = set()
        self.held_by: dict[str, dict[int, int]] = {}
        """What each SteM and each set of panes holds, by bucket."""
        self._probes: dict[str, Visit] = {}
        """How often each SteM was probed."""

    # ── what a step is given ──

    def log(self, table: str, bucket: int) -> str:
        """State belongs to arcs and groups, not to the eddy that happens to serve them."""
        return str(StateLogId(None, table, bucket))

    def tables(self) -> Collection[str]:
        return tuple(self._version.tables()) if self._turn is not None else ()

    def arc(self, port: str) -> str:
        return port

    def writes(self, log: str) -> bool:
        return self._versions.writes(self.name, log)

    def boundary(self, moment: int) -> int | None:
        return self._versions.boundary(self.name, moment)

    @property
    def _version(self) -> Version:
        assert self._turn is not None
        return self._turn.version

    def _run(self, train: Train, files: Mapping[str, Sequence[TrainFile]]) -> _Result:
        self._turn = self._decided(train, files)
        self._report = Report()
        result = super()._run(train, files)
        result.retired += self._forgotten()
        self._forget_figures()
        return result

    def _decided(self, train: Train, files: Mapping[str, Sequence[TrainFile]]) -> Turn:
        """The queries and the routes of a train."""
        version = self._versions.at(self.name, train.first)
        self._steps += 1
        sampled = self._steps <= 2 or self._steps % _SAMPLE_EVERY == 0
        sampled = sampled or any(
            files.get(arc) and not self._versions.knows(arc, snapshot.operators)
            for arc, snapshot in version.filters.items()
        )
        rows = {arc: sum(file.rows for file in own) for arc, own in files.items()}
        orders, costs = {}, {}
        for name, snapshot in version.filters.items():
            router = self._router(name)
            router.have(snapshot.operators)
            chunks = -(-rows.get(name, 0) // CHUNK)
            orders[name] = router.orders(max(1, chunks))
            asked = router.asks(sampled)
            if asked is not None:
                costs[name] = asked
        joins = {group.name: group.shape.arcs for group in version.joins}
        probes = self._join_router.orders(joins, rows)
        since, until = train.first - 1, train.last
        marks = {
            key: least(mark).since(since).until(until)
            for key, mark in self._watermarks.inputs_of(self.name).items()
            if not version.stateless
        }
        home = str(self._store.directory)
        return Turn(version, orders, probes, dict(self._seen), marks, home, sampled, costs)

    def _router(self, name: str) -> Router:
        if name not in self._routers:
            self._routers[name] = Router(self._policy, seed=len(self._routers))
        return self._routers[name]

    def _context(self, train: Train) -> Context:
        return replace(super()._context(train), extra=self._turn)

    def _idle(self, context: Context) -> list[int]:
        assert self._turn is not None
        first = context.first
        moved = any(moved_since(mark, first) for mark in self._turn.marks.values())
        ended = context.ended is not None and context.ended >= first
        if self._version.stateless or not (moved or ended):
            return []
        return [bucket for bucket in self._buckets if self.segments(bucket)]

    def _job(self, context: Context, idle: Sequence[int]) -> Job:
        kernel = self._runner.physical.kernel
        assert isinstance(kernel, EddyKernel)
        columns = {
            port: frozenset(kernel.fields[port][name] for name in self._version.fields[arc])
            for port, arc in enumerate(self.arcs)
        }
        job = super()._job(context, idle)
        stateless = self._version.stateless
        bare = stateless and not self._version.copied
        return replace(job, columns=columns, shared_out=stateless, bare=bare)

    def _forgotten(self) -> list[Any]:
        """State that no query needs any more."""
        wanted = set(self._version.tables())
        had = self._had | {f"stem:{arc}" for arc in self.arcs}
        self._had = had | wanted
        return [
            segment
            for table in had - wanted
            for bucket in self._buckets
            for segment in self._store.segments(self.log(table, bucket))
        ]

    def _forget_figures(self) -> None:
        """Of filters, SteMs and panes that are no more nothing is told."""
        tables = {table.replace(":", " ", 1) for table in self._version.tables()}
        filters = self._version.filters
        self._routers = {name: r for name, r in self._routers.items() if name in filters}
        self.held_by = {name: by for name, by in self.held_by.items() if name in tables}
        self._probes = {name: visit for name, visit in self._probes.items() if name in tables}

    # ── what it told ──

    def _result(self, train: Train, notes: Sequence[Mapping[str, Any]], main: Any) -> _Result:
        result = super()._result(train, notes, main)
        for note in notes:
            self._report.add(note["more"])
            for name, held in note["more"]["held"].items():
                self.held_by.setdefault(name, {})[note["bucket"]] = held
        return result

    def step(self, train: Train, files: Mapping[str, Sequence[TrainFile]]) -> Any:
        change, letters = super().step(train, files)
        seen = {seen_key(arc): self._seen[arc] + n for arc, n in self._report.arrived.items()}
        change.progress = {**change.progress, **seen}
        self._tally.enter(change, self._report)
        return change, letters

    def committed(self) -> None:
        super().committed()
        for arc, more in self._report.arrived.items():
            self._seen[arc] += more
        self._tally.committed()
        for arc, visits in self._report.visits.items():
            self._router(arc).learn(self._report.tuples.get(arc, 0), visits)
        for arc, (_, order) in self._report.routes.items():
            self._router(arc).know(order)
        for arc, visit in self._report.probes.items():
            stem = f"stem {arc}"
            self._probes[stem] = added(self._probes.get(stem), visit)
        self._join_router.learn(self._report.joins)
        if self._report.samples:
            self._versions.learn(self.name, self._report.samples)

    def warm_up(self) -> None:
        self._runner.warm_up()

    def statistics(self) -> dict[str, Any]:
        """What its filters, SteMs and panes do."""
        splits = self._versions.splits(self.name)
        return {
            "queries": self._versions.count(self.name),
            "policy": self._policy,
            "arcs": {
                name: {**router.statistics(), "index": _split(*splits.get(name, (0, 0)))}
                for name, router in list(self._routers.items())
            },
            "held": {name: sum(by.values()) for name, by in list(self.held_by.items())},
            "probes": {name: _probed(visit) for name, visit in list(self._probes.items())},
            "joins": self._join_router.statistics(),
        }


def _probed(visit: Visit) -> dict[str, Any]:
    us = visit.seconds * 1e6 / visit.routed if visit.routed else None
    return {"probed": visit.routed, "matched": visit.returned, "us_per_tuple": us}


def _split(bitmaps: int, filed: int) -> dict[str, int]:
    return {"bitmaps": bitmaps, "access_predicates": filed}


def seen_key(arc: str) -> str:
    """Under which the manifest keeps how many tuples of an arc its eddy has seen."""
    return f"seen {arc}"
