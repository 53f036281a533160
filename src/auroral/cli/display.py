"""What a run shows while it goes, and at its end."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from auroral.ids import EddyId

_PLAIN_S = 2.0


class Display:
    """One live line on a terminal; a plain line now and then when piped. On standard error."""

    def __init__(self, name: str):
        self._name = name
        self._console = Console(stderr=True)
        self._live: Live | None = None
        if self._console.is_terminal:
            self._live = Live(console=self._console, refresh_per_second=5, transient=True)
            self._live.start()
        self._last = (time.monotonic(), 0)
        self._printed = time.monotonic()
        self._rate = 0.0

    def say(self, text: str) -> None:
        """A message that stays."""
        self._console.print(f"{self._name}: {text}", highlight=False, soft_wrap=True)

    def show(self, stats: Mapping[str, Any], *, final: bool = False) -> None:
        """Where the run is now."""
        now = time.monotonic()
        total = sum(stream["in"] for stream in stats["streams"].values())
        then, before = self._last
        if now - then >= 1.0:
            self._rate = (total - before) / (now - then)
            self._last = (now, total)
        line = status_line(stats, self._rate)
        if self._live:
            self._live.update(Text(f"{self._name}: {line}"))
        elif now - self._printed >= _PLAIN_S or final:
            self._printed = now
            sys.stderr.write(f"{self._name}: {line}\n")
            sys.stderr.flush()

    def close(self) -> None:
        if self._live:
            self._live.stop()
            self._live = None


def status_line(stats: Mapping[str, Any], rate_per_s: float) -> str:
    """One line: tuples in and out, rate, lag, late, dead letters."""
    taken = sum(stream["in"] for stream in stats["streams"].values())
    waiting = sum(stream["waiting"] for stream in stats["streams"].values())
    given = sum(output["out"] for output in stats["outputs"].values())
    lags = [output["lag_s"] for output in stats["outputs"].values() if output["lag_s"] is not None]
    parts = [
        f"in {taken:,} ({rate_per_s:,.0f}/s)",
        f"out {given:,}",
        f"waiting {waiting:,}",
        f"late {stats['late']:,}",
        f"dead letters {stats['dead']:,}",
    ]
    if lags:
        parts.insert(3, f"lag {max(lags):.1f} s")
    failed = [name for name, output in stats["outputs"].items() if "failed" in output]
    if failed:
        parts.append(f"failed sinks: {', '.join(failed)}")
    return "  ".join(parts)


def outside_lines(stats: Mapping[str, Any]) -> list[str]:
    """Which outputs are outside their good zone, if there are any.

    >>> outside_lines({"qos_outside": {"share": 0.25, "outputs": ["alerts"]}})
    ['outside their good zone: alerts (25 % of outputs)']
    >>> outside_lines({"qos_outside": {"share": 0.0, "outputs": []}})
    []
    """
    names, share = stats["qos_outside"]["outputs"], stats["qos_outside"]["share"]
    told = f"outside their good zone: {', '.join(names)} ({share * 100:.3g} % of outputs)"
    return [told] if names else []


def summary(
    stats: Mapping[str, Any],
    targets: Mapping[str, str],
    *,
    elapsed_s: float,
    stopped: bool,
    resumable: bool,
    dead_letters: Path,
) -> str:
    """What happened, to be read by a person."""
    taken = sum(stream["in"] for stream in stats["streams"].values())
    steps = stats["steps"]
    median = f", median step {steps['median_s'] * 1000:.0f} ms" if steps["median_s"] else ""
    verb = "stopped" if stopped else "done"
    lines = [f"{verb} after {elapsed_s:.1f} s: {taken:,} tuples in {steps['count']} steps{median}"]
    for name, stream in stats["streams"].items():
        dead = f", {stream['dead']:,} dead letters" if stream["dead"] else ""
        lines.append(f"  stream {name}: {stream['in']:,} in{dead}")
    for name, output in stats["outputs"].items():
        if name in targets:
            left = ", the rest not: that failed" if "failed" in output else ""
            lines.append(f"  output {name}: {output['out']:,} out → {targets[name]}{left}")
        else:
            lines.append(f"  output {name}: {output['waiting']:,} made, not delivered (no sink)")
    for name, query in stats["queries"].items():
        failed = query.get("errors", 0)
        why = f", failed on {failed:,} tuples ({query['error']})" if failed else ""
        if query["shared"] and (failed or name not in targets):
            lines.append(f"  query {name}: {query['matches']:,} matches{why}")
        if query.get("stopped"):
            lines.append(f"  query {name}: stopped, it failed ({query['error']})")
    for kind, counted in (("query", stats["queries"]), ("box", stats["boxes"])):
        for name, one in counted.items():
            if any(one.get("late", {}).values()):
                reasons = ", ".join(f"{reason} {n:,}" for reason, n in one["late"].items())
                late = f"{sum(one['late'].values()):,} in no result ({reasons})"
                eddy = EddyId.parse(name)
                label = f"{kind} {name}" if eddy is None else f"joins of {eddy.joined}"
                lines.append(f"  {label}: {late}")
    if stats["dead"]:
        failed = {n: b["dead"] for n, b in stats["boxes"].items() if b["dead"]}
        extra = "".join(f"; box {n} failed on {count:,}" for n, count in failed.items())
        lines.append(f"  dead letters: {stats['dead']:,} → {dead_letters}{extra}")
    if stopped:
        lines.append(
            "  the same command goes on from here"
            if resumable
            else "  with --state DIR a stopped run could go on"
        )
    return "\n".join(lines)
