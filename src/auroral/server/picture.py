"""The picture: what a canvas shows of a running engine, made of its statistics now and before.

Pure: two samples of `Engine.stats()` and the picture before in, a picture out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from auroral.server.topology import Wiring
from auroral.server.tracing import NOTHING
from auroral.server.wire_rows import json_value

_SMOOTHING_S = 2.0
"""A change of rate is shown to two thirds after so many seconds."""
_PRESSED = 0.5
"""A tuple that has waited for this share of what outputs can bear presses."""
Recent = Callable[[str], list[float | None]]


@dataclass(frozen=True)
class EngineSample:
    """What an engine said at one time."""

    at_us: int
    at_s: float
    """On a clock that never goes back."""
    stats: Mapping[str, Any]
    debug: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    version: str = ""
    failure: str | None = None


@dataclass(frozen=True)
class RateMeter:
    """Counts so far and smoothed rates, by key."""

    at_s: float
    counts: Mapping[tuple[str, ...], int] = field(default_factory=dict)
    rates: Mapping[tuple[str, ...], float] = field(default_factory=dict)

    def next(self, at_s: float, counts: Mapping[tuple[str, ...], int]) -> RateMeter:
        """The rates after other counts; what was not counted before has none yet.

        >>> meter = RateMeter(0.0).next(1.0, {("a",): 10}).next(3.0, {("a",): 30})
        >>> meter.rate("a")
        10.0
        """
        passed = at_s - self.at_s
        if passed <= 0:
            return RateMeter(self.at_s, counts, self.rates)
        share = min(passed / _SMOOTHING_S, 1.0)
        rates: dict[tuple[str, ...], float] = {}
        for key, count in counts.items():
            if key not in self.counts:
                continue
            now = max(count - self.counts[key], 0) / passed
            before = self.rates.get(key, now)
            rates[key] = before + share * (now - before)
        return RateMeter(at_s, dict(counts), rates)

    def rate(self, *key: str) -> float:
        """Per second, shown with three digits or so."""
        return rounded(self.rates.get(key, 0.0))


def rounded(value: float) -> float:
    """A number as a card shows it: a tiny change is none.

    >>> rounded(1234.567), rounded(1.23456), rounded(0.0)
    (1235.0, 1.23, 0.0)
    """
    return float(f"{value:.3g}") if abs(value) < 1000 else float(round(value))


def counted(stats: Mapping[str, Any]) -> dict[tuple[str, ...], int]:
    """The counts whose rates a picture shows."""
    counts: dict[tuple[str, ...], int] = {}
    for name, stream in stats["streams"].items():
        counts["arc", name] = stream["in"]
    for name, arc in stats["arcs"].items():
        counts["arc", name] = arc["tuples"]
    for name, box in stats["boxes"].items():
        counts["in", name], counts["out", name] = box["in"], box["out"]
    for name, output in stats["outputs"].items():
        counts["output", name] = output["out"] + output["waiting"]
    return counts


def picture_of(
    sample: EngineSample, meter: RateMeter, wiring: Wiring, recent_utility: Recent
) -> dict[str, Any]:
    """The whole picture."""
    stats = sample.stats
    outputs = _outputs(stats, meter, recent_utility)
    utilities = [o["utility"] for o in outputs.values() if o["utility"] is not None]
    state = "failed" if sample.failure else "paused" if sample.debug["paused"] else "running"
    step_s = stats["steps"]["median_s"]
    return {
        "at_us": sample.at_us,
        "network": sample.version,
        "state": state,
        "failure": sample.failure,
        "rate": rounded(sum(meter.rates.get(("arc", name), 0.0) for name in stats["streams"])),
        "utility": rounded(sum(utilities) / len(utilities)) if utilities else None,
        "steps": stats["steps"]["count"],
        "step_s": step_s and rounded(step_s),
        "late": stats["late"],
        "dead": stats["dead"],
        "shed": stats["shedding"]["dropped"],
        "memory_bytes": stats["memory"].get("used"),
        "arcs": _arcs(stats, meter, wiring),
        "boxes": _boxes(stats, meter),
        "outputs": outputs,
        "points": _points(stats),
        "queries": _queries(stats),
        "attachments": _attachments(stats),
        "drops": _drops(stats),
        "moves": _moves(stats),
        "scheduler": {
            "scheduler": stats["scheduler"]["scheduler"],
            "reasons": list(stats["scheduler"]["reasons"]),
        },
        "debug": json_value(sample.debug),
    }


def _arcs(stats: Mapping[str, Any], meter: RateMeter, wiring: Wiring) -> dict[str, Any]:
    """Figures by arc: streams, arcs of boxes, and the names that stand for arcs."""
    shown: dict[str, Any] = {}
    for name, own in {**stats["streams"], **stats["arcs"]}.items():
        mark = own["progress"]
        shown[name] = {
            "tuples": own["tuples"] if "tuples" in own else own["in"],
            "rate": meter.rate("arc", name),
            "queued": own["queued"],
            "oldest_s": _small(own["oldest_s"]),
            "patience_s": wiring.patience_s.get(name),
            "pressed": _pressed(stats["boxes"], wiring.readers.get(name, {}))
            if own["queued"]
            else {},
            "mark": json_value(mark) if mark else {},
        }
    for alias, arc in wiring.aliases.items():
        if arc in shown:
            shown.setdefault(alias, shown[arc])
    return shown


def _pressed(
    boxes: Mapping[str, Mapping[str, Any]], readers: Mapping[str, float]
) -> dict[str, dict[str, float]]:
    """Readers whose oldest tuple has used at least half of the delay that outputs behind can bear.

    >>> waiting = {"fast": {"oldest_s": 0.6}, "slow": {"oldest_s": 3.0}, "idle": {"oldest_s": None}}
    >>> _pressed(waiting, {"fast": 1.0, "slow": 30.0, "idle": 1.0})
    {'fast': {'oldest_s': 0.6, 'patience_s': 1.0}}
    """
    return {
        name: {"oldest_s": rounded(oldest_s), "patience_s": patience_s}
        for name, patience_s in readers.items()
        if (oldest_s := boxes.get(name, {}).get("oldest_s")) is not None
        and oldest_s >= patience_s * _PRESSED
    }


def _boxes(stats: Mapping[str, Any], meter: RateMeter) -> dict[str, Any]:
    shed = stats["shedding"]["drops"]
    dropped: dict[str, int] = {}
    for drop in shed:
        dropped[drop["superbox"]] = dropped.get(drop["superbox"], 0) + drop["dropped"]
    return {
        name: {
            "in_rate": meter.rate("in", name),
            "out_rate": meter.rate("out", name),
            "selectivity": _small(box["selectivity"]),
            "cost_s": _small(box["cost_s"]),
            "call_s": _small(box["call_s"]),
            "calls": box["calls"],
            "held": box.get("held"),
            "queued": box.get("queued", 0),
            "late": box.get("late", {}),
            "dead": box["dead"],
            "shed": box.get("shed", dropped.get(name, 0)),
            "superbox": box.get("superbox"),
            "priority": _small(box.get("priority")),
            "halted": box.get("halted"),
        }
        for name, box in stats["boxes"].items()
    }


def _small(value: float | None) -> float | None:
    return None if value is None else rounded(value)


def _outputs(stats: Mapping[str, Any], meter: RateMeter, recent: Recent) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, output in stats["outputs"].items():
        quality = stats["qos"].get(name, {})
        delivered, shed = quality.get("delivered", 0), quality.get("shed", 0)
        total = delivered + shed
        found[name] = {
            "out": output["out"],
            "rate": meter.rate("output", name),
            "waiting": output["waiting"],
            "lag_s": _small(output["lag_s"]),
            "utility": _small(quality.get("utility")),
            "latency_s": _small(quality.get("delay_s")),
            "latency_p95_s": _small(quality.get("delay_p95_s")),
            "loss": rounded(delivered / total) if total else None,
            "value": _small(quality.get("value")),
            "good_zone": quality.get("good_zone"),
            "shed": shed,
            "failed": output.get("failed"),
            "recent_utility": recent(name),
            "qos": quality.get("qos"),
        }
    return found


def _points(stats: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: {
            "rows": point.get("rows", 0),
            "bytes": point.get("bytes", 0),
            "oldest": json_value(point.get("oldest")),
            "attached": _names(point.get("attachments", ())),
        }
        for name, point in stats["connection_points"].items()
    }


def _names(given: Any) -> list[str]:
    return list(given) if isinstance(given, (list, tuple, dict, set)) else []


def _queries(stats: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: {
            "matches": query.get("matches", 0),
            "shared": query["shared"],
            "failed": query.get("error") if query.get("stopped") or query["shared"] else None,
        }
        for name, query in stats["queries"].items()
    }


def _attachments(stats: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: {key: one[key] for key in ("point", "query", "caught_up")}
        for name, one in stats["attachments"].items()
    }


def _drops(stats: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "arc": drop["arc"],
            "superbox": drop["superbox"],
            "rate": box["rate"],
            "interval": _interval(box["interval"]),
            "outputs": list(box["outputs"]),
            "since_us": drop["since_us"],
            "dropped": drop["dropped"],
        }
        for drop in stats["shedding"]["drops"]
        for box in drop["boxes"]
    ]


def _interval(given: Any) -> str | None:
    """An interval of values in words.

    >>> _interval({"field": "price", "low": 3, "high": None})
    '3 <= price'
    """
    if not isinstance(given, Mapping):
        return None if given is None else str(given)
    low, high = given.get("low"), given.get("high")
    before = "" if low is None else f"{low:g} <= "
    behind = "" if high is None else f" < {high:g}"
    return f"{before}{given.get('field', 'value')}{behind}"


def _moves(stats: Mapping[str, Any]) -> list[dict[str, str]]:
    """What the optimiser changed: why, and where the box stood and runs now."""
    return [
        {
            "box": str(move["box"]),
            "text": f"{move['tactic']} past {move['past']}: {move['why']}",
            **{key: str(move[key]) for key in ("past", "place", "target", "tactic", "side")},
        }
        for move in stats["optimizer"]["moves"]
    ]
