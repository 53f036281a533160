"""The book of queries: which are registered, what their eddies have to do.

Everything here is decided on the driver and pure but for the files of compiled predicates.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, TypeVar

import numpy as np

from auroral.continuous.sharing.aggregate_reading import ReadAggregate
from auroral.continuous.sharing.template import Attribute, Template, TemplateItem
from auroral.disk import PRIVATE_DIRECTORY
from auroral.eddy.families import Families
from auroral.eddy.filters.index import Selection
from auroral.eddy.panes.step import AggregateGroup
from auroral.eddy.parts import Parts
from auroral.eddy.registered import SELECT, Ids, RegisteredQuery, fields_of, group_name
from auroral.eddy.stems.step import JoinGroup
from auroral.eddy.version import Version
from auroral.ids import file_name

T = TypeVar("T")
Alike = tuple[Template, bool]


class Footprint(NamedTuple):
    """All that a version has to know of queries that select from one arc: most are alike in it."""

    arc: str
    reads: frozenset[str]
    copies: tuple[str, ...] | None
    """The fields of results; None if they are only counted."""


Going = tuple[RegisteredQuery, Ids]
"""An entry and those of its queries that are to go."""


@dataclass(frozen=True)
class Draft:
    """The predicates of an arc as they will be once queries have gone and come."""

    before: tuple[str, ...]
    """The files of the parts it was made from."""
    parts: Parts
    gone: Sequence[tuple[str, Ids]]
    fresh: Sequence[Selection]

    def make(self, parts: Parts | None = None) -> None:
        """Compile them."""
        parts = parts or self.parts
        if self.gone:
            parts.remove(self.gone)
        if self.fresh:
            parts.add(self.fresh)

    def finished(self, now: Parts | None) -> Parts:
        """What takes the place of the parts there are now."""
        if now is not None and now.paths != self.before:
            self.make(now)  # they were compiled anew meanwhile, as values had been seen
            return now
        if now is not None:
            self.parts.take_over(now)
        return self.parts


class QueryIndex:
    """The registered queries that eddies run."""

    def __init__(self, directory: Path):
        self._directory = directory
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True, mode=PRIVATE_DIRECTORY)
        self.entries: dict[str, RegisteredQuery] = {}
        self.families = Families()
        self._parts: dict[str, Parts] = {}
        self._selecting: Counter[Footprint] = Counter()
        """How many entries that select from one arc have a footprint."""
        self._joining: Counter[Alike] = Counter()
        """How many that join have a template, with and without results kept."""
        self._sizes: Counter[str] = Counter()
        """Queries by the first arc they read."""
        self._special: dict[str, RegisteredQuery] = {}
        """Those of which more has to be known than their template."""
        self.kept: dict[str, dict[str, RegisteredQuery]] = {}
        """Those whose results are kept, by log and name, in the order in which they came."""
        self.drafting = False
        """Whether a change is being prepared."""

    # ── changing ──

    def draft(self, going: Sequence[Going], coming: Sequence[RegisteredQuery]) -> dict[str, Draft]:
        """Compile predicates for a change, once for all queries; the eddies go on meanwhile.

        Whoever calls this sees to it that there is one change at a time. Until it is made true
        nothing is swept away, as nobody knows the new files.
        """
        gone: dict[str, list[tuple[str, Ids]]] = {}
        for entry, ids in going:
            for arc, selection in entry.selections():
                gone.setdefault(arc, []).append((selection.kind, ids))
        fresh: dict[str, list[Selection]] = {}
        for entry in coming:
            for arc, selection in entry.selections():
                fresh.setdefault(arc, []).append(selection)
        made = {}
        for arc in dict.fromkeys([*gone, *fresh]):
            before = self._parts.get(arc) or Parts(self._directory, file_name(arc))
            made[arc] = Draft(before.paths, before.draft(), gone.get(arc, ()), fresh.get(arc, ()))
            made[arc].make()
        return made

    def change(
        self,
        removed: Sequence[RegisteredQuery] = (),
        members: Mapping[str, Sequence[int]] = MappingProxyType({}),
        added: Sequence[RegisteredQuery] = (),
        *,
        drafts: Mapping[str, Draft] | None = None,
    ) -> None:
        """Forget queries, members of families by number, and register others."""
        if drafts is None:
            drafts = self.draft(self.going(removed, members), added)
        self._remove(removed)
        for name, numbers in members.items():
            self._sizes[self.entries[name].arcs[0]] -= len(numbers)
        self._add(added)
        for arc, draft in drafts.items():
            self._parts[arc] = draft.finished(self._parts.get(arc))
        self.drafting = False

    def going(
        self, removed: Sequence[RegisteredQuery], members: Mapping[str, Sequence[int]]
    ) -> list[Going]:
        """Entries and the ids of them that will be no more."""
        some = [(self.entries[name], list(numbers)) for name, numbers in members.items()]
        return [*((e, e.ids) for e in removed), *((e, e.ids[numbers]) for e, numbers in some)]

    def _add(self, entries: Sequence[RegisteredQuery]) -> None:
        for entry in entries:
            self.entries[entry.name] = entry
            self.families.add(entry)
            self._sizes[entry.arcs[0]] += entry.count
            self._count(entry, 1)
            if _is_special(entry):
                self._special[entry.name] = entry
            if entry.kept:
                self.kept.setdefault(entry.log, {})[entry.name] = entry

    def _remove(self, entries: Sequence[RegisteredQuery]) -> None:
        for entry in entries:
            del self.entries[entry.name]
            self.families.remove(entry)
            self._special.pop(entry.name, None)
            if entry.kept:
                del self.kept[entry.log][entry.name]
                if not self.kept[entry.log]:
                    del self.kept[entry.log]
            self._sizes[entry.arcs[0]] -= len(entry.ids) - len(entry.gone)
            self._count(entry, -1)

    def _count(self, entry: RegisteredQuery, more: int) -> None:
        if not isinstance(entry.read, Template):
            return
        if entry.read.join is None:
            _add(self._selecting, _footprint(entry.read, entry.kept), more)
        else:
            _add(self._joining, (entry.read, entry.kept), more)

    def parts(self, arc: str) -> Parts:
        """The compiled predicates of an arc, or of a group's joined tuples."""
        if arc not in self._parts:
            self._parts[arc] = Parts(self._directory, file_name(arc))
        return self._parts[arc]

    def sweep(self, versions: Iterable[Version]) -> None:
        """Delete compiled predicates that no version has any more."""
        if self.drafting:
            return
        used = {path for v in versions for made in v.filters.values() for path in made.paths}
        used |= {path for parts in self._parts.values() for path in parts.paths}
        for path in self._directory.iterdir():
            if str(path) not in used:
                path.unlink(missing_ok=True)

    # ── looking ──

    def arcs(self) -> set[str]:
        """The arcs that queries read."""
        found = {source.arc for template, _ in self._joining for source in template.sources}
        found |= {footprint.arc for footprint in self._selecting}
        return found | {arc for entry in self._special.values() for arc in entry.arcs}

    def flows(self) -> list[tuple[str, ...]]:
        """Arcs that joins connect, together; each group is the work of one eddy."""
        joined = [template.join.arcs for template, _ in self._joining if template.join is not None]
        return connected([*([arc] for arc in self.arcs()), *joined])

    def version(self, arcs: Collection[str], start: int) -> Version:
        """What the eddy of some arcs has to do from a moment on."""
        selecting = [footprint for footprint in self._selecting if footprint.arc in arcs]
        joining = [(t, kept) for t, kept in self._joining if t.sources[0].arc in arcs]
        aggregated = [
            entry
            for entry in self._special.values()
            if isinstance(entry.read, ReadAggregate) and entry.read.shape.arc in arcs
        ]
        joins = _join_groups([template for template, _ in joining])
        aggregates = _aggregate_groups(aggregated)
        names = [*arcs, *(join.name for join in joins), *(group.name for group in aggregates)]
        return Version(
            start,
            {name: self._parts[name].snapshot() for name in names if name in self._parts},
            self._fields(arcs, selecting, [template for template, _ in joining], aggregated),
            _copied(selecting, [template for template, kept in joining if kept], aggregated),
            self._computed(arcs),
            joins,
            aggregates,
            self._counted(arcs),
            sum(self._sizes[arc] for arc in arcs),
        )

    def _fields(
        self,
        arcs: Collection[str],
        selecting: Iterable[Footprint],
        joining: Iterable[Template],
        aggregated: Iterable[RegisteredQuery],
    ) -> dict[str, frozenset[str]]:
        """The fields of each arc that somebody reads, or that predicates still ask for."""
        found = _fields(arcs, selecting, joining, aggregated)
        return {arc: names | self.parts(arc).fields for arc, names in found.items()}

    def _computed(self, arcs: Collection[str]) -> dict[tuple[str, str], dict[Attribute, Ids]]:
        """Expressions in SELECT, and the queries that have them."""
        found: dict[tuple[str, str], dict[Attribute, list[Ids]]] = {}
        for entry in self._special.values():
            if entry.arcs[0] not in arcs or not entry.kept:
                continue
            held = found.setdefault((entry.arcs[0], entry.kind), {})
            for item in entry.read.items:
                if is_computed(item):
                    held.setdefault(item.attribute, []).append(entry.ids)
        return {
            key: {attribute: np.concatenate(ids) for attribute, ids in held.items()}
            for key, held in found.items()
        }

    def _counted(self, arcs: Collection[str]) -> Ids:
        """Queries of groups whose results are only counted."""
        held = [
            entry.ids
            for entry in self._special.values()
            if not entry.kept and entry.arcs[0] in arcs
        ]
        return np.concatenate(held) if held else np.zeros(0, np.int32)


def connected(groups: Iterable[Collection[str]]) -> list[tuple[str, ...]]:
    """Groups that have something in common as one.

    >>> connected([["S"], ["T", "U"], ["U", "V"]])
    [('S',), ('T', 'U', 'V')]
    """
    found: list[set[str]] = []
    for group in groups:
        near = [other for other in found if not other.isdisjoint(group)]
        found = [other for other in found if other.isdisjoint(group)] + [set(group).union(*near)]
    return sorted(tuple(sorted(group)) for group in found)


def _is_special(entry: RegisteredQuery) -> bool:
    """Whether more has to be known of an entry than its template, which others may share."""
    if isinstance(entry.read, ReadAggregate) or any(map(is_computed, entry.read.items)):
        return True
    return entry.read.join is not None and not entry.kept


def is_computed(item: TemplateItem) -> bool:
    """Whether a field of a result is more than a copy, of a field or of a constant."""
    return item.attribute.field is None and not item.attribute.slots


def _add(counter: Counter[T], one: T, more: int) -> None:
    """Count some more or fewer; what has come to zero is not there."""
    counter[one] += more
    if not counter[one]:
        del counter[one]


def _footprint(template: Template, kept: bool) -> Footprint:
    (source,), (read,) = template.sources, _read(template)
    copies = _names(template.items) if kept else None
    return Footprint(source.arc, frozenset(read | fields_of(source.clauses)), copies)


def kind_of(template: Template) -> str:
    """The kind of queries of a template whose results are kept."""
    return SELECT if template.join is None else group_name("join", template.join)


def _names(items: Iterable[TemplateItem]) -> tuple[str, ...]:
    """The fields that results copy."""
    names = (item.attribute.field for item in items)
    return tuple(name for name in names if name is not None)


def _copied(
    selecting: Iterable[Footprint],
    joining: Iterable[Template],
    aggregated: Iterable[RegisteredQuery],
) -> dict[tuple[str, str], tuple[str, ...]]:
    """The fields that results copy, of each kind."""
    copies = [((one.arc, SELECT), one.copies) for one in selecting if one.copies is not None]
    copies += [((t.sources[0].arc, kind_of(t)), _names(t.items)) for t in joining]
    copies += [((e.arcs[0], e.kind), _names(e.read.items)) for e in aggregated if e.kept]
    found: dict[tuple[str, str], dict[str, None]] = {}
    for key, names in copies:
        found.setdefault(key, {}).update(dict.fromkeys(names))
    return {key: tuple(names) for key, names in found.items()}


def _fields(
    arcs: Collection[str],
    selecting: Iterable[Footprint],
    joining: Iterable[Template],
    aggregated: Iterable[RegisteredQuery],
) -> dict[str, frozenset[str]]:
    """The fields of each arc that somebody reads."""
    found: dict[str, set[str]] = {arc: set() for arc in arcs}
    for footprint in selecting:
        found[footprint.arc] |= footprint.reads
    for template in joining:
        for source, own in zip(template.sources, _read(template), strict=True):
            found[source.arc] |= own | fields_of(source.clauses)
    for entry in aggregated:
        assert isinstance(entry.read, ReadAggregate)
        found[entry.read.shape.arc] |= {*entry.read.fields, *fields_of(entry.read.clauses)}
    return {arc: frozenset(names) for arc, names in found.items()}


def _read(template: Template) -> list[set[str]]:
    """For each source, the fields that results, joins and clauses over joined tuples read."""
    wanted = {name for item in template.items for name in item.attribute.fields}
    wanted |= fields_of(template.clauses)
    if template.join is None:
        return [wanted]
    own: list[set[str]] = [set() for _ in template.sources]
    for name in wanted:
        place, _, field = name.partition(".")
        own[int(place[1:])].add(field)
    for i, field, j, other in template.join.equal:
        own[i].add(field)
        own[j].add(other)
    for place_, on in enumerate(template.join.on):
        own[place_].add(on)
    return own


def _join_groups(templates: Iterable[Template]) -> tuple[JoinGroup, ...]:
    """One group for each way of joining; its windows are the largest in use."""
    alike: dict[str, list[Template]] = {}
    for template in templates:
        if template.join is not None:
            alike.setdefault(kind_of(template), []).append(template)
    return tuple(_join_group(name, alike[name]) for name in sorted(alike))


def _join_group(name: str, same: Sequence[Template]) -> JoinGroup:
    shape = same[0].join
    assert shape is not None
    read = [_read(template) for template in same]
    fields = tuple(
        tuple(sorted(set().union(*(own[n] for own in read)))) for n in range(len(shape.arcs))
    )
    rows = tuple(map(max, zip(*(t.rows for t in same), strict=True)))
    bands = tuple(
        tuple(map(max, zip(*rows_of, strict=True)))
        for rows_of in zip(*(t.bands for t in same), strict=True)
    )
    return JoinGroup(name, shape, fields, rows, bands)


def _aggregate_groups(entries: Iterable[RegisteredQuery]) -> tuple[AggregateGroup, ...]:
    alike: dict[str, list[RegisteredQuery]] = {}
    for entry in entries:
        alike.setdefault(entry.kind, []).append(entry)
    return tuple(AggregateGroup.of(name, alike[name]) for name in sorted(alike))
