"""Joined tuples: their fields, the columns that windows are tested on, and their order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from auroral.eddy.lineage import Lineage
from auroral.eddy.stems.lineages import stacked
from auroral.eddy.stems.probe import JoinProbe, Partial
from auroral.kernels.grouping import Ids
from auroral.kernels.ordering import empty_bytes, joined, moments, of_matrix, sortable
from auroral.progress.lowwater import Values

_LARGEST = 2**63 - 1
_NO_SUB = np.frombuffer(b"\x01\x00\x00", np.uint8)
"""What `sortable` makes of an empty byte string."""


def joined_tuples(join: JoinProbe, partials: Sequence[Partial]) -> tuple[pa.Table, Lineage]:
    """The fields of all parts as `s0.x`, …, and how far apart they are.

    With row windows `#age{i}` is how many tuples of source i's arc had arrived after the part
    when the last part did: the part is in a window of n if that is below n. With bands
    `#diff{i}_{j}`, i < j, is on_j − on_i in units of marks.
    """
    group, columns = join.group, {}
    for place, stem in enumerate(join.stems):
        rows = np.concatenate([partial.rows[place] for partial in partials])
        for name in group.fields[place]:
            columns[f"s{place}.{name}"] = stem.column(name, rows)
    for place in range(len(join.stems)):
        if group.shape.kind == "rows":
            ages = [_ages(join, place, partial) for partial in partials]
            columns[f"#age{place}"] = pa.array(np.concatenate(ages))
            continue
        for other in range(place + 1, len(join.stems)):
            between = [_between(join, place, other, partial) for partial in partials]
            columns[f"#diff{place}_{other}"] = pa.array(np.concatenate(between))
    return pa.table(columns), stacked([partial.lineage for partial in partials])


def hidden_columns(join: JoinProbe, partials: Sequence[Partial], kept: Ids) -> dict[str, pa.Array]:
    """`_seq`, `_ts` and `_sub` of some of the joined tuples."""
    seq, ts, subs = [], [], []
    start = 0
    for partial in partials:
        first, last = np.searchsorted(kept, [start, start + len(partial)])
        chosen = kept[first:last] - start
        start += len(partial)
        rows = {place: own[chosen] for place, own in partial.rows.items()}
        seq.append(join.stems[partial.prober].seq(rows[partial.prober]))
        entered = [join.stems[place].ts(own) for place, own in rows.items()]
        ts.append(np.minimum.reduce(entered))
        subs.append(_subs(join, partial.prober, rows))
    return {
        "_seq": pa.array(np.concatenate(seq)),
        "_ts": pa.array(np.concatenate(ts)),
        "_sub": pa.concat_arrays(subs),
    }


def _ages(join: JoinProbe, place: int, partial: Partial) -> Ids:
    if place == partial.prober:
        return np.zeros(len(partial), np.int64)
    return join.arrived_at(place, partial) - join.stems[place].number(partial.rows[place])


def _between(join: JoinProbe, place: int, other: int, partial: Partial) -> Values:
    one, two = join.on(place, partial), join.on(other, partial)
    if one.dtype == two.dtype == np.float64:
        return np.asarray(two - one)
    apart = two.astype(object) - one.astype(object) if _wide([one, two]) else two - one
    if apart.dtype == object:
        apart = np.clip(apart, -_LARGEST, _LARGEST) if len(apart) else apart
        apart = apart.astype(np.int64)
    return np.asarray(apart)


def _wide(arrays: Sequence[Values]) -> bool:
    """Whether a difference might leave 64 bits."""
    return any(
        a.dtype == object or (len(a) > 0 and max(abs(int(a.max())), abs(int(a.min()))) >= 2**62)
        for a in arrays
    )


def _subs(join: JoinProbe, prober: int, rows: dict[int, Ids]) -> pa.BinaryArray:
    """Bytes by which results of one moment are in order: by the last part, then by the others.

    Of two sources they are those of the join box. Of more, byte strings in the middle end where
    they end: `sortable` marks it.
    """
    partners = [place for place in range(len(join.stems)) if place != prober]
    plain = len(partners) == 1
    count = len(rows[prober])
    seq = {place: join.stems[place].seq(rows[place]) for place in partners}
    if not any(stem.has_subs for stem in join.stems):
        marked = 0 if plain else 3
        matrix = np.empty((count, 1 + marked + len(partners) * (8 + marked) - marked), np.uint8)
        matrix[:, 0] = prober
        matrix[:, 1 : 1 + marked] = _NO_SUB[:marked]
        at = 1 + marked
        for place in partners:
            matrix[:, at : at + 8] = seq[place].astype(">u8").view(np.uint8).reshape(-1, 8)
            at += 8
            if place != partners[-1]:
                matrix[:, at : at + marked] = _NO_SUB[:marked]
                at += marked
        return of_matrix(matrix)
    if not count:
        return empty_bytes(0)
    pieces = [pa.array([bytes([prober])] * count, pa.binary())]
    for place in (prober, *partners):
        if place != prober:
            pieces.append(moments(seq[place]))
        sub = join.stems[place].subs(rows[place])
        pieces.append(sub if plain or place == partners[-1] else sortable([sub]))
    return pc.cast(joined(*pieces), pa.binary())
