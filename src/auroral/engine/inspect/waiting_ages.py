"""How long tuples have waited on the way to outputs that may give nothing meanwhile."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from auroral.engine.runtime.arrival_times import ArrivalTimes
from auroral.network.check import CheckedNetwork
from auroral.scheduling.flow import FlowOutput
from auroral.scheduling.flow_models import flow_model
from auroral.scheduling.superboxes import Superbox
from auroral.storage import Store


class WaitingAges:
    """Tells from the queues of superboxes how old the oldest tuple on the way to an output is.

    What boxes hold in open windows waits for other tuples, not for its turn, and does not count.
    """

    def __init__(
        self,
        checked: CheckedNetwork,
        superboxes: Sequence[Superbox],
        store: Store,
        times: ArrivalTimes,
    ):
        self._checked = checked
        self._superboxes = superboxes
        self._store = store
        self._times = times
        self._arcs: Mapping[str, str] | None = None
        self._outputs: dict[str, tuple[str, ...]] = {}
        """By superbox, the outputs that it leads to."""

    def arrivals(
        self, outputs: Mapping[str, FlowOutput], stuck: Collection[str]
    ) -> dict[str, float]:
        """By output, when the oldest tuple on the way to it has arrived, if there is any.

        What waits for superboxes that are `stuck` is left out.
        """
        arcs = {name: output.arc for name, output in outputs.items()}
        if arcs != self._arcs:
            model = flow_model(self._checked, {}, outputs, self._superboxes)
            self._outputs = {name: model.outputs_of(name) for name in model.boxes}
            self._arcs = arcs
        found: dict[str, float] = {}
        for superbox in self._superboxes:
            leads_to = self._outputs[superbox.name]
            first = None if superbox.name in stuck or not leads_to else self._oldest(superbox)
            if first is not None:
                arrived_s = self._times.at(first)
                for output in leads_to:
                    found[output] = min(found.get(output, arrived_s), arrived_s)
        return found

    def _oldest(self, superbox: Superbox) -> int | None:
        """The moment of the oldest tuple that waits for a superbox, or is in a step of it."""
        firsts = []
        for source in superbox.sources:
            head = self._store.head(source, superbox.name)
            held = (s.first for s in self._store.segments(source, head) if s.rows)
            firsts += [max(first, head) for first in held]
        return min(firsts, default=None)
