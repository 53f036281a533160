"""Which way to kept rows is cheaper, with the reason in words (pure) [1 §3.2]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from auroral.history.index import HistoryStatistics, LookupPlan

PIECE_BYTES = 1 << 20
"""Opening one more row group costs as much as reading so many bytes in a row."""
SORT_FACTOR = 2.0
"""A row that a lookup finds is put back into order of moments: it costs this much more."""


@dataclass(frozen=True)
class AccessChoice:
    """How rows are read, what that is expected to cost, and why."""

    how: Literal["lookup", "scan", "merge"]
    cost_bytes: float
    """In bytes read one after the other."""
    reason: str


def choose_access(plan: LookupPlan) -> AccessChoice:
    """Look a key up, or read all that is kept."""
    scan = float(plan.kept.bytes)
    lookup = plan.pieces * PIECE_BYTES + SORT_FACTOR * plan.read.bytes
    share = f"{plan.read.rows:,} of {plan.kept.rows:,} rows"
    places = f"{plan.pieces:,} {'place' if plan.pieces == 1 else 'places'}"
    if lookup < scan:
        return AccessChoice("lookup", lookup, f"a lookup reads {share} in {places}")
    reason = f"a lookup would read {share} in {places}, which costs more than reading all"
    return AccessChoice("scan", scan, reason)


def choose_join(
    stored: HistoryStatistics, probes: int, *, group_rows: int, distinct_probes: int | None = None
) -> AccessChoice:
    """For a join on the key: look each key up, or read what is stored once and merge.

    `probes` tuples ask for `distinct_probes` different keys, as many as there are tuples if that
    is not known.
    """
    asked = min(distinct_probes or probes, stored.distinct_keys or probes)
    runs = max(stored.runs, 1)
    row_bytes = stored.bytes / max(stored.rows, 1)
    per_key = stored.rows / max(stored.distinct_keys or stored.rows, 1)
    # Keys that lie in one row group are found with one read.
    groups = min(asked * runs * (1 + per_key / runs / group_rows), stored.rows / group_rows + runs)
    lookup = groups * (PIECE_BYTES + group_rows * row_bytes)
    merge = float(stored.bytes)
    what = f"{asked:,} keys of about {stored.distinct_keys or stored.rows:,}"
    if lookup < merge:
        reason = f"{what} are sought, in about {round(groups):,} row groups of {runs:,} runs"
        return AccessChoice("lookup", lookup, reason)
    reason = f"{what} are sought: reading all {stored.rows:,} rows once costs less"
    return AccessChoice("merge", merge, reason)
