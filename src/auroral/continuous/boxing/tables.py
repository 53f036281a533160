"""A network whose boxes that use tables are what runs: sorts, lookups and writes of their own.

`read` and `update` with `order` have a sort before them, `b@sorted`. A join with a table that the
network changes is a `read` of each tuple's partners, `b@lookup`, and a map that puts the fields in
order. What runs an `update` is a write, `b@write`, followed by a map that makes the report. What a
`latch` emits is put into its table by a write, `b@write`, which boxes behind it read.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from auroral.boxes import BSort, Join, Map, Read, Update
from auroral.boxes.join import joined
from auroral.boxes.table_write import TableWrite
from auroral.errors import NetworkError
from auroral.ids import ArcId, PartBoxId
from auroral.network.box import Box
from auroral.network.check import type_arcs
from auroral.network.network import Network
from auroral.network.point_names import renamed_inputs
from auroral.network.types import Schema
from auroral.sql.queries.statements import table_statement
from auroral.tables.statements import upsert


def with_lookups(network: Network) -> Network:
    """The same network with sorts before boxes that ask for them, and joins of live tables.

    >>> net = Network("tolls")
    >>> _ = net.table("accounts", "vid int, balance double", key=["vid"])
    >>> tolls = net.stream("tolls", schema="vid int, at int")
    >>> sql = "SELECT balance FROM accounts WHERE vid = :vid"
    >>> _ = tolls.read(sql, order={"on": "at", "slack": 1}, name="balance")
    >>> {name: box.sources() for name, box in with_lookups(net).boxes.items()}
    {'balance@sorted': ('tolls',), 'balance': ('balance@sorted',)}
    """
    latches = {name: table for name, box in network.boxes.items() if (table := latched(box))}
    uses = any(isinstance(box, Read | Update) for box in network.boxes.values())
    if not uses and not latches:
        return network
    changed = copy.copy(network)
    live = written_tables(network)
    boxes: dict[str, Box] = {}
    renamed: dict[str, str] = {}
    behind: dict[str, str] = {}
    """What boxes read instead of an arc, but outputs do not."""
    for name, table in latches.items():
        arcs, _ = type_arcs(network, [name])
        names = arcs[name].schema.names
        sql = upsert(table, names, network.tables[table].key)
        behind[name] = str(PartBoxId(name, "write"))
        boxes[behind[name]] = TableWrite(input=name, sql=sql, passes_failed=True)
    for name, box in network.boxes.items():
        if isinstance(box, Read | Update) and box.order is not None:
            sort = str(PartBoxId(name, "sorted"))
            boxes[sort] = BSort(input=box.input, order=box.order)
            boxes[name] = box.model_copy(update={"input": sort, "order": None})
            renamed[f"{name}.late"] = f"{sort}.late"
        elif isinstance(box, Join) and any(source in live for source in box.sources()):
            boxes |= _lookup(network, name, box)
        else:
            boxes[name] = box
    writers = {*behind.values()}
    changed.boxes = {
        name: box if name in writers else renamed_inputs(box, {**renamed, **behind})
        for name, box in boxes.items()
    }
    changed.outputs = {
        name: output.model_copy(update={"from_": renamed.get(output.from_, output.from_)})
        for name, output in network.outputs.items()
    }
    return changed


def with_writes(network: Network) -> Network:
    """The same network with a write and a map in the place of each update."""
    if not any(isinstance(box, Update) for box in network.boxes.values()):
        return network
    changed = copy.copy(network)
    changed.boxes = {}
    for name, box in network.boxes.items():
        if isinstance(box, Update):
            write = str(PartBoxId(name, "write"))
            changed.boxes[write] = TableWrite(input=box.input, sql=box.sql)
            changed.boxes[name] = box.reporting(write)
        else:
            changed.boxes[name] = box
    return changed


def written_tables(network: Network) -> dict[str, str]:
    """The tables that the network changes, each with a box that does."""
    found: dict[str, str] = {}
    for name, box in network.boxes.items():
        if isinstance(box, Update | TableWrite):
            written = table_statement(box.sql, network.tables).writes
            assert written is not None
            found.setdefault(written, name)
        elif table := latched(box):
            found.setdefault(table, name)
    return found


def require_unchanged_tables(network: Network, boxes: Iterable[Box]) -> None:
    """Refuse boxes of a query that would join a table which the network changes."""
    read = {source for box in boxes for source in box.sources() if source in network.tables}
    changing = written_tables(network) if read else {}
    for table in sorted(read & {*changing}):
        raise NetworkError(
            "LIVE_JOIN",
            f"a query joins {table} as it was at the start, but {changing[table]} changes it",
            hint="use a join or read box, and let the query read that",
        )


def latched(box: Box) -> str | None:
    """The table that a box keeps what it emits in, if it is a latch."""
    table = getattr(box, "table", None) if box.kind == "latch" else None
    return table if isinstance(table, str) else None


def _lookup(network: Network, name: str, box: Join) -> dict[str, Box]:
    """A join with a table that changes: each tuple reads its partners when it arrives."""
    at = next(n for n, source in enumerate(box.inputs) if source in network.tables)
    table, arc = box.inputs[at], box.inputs[1 - at]
    producer = ArcId.parse(arc).producer
    arcs, _ = type_arcs(network, [producer] if producer in network.boxes else [])
    stream, stored = arcs[arc].schema, network.tables[table].schema_
    if box.left is not None or box.right is not None:
        raise _refused(network, name, table, "it has an order")
    columns = {field.name: f"_c{n}" for n, field in enumerate(stored)}
    where = _predicate(network, name, box, table, (stream, stored), at)
    listed = ", ".join(f'"{field}" AS {alias}' for field, alias in columns.items())
    sql = f'SELECT {listed} FROM "{table}"' + (f" WHERE {where}" if where else "")
    lookup = str(PartBoxId(name, "lookup"))
    own = list(stream.names)
    parts = [*own, *columns.values()] if at == 1 else [*columns.values(), *own]
    left, right = (stream, stored) if at == 1 else (stored, stream)
    compute = {
        field: f"`{part}`" for field, part in zip(joined(left, right).names, parts, strict=True)
    }
    return {
        lookup: Read(input=arc, sql=sql, keep=tuple(own)),
        name: Map(input=lookup, compute=dict(compute)),
    }


def _predicate(
    network: Network,
    name: str,
    box: Join,
    table: str,
    schemas: tuple[Schema, Schema],
    at: int,
) -> str:
    """The predicate of a join as a statement has it: fields of the stream are parameters."""
    stream, stored = schemas
    own, other = ("right", "left") if at == 1 else ("left", "right")
    if box.on is None:
        return ""
    try:
        tree = sqlglot.parse_one(box.on, dialect="spark")
    except SqlglotError:
        raise _refused(network, name, table, f"{box.on} cannot be read as SQL") from None

    def replaced(node: exp.Expression) -> exp.Expression:
        if not isinstance(node, exp.Column):
            return node
        if node.table.lower() == own:
            return exp.column(stored.field(node.name).name, quoted=True)
        if node.table.lower() == other:
            return exp.Var(this=f":{stream.field(node.name).name}")
        raise _refused(network, name, table, f"{node.sql()} is no field of left or right")

    text = tree.transform(replaced).sql(dialect="postgres")
    try:
        table_statement(f'SELECT 1 AS one FROM "{table}" WHERE {text}', network.tables)
    except NetworkError as error:
        raise _refused(network, name, table, error.message) from None
    return text


def _refused(network: Network, name: str, table: str, reason: str) -> NetworkError:
    return NetworkError(
        "LIVE_JOIN",
        f"the network changes the table {table}, so the join looks partners up in its database;"
        f" that cannot be done: {reason}",
        where=network.place("boxes", name),
        hint="compare fields of left and right, or use a read box",
    )
