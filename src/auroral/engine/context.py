"""What an engine is made from, whatever boxes there are at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from auroral.engine.ingest.dead_letters import DeadLetters
from auroral.engine.inspect.kept_statistics import StatisticsKeeper
from auroral.engine.inspect.quality import OutputQuality
from auroral.engine.inspect.stories import DecisionLog
from auroral.engine.locks import EngineLocks
from auroral.engine.points.history import KeptHistory
from auroral.engine.queries.registry import QueryRegistry
from auroral.engine.results.outputs import AttachedResults
from auroral.engine.runtime.arrival_times import ArrivalTimes
from auroral.engine.runtime.pool import StepPool
from auroral.engine.runtime.probing import ExpressionCosts
from auroral.engine.runtime.queue_memory import QueueMemory
from auroral.engine.runtime.reordering import OrderOptimizer
from auroral.engine.runtime.step import StepOutcome
from auroral.engine.runtime.stepping import EngineWatch
from auroral.engine.shedding.control import SheddingControl
from auroral.engine.tables.live import LiveTables
from auroral.scheduling.rates import ArrivalRates
from auroral.spark.running.executor import StepExecutor
from auroral.storage import Store


@dataclass(frozen=True)
class Settings:
    """What an engine was given and never changes."""

    executor: StepExecutor
    tables: Mapping[str, Any]
    train: int
    driver_bytes: int
    now_us: Callable[[], int]
    step_timeout_s: float | None = None


class AttachedQueries(AttachedResults, Protocol):
    """The attached queries, as executions know them."""

    def step(self, execution: Any, complete: int, *, live: bool) -> bool:
        """Let them work; `live`: the network has had something to do in this round."""
        ...

    @property
    def rest_s(self) -> float | None:
        """In how many seconds the next one that catches up may work, if there is a pause."""
        ...

    def reached(self, moment: int) -> bool:
        """Whether they have processed everything before a moment."""
        ...

    def held_back(self, moment: int) -> bool:
        """Whether a pause alone keeps some from processing what is before a moment."""
        ...

    def reading(self) -> set[int]:
        """The segments, by id, that their steps under way read."""
        ...

    def on(self, point: str) -> list[str]:
        """Those that are attached to a point."""
        ...

    def reading_arc(self, arc: str) -> list[str]:
        """Those that read an arc, by the name of a connection point on it."""
        ...

    def close(self, *, commit: bool) -> None:
        """End after the steps under way."""
        ...


@dataclass(frozen=True)
class EngineContext:
    """What all executions of an engine share."""

    settings: Settings
    store: Store
    queries: QueryRegistry
    dead: DeadLetters
    pool: StepPool[StepOutcome]
    tables: LiveTables
    history: KeptHistory
    attachments: AttachedQueries
    times: ArrivalTimes
    decisions: DecisionLog
    quality: OutputQuality
    rates: ArrivalRates
    shedding: SheddingControl
    locks: EngineLocks = field(default_factory=EngineLocks)
    optimizer: OrderOptimizer = field(default_factory=OrderOptimizer)
    expressions: ExpressionCosts | None = None
    memory: QueueMemory | None = None
    watch: EngineWatch | None = None
    statistics: StatisticsKeeper | None = None
