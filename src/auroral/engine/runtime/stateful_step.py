"""Steps of boxes that remember tuples or windows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from auroral.engine.runtime.kernel_run import KernelRequest, KernelRun
from auroral.engine.runtime.step import StepOutcome
from auroral.engine.runtime.train import Train
from auroral.engine.runtime.watermarks import WatermarkTracker
from auroral.ids import ArcId, StateLogId
from auroral.kernels.joining.shelf import side_of
from auroral.kernels.kernel import Context
from auroral.network.box import Box
from auroral.progress.lowwater import moved_since
from auroral.scheduling.superboxes import Superbox
from auroral.spark.running.executor import Files, KernelRunner
from auroral.storage import Segment, Store

PENDING = "pending of "
"""How the names begin under which the manifest keeps what boxes hold back."""


class StatefulStep:
    """One box with state, and the boxes that run before it in the same superbox."""

    def __init__(
        self,
        store: Store,
        watermarks: WatermarkTracker,
        runner: KernelRunner,
        box: Box,
        fields: Sequence[str],
        tables: Mapping[int, Path],
    ):
        """`fields` are what dead letters show, `tables` the files of inputs that are tables."""
        self._store = store
        self._watermarks = watermarks
        self._runner = runner
        self._box = box
        self.superbox: Superbox = runner.superbox
        assert self.superbox.stateful is not None
        self.name = self.superbox.stateful
        self._kernel = KernelRun(
            store,
            runner,
            box,
            arc=lambda port: str(ArcId(self.name, port)),
            state_log=lambda table, bucket: str(StateLogId(self.name, table, bucket)),
            fields=fields,
            tables={port: str(path) for port, path in tables.items()},
        )
        self.pending: int | None = store.manifest.progress().get(pending_key(self.name))
        self._held: dict[int, int] = {}
        self._left: frozenset[str] | None = None

    def tables(self) -> Collection[str]:
        """The names of its state tables, also of those that an earlier form of it has left."""
        left = [table for table in self._left or () if self._kernel.segments([table])]
        return [*self._own_tables(), *left]

    def _own_tables(self) -> Collection[str]:
        return self._runner.physical.kernel.tables()

    def _find_left_tables(self) -> None:
        """Find state tables that its kernel does not keep: shelves of sieves that are gone.

        The form of the box before this one has filled them until this one begins.
        """
        if self._left is None:
            logs, _ = self._store.names()
            found = filter(None, map(StateLogId.parse, logs))
            known = {id.table for id in found if id.box == self.name and side_of(id.table)}
            self._left = frozenset(known.difference(self._own_tables()))

    def segments(self) -> list[Segment]:
        return self._kernel.segments(self.tables())

    def state(self) -> dict[str, int]:
        """How many rows each state table has."""
        return self._kernel.rows(self.tables())

    @property
    def held(self) -> int:
        """How many tuples or windows it holds; of a bucket that has not worked yet, its rows."""
        tables = [table for table in self._own_tables() if side_of(table) is None]
        return self._kernel.held(tables, self._held)

    @property
    def measure(self) -> Any:
        """In what the starts of windows in its state count."""
        return getattr(self._runner.physical.kernel, "measure", 1)

    @property
    def has_room(self) -> Callable[[Mapping[str, int]], bool] | None:
        return self._kernel.has_room

    def drops_in_tasks(self, _files: Files) -> bool:
        return self._runner.reads

    def boundary(self, _moment: int) -> int | None:
        return None

    def writes(self, _log: str) -> bool:
        return False

    def go_on(self, watermarks: WatermarkTracker) -> None:
        """Be a part of another execution, with the same boxes before it."""
        self._watermarks = watermarks

    def discard(self) -> None:
        """Forget what was compiled: the box is no more."""
        self._runner.discard()

    def warm_up(self) -> None:
        self._runner.warm_up()

    @property
    def is_compiling(self) -> bool:
        return self._runner.is_compiling

    def wait(self) -> None:
        self._runner.wait()

    def begin(self, train: Train) -> Callable[[Files], StepOutcome]:
        self._find_left_tables()
        context = self._context(train)
        request = KernelRequest(context, self.tables(), self._idle(context))
        return partial(self._run, train, request)

    def _run(self, train: Train, request: KernelRequest, files: Files) -> StepOutcome:
        result = self._kernel.run(train, files, request)
        pending = result.pending if result.notes else self.pending
        change = result.change()
        change.progress = {pending_key(self.name): pending}

        def before() -> None:
            # Threads of sinks look at any time: never promise more than is in the log.
            known = [moment for moment in (self.pending, pending) if moment is not None]
            self.pending = min(known, default=None)

        def after() -> None:
            self.pending = pending
            self._held |= result.held

        return StepOutcome(change, result.letters, before, after, result.flow, result.shed)

    def _context(self, train: Train) -> Context:
        since, until = train.first - 1, train.last
        marks = self._watermarks.input_watermarks(self.name)
        clock = self._watermarks.clock.since(since).until(until) if self._box.times_out else None
        ended = self._watermarks.end_of(self.name)
        return Context(
            train.first,
            train.last,
            tuple(mark.since(since).until(until) for mark in marks),
            clock,
            ended if ended is not None and ended < until else None,
        )

    def _idle(self, context: Context) -> list[int]:
        """Buckets in which something may happen although no tuple of theirs came."""
        first = context.first
        moved = any(moved_since(mark, first) for mark in context.marks)
        ticked = context.clock is not None and moved_since(context.clock, first)
        ended = context.ended is not None and context.ended >= first
        if not (moved or ticked or ended or self.pending is not None):
            return []
        return self._kernel.busy_buckets(self.tables())


def pending_key(box: str) -> str:
    """Under which the manifest keeps the first moment of which a box has not emitted all."""
    return f"{PENDING}{box}"
