"""Families of queries: the entries that each consists of, and the keys of its members.

Rows that are added later form entries of their own. Members of a large entry are found by comparing
all keys, which takes some milliseconds for a million members; members of the small entries that
are added one by one are in a dictionary.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from auroral.continuous.sharing.aggregate_reading import ReadAggregate
from auroral.continuous.sharing.template import Template
from auroral.eddy.registered import Ids, RegisteredQuery
from auroral.ids import ChunkId
from auroral.network.queries import Family

SMALL = 1_000
"""Entries with fewer members have them in the dictionary."""

Member = tuple[RegisteredQuery, int]
Rows = npt.NDArray[np.int64]


def family_of(name: str) -> str:
    """The name of the query or family that an entry belongs to."""
    return ChunkId.parse(name).family


@dataclass
class FamilyMembers:
    """One family: all its entries in the order in which they came."""

    entries: dict[str, RegisteredQuery] = field(default_factory=dict)
    _large: list[RegisteredQuery] = field(default_factory=list)
    _known: dict[str, Member] = field(default_factory=dict)
    """By key as text; of those with the same key all but the last are gone."""
    _runs: dict[object, MemberRun] = field(default_factory=dict)
    _fresh: list[RegisteredQuery] = field(default_factory=list)
    """Entries that are not yet in `_runs`."""

    def add(self, entry: RegisteredQuery) -> None:
        self.entries[entry.name] = entry
        self._fresh.append(entry)
        if entry.count >= SMALL:
            self._large.append(entry)
        else:
            self._known |= {key: (entry, n) for n, key in enumerate(texts(entry))}

    def remove(self, entry: RegisteredQuery) -> None:
        del self.entries[entry.name]
        self._runs, self._fresh = {}, list(self.entries.values())
        self._large = [other for other in self._large if other is not entry]
        for key in texts(entry) if entry.count < SMALL else ():
            if key in self._known and self._known[key][0] is entry:
                del self._known[key]

    def runs(self) -> list[MemberRun]:
        """Each large entry alone, and all small entries together."""
        alike: dict[object, list[RegisteredQuery]] = {}
        for entry in sorted(self._fresh, key=lambda entry: entry.first):
            small = entry.count < SMALL
            schema = str(entry.constants.schema)
            alike.setdefault((entry.read, schema) if small else entry.name, []).append(entry)
        for key, entries in alike.items():
            more = [MemberRun.of_entry(entry) for entry in entries]
            before = [self._runs[key]] if key in self._runs else []
            self._runs[key] = MemberRun.together([*before, *more])
        self._fresh = []
        return list(self._runs.values())

    def find(self, keys: Sequence[str]) -> dict[str, Member]:
        """The members with these keys, given as text; unknown keys are left out."""
        found = {key: self._known[key] for key in keys if key in self._known}
        found = {key: (entry, n) for key, (entry, n) in found.items() if n not in entry.gone}
        missing = [key for key in keys if key not in found]
        for entry in self._large if missing else ():
            places = _places(entry, pa.array(missing, pa.string()))
            for n, key in zip(places, texts(entry, places), strict=True):
                if n not in entry.gone:
                    found[key] = entry, n
        # A text may be read as a key that is written in another way: 07 as 7.
        return {key: found[key] for key in keys if key in found}

    def taken(self, keys: pa.ChunkedArray, going: Mapping[str, Collection[int]]) -> str | None:
        """One of these keys that a member has; those removed or in `going` do not count."""

        def stays(entry: RegisteredQuery, n: int) -> bool:
            return n not in entry.gone and n not in going.get(entry.name, ())

        for key in keys.cast(pa.string()).to_pylist() if self._known else ():
            if key in self._known and stays(*self._known[key]):
                return str(key)
        for entry in self._large:
            left = [n for n in _places(entry, keys) if stays(entry, n)]
            if left:
                return texts(entry, left[:1])[0]
        return None

    @property
    def query(self) -> Family:
        found = next(iter(self.entries.values())).query
        assert isinstance(found, Family)
        return found

    @property
    def key_type(self) -> pa.DataType:
        keys = next(iter(self.entries.values())).keys
        assert keys is not None
        return keys.type

    @property
    def last_number(self) -> int:
        """The number in the name of the latest entry; 0 if none was added later."""
        return ChunkId.parse(next(reversed(self.entries))).number


class Families:
    """The families of a book by name."""

    def __init__(self) -> None:
        self._families: dict[str, FamilyMembers] = {}

    def add(self, entry: RegisteredQuery) -> None:
        if entry.keys is not None:
            self._families.setdefault(family_of(entry.name), FamilyMembers()).add(entry)

    def remove(self, entry: RegisteredQuery) -> None:
        if entry.keys is not None:
            name = family_of(entry.name)
            self._families[name].remove(entry)
            if not self._families[name].entries:
                del self._families[name]

    def get(self, name: str) -> FamilyMembers | None:
        return self._families.get(name)

    def names(self) -> Iterable[str]:
        return self._families


@dataclass(frozen=True)
class MemberRun:
    """Entries of a family as one; members are counted through all of them."""

    read: Template | ReadAggregate
    keys: pa.ChunkedArray
    constants: pa.Table
    firsts: Rows
    """The ids of each entry's first member, ascending."""
    counts: Rows

    @staticmethod
    def of_entry(entry: RegisteredQuery) -> MemberRun:
        assert entry.keys is not None
        firsts, counts = np.array([entry.first]), np.array([entry.count])
        return MemberRun(entry.read, entry.keys, entry.constants, firsts, counts)

    @staticmethod
    def together(runs: Sequence[MemberRun]) -> MemberRun:
        """Several as one, in the order of their ids."""
        if len(runs) == 1:
            return runs[0]
        keys = pa.chunked_array([chunk for run in runs for chunk in run.keys.chunks])
        return MemberRun(
            runs[0].read,
            pa.chunked_array([keys.combine_chunks()]),
            pa.concat_tables([run.constants for run in runs]).combine_chunks(),
            np.concatenate([run.firsts for run in runs]),
            np.concatenate([run.counts for run in runs]),
        )

    def of(self, ids: Ids) -> tuple[Rows, Rows]:
        """Where among ids those of members are, and which members these are."""
        at = np.maximum(np.searchsorted(self.firsts, ids, side="right") - 1, 0)
        number = ids.astype(np.int64) - self.firsts[at]
        own = np.flatnonzero((number >= 0) & (number < self.counts[at]))
        starts = np.cumsum(self.counts) - self.counts
        return own, starts[at[own]] + number[own]


def texts(entry: RegisteredQuery, places: Sequence[int] | None = None) -> list[str]:
    """The keys of all members, or of some."""
    keys = entry.keys
    assert keys is not None
    if places is not None:
        keys = keys.take(pa.array(places, pa.int64()))
    found: list[str] = keys.cast(pa.string()).to_pylist()
    return found


def _places(entry: RegisteredQuery, keys: pa.Array | pa.ChunkedArray) -> list[int]:
    """The numbers of members whose key is one of these."""
    assert entry.keys is not None
    wanted = _as_keys(keys, entry.keys.type)
    if len(wanted) == 1:
        found = pc.equal(entry.keys, wanted[0])
    else:
        found = pc.is_in(entry.keys, value_set=wanted)
    return [int(n) for n in np.flatnonzero(found.to_numpy())]


def _as_keys(keys: pa.Array | pa.ChunkedArray, type: pa.DataType) -> pa.Array:
    """Keys cast to the key type of an entry; keys that cannot be cast are left out."""
    try:
        return pa.concat_arrays(pa.chunked_array(keys.cast(type)).chunks)
    except pa.ArrowException:
        if len(keys) < 2:
            return pa.array([], type)
        half = len(keys) // 2
        return pa.concat_arrays([_as_keys(keys[:half], type), _as_keys(keys[half:], type)])
