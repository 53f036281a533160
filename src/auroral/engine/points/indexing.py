"""History by key in a running engine: who organises it, and what attached queries read of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from auroral.engine.points.demands import demanded_of_key
from auroral.engine.points.history import KeptHistory
from auroral.engine.points.point import PointHistory
from auroral.engine.runtime.train import Train, train_files
from auroral.history import (
    AccessChoice,
    HistoryMaintenance,
    KeptMoments,
    KeyedHistory,
    KeyPredicate,
    choose_access,
)
from auroral.ids import HistoryIndexId
from auroral.network.network import Network
from auroral.spark.running.executor import Files
from auroral.spark.running.train_file import TrainFile
from auroral.storage import Store
from auroral.storage.segment import MAX_FILE_BYTES, encode, write_file


class HistoryIndexing:
    """Keeps the runs of all points that have a key, on a thread of its own."""

    def __init__(self, store: Store, history: KeptHistory, emitted_before: Callable[[str], int]):
        """`emitted_before` tells up to which moment the log of an arc is complete."""
        self._store = store
        self._history = history
        self._emitted_before = emitted_before
        self._known: set[HistoryIndexId] | None = None
        self.maintenance = HistoryMaintenance(self._histories, self._kept)

    def _histories(self) -> dict[str, KeyedHistory]:
        points = dict(self._history.points)
        found = {name: p.keyed for name, p in points.items() if p.keyed and p.keyed.indexed}
        self._drop_others({history.id for history in found.values()})
        return found

    def _drop_others(self, wanted: set[HistoryIndexId]) -> None:
        """Drop the runs of points that are no more, or have another key or arc now."""
        if wanted == self._known:
            return
        self._known = wanted
        logs, _ = self._store.names()
        gone = [log for log in logs if (id := HistoryIndexId.parse(log)) and id not in wanted]
        if gone:
            self._store.forget(gone, [])

    def _kept(self, name: str) -> KeptMoments | None:
        point = self._history.points.get(name)
        if point is None:
            return None
        return KeptMoments(point.oldest, self._emitted_before(point.arc))

    def statistics(self, name: str) -> dict[str, Any]:
        """How the history of a point is organised; nothing if it has no key."""
        point = self._history.points.get(name)
        if point is None or point.keyed is None:
            return {}
        found = {"key": point.keyed.key, **point.keyed.statistics().document()}
        if name in self.maintenance.failures:
            found["failed"] = self.maintenance.failures[name]
        return {"by_key": found}


class PrunedHistory:
    """The historical part of a branch that begins with filters on the key of its point [1 §3.2].

    Trains of it get only the rows that can pass the filters.
    """

    def __init__(self, point: PointHistory, predicate: KeyPredicate, history: KeyedHistory):
        self._arc = point.arc
        self._predicate = predicate
        self._history = history
        self.until = 0
        """Trains that go beyond this moment are not history."""
        self.choice: AccessChoice | None = None
        """How the latest train of history was read, and why."""

    @staticmethod
    def of(point: PointHistory, network: Network, output: str) -> PrunedHistory | None:
        """None if the branch wants all rows, or the point has no key."""
        if point.keyed is None:
            return None
        demanded = demanded_of_key(network, point.arc, point.schema, point.keyed.key, [output])
        return None if demanded is None else PrunedHistory(point, demanded, point.keyed)

    def is_cheaper(self, first: int, last: int, most_rows: int) -> bool:
        """Whether to look up the rows of moments from `first` up to, not including, `last`."""
        plan = self._history.plan(self._predicate, first, last - 1)
        self.choice = choose_access(plan)
        fits = plan.read.rows <= most_rows and plan.read.bytes <= MAX_FILE_BYTES // 2
        return self.choice.how == "lookup" and fits

    def files(
        self,
        store: Store,
        train: Train,
        directory: Path,
        *,
        has_room: Callable[[Mapping[str, int]], bool] | None = None,
    ) -> Files:
        """The files of a train: looked up if that costs less."""
        historical = self._arc in train.segments and train.first < train.last <= self.until
        if not historical or not self.is_cheaper(train.first, train.last, train.rows_of(self._arc)):
            return train_files(store, train, directory, has_room=has_room)
        found = self._history.lookup(self._predicate, train.first, train.last - 1).rows
        if not found.num_rows:
            return {self._arc: []}
        path = directory / f"{self._arc}-{train.first}-{train.last}.parquet"
        size, _ = write_file(path, encode(found), sync=False)
        return {self._arc: [TrainFile(path, found.num_rows, size)]}
