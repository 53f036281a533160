"""What a worker does with a train."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from auroral.disk import PRIVATE_DIRECTORY
from auroral.engine.runtime.plain_step import PlainStep
from auroral.engine.runtime.step import StepOutcome, SuperboxStep
from auroral.engine.runtime.stepping import TrainFiles
from auroral.engine.runtime.train import Train
from auroral.engine.shedding.dropping import drop_tuples, leave_to_tasks
from auroral.errors import RunError
from auroral.ids import file_name
from auroral.spark.running.executor import StepExecutor
from auroral.storage import Segment, Store
from auroral.storage.segment import verify


class TrainWork:
    """Makes the files of trains, and runs steps over them."""

    def __init__(self, store: Store, executor: StepExecutor, make_files: TrainFiles):
        self._store = store
        self._executor = executor
        self._make_files = make_files
        self._cuts = store.directory / "cuts"

    def run(
        self, step: SuperboxStep, train: Train, work: Callable[[Any], StepOutcome]
    ) -> StepOutcome:
        """Read and write files, run the job; nothing becomes true by it."""
        self._executor.enter(train.superbox.name)
        directory = self._place(train.superbox.name)
        try:
            files = self._make_files(self._store, train, directory, has_room=step.has_room)
            if train.drops and step.drops_in_tasks(files):
                files, shed = leave_to_tasks(files, train.drops)
            else:
                files, shed = drop_tuples(files, train.drops, directory, self._store.table_of_file)
            try:
                outcome = work(files)
            except RunError:
                waiting = [s for held in train.segments.values() for s in held]
                self._blame_segments([*step.segments(), *waiting])
                raise
        finally:
            shutil.rmtree(directory, ignore_errors=True)
        self._store.fault("computed")
        outcome.shed = {**shed, **outcome.shed}
        change = outcome.change
        change.written = [*change.written, *self._store.write(change.fresh)]
        change.fresh = []
        return outcome

    def attempt(self, step: SuperboxStep, train: Train) -> None:
        """Run a train and forget what came of it."""
        self._executor.enter(train.superbox.name)
        place = self._place(train.superbox.name)
        files = self._make_files(self._store, train, place, has_room=None)
        files, _ = drop_tuples(files, train.drops, place)
        if train.superbox.stateful:
            step.begin(replace(train, superbox=step.superbox))(files)
        elif train.superbox.boxes and isinstance(step, PlainStep):
            step.runner.run(train.superbox, files, through_driver=True)

    def _place(self, superbox: str) -> Path:
        """Where the files of a train lie that are cut from segments, or put together."""
        place = self._cuts / file_name(superbox)
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(mode=PRIVATE_DIRECTORY, parents=True)
        return place

    def _blame_segments(self, segments: Iterable[Segment]) -> None:
        """A failed job may be a damaged segment's fault; then say which."""
        for segment in segments:
            if segment.file:
                verify(self._store.path_of(segment), segment, deep=True)
