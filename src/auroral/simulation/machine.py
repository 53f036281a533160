"""What a simulated machine spends besides the processing of tuples."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SimulatedMachine:
    """Workers, and the overheads of deciding, of storage and of threads.

    A call of a box over n tuples takes `call_s + n × cost_s` (the box's own figures), and what is
    said here. One scheduler decides at a time; its plans start when it has decided.
    """

    workers: int = 1
    """Plans that are carried out at the same time."""
    decision_s: float = 0.0
    """Each time that the scheduler is asked."""
    evaluation_s: float = 0.0
    """For each box whose priority it computes in a decision."""
    planning_s: float = 0.0
    """For each box that it puts into a plan."""
    storage_call_s: float = 0.0
    """Each time that a plan asks for tuples: storage brings a train for each of its boxes at once
    [2 §4.1], so only a box that is called again for tuples of its queue asks once more."""
    storage_tuple_s: float = 0.0
    """For each tuple that a plan gets from storage; tuples that an earlier call of the same plan
    has made are in memory [1 §4.3]."""
    switch_s: float = 0.0
    """A call of a box with a thread of its own switches to that thread; see `switching_s`."""
    cached_threads: int = 25
    """How many threads the caches of the machine hold without harm."""
    loop_s: float = 0.0
    """For each call when it ends: one thread commits, and decides what is next; meanwhile it can
    do so for no other call, and the worker has nothing to do."""
    plans_ahead: int = 0
    """How many plans the scheduler makes in advance when a worker has nothing to do."""
    emits_at_end: bool = False
    """Whether the results of a call are there when it ends, all at once, as with a Spark job that
    commits, or one after the other while it goes, as in [2]."""

    def switching_s(self, threads: int) -> float:
        """What a switch between threads costs if there are so many.

        `switch_s × (1 + (threads / cached_threads)²)`: the switch itself, and what the thread
        needs anew. The more threads share the caches, the less of a thread's data is still
        there when its turn comes, and the more threads hold the locks of queues that it wants;
        both shares grow with the number of threads, so their product grows with its square.
        """
        return self.switch_s * (1 + (threads / self.cached_threads) ** 2)
