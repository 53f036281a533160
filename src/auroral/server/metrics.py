"""Statistics as Prometheus reads them: one snapshot of the engine, and figures of the server."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypedDict

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

MOST_QUERIES = 200
"""Beyond this many queries only their totals are told."""
MOST_NAMES = 1000
"""Of streams, arcs, boxes, outputs and points not more than this many each are told."""
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Labelled = Iterable[tuple[Mapping[str, str], Any]]


class ServerFigures(TypedDict, total=False):
    """What the server knows of itself; each key may be left out."""

    connections: int
    """Requests under way."""
    sockets: int
    """WebSockets that are open."""
    requests: Mapping[int, int]
    """Requests that were answered, by status."""
    request_seconds: float
    """How long those took together."""
    feeds: Mapping[str, Mapping[str, int]]
    """By name, connections, tuples, dead, bytes, lost_bytes and refused of line feeds."""
    ready: bool
    started_s: float
    """When the server started, in seconds since 1970."""
    version: str


def metrics_text(stats: Mapping[str, Any], extra: ServerFigures | None = None) -> bytes:
    """Everything in the text format of Prometheus.

    `stats` is what `Engine.stats` says; empty if the engine cannot answer.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_StatsCollector(stats, extra or {}))
    return bytes(generate_latest(registry))


class _StatsCollector(Collector):
    """Collects one snapshot, so that all figures are of one moment."""

    def __init__(self, stats: Mapping[str, Any], extra: ServerFigures):
        self._stats = stats
        self._extra = extra

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterator[Metric]:
        yield from _server(self._extra)
        if not self._stats:
            return
        yield from _totals(self._stats)
        yield from _streams(self._stats)
        yield from _arcs(self._stats)
        yield from _boxes(self._stats)
        yield from _outputs(self._stats)
        yield from _queries(self._stats)
        yield from _points(self._stats)
        yield from _unlisted(self._stats)


# ── kinds of metrics ──


def counter(name: str, text: str, values: Labelled) -> Iterator[Metric]:
    """A figure that only grows; Prometheus calls it `NAME_total`."""
    yield from _family(CounterMetricFamily, name, text, values)


def gauge(name: str, text: str, values: Labelled) -> Iterator[Metric]:
    """A figure that goes up and down."""
    yield from _family(GaugeMetricFamily, name, text, values)


def _family(kind: Any, name: str, text: str, values: Labelled) -> Iterator[Metric]:
    """The metric with those of its values that are known; none if none is."""
    known = [(labels, float(value)) for labels, value in values if value is not None]
    if known:
        family = kind(f"auroral_{name}", text, labels=list(known[0][0]))
        for labels, value in known:
            family.add_metric(list(labels.values()), value)
        yield family


def _one(value: Any) -> Labelled:
    return [({}, value)]


def _by(label: str, parts: Mapping[str, Mapping[str, Any]], *path: str) -> Labelled:
    """One figure of each of some parts of the network."""
    for name in _listed(parts):
        found: Any = parts[name]
        for key in path:
            found = found.get(key) if isinstance(found, Mapping) else None
        yield {label: name}, found


def _reasons(label: str, parts: Mapping[str, Mapping[str, Any]], key: str) -> Labelled:
    for name in _listed(parts):
        for reason, count in (parts[name].get(key) or {}).items():
            yield {label: name, "reason": reason}, count


def _listed(parts: Mapping[str, Any]) -> list[str]:
    return list(parts) if len(parts) <= MOST_NAMES else sorted(parts)[:MOST_NAMES]


def _add(figures: Mapping[str, Mapping[str, Any]], key: str) -> float:
    return float(sum(part.get(key) or 0 for part in figures.values()))


# ── figures ──


def _server(extra: ServerFigures) -> Iterator[Metric]:
    if "version" in extra:
        told = [({"version": extra["version"]}, 1)]
        yield from gauge("server_info", "The version of the server; always 1.", told)
    if "started_s" in extra:
        up_s = max(time.time() - extra["started_s"], 0.0)
        yield from gauge("server_uptime_seconds", "How long the server has run.", _one(up_s))
    ready = extra.get("ready")
    yield from gauge(
        "server_ready",
        "1 if the engine runs, 0 if it starts, has failed or is shut down.",
        _one(None if ready is None else int(ready)),
    )
    yield from gauge(
        "server_connections", "HTTP requests under way.", _one(extra.get("connections"))
    )
    yield from gauge("server_websockets", "Open WebSockets.", _one(extra.get("sockets")))
    statuses = [({"status": str(s)}, n) for s, n in sorted(extra.get("requests", {}).items())]
    yield from counter("server_requests", "Answered HTTP requests.", statuses)
    yield from counter(
        "server_request_seconds",
        "Time spent on answered HTTP requests.",
        _one(extra.get("request_seconds")),
    )
    feeds = extra.get("feeds", {})
    yield from gauge(
        "feed_connections", "Connections of a line feed.", _by("feed", feeds, "connections")
    )
    yield from counter("feed_tuples", "Tuples of a line feed.", _by("feed", feeds, "tuples"))
    yield from counter("feed_bytes", "Bytes that a line feed read.", _by("feed", feeds, "bytes"))
    yield from counter("feed_dead_letters", "Lines that did not fit.", _by("feed", feeds, "dead"))
    yield from counter(
        "feed_refused", "Connections that were refused.", _by("feed", feeds, "refused")
    )
    yield from counter(
        "feed_lost_bytes",
        "Bytes that a line feed read and could not enqueue.",
        _by("feed", feeds, "lost_bytes"),
    )
    yield from gauge(
        "process_resident_bytes", "Memory of the server's process.", _one(resident_bytes())
    )
    used = resource.getrusage(resource.RUSAGE_SELF)
    yield from counter(
        "process_cpu_seconds", "Processor time of the process.", _one(used.ru_utime + used.ru_stime)
    )


def resident_bytes() -> int | None:
    """The memory of this process; its peak where the system does not tell what it is now."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


def _totals(stats: Mapping[str, Any]) -> Iterator[Metric]:
    steps, memory = stats["steps"], stats.get("memory") or {}
    shedding = stats.get("shedding") or {}
    yield from counter("steps", "Steps that were committed.", _one(steps["count"]))
    yield from gauge(
        "step_median_seconds", "Median time of the latest steps.", _one(steps["median_s"])
    )
    yield from gauge("step_last_seconds", "Time of the latest step.", _one(steps["last_s"]))
    yield from counter("late_tuples", "Tuples that came too late.", _one(stats["late"]))
    yield from counter("dead_letters", "Rows that did not fit.", _one(stats["dead"]))
    yield from counter(
        "shed_tuples", "Tuples that load shedding dropped.", _one(shedding.get("dropped"))
    )
    yield from gauge(
        "drop_boxes", "Drop boxes that are in place.", _one(len(shedding.get("drops") or ()))
    )
    yield from gauge(
        "load", "Work per second of machine time, by the load shedder.", _one(shedding.get("load"))
    )
    yield from gauge("queue_memory_budget_bytes", "Memory for queues.", _one(memory.get("budget")))
    yield from gauge("queue_memory_used_bytes", "Queues in memory.", _one(memory.get("used")))
    yield from gauge(
        "queue_memory_written_bytes",
        "Queues that are on disk only.",
        _one(memory.get("disk_bytes")),
    )
    yield from counter(
        "queue_evictions", "Segments that left memory.", _one(memory.get("evictions"))
    )


def _streams(stats: Mapping[str, Any]) -> Iterator[Metric]:
    streams = stats["streams"]
    yield from counter("stream_tuples", "Tuples that came.", _by("stream", streams, "in"))
    yield from gauge("stream_rate", "Tuples per second.", _by("stream", streams, "rate"))
    yield from counter(
        "stream_dead_letters", "Rows that did not fit.", _by("stream", streams, "dead")
    )
    yield from gauge(
        "stream_waiting_tuples",
        "Tuples that the slowest box has not read.",
        _by("stream", streams, "waiting"),
    )
    yield from counter(
        "stream_late_tuples",
        "Tuples below their stream's punctuation, by reason.",
        _reasons("stream", streams, "late"),
    )


def _arcs(stats: Mapping[str, Any]) -> Iterator[Metric]:
    yield from counter("arc_tuples", "Tuples on an arc.", _by("arc", stats["arcs"], "tuples"))


def _boxes(stats: Mapping[str, Any]) -> Iterator[Metric]:
    boxes = stats["boxes"]
    yield from gauge("box_queue_tuples", "Tuples that wait.", _by("box", boxes, "queued"))
    yield from gauge(
        "box_queue_age_seconds", "Age of the oldest that waits.", _by("box", boxes, "oldest_s")
    )
    yield from counter("box_tuples_in", "Tuples that went in.", _by("box", boxes, "in"))
    yield from counter("box_tuples_out", "Tuples that came out.", _by("box", boxes, "out"))
    yield from counter("box_seconds", "Time that a box took.", _by("box", boxes, "seconds"))
    yield from counter("box_calls", "Steps that ran a box.", _by("box", boxes, "calls"))
    yield from gauge("box_cost_seconds", "Time that a tuple takes.", _by("box", boxes, "cost_s"))
    yield from gauge(
        "box_held_tuples", "Tuples and windows in its state.", _by("box", boxes, "held")
    )
    yield from counter(
        "box_late_tuples", "Tuples that came too late, by reason.", _reasons("box", boxes, "late")
    )
    yield from counter(
        "box_dead_letters", "Tuples on which a function failed.", _by("box", boxes, "dead")
    )


def _outputs(stats: Mapping[str, Any]) -> Iterator[Metric]:
    queries = stats["queries"]
    outputs = {name: part for name, part in stats["outputs"].items() if name not in queries}
    quality = {name: part for name, part in stats["qos"].items() if name not in queries}
    yield from counter("output_tuples", "Results that were taken.", _by("output", outputs, "out"))
    yield from gauge(
        "output_waiting_tuples", "Results that nobody took.", _by("output", outputs, "waiting")
    )
    yield from gauge(
        "output_lag_seconds", "Delay of the latest delivery.", _by("output", outputs, "lag_s")
    )
    yield from gauge(
        "output_behind_seconds",
        "Age of the oldest result that nobody took.",
        _by("output", outputs, "behind_s"),
    )
    yield from gauge(
        "output_failed",
        "1 if its sink has failed.",
        [({"output": n}, int("failed" in outputs[n])) for n in _listed(outputs)],
    )
    for key, text in (
        ("utility", "Utility over the last minute, 0 to 1."),
        ("latency", "Utility of the delay over the last minute."),
        ("loss", "Utility of the share that was delivered."),
        ("value", "Utility of the values that were delivered."),
    ):
        name = "output_utility" if key == "utility" else f"output_{key}_utility"
        yield from gauge(name, text, _by("output", quality, key))
    yield from gauge(
        "output_delay_seconds",
        "Mean delay over the last minute.",
        _by("output", quality, "delay_s"),
    )
    yield from gauge(
        "output_delay_p95_seconds",
        "95th percentile of the delay.",
        _by("output", quality, "delay_p95_s"),
    )
    yield from gauge(
        "output_good_zone", "1 if the delay is good enough.", _by("output", quality, "good_zone")
    )
    yield from gauge(
        "outputs_outside_share",
        "Share of outputs outside their good zone.",
        _one(stats["qos_outside"]["share"]),
    )
    yield from counter(
        "output_shed",
        "Results lost because tuples were shed, by reason.",
        _reasons("output", quality, "shed_by"),
    )


def _queries(stats: Mapping[str, Any]) -> Iterator[Metric]:
    queries = stats["queries"]
    yield from gauge("queries", "Continuous queries.", _one(len(queries)))
    yield from counter("queries_matches", "Matches of all queries.", _one(_add(queries, "matches")))
    yield from counter(
        "queries_errors", "Tuples on which queries failed.", _one(_add(queries, "errors"))
    )
    if len(queries) <= MOST_QUERIES:
        yield from counter("query_matches", "Matches.", _by("query", queries, "matches"))
        yield from counter(
            "query_errors", "Tuples on which a query failed.", _by("query", queries, "errors")
        )


def _points(stats: Mapping[str, Any]) -> Iterator[Metric]:
    points = stats.get("connection_points") or {}
    yield from gauge("point_rows", "Rows that a point keeps.", _by("point", points, "rows"))
    yield from gauge("point_bytes", "Bytes that a point keeps.", _by("point", points, "bytes"))
    yield from gauge("attachments", "Attached queries.", _one(len(stats.get("attachments") or ())))


def _unlisted(stats: Mapping[str, Any]) -> Iterator[Metric]:
    """How many parts are left out, so that nobody takes the rest for all."""
    kinds = {kind: len(stats[kind]) for kind in ("streams", "arcs", "boxes", "outputs")}
    left = [({"kind": kind}, max(count - MOST_NAMES, 0)) for kind, count in kinds.items()]
    queries = len(stats["queries"])
    left.append(({"kind": "queries"}, queries if queries > MOST_QUERIES else 0))
    yield from gauge("unlisted", "Parts of the network without metrics of their own.", left)
