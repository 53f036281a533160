"""The QoS monitor: how all outputs do [1 §4.4] (pure: times are arguments)."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from types import MappingProxyType
from typing import Any

from auroral.qos.graphs import QoS
from auroral.qos.output_monitor import Floats, OutputMonitor, OutputSums, SecondSums

_PERCENTILE = 0.95


class QoSMonitor:
    """Watches outputs; any thread may ask.

    >>> monitor = QoSMonitor()
    >>> monitor.serve({"alerts": QoS(latency=[(0, 1), (2, 1), (10, 0)]), "others": None}, 0.0)
    >>> monitor.record("alerts", 1.0, [(6.0, 100)])
    >>> monitor.outside(1.0), monitor.utility("alerts", 1.0), monitor.utility("others", 1.0)
    (0.5, 0.5, 1.0)
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._earlier: dict[str, tuple[OutputSums, Sequence[SecondSums]]] = {}
        """What an earlier run knew of outputs that are not watched yet."""
        self._outputs: dict[str, OutputMonitor] = {}
        self._declared: dict[str, QoS | None] = {}

    def serve(self, outputs: Mapping[str, QoS | None], now_s: float) -> None:
        """Watch these outputs from now on; those that stay as they are keep what is known."""
        with self._lock:
            found: dict[str, OutputMonitor] = {}
            for name, qos in outputs.items():
                known = self._outputs.get(name)
                if known is not None and self._declared[name] != qos:
                    known.serve(qos, now_s)
                if known is None:
                    known = OutputMonitor(qos, now_s)
                    if name in self._earlier:
                        known.restore(*self._earlier.pop(name), now_s)
                found[name] = known
            self._outputs, self._declared = found, dict(outputs)

    def restore(self, earlier: Mapping[str, tuple[OutputSums, Sequence[SecondSums]]]) -> None:
        """Let outputs go on with what an earlier run knew of them, as soon as they are watched."""
        with self._lock:
            self._earlier = dict(earlier)

    def kept(self, since: int) -> dict[str, tuple[OutputSums, Sequence[SecondSums]]]:
        """What a later run has to know of each output: its sums, and its seconds from one on."""
        with self._lock:
            return {n: (one.sums, one.seconds_since(since)) for n, one in self._outputs.items()}

    def set_qos(self, output: str, qos: QoS | None, now_s: float) -> None:
        """Judge an output by other graphs; one that is not watched is left alone."""
        with self._lock:
            if output in self._outputs and self._declared[output] != qos:
                self._declared[output] = qos
                self._outputs[output].serve(qos, now_s)

    @property
    def outputs(self) -> Mapping[str, QoS | None]:
        """What is watched, with the graphs that were declared."""
        with self._lock:
            return dict(self._declared)

    def record(
        self,
        output: str,
        now_s: float,
        delays: Sequence[tuple[float, float]] = (),
        *,
        shed: Mapping[str, float] = MappingProxyType({}),
        values: Floats | None = None,
    ) -> None:
        """Tuples were delivered, or shed; see `OutputMonitor.record`."""
        with self._lock:
            if output in self._outputs:
                self._outputs[output].record(now_s, delays, shed=shed, values=values)

    def wait(self, oldest_s: Mapping[str, float]) -> None:
        """For how long the oldest tuple on the way to each output has waited; 0 for the others."""
        with self._lock:
            for name, one in self._outputs.items():
                one.wait(oldest_s.get(name, 0.0))

    # ── how outputs do ──

    def outside(self, now_s: float) -> float:
        """The share of outputs outside their good zone: dynamic analysis [1 §4.4]."""
        with self._lock:
            found = [one.in_good_zone(now_s) for one in self._outputs.values()]
        return found.count(False) / len(found) if found else 0.0

    def in_good_zone(self, output: str, now_s: float) -> bool:
        """Whether an output is in its good zone."""
        with self._lock:
            return self._outputs[output].in_good_zone(now_s)

    def utility(self, output: str, now_s: float) -> float:
        """The utility of an output over the last minute."""
        with self._lock:
            return self._outputs[output].reading(now_s).utility

    def delay_s(self, output: str, now_s: float) -> float | None:
        """The mean delay of an output over the last minute; None if nothing came."""
        with self._lock:
            return self._outputs[output].delay_s(now_s)

    def waiting_s(self, output: str) -> float:
        """How long the oldest tuple on the way to an output has waited."""
        with self._lock:
            return self._outputs[output].waiting_s

    def value_counts(
        self, output: str, now_s: float
    ) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
        """Edges and counts of the values of an output; see `OutputMonitor.value_counts`."""
        with self._lock:
            return self._outputs[output].value_counts(now_s)

    def history(self, output: str, now_s: float) -> list[dict[str, float]]:
        """The course of an output's utility; see `OutputMonitor.history`."""
        with self._lock:
            return self._outputs[output].history(now_s)

    def statistics(self, now_s: float) -> dict[str, dict[str, Any]]:
        """All outputs as plain data."""
        with self._lock:
            return {
                name: {**_shown(one, now_s), "qos": _document(self._declared[name])}
                for name, one in self._outputs.items()
            }

    def delay_counts(self, output: str, now_s: float) -> list[tuple[float, float]]:
        """Delays of an output, each with its tuples; see `OutputMonitor.delay_counts`."""
        with self._lock:
            known = self._outputs.get(output)
            return [] if known is None else known.delay_counts(now_s)


def _document(qos: QoS | None) -> dict[str, Any] | None:
    return None if qos is None else qos.document()


def _shown(monitor: OutputMonitor, now_s: float) -> dict[str, Any]:
    reading = {k: round(v, 6) for k, v in asdict(monitor.reading(now_s)).items()}
    latest = {k: round(v, 6) for k, v in asdict(monitor.latest(now_s)).items()}
    delay_s = monitor.delay_s(now_s)
    high_s = monitor.delay_percentile_s(now_s, _PERCENTILE)
    return {
        **reading,
        "now": latest,
        "good_zone": monitor.in_good_zone(now_s),
        "good_share": round(monitor.good_share(now_s), 6),
        "delay_s": None if delay_s is None else round(delay_s, 6),
        "delay_p95_s": None if high_s is None else round(high_s, 6),
        "waiting_s": round(monitor.waiting_s, 6),
        "delivered": round(monitor.delivered),
        "shed": round(sum(monitor.shed.values())),
        "shed_by": {reason: round(count) for reason, count in monitor.shed.items()},
        "lost": {_REASONS[kind]: round(amount, 6) for kind, amount in monitor.lost.items()},
    }


_REASONS = {"latency": "delay", "loss": "loss", "value": "value", "throughput": "throughput"}
"""Why utility is lost, by the kind of graph that says so."""
