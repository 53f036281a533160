"""Schedulers: which application runs next, and how (pure).

The first level ranks boxes (`rankings`, `utility_first`, `weighed_trains`,
and so on), the second level
turns the box that was chosen into calls (`plans`). `make_scheduler` puts them together; `choose`
decides what settings leave to `auto`.
"""

from __future__ import annotations

from auroral.scheduling.policies.buckets import BucketedUtility
from auroral.scheduling.policies.choice import choose
from auroral.scheduling.policies.feedback import FeedbackWeights
from auroral.scheduling.policies.rankings import OldestFirst, Ranking, RoundRobin
from auroral.scheduling.policies.settings import SchedulerSettings
from auroral.scheduling.policies.two_level import TwoLevelScheduler
from auroral.scheduling.policies.utility_first import UtilityFirst
from auroral.scheduling.policies.weighed_buckets import WeighedBuckets
from auroral.scheduling.policies.weighed_trains import WeighedTrains
from auroral.scheduling.train_worth import WorthOfTrains

__all__ = ["SchedulerSettings", "TwoLevelScheduler", "choose", "make_scheduler"]


def make_scheduler(settings: SchedulerSettings) -> TwoLevelScheduler:
    """A scheduler with these settings; each `auto` is decided when it is told the network."""
    return TwoLevelScheduler(settings, _ranking)


def _ranking(settings: SchedulerSettings) -> Ranking:
    most = settings.train if isinstance(settings.train, int) else None
    worth = WorthOfTrains(most, limits_trains=settings.train == "auto")
    match settings.scheduler:
        case "fifo":
            return OldestFirst()
        case "qos":
            return WeighedTrains(worth) if settings.weighs_trains else UtilityFirst(most)
        case "qos-bucketed":
            if settings.weighs_trains:
                return WeighedBuckets(worth)
            return BucketedUtility(settings.partitions, most)
        case "feedback":
            return FeedbackWeights()
        case _:
            return RoundRobin(by_output=settings.superbox in ("application", "spanner"))
