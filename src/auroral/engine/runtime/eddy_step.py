"""Steps of an eddy: its queries as of the train's moments, routes decided, reports learnt from."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from auroral.eddy.filters.index import CHUNK
from auroral.eddy.kernel import EddyKernel, Turn
from auroral.eddy.report import Report
from auroral.eddy.routes.probing import JoinRouter
from auroral.eddy.routes.routing import Router, Visit, added
from auroral.eddy.version import Version
from auroral.engine.queries.registry import QueryRegistry
from auroral.engine.runtime.kernel_run import KernelRequest, KernelRun
from auroral.engine.runtime.step import StepOutcome
from auroral.engine.runtime.train import Train
from auroral.engine.runtime.watermarks import WatermarkTracker
from auroral.ids import StateLogId
from auroral.kernels.kernel import Context
from auroral.network.box import Box
from auroral.progress.lowwater import moved_since
from auroral.progress.propagation import least
from auroral.scheduling.superboxes import Superbox
from auroral.spark.running.executor import Files, KernelRunner
from auroral.storage import Segment, Store

_SAMPLE_EVERY = 16
"""Values are sampled in the first steps and then in one of so many, or as queries need it."""


class EddyStep:
    """The eddy of some arcs in a running network."""

    pending: int | None = None

    def __init__(
        self,
        store: Store,
        watermarks: WatermarkTracker,
        runner: KernelRunner,
        box: Box,
        queries: QueryRegistry,
        policy: str,
    ):
        self._store = store
        self._watermarks = watermarks
        self._runner = runner
        self.superbox: Superbox = runner.superbox
        assert self.superbox.stateful is not None
        self.name = self.superbox.stateful
        # State and results belong to arcs and groups, not to the eddy that happens to serve them.
        self._kernel = KernelRun(
            store,
            runner,
            box,
            arc=lambda port: port,
            state_log=lambda table, bucket: str(StateLogId(None, table, bucket)),
        )
        self.arcs = box.sources()
        self._versions = queries.eddies
        self._tally = queries.tally
        self._policy = policy
        self._routers: dict[str, Router] = {}
        self._join_router = JoinRouter(policy)
        self._steps = 0
        self._seen = {arc: store.manifest.progress().get(seen_key(arc), 0) for arc in self.arcs}
        self._version: Version | None = None
        """What it had to do in the latest step."""
        self._had: set[str] = set()
        """State tables that it has had."""
        self._held: dict[int, int] = {}
        self.held_by: dict[str, dict[int, int]] = {}
        """What each SteM and each set of panes holds, by bucket."""
        self._probes: dict[str, Visit] = {}
        """How often each SteM was probed."""

    # ── what the stepper asks ──

    def tables(self) -> Collection[str]:
        """The names of its state tables, as of the latest step."""
        return tuple(self._version.tables()) if self._version is not None else ()

    def segments(self) -> list[Segment]:
        return self._kernel.segments(self.tables())

    def state(self) -> dict[str, int]:
        """How many rows each state table has."""
        return self._kernel.rows(self.tables())

    @property
    def held(self) -> int:
        """How many tuples and partial aggregates it holds."""
        return self._kernel.held(self.tables(), self._held)

    @property
    def has_room(self) -> Callable[[Mapping[str, int]], bool] | None:
        return self._kernel.has_room

    def drops_in_tasks(self, _files: Files) -> bool:
        return self._runner.reads

    def boundary(self, moment: int) -> int | None:
        return self._versions.boundary(self.name, moment)

    def writes(self, log: str) -> bool:
        return self._versions.writes(self.name, log)

    def go_on(self, watermarks: WatermarkTracker) -> None:
        """Be a part of another execution, with the same boxes before it."""
        self._watermarks = watermarks

    def discard(self) -> None:
        """Forget what was compiled: the eddy is no more."""
        self._runner.discard()

    def warm_up(self) -> None:
        self._runner.warm_up()

    @property
    def is_compiling(self) -> bool:
        return self._runner.is_compiling

    def wait(self) -> None:
        self._runner.wait()

    # ── what a step is given ──

    def begin(self, train: Train) -> Callable[[Files], StepOutcome]:
        turn = self._decided(train)
        self._version = version = turn.version
        context = self._context(train, turn)
        kernel = self._runner.physical.kernel
        assert isinstance(kernel, EddyKernel)
        columns = {
            port: frozenset(kernel.fields[port][name] for name in version.fields[arc])
            for port, arc in enumerate(self.arcs)
        }
        request = KernelRequest(
            context,
            tuple(version.tables()),
            self._idle(context, turn),
            columns,
            shared_out=version.stateless,
            bare=version.stateless and not version.copied,
        )
        forgotten = self._forgotten(version)
        self._forget_figures(version)
        return partial(self._run, train, request, forgotten)

    def _decided(self, train: Train) -> Turn:
        """The queries and the routes of a train."""
        version = self._versions.at(self.name, train.first)
        self._steps += 1
        rows = {source: train.rows_of(source) for source in train.segments}
        sampled = self._steps <= 2 or self._steps % _SAMPLE_EVERY == 0
        sampled = sampled or any(
            rows.get(arc) and not self._versions.knows(arc, snapshot.operators)
            for arc, snapshot in version.filters.items()
        )
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

    def _context(self, train: Train, turn: Turn) -> Context:
        since, until = train.first - 1, train.last
        marks = self._watermarks.input_watermarks(self.name)
        ended = self._watermarks.ended
        return Context(
            train.first,
            train.last,
            tuple(mark.since(since).until(until) for mark in marks),
            None,
            ended if ended is not None and ended < until else None,
            extra=turn,
        )

    def _idle(self, context: Context, turn: Turn) -> Sequence[int]:
        """Buckets in which something may happen although no tuple of theirs came."""
        first = context.first
        moved = any(moved_since(mark, first) for mark in turn.marks.values())
        ended = context.ended is not None and context.ended >= first
        if turn.version.stateless or not (moved or ended):
            return []
        return self._kernel.busy_buckets(tuple(turn.version.tables()))

    def _forgotten(self, version: Version) -> list[Segment]:
        """State that no query needs any more."""
        wanted = set(version.tables())
        had = self._had | {f"stem:{arc}" for arc in self.arcs}
        self._had = had | wanted
        return self._kernel.segments(sorted(had - wanted))

    def _forget_figures(self, version: Version) -> None:
        """Drop the figures of filters, SteMs and panes that are no more."""
        tables = {table.replace(":", " ", 1) for table in version.tables()}
        self._routers = {n: router for n, router in self._routers.items() if n in version.filters}
        self.held_by = {name: by for name, by in self.held_by.items() if name in tables}
        self._probes = {name: visit for name, visit in self._probes.items() if name in tables}

    # ── what came of it ──

    def _run(
        self, train: Train, request: KernelRequest, forgotten: Sequence[Segment], files: Files
    ) -> StepOutcome:
        result = self._kernel.run(train, files, request)
        result.retired += forgotten
        report = Report()
        for note in result.notes:
            report.add(note["more"])
        change = result.change()

        def before() -> None:
            seen = {seen_key(arc): self._seen[arc] + n for arc, n in report.arrived.items()}
            change.progress = {**change.progress, **seen}
            self._tally.enter(change, report)

        def after() -> None:
            self._held |= result.held
            for note in result.notes:
                for name, held in note["more"]["held"].items():
                    self.held_by.setdefault(name, {})[note["bucket"]] = held
            self._learn(report)

        return StepOutcome(change, result.letters, before, after, result.flow, result.shed)

    def _learn(self, report: Report) -> None:
        for arc, more in report.arrived.items():
            self._seen[arc] += more
        self._tally.committed()
        for arc, visits in report.visits.items():
            self._router(arc).learn(report.tuples.get(arc, 0), visits)
        for arc, (_, order) in report.routes.items():
            self._router(arc).know(order)
        for arc, visit in report.probes.items():
            stem = f"stem {arc}"
            self._probes[stem] = added(self._probes.get(stem), visit)
        self._join_router.learn(report.joins)
        if report.samples:
            self._versions.learn(self.name, report.samples)

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
