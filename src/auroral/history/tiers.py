"""Which runs to merge, to rewrite and to drop (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from auroral.storage import Segment


@dataclass(frozen=True)
class RunTiers:
    """When runs are made and merged.

    A tuple is rewritten once per level, and a lookup sees at most `fan_in` runs of each.
    """

    first_rows: int = 262_144
    """How many rows of the log become a run of the first level."""
    fan_in: int = 4
    """So many neighbouring runs of one level become one of the next."""
    most_rows: int = 1 << 26
    """No run grows beyond this by merging."""

    def level(self, run: Segment) -> int:
        """How often the rows of a run may have been merged.

        A run of the first level may be a little smaller or larger than it should be.
        """
        found, size = 0, 2 * self.first_rows
        while run.rows >= size:
            found, size = found + 1, size * self.fan_in
        return found

    def to_merge(self, runs: Sequence[Segment], oldest: int) -> list[Segment]:
        """Neighbouring runs, in order, that should become one now; nothing if all is well.

        One run alone is rewritten when at least half of its moments have expired.
        """
        kept = [run for run in runs if run.last >= oldest]
        if kept and 2 * (oldest - kept[0].first) >= kept[0].last - kept[0].first + 1:
            return kept[:1]
        for start in range(len(kept) - self.fan_in, -1, -1):
            group = kept[start : start + self.fan_in]
            if len({self.level(run) for run in group}) == 1 and self._fits(group):
                return group
        # A small run between larger ones would never find its like.
        for at in range(len(kept) - 2):
            before, between, after = kept[at : at + 3]
            if self.level(between) < min(self.level(before), self.level(after)):
                pair = [before, between] if before.rows <= after.rows else [between, after]
                if self._fits(pair):
                    return pair
        return []

    def _fits(self, runs: Sequence[Segment]) -> bool:
        return sum(run.rows for run in runs) <= self.most_rows


def expired(runs: Sequence[Segment], oldest: int) -> list[Segment]:
    """The runs of which nothing is kept any more."""
    return [run for run in runs if run.last < oldest]
