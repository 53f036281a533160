"""What an engine is made from, whatever boxes there are at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from auroral.engine.ingest.dead_letters import DeadLetters
from auroral.engine.locks import EngineLocks
from auroral.engine.points.history import KeptHistory
from auroral.engine.queries.registry import QueryRegistry
from auroral.engine.runtime.pool import StepPool
from auroral.engine.runtime.step import StepOutcome
from auroral.network.network import Network
from auroral.spark.running.executor import StepExecutor
from auroral.storage import Store


@dataclass(frozen=True)
class Settings:
    """What an engine was given and never changes."""

    network: Network
    executor: StepExecutor
    tables: Mapping[str, Any]
    bound: Iterable[str]
    """Outputs that have a sink."""
    train: int
    driver_bytes: int
    now_us: Callable[[], int]
    step_timeout_s: float | None = None


@dataclass(frozen=True)
class EngineContext:
    """What all executions of an engine share."""

    settings: Settings
    store: Store
    queries: QueryRegistry
    dead: DeadLetters
    pool: StepPool[StepOutcome]
    history: KeptHistory
    locks: EngineLocks = field(default_factory=EngineLocks)
