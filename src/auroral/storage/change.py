"""What a transaction of the store is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import pyarrow as pa

from auroral.scheduling.costs import BoxCost
from auroral.storage.manifest import EntityRow, Manifest, QueryRow, ShedRow
from auroral.storage.segment import Segment
from auroral.storage.statistics import KeptStatistics


@dataclass(frozen=True)
class UnwrittenSegment:
    """New tuples of a log, not yet written: hidden columns first, in order of arrival."""

    log: str
    table: pa.Table
    complete_before: int
    punctuations: tuple[tuple[int, Any, tuple[Any, ...]], ...] = ()


@dataclass(frozen=True)
class Forgotten:
    """What nobody needs any more."""

    logs: Sequence[str] = ()
    cursors: Sequence[tuple[str, str]] = ()
    """Of consumers that are no more; what they alone needed goes too."""
    progress: Sequence[str] = ()
    counters: Sequence[tuple[str, str]] = ()
    queries: Sequence[QueryRow] = ()
    costs: Sequence[str] = ()
    """Boxes whose measured costs nobody needs."""

    def __or__(self, other: Forgotten) -> Forgotten:
        both = [[*getattr(self, f.name), *getattr(other, f.name)] for f in fields(self)]
        return Forgotten(*both)


@dataclass(frozen=True)
class MovedLog:
    """A log whose segments, and one consumer, another log gets."""

    log: str
    to: str
    consumer: str


@dataclass
class Change:
    """What one transaction makes true."""

    fresh: Sequence[UnwrittenSegment] = ()
    written: Sequence[Segment] = ()
    retired: Sequence[Segment] = ()
    """Segments of state that others take the place of."""
    next_moment: int | None = None
    heads: Mapping[tuple[str, str], int] = field(default_factory=dict)
    progress: Mapping[str, Any] = field(default_factory=dict)
    sources: Mapping[str, Any] = field(default_factory=dict)
    sinks: Mapping[str, Any] = field(default_factory=dict)
    counts: Mapping[tuple[str, str], int] = field(default_factory=dict)
    meta: Mapping[str, str] = field(default_factory=dict)
    entities: Sequence[EntityRow] | None = None
    """What the network has from now on."""
    costs: Mapping[str, BoxCost] = field(default_factory=dict)
    """What is known of boxes now, by name."""
    statistics: KeptStatistics | None = None
    """What is known of streams, queues and outputs now."""
    finished_step: int | None = None
    shed: Sequence[ShedRow] = ()
    """What drop boxes did."""
    queries: Sequence[QueryRow] = ()
    """Newly registered."""
    ended: Mapping[int, int] = field(default_factory=dict)
    """Queries that were removed, by their first id: the moment."""
    undeclared: Sequence[int] = ()
    """Those of them that the network has no more, so that it may have them again."""
    gone: Mapping[int, int] = field(default_factory=dict)
    """Members of families that were removed, by id: the moment."""
    tally: tuple[bytes, bytes] | None = None
    """More matches: ids of queries, and how many."""
    tally_instead: bool = False
    """Whether the tally takes the place of all before."""
    forgotten: Forgotten = Forgotten()
    moved: Sequence[MovedLog] = ()
    """Done before anything is forgotten."""

    def __or__(self, other: Change) -> Change:
        """Both in one transaction; they must not contradict each other."""
        made: dict[str, Any] = {}
        for each in fields(self):
            one, two = getattr(self, each.name), getattr(other, each.name)
            if isinstance(one, Mapping):
                made[each.name] = {**one, **two}
            elif isinstance(one, Forgotten):
                made[each.name] = one | two
            elif isinstance(one, Sequence) and each.name != "tally":
                made[each.name] = [*one, *two]
            else:
                made[each.name] = one if two is None or two is False else two
        return Change(**made)

    def record(self, manifest: Manifest) -> None:
        """Write everything but segments to the manifest, within a transaction."""
        for (log, consumer), head in self.heads.items():
            manifest.set_cursor(log, consumer, head, head)
        for name, state in self.progress.items():
            manifest.set_progress(name, state)
        for stream, position in self.sources.items():
            manifest.set_source(stream, position)
        for output, position in self.sinks.items():
            manifest.set_sink(output, position)
        for (entity, name), more in self.counts.items():
            manifest.count(entity, name, more)
        manifest.set_costs(self.costs)
        if self.statistics is not None:
            manifest.set_statistics(self.statistics)
        if self.entities is not None:
            manifest.set_entities(self.entities)
        for key, value in self.meta.items():
            manifest.set_meta(key, value)
        if self.next_moment is not None:
            manifest.set_meta("next_moment", str(self.next_moment))
        if self.finished_step is not None:
            manifest.remove_step(self.finished_step)
        for row in self.shed:
            manifest.add_shed(row)
        manifest.add_queries(self.queries)
        manifest.end_queries(self.ended, self.undeclared)
        manifest.add_gone(self.gone)
        if self.tally is not None:
            manifest.add_tally(*self.tally, instead=self.tally_instead)
