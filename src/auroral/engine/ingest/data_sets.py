"""Stored data sets (dangling connection points): copied once, then pushed or looked up [1 §3.2].

The copy is sorted by the key and lies beside static tables in the state directory. So a restart
sees what the first run saw, and what others do to the store changes no result.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from auroral.boxes.join import Join, equal_fields
from auroral.disk import disk_errors, make_directory, sync_directory
from auroral.engine.ingest.ingest import SEGMENT_ROWS, Ingest
from auroral.engine.points.demands import demanded_of_key
from auroral.errors import AuroralError, NetworkError, UsageError
from auroral.history.access import AccessChoice, choose_join
from auroral.history.predicate import KeyPredicate
from auroral.history.run_file import GROUP_ROWS
from auroral.history.stored import SortedDataSet, write_sorted
from auroral.ids import StoredTableId
from auroral.io.data_sets import StoredAddress, read_data_set
from auroral.network.check import CheckedNetwork
from auroral.network.data_sets import data_sets
from auroral.network.environment import data_set_of
from auroral.network.network import Network
from auroral.network.point_names import point_arcs
from auroral.network.types import Schema, Type
from auroral.sql.expressions.numbers import LIMITS


class StoredDataSets:
    """The data sets of a network, as they were when the state was made."""

    def __init__(self, network: Network, directory: Path, *, sync: bool):
        """Copy those that are not there yet; what cannot be read, or does not fit, is an error."""
        self._names = set(data_sets(network))
        self._sets: dict[str, SortedDataSet] = {}
        self._choices: dict[str, AccessChoice] = {}
        self._network = network
        for name in data_sets(network):
            path = copied(network, name, directory, sync=sync)
            self._sets[name] = SortedDataSet(path, key_column(network, name))

    def push(self, ingest: Ingest, checked: CheckedNetwork) -> None:
        """Let the rows of data sets that are read as streams arrive, before anything else does.

        Each batch is taken with its position, so that a restart goes on after it.
        """
        for name in self._names:
            wanted, predicate = wanted_rows(checked, name)
            if not wanted or ingest.ended is not None:
                continue
            choice = self._choices[name] = self._sets[name].choice(predicate)
            self._push(ingest, name, predicate if choice.how == "lookup" else None)

    def _push(self, ingest: Ingest, name: str, predicate: KeyPredicate | None) -> None:
        position = ingest.position(name) or {"rows": 0, "ended": False}
        if position["ended"]:
            return
        schema = self._schema(name)
        taken = passed = position["rows"]
        for table in self._sets[name].rows(predicate, SEGMENT_ROWS):
            skip = min(passed, table.num_rows)
            passed -= skip
            rows = table.slice(skip).rename_columns(list(schema.names)).cast(schema.arrow())
            if rows.num_rows:
                taken += rows.num_rows
                ingest.enqueue(name, rows, {"rows": taken, "ended": False})
        last = self._network.connection_points[name].key
        assert last is not None
        field = schema.field(last)
        rest = [{"_punctuation": greatest(field.type)}] if field.type.is_orderable else []
        ingest.enqueue(name, rest, {"rows": taken, "ended": True})

    def require_other(self, stream: str) -> None:
        """Refuse tuples for what is a stored data set."""
        if isinstance(stream, str) and stream in self._names:
            raise UsageError(
                "STORED_DATA_SET", f"{stream} is a stored data set: it gives its own rows"
            )

    def statistics(self) -> dict[str, Any]:
        """Rows, bytes and keys of each, and how it is read."""
        found: dict[str, dict[str, Any]] = {}
        for name, data_set in self._sets.items():
            amount = data_set.amount
            facts = {"rows": amount.rows, "bytes": amount.bytes}
            found[name] = {**facts, "distinct_keys": data_set.directory.distinct}
            if name in self._choices:
                choice = self._choices[name]
                found[name]["pushed"] = choice.reason
        return found

    def _schema(self, name: str) -> Schema:
        schema = self._network.connection_points[name].schema_
        assert schema is not None
        return schema

    def explained(self, checked: CheckedNetwork, train: int) -> Iterator[str]:
        """How each data set is read, and why, in words."""
        for name, data_set in self._sets.items():
            amount, keys = data_set.amount, data_set.directory.distinct
            address = StoredAddress.parse(data_set_of(self._network, name))
            key = self._network.connection_points[name].key
            size = f"{amount.rows:,} rows with {keys:,} values of {key}"
            yield f"  data set {name}: {size} in {address}"
            wanted, predicate = wanted_rows(checked, name)
            if wanted:
                choice = data_set.choice(predicate)
                how = "looked up and pushed" if choice.how == "lookup" else "pushed as a stream"
                yield f"    {how} in order of {key}: {choice.reason}"
            for box in _joins(checked, name):
                yield f"    {_join_explained(checked, box, name, key or '', data_set, train)}"
            if not wanted and not _joins(checked, name):
                yield "    read by nothing"


def copied(network: Network, name: str, directory: Path, *, sync: bool) -> Path:
    """The file with the rows of a data set, sorted by its key; made if it is not there."""
    path = directory / "tables" / f"{StoredTableId(name)}.parquet"
    if path.exists():
        return path
    point = network.connection_points[name]
    assert point.schema_ is not None
    where = network.place("connection_points", name, "store")
    try:
        address = StoredAddress.parse(data_set_of(network, name))
        rows = read_data_set(name, address, point.schema_, network.directory or Path())
        arrow = point.schema_.arrow()
        columns = [f"f{n}" for n in range(len(arrow))]
        schema = pa.schema([pa.field(c, f.type) for c, f in zip(columns, arrow, strict=True)])
        with disk_errors(path):
            make_directory(path.parent, sync=sync)
        spill = directory / f"frame-{uuid.uuid4().hex}"
        named = (table.rename_columns(columns).cast(schema) for table in rows)
        write_sorted(path, key_column(network, name), schema, named, sync=sync, spill=spill)
        if sync:
            sync_directory(path.parent)
    except NetworkError as error:
        raise error.at(where) from None
    except AuroralError as error:
        raise type(error)(error.code, error.message, where=where, hint=error.hint) from None
    return path


def key_column(network: Network, name: str) -> str:
    """The column of the key in the copy of a data set."""
    point = network.connection_points[name]
    assert point.schema_ is not None
    assert point.key is not None
    return f"f{point.schema_.names.index(point.schema_.field(point.key).name)}"


def wanted_rows(checked: CheckedNetwork, name: str) -> tuple[bool, KeyPredicate | None]:
    """Whether a data set is read as a stream, and what all its readers demand of its key."""
    network = checked.network
    point = network.connection_points[name]
    assert point.schema_ is not None
    assert point.key is not None
    read = any(name in box.sources() for box in network.boxes.values())
    ends = [output.from_ for output in network.outputs.values()]
    ends += [view.from_ for view in network.views.values()]
    ends += point_arcs(network).values()
    if name in ends or not read:
        return name in ends, None
    return True, demanded_of_key(network, name, point.schema_, point.key, ends)


def _joins(checked: CheckedNetwork, name: str) -> dict[str, Join]:
    table = str(StoredTableId(name))
    boxes: Mapping[str, Any] = checked.network.boxes
    return {n: b for n, b in boxes.items() if isinstance(b, Join) and table in b.inputs}


def _join_explained(
    checked: CheckedNetwork, box: str, name: str, key: str, data_set: SortedDataSet, train: int
) -> str:
    join = checked.network.boxes[box]
    assert isinstance(join, Join)
    side = join.inputs.index(str(StoredTableId(name)))
    pairs = equal_fields(join.on) if join.on else []
    if not any(pair[side].lower() == key.lower() for pair in pairs):
        return f"{box} reads all of it for each train: it does not say that {key} equals something"
    lines = []
    for tuples in sorted({min(1_000, train), train}):
        choice = choose_join(data_set.statistics(), tuples, group_rows=GROUP_ROWS)
        how = "looks keys up" if choice.how == "lookup" else "reads all of it"
        lines.append(f"with trains of {tuples:,} tuples {box} {how}: {choice.reason}")
    return "\n    ".join(lines)


def greatest(type: Type) -> Any:
    """A value that nothing of an orderable type exceeds."""
    if type.is_integral:
        return LIMITS[type.name][1]
    if type.name == "decimal":
        return Decimal(10**type.precision - 1).scaleb(-type.scale)
    if type.name == "date":
        return date.max
    if type.name in ("timestamp", "timestamp_ntz"):
        return datetime.max
    return float("inf")
