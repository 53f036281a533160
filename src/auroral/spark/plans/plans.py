"""Compiled plans of a superbox, by how many files sources have; what lacks is compiled aside."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from auroral.spark.plans.slots import Slots, slot_count
from auroral.spark.session.session import active

_MOST_ASIDE = 12
_MOST_WANTED = 64
Key = tuple[tuple[str, int], ...]
"""How many slots each source has."""


class HasData(Protocol):
    """Anything that Spark can run."""

    @property
    def data(self) -> DataFrame: ...


P = TypeVar("P", bound=HasData)


@dataclass(frozen=True)
class CompiledPlan(Generic[P]):
    """A plan, and where it finds its files."""

    plan: P
    slots: Slots | None
    """None if it was made for the files of one train."""


class Plans(Generic[P]):
    """The compiled plans of one superbox.

    A plan serves fewer files, and fewer sources, than it has slots for, if slower. So a train need
    not wait for Spark: what fits better is compiled in a thread of its own, if it is wanted again.
    """

    def __init__(
        self,
        session: SparkSession,
        directory: Path,
        schemas: Mapping[str, pa.Schema],
        compile: Callable[[Mapping[str, Sequence[str]]], P],
    ):
        """`schemas` are those of all sources; `compile` makes a plan over files."""
        self._session = session
        self._directory = directory
        self._schemas = schemas
        self._compile = compile
        self._numbers = count()
        self._lock = threading.Lock()
        self._plans: dict[Key, CompiledPlan[P]] = {}
        self._wanted: set[Key] = set()
        """What would have fitted trains that others served, once."""
        self._tried: set[Key] = set()
        """What was compiled aside, or could not be."""
        self._aside: threading.Thread | None = None
        self._closed = False

    def get(self, files: Mapping[str, int]) -> CompiledPlan[P]:
        """The smallest plan with room for so many files; if there is none, one for all sources."""
        found = self._smallest(_key(files))
        return found or self._make(_key(dict.fromkeys(self._schemas, max(files.values()))))

    def has_room(self, files: Mapping[str, int]) -> bool:
        """Whether some plan has room for so many files.

        If none fits exactly, and it is not the first time, one is compiled aside.
        """
        key = _key(files)
        with self._lock:
            if key not in self._plans:
                self._want(key)
        return self._smallest(key) is not None

    def _want(self, key: Key) -> None:
        if key not in self._wanted:
            self._wanted = {key, *(self._wanted if len(self._wanted) < _MOST_WANTED else ())}
            return
        busy = self._closed or self.is_compiling
        if not busy and key not in self._tried and len(self._tried) < _MOST_ASIDE:
            self._tried.add(key)
            self._aside = threading.Thread(target=self._make_aside, args=(key,), daemon=True)
            self._aside.start()

    @property
    def is_compiling(self) -> bool:
        """Whether something is compiled aside."""
        return self._aside is not None and self._aside.is_alive()

    def wait(self) -> None:
        """Until nothing is compiled aside."""
        aside = self._aside
        if aside is not None:
            aside.join()

    def close(self) -> None:
        """Forget what was compiled."""
        with self._lock:
            self._closed = True
            dropped, self._plans = self._plans, {}
        for compiled in dropped.values():
            _drop(compiled)

    def _make_aside(self, key: Key) -> None:
        with suppress(Exception):  # trains are served without it
            self._make(key)

    def _make(self, key: Key) -> CompiledPlan[P]:
        slots = Slots(self._directory / f"plan-{next(self._numbers)}", dict(key), self._schemas)
        compiled = CompiledPlan(self._compile(slots.files), slots)
        # Plan now, while the slots still have the length they are planned at.
        with active(self._session):
            compiled.plan.data._jdf.queryExecution().toRdd()
        with self._lock:
            if not self._closed:
                self._plans[key] = compiled
        if self._closed:
            _drop(compiled)
        return compiled

    def _smallest(self, key: Key) -> CompiledPlan[P] | None:
        """The plan with the fewest slots that has room."""
        wanted = dict(key)
        with self._lock:
            if key in self._plans:
                return self._plans[key]
            roomy = [held for held in self._plans if _has_room(dict(held), wanted)]
            if not roomy:
                return None
            return self._plans[min(roomy, key=lambda held: sum(slots for _, slots in held))]


def _key(files: Mapping[str, int]) -> Key:
    return tuple(sorted((source, slot_count(number)) for source, number in files.items() if number))


def _has_room(there: Mapping[str, int], wanted: Mapping[str, int]) -> bool:
    return all(there.get(source, 0) >= slots for source, slots in wanted.items())


def _drop(compiled: CompiledPlan[P]) -> None:
    assert compiled.slots is not None
    shutil.rmtree(compiled.slots.directory, ignore_errors=True)
