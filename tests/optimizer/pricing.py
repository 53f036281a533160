"""An engine without Spark in which boxes take as long as a test says."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from auroral.engine.runtime.in_process import InProcessExecutor, InProcessPlainRunner
from auroral.network.check import CheckedNetwork
from auroral.optimizer import Probe
from auroral.scheduling.superboxes import Superbox
from auroral.spark.running.executor import Files
from auroral.spark.running.runner import StepResult


class PricedRunner(InProcessPlainRunner):
    """Says that each tuple took its box as long as its price."""

    def __init__(self, checked: CheckedNetwork, prices_s: Mapping[str, float]):
        super().__init__(checked)
        self._prices_s = prices_s
        self._own = checked

    def run(self, superbox: Superbox, train: Files, *, through_driver: bool) -> StepResult:
        result = super().run(superbox, train, through_driver=through_driver)
        counts = {source: sum(file.rows for file in files) for source, files in train.items()}
        counts |= result.counts
        result.spent_s = {
            box: self._prices_s.get(self._own.origin(box), 0.0)
            * sum(counts.get(arc.name, 0) for arc in self._own.inputs_of(box))
            for box in superbox.boxes
        }
        return result


class PricedExecutor(InProcessExecutor):
    """Runs steps in this process; `prices_s` are seconds for a tuple, by declared box."""

    def __init__(self, prices_s: Mapping[str, float], probed_s: Mapping[str, float] | None = None):
        """`probed_s` are what trials with the expressions of boxes find."""
        super().__init__()
        self._prices_s = prices_s
        self._probed_s = dict(probed_s or {})
        self.trials: list[tuple[str, int]] = []
        """The boxes whose expressions were tried, and on how many tuples."""

    def probe(self, probe: Probe, rows: pa.Table) -> float | None:
        self.trials.append((probe.box, rows.num_rows))
        return self._probed_s.get(probe.box)

    def plain(self, checked: CheckedNetwork, _directory: Path) -> PricedRunner:
        return PricedRunner(checked, self._prices_s)
