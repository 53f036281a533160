"""Splitting keyed state into another number of buckets, while no engine runs.

The rows of a state table go to buckets by the same hash of the same key columns as tuples do. The
engine records these columns in the manifest, so that a state directory can be rescaled without
its network. All new files become true in one transaction with the new number.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from auroral.errors import StateError, UsageError
from auroral.ids import StateLogId
from auroral.kernels.grouping import buckets_of
from auroral.kernels.joining.shelf import side_of
from auroral.storage.change import Change
from auroral.storage.contents import has_state
from auroral.storage.segment import MAX_FILE_BYTES, Segment, encode, write_file
from auroral.storage.store import Store

MOST_BUCKETS = 4096
_KEYS = "state keys"
"""The entry of the manifest that has, by box and state table, the columns that are hashed."""
StateKeys = Mapping[str, Mapping[str, Sequence[str]] | None]


@dataclass(frozen=True)
class Rescaled:
    """What a rescale has done."""

    before: int
    after: int
    tables: int
    rows: int


def record_state_keys(store: Store, keys: StateKeys) -> None:
    """Remember which columns of the state tables of boxes decide on the bucket of a row.

    None says that all state of a box is in one bucket, whatever their number.
    """
    known = state_keys(store)
    merged = {**known, **_plain(keys)}
    if merged != known:
        store.commit(Change(meta={_KEYS: json.dumps(merged)}))


def forget_state_keys(store: Store, is_gone: Callable[[str], bool]) -> None:
    """Forget what was recorded of boxes that are no more."""
    known = state_keys(store)
    left = {box: keys for box, keys in known.items() if not is_gone(box)}
    if left != known:
        store.commit(Change(meta={_KEYS: json.dumps(left)}))


def state_keys(store: Store) -> dict[str, dict[str, list[str]] | None]:
    """What was recorded."""
    found: dict[str, dict[str, list[str]] | None] = json.loads(store.manifest.meta(_KEYS) or "{}")
    return found


def rescale(
    directory: Path | str,
    buckets: int,
    *,
    durability: str = "power",
    fault: Callable[[str], None] = lambda _point: None,
) -> Rescaled:
    """Split the state of every keyed box in a directory into `buckets` parts.

    Refuses a directory that an engine uses. If it is killed, the directory has either number.
    """
    if not 1 <= buckets <= MOST_BUCKETS:
        raise UsageError("BAD_OPTION", f"buckets are 1 to {MOST_BUCKETS}, found {buckets}")
    path = Path(directory)
    if not (path / "segments").is_dir() or not has_state(path):
        raise UsageError("NO_STATE", "there is no state of a network here", where=str(path))
    store = Store(path, durability=durability, fault=fault)
    try:
        return _rescale(store, buckets)
    finally:
        store.close()


def _rescale(store: Store, buckets: int) -> Rescaled:
    before, rows = store.buckets, 0
    if before == buckets:
        return Rescaled(before, buckets, 0, 0)
    tables = _keyed_tables(store)
    written: list[Segment] = []
    retired: list[Segment] = []
    for (box, table), keys in tables.items():
        held = [
            segment
            for bucket in range(before)
            for segment in store.segments(str(StateLogId(box, table, bucket)))
        ]
        whole = _merged([store.table(segment) for segment in held if segment.file])
        rows += whole.num_rows
        places = buckets_of([whole[name] for name in keys], whole.num_rows, buckets)
        for bucket in range(buckets):
            part = whole.filter(pa.array(places == bucket))
            log = str(StateLogId(box, table, bucket))
            written += [_segment(store, log, piece, held) for piece in _pieces(part)]
        retired += held
        store.fault("rescaled")
    store.commit(Change(written=written, retired=retired, meta={"buckets": str(buckets)}))
    return Rescaled(before, buckets, len(tables), rows)


def _keyed_tables(store: Store) -> dict[tuple[str, str], Sequence[str]]:
    """The state tables that are split, and the columns by which; refuse what cannot be."""
    known = state_keys(store)
    logs, _ = store.names()
    found: dict[tuple[str, str], Sequence[str]] = {}
    shared: set[str] = set()
    unknown: set[str] = set()
    for log in logs:
        id = StateLogId.parse(log)
        if id is None:
            continue
        if id.box is None:
            shared.add(id.table)
        elif id.box not in known:
            unknown.add(id.box)
        else:
            keys = known[id.box]
            if keys is not None:
                found[id.box, id.table] = keys[side_of(id.table) or id.table]
    if shared:
        raise StateError(
            "CANNOT_RESCALE",
            "the state of shared continuous queries cannot be rescaled yet:"
            f" {', '.join(sorted(shared))}",
            where=str(store.directory),
            hint="remove these queries first, or keep the number of buckets",
        )
    if unknown:
        raise StateError(
            "CANNOT_RESCALE",
            f"the directory does not say how the state of {', '.join(sorted(unknown))} is split",
            where=str(store.directory),
            hint="start and stop the network once with this version, then rescale",
        )
    return found


def _merged(tables: Sequence[pa.Table]) -> pa.Table:
    """The rows of all buckets; stored tuples in order of arrival."""
    whole = pa.concat_tables(tables, promote_options="default").combine_chunks()
    if "_seq" not in whole.column_names:
        return whole
    return whole.sort_by([("_seq", "ascending"), ("_sub", "ascending")])


def _pieces(table: pa.Table) -> Iterator[pa.Table]:
    """The table in parts that fit into files; an empty one has none."""
    parts = max(1, -(-2 * table.nbytes // MAX_FILE_BYTES))
    size = max(-(-table.num_rows // parts), 1)
    for start in range(0, table.num_rows, size):
        yield table.slice(start, size)


def _segment(store: Store, log: str, table: pa.Table, held: Sequence[Segment]) -> Segment:
    """Write a part of a state table, in the place of all that the table was."""
    first, last = min(s.first for s in held), max(s.last for s in held)
    path = store.new_path(first, last)
    size, crc = write_file(path, encode(table), sync=store.power)
    sealed = max(s.complete_before for s in held)
    return Segment(0, log, path.name, table.num_rows, size, crc, first, last, sealed)


def _plain(keys: StateKeys) -> dict[str, dict[str, list[str]] | None]:
    return {
        box: None if of is None else {table: list(names) for table, names in of.items()}
        for box, of in keys.items()
    }
