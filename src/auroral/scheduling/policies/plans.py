"""Second level of scheduling, how: from a chosen box to the calls of one worker [2 §4.1]."""

from __future__ import annotations

from collections.abc import Collection

from auroral.scheduling.decisions import SchedulingPlan
from auroral.scheduling.flow import FlowModel
from auroral.scheduling.policies.rankings import Candidate
from auroral.scheduling.policies.settings import SchedulerSettings
from auroral.scheduling.queues import QueueTable
from auroral.scheduling.trains import TrainLimits, sized_calls, waiting_room_s
from auroral.scheduling.traversals import SuperboxTree, Traversal, traverse

_IN_MEMORY = 0.5
"""The share of a queue that must be in memory for it to count as there."""


class PlanBuilder:
    """Turns a box that was chosen into a plan: that box, its application, or a part of it."""

    def __init__(self, settings: SchedulerSettings):
        assert settings.is_chosen, settings
        self._settings = settings
        self._model = FlowModel({})
        self._trees: dict[str, SuperboxTree] = {}
        self._limits = TrainLimits()

    def serve(self, model: FlowModel) -> None:
        """Build plans for this network from now on."""
        settings = self._settings
        self._model = model
        self._trees = {}
        self._limits = TrainLimits(
            tuples=settings.train if isinstance(settings.train, int) else None,
            spread_s=settings.train_spread_s,
            cost_s=settings.train_cost_s,
            bytes=settings.train_bytes,
            room_s=waiting_room_s(model) if settings.train == "auto" else None,
        )

    def plan(
        self, candidate: Candidate, table: QueueTable, taken: Collection[str], *, is_alone: bool
    ) -> SchedulingPlan:
        """The plan for a candidate that none of the `taken` boxes is part of.

        `is_alone`: there are workers enough for every box that has tuples, so that fused boxes
        need not run one after the other in the same one.
        """
        mode = self._settings.superbox
        if mode == "box" or (mode == "fuse" and is_alone):
            tree = self._tree(candidate.box)
            order = [candidate.box]
        else:
            tree = self._tree(self._root(candidate, mode == "fuse"))
            order = self._order(tree, candidate, table, taken)
        calls = sized_calls(
            order, self._model.boxes, tree.fed.__getitem__, table.queues, self._limits
        )
        return SchedulingPlan(calls, candidate.output, candidate.why)

    def _root(self, candidate: Candidate, is_fused: bool) -> str:
        """The box at which the superbox ends."""
        if is_fused:
            return candidate.box
        if candidate.output is None:
            return self._model.downstream(candidate.box)[-1]
        return self._model.writers[self._model.outputs[candidate.output].arc]

    def _tree(self, root: str) -> SuperboxTree:
        if root not in self._trees:
            self._trees[root] = SuperboxTree(self._model, root)
        return self._trees[root]

    def _order(
        self, tree: SuperboxTree, candidate: Candidate, table: QueueTable, taken: Collection[str]
    ) -> list[str]:
        queues = table.queues
        excluded: set[str] = set()
        ready: list[str] = []
        is_all_there = True
        for name in tree.boxes:
            queue = queues[name]
            is_all_there = is_all_there and queue.resident >= _IN_MEMORY
            if queue.running or name in taken:
                excluded.add(name)
            elif queue.queued:
                ready.append(name)
        if self._settings.superbox == "spanner" or not is_all_there:
            kept = set(tree.downstream[candidate.box])
            if self._settings.superbox == "spanner":
                kept |= self._spanned(tree, candidate, ready, table)
            else:
                kept |= self._in_memory(tree, table)
            excluded.update(name for name in tree.boxes if name not in kept)
            ready = [name for name in ready if name in kept]
        return traverse(tree, ready, self._traversal(ready, table), excluded)

    def _spanned(
        self, tree: SuperboxTree, candidate: Candidate, ready: list[str], table: QueueTable
    ) -> set[str]:
        """What the tuples of the boxes of the next highest priorities pass."""
        others = [name for name in ready if name != candidate.box]
        others.sort(key=lambda name: -(table[name].priority or 0.0))
        chosen = others[: self._settings.spanner_boxes - 1]
        return {box for name in chosen for box in tree.downstream[name]}

    def _in_memory(self, tree: SuperboxTree, table: QueueTable) -> set[str]:
        """The boxes that are met upstream before one whose queue is not in memory [1 §4.3]."""
        found: set[str] = set()
        stack = [tree.root]
        while stack:
            name = stack.pop()
            if name not in found and table[name].resident >= _IN_MEMORY:
                found.add(name)
                stack += self._model.boxes_before(name)
        return found

    def _traversal(self, waiting: Collection[str], table: QueueTable) -> Traversal:
        settings = self._settings
        assert settings.traversal != "auto"
        limit = settings.memory_bytes if settings.saves_memory else None
        if limit is not None and sum(table[name].bytes for name in waiting) > limit:
            return "mm"
        return settings.traversal
