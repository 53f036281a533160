"""Steps of boxes that use tables: statements run in the database, each tuple's exactly once.

A step is one transaction of the database. In it the engine notes up to which moment each box has
changed the database, and what came of the tuples of the step. If the engine dies before the step
is committed in the manifest, the step runs again: tuples before the noted moment are answered from
that note, and change nothing. So it does not matter whether the step has the same moments again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from auroral.engine.runtime.step import StepOutcome
from auroral.engine.runtime.train import Train
from auroral.engine.tables.payload import StepPayload
from auroral.errors import StateError
from auroral.ids import PartBoxId
from auroral.io.chunk import DeadLetter
from auroral.io.rows import shown
from auroral.network.types import Schema
from auroral.scheduling.superboxes import Superbox
from auroral.spark.plans.plan import arc_schema, in_order
from auroral.spark.running.executor import Files
from auroral.storage import Change, Segment, Store, UnwrittenSegment
from auroral.storage.segment import read_file
from auroral.tables.statements import BoxStatement
from auroral.tables.store import Batch, BoxProgress, StatementRun, TableStore, TableTransaction

_RANK_BYTES = 4


@dataclass(frozen=True)
class TableBox:
    """A box that uses tables, as its superbox runs it."""

    name: str
    source: str
    input: Schema
    output: Schema
    keep: tuple[str, ...]
    """The fields of a tuple that a read emits before the columns of its rows."""
    statement: BoxStatement
    passes_failed: bool = False

    @property
    def writes(self) -> bool:
        return self.statement.writes


@dataclass
class _Part:
    """The tuples of one box in a step, and what came of them."""

    box: TableBox
    tuples: pa.Table
    known: StepPayload
    """What came of those that the database has had already."""
    done: int
    """So many they are."""
    made: StepPayload

    @property
    def result(self) -> StepPayload:
        return self.known.then(self.made)


class TableStep:
    """One superbox of boxes that use the same tables."""

    pending: int | None = None
    is_compiling = False
    has_room: Callable[[Mapping[str, int]], bool] | None = None

    def __init__(
        self,
        store: Store,
        database: TableStore,
        superbox: Superbox,
        boxes: Sequence[TableBox],
        state: str,
    ):
        """`state` is the identity of the state directory, by which the database knows it."""
        self._store = store
        self.database = database
        self.superbox = superbox
        self._boxes = boxes
        self._state = state
        self._writes = any(box.writes for box in boxes)
        saved = store.manifest.progress()
        self._applied: dict[str, int] = {
            box.name: saved.get(applied_key(box.name), 0) for box in boxes
        }
        """The moment up to which the database is known to have been changed, by box."""
        self._before: tuple[Superbox, ...] = ()
        self._after: tuple[Superbox, ...] = ()

    def meet(self, before: Sequence[Superbox], after: Sequence[Superbox]) -> None:
        """Take turns with the superboxes that use its tables too and wait for each other."""
        self._before, self._after = tuple(before), tuple(after)

    # ── what the stepper asks ──

    def boundary(self, moment: int) -> int | None:
        """How far it may go: those before it have done as much, those after it all but the last."""
        limits = [self._head(peer) for peer in self._before]
        for peer in self._after:
            following = self._next_use(max(self._head(peer) + 1, moment))
            limits += [following] if following is not None else []
        return min(limits, default=None)

    def _head(self, superbox: Superbox) -> int:
        return min(self._store.head(source, superbox.name) for source in superbox.sources)

    def _next_use(self, moment: int) -> int | None:
        """The first moment from one on that has a tuple for one of its boxes."""
        found: list[int] = []
        for source in self.superbox.sources:
            for segment in self._store.segments(source, moment):
                if segment.file:
                    moments = self._store.table(segment, ["_seq"])["_seq"].to_numpy()
                    later = moments[moments >= moment]
                    if len(later):
                        found.append(int(later.min()))
                        break
        return min(found, default=None)

    def drops_in_tasks(self, _files: Files) -> bool:
        return False

    def writes(self, _log: str) -> bool:
        return False

    def segments(self) -> Iterable[Segment]:
        return ()

    def warm_up(self) -> None:
        """Nothing is compiled."""

    def wait(self) -> None:
        """Nothing is compiled in the background."""

    def discard(self) -> None:
        """Nothing was compiled."""

    def begin(self, train: Train) -> Callable[[Files], StepOutcome]:
        return partial(self._run, train)

    # ── a step ──

    def _run(self, train: Train, files: Files) -> StepOutcome:
        sources = {source: _read(files.get(source, ())) for source in self.superbox.sources}
        parts = [
            _Part(box, tuples, StepPayload(), 0, StepPayload())
            for box in self._boxes
            if (tuples := sources[box.source]) is not None
        ]
        if not parts:
            return StepOutcome(Change())
        with self.database.transaction(writes=self._writes) as transaction:
            if self._writes:
                for part in parts:
                    self._recall(transaction, train, part)
            self._apply(transaction, parts)
            noted = self._note(transaction, train, parts) if self._writes else {}
            self._store.fault("table-applied")
        self._store.fault("table-committed")
        return self._outcome(train, parts, noted)

    def _recall(self, transaction: TableTransaction, train: Train, part: _Part) -> None:
        """Find out which tuples the database has had already, and what came of them."""
        name = part.box.name
        applied = transaction.applied(self._state, name)
        if (applied.done_before if applied is not None else 0) < self._applied[name]:
            raise StateError(
                "TABLE_BEHIND",
                f"the database lacks changes that {PartBoxId.owner(name)} has made; it was replaced"
                " by an older one",
                where=self.database.where,
                hint="restore the database and the state directory from the same time",
            )
        if applied is None or applied.done_before <= train.first:
            return
        if applied.first > train.first:
            raise StateError(
                "STATE_BEHIND",
                f"the database has changes of {PartBoxId.owner(name)} that the state directory"
                " does not know; the directory was replaced by an older one",
                where=self.database.where,
                hint="restore the database and the state directory from the same time",
            )
        payload = StepPayload.decode(applied.payload)
        part.known = payload.between(train.first, train.last)
        moments = part.tuples["_seq"].to_numpy()
        part.done = int(np.searchsorted(moments, applied.done_before))

    def _apply(self, transaction: TableTransaction, parts: Sequence[_Part]) -> None:
        waiting = [part.tuples.slice(part.done) for part in parts]
        batches = [
            self.database.parameters(part.box.statement, tuples)
            for part, tuples in zip(parts, waiting, strict=True)
        ]
        transaction.run(batches, _runs(parts, waiting))
        for part, batch in zip(parts, batches, strict=True):
            part.made = _made(part, batch)

    def _note(
        self, transaction: TableTransaction, train: Train, parts: Sequence[_Part]
    ) -> dict[str, BoxProgress]:
        """Let the database remember how far it was changed, and what came of it."""
        noted = {
            part.box.name: BoxProgress(train.first, train.last, part.result.encode())
            for part in parts
            if part.done < part.tuples.num_rows
        }
        transaction.record(self._state, noted)
        return noted

    def _outcome(
        self, train: Train, parts: Sequence[_Part], noted: Mapping[str, BoxProgress]
    ) -> StepOutcome:
        fresh: list[UnwrittenSegment] = []
        counts: dict[tuple[str, str], int] = {}
        letters: list[DeadLetter] = []
        for part in parts:
            result, places = part.result, _places(part.tuples)
            failed = [at for at, place in enumerate(places) if place in result.failures]
            letters += [_letter(part, at, result.failures[places[at]]) for at in failed]
            counts[part.box.name, "processed"] = part.tuples.num_rows - len(failed)
            if part.box.name in self.superbox.terminals:
                gone = [] if part.box.passes_failed else failed
                table = _without(part.tuples, gone) if part.box.writes else result.rows
                if table is not None and table.num_rows:
                    fresh.append(UnwrittenSegment(part.box.name, table, train.last))
                    counts[part.box.name, "tuples"] = table.num_rows
        change = Change(fresh=fresh, counts=counts)
        change.progress = {applied_key(name): one.done_before for name, one in noted.items()}

        def after() -> None:
            self._applied |= {name: one.done_before for name, one in noted.items()}

        return StepOutcome(change, letters, after_commit=after)


def applied_key(box: str) -> str:
    """Under which the manifest keeps up to which moment a box has changed its database."""
    return f"applied of {box}"


def _read(files: Iterable[object]) -> pa.Table | None:
    """The tuples of files in order; None if there are none."""
    tables = [read_file(str(file.path)) for file in files]  # type: ignore[attr-defined]
    if not any(table.num_rows for table in tables):
        return None
    return in_order(pa.concat_tables(tables, promote_options="default").combine_chunks())


def _runs(parts: Sequence[_Part], waiting: Sequence[pa.Table]) -> list[StatementRun]:
    """The order of all tuples: by moment, box and place; reads may change places with reads."""
    moments = np.concatenate([tuples["_seq"].to_numpy() for tuples in waiting])
    counts = [tuples.num_rows for tuples in waiting]
    boxes = np.repeat(np.arange(len(parts)), counts)
    places = np.concatenate([np.arange(count) for count in counts])
    order = np.lexsort((places, boxes, moments))
    boxes, places = boxes[order], places[order]
    if not len(boxes):
        return []
    changing = np.array([part.box.writes for part in parts])[boxes]
    stretch = np.cumsum(np.concatenate([[False], changing[1:] != changing[:-1]]))
    regrouped = np.lexsort((np.arange(len(boxes)), np.where(changing, 0, boxes), stretch))
    boxes, places, stretch = boxes[regrouped], places[regrouped], stretch[regrouped]
    turns = np.flatnonzero((boxes[1:] != boxes[:-1]) | (stretch[1:] != stretch[:-1])) + 1
    starts = np.concatenate([[0], turns])
    ends = np.concatenate([turns, [len(boxes)]])
    return [
        StatementRun(int(boxes[start]), int(places[start]), int(places[end - 1]) + 1)
        for start, end in zip(starts, ends, strict=True)
    ]


def _made(part: _Part, batch: Batch) -> StepPayload:
    """What came of the tuples that the database has not had before."""
    tuples, box = part.tuples.slice(part.done), part.box
    rows = None
    if not box.writes:
        columns, owners = batch.result()
        rows = _rows(box, tuples, columns, owners)
    places = _places(tuples)
    return StepPayload(rows, {places[at]: why for at, why in batch.failures.items()})


def _rows(box: TableBox, tuples: pa.Table, columns: pa.Table, owners: pa.Array) -> pa.Table:
    """The rows of a read as tuples of its arc: each one numbered among those of its tuple."""
    numbers = owners.to_numpy()
    first = np.searchsorted(numbers, numbers)
    ranks = (np.arange(len(numbers)) - first).astype(">u4").tobytes()
    given = tuples.take(owners)
    subs: list[bytes] = [ranks[at : at + _RANK_BYTES] for at in range(0, len(ranks), _RANK_BYTES)]
    if "_sub" in tuples.column_names:
        held = given["_sub"].to_pylist()
        subs = [(sub or b"") + rank for sub, rank in zip(held, subs, strict=True)]
    schema = arc_schema(box.output, ranked=True)
    found = {"_sub": pa.array(subs, schema.field("_sub").type)}
    found |= {name: given[name] for name in ("_seq", "_ts", *box.keep)}
    found |= dict(zip(columns.column_names, columns.columns, strict=True))
    return pa.Table.from_arrays([found[name] for name in schema.names], schema=schema)


def _places(tuples: pa.Table) -> list[tuple[int, int]]:
    """For each tuple its moment, and its place among those of the moment."""
    moments = tuples["_seq"].to_numpy()
    first = np.searchsorted(moments, moments)
    places = np.arange(len(moments)) - first
    return list(zip(moments.tolist(), places.tolist(), strict=True))


def _without(tuples: pa.Table, failed: Sequence[int]) -> pa.Table:
    if not failed:
        return tuples
    kept = np.ones(tuples.num_rows, dtype=bool)
    kept[list(failed)] = False
    return tuples.filter(pa.array(kept))


def _letter(part: _Part, at: int, reason: str) -> DeadLetter:
    names = part.box.input.names
    (row,) = part.tuples.slice(at, 1).select(names).to_pylist(maps_as_pydicts="lossy")
    return DeadLetter(PartBoxId.owner(part.box.name), "table", None, reason, shown(row))
