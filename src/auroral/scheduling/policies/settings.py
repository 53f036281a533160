"""How a scheduler decides: the settings of `engine:` that concern it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from auroral.network.declarations import (
    EngineOptions,
    SchedulerName,
    SuperboxMode,
    TraversalName,
)


@dataclass(frozen=True)
class SchedulerSettings:
    """What a scheduler is made from; the first six are those of `engine:` in a network file."""

    scheduler: SchedulerName = "auto"
    superbox: SuperboxMode = "auto"
    traversal: TraversalName = "auto"
    train: int | Literal["auto"] | None = "auto"
    """The most tuples of a call; auto: as many as latency graphs allow; None: all that wait."""
    memory_bytes: int | None = None
    """How many bytes of queues may be in memory; None: any number."""
    train_spread_s: float | None = None
    """How much later the youngest tuple of a train may have arrived than its oldest."""
    train_cost_s: float | None = None
    """How long a call is expected to take at most."""
    train_bytes: int | None = None
    """How large a train may be."""
    spanner_boxes: int = 5
    """k of the top-k spanner: how many boxes of an application a plan spans."""
    partitions: int = 20
    """Into how many parts `qos-bucketed` divides gradients, and slacks; one: all are equal.

    Only for figures: where it `weighs_trains`, as in the engine, buckets are those of speeds."""
    weighs_trains: bool = False
    """Whether `qos` and `qos-bucketed` weigh gradients by what a call is worth, as its fixed cost
    is large: see `UtilityFirst`."""
    results_at_end: bool = False
    """Whether the results of a call are there when it ends, as with Spark jobs, or one by one."""
    saves_memory: bool = False
    """Whether a plan frees memory first when its queues take more than `memory_bytes`."""
    is_fused: bool = False
    """Whether boxes that run as one were fused before any cost was known: `auto` takes `fuse`."""
    reasons: tuple[str, ...] = field(default=(), compare=False)
    """Why `auto` chose them, in words."""

    def __post_init__(self) -> None:
        limits = (self.train, self.train_spread_s, self.train_cost_s, self.train_bytes)
        sizes = (*limits, self.memory_bytes, self.spanner_boxes, self.partitions)
        if any(not isinstance(size, str) and size is not None and size <= 0 for size in sizes):
            raise ValueError(f"limits, partitions and spanner_boxes are above zero; found {self}")

    @classmethod
    def of(cls, options: EngineOptions) -> SchedulerSettings:
        """The settings of a network."""
        bounds = options.train_bounds
        return cls(
            scheduler=options.scheduler,
            superbox=options.superbox,
            traversal=options.traversal,
            train=options.train_tuples or "auto",
            memory_bytes=options.memory_bytes,
            train_spread_s=bounds.spread_s if bounds else None,
            train_cost_s=bounds.cost_s if bounds else None,
            train_bytes=bounds.bytes if bounds else None,
            spanner_boxes=options.spanner,
            weighs_trains=True,
            results_at_end=True,
        )

    @property
    def is_chosen(self) -> bool:
        """Whether nothing but the size of trains is left to `auto`."""
        return "auto" not in (self.scheduler, self.superbox, self.traversal)
