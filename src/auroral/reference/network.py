"""A network, one tuple at a time: each tuple goes through all of it before the next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from auroral.boxes import (
    Aggregate,
    BSort,
    Dedup,
    Filter,
    Join,
    Latch,
    Map,
    Number,
    Read,
    Resample,
    StatefulMap,
    Union,
    Update,
    WaitFor,
)
from auroral.boxes.gate import Gate
from auroral.boxes.table_write import TableWrite
from auroral.continuous.boxing.compiler import CompiledQuery
from auroral.continuous.boxing.expansion import expanded
from auroral.continuous.boxing.gates import declared_name, gated, running_names
from auroral.continuous.boxing.tables import with_lookups
from auroral.continuous.sharing.sharing import QueryReader
from auroral.errors import UsageError, closest, list_existing
from auroral.ids import PartBoxId, QueryBoxId
from auroral.network.box import Box, Scope, not_executable
from auroral.network.check import what_boxes_see
from auroral.network.network import Network
from auroral.network.queries import Query
from auroral.network.types import Field, Schema, Type
from auroral.reference.aggregate import reference_aggregate
from auroral.reference.bsort import reference_bsort
from auroral.reference.dedup import ReferenceDedup
from auroral.reference.filter import ReferenceFilter
from auroral.reference.gate import ReferenceGate
from auroral.reference.join import reference_join
from auroral.reference.latch import ReferenceLatch
from auroral.reference.map import ReferenceMap
from auroral.reference.number import ReferenceNumber
from auroral.reference.operator import (
    Emission,
    Failed,
    Now,
    ReferenceOperator,
    Row,
    Tuple,
    TupleByTuple,
)
from auroral.reference.progress.marks import Promises, StreamMarks, group_key
from auroral.reference.progress.promises import rule
from auroral.reference.query import ReferenceSelectJoin, SelectJoin
from auroral.reference.read import ReferenceRead
from auroral.reference.resample import ReferenceResample
from auroral.reference.stateful_map import ReferenceStatefulMap
from auroral.reference.union import ReferenceUnion
from auroral.reference.update import ReferenceUpdate
from auroral.reference.wait_for import ReferenceWaitFor
from auroral.scheduling.table_stages import flow_order
from auroral.sql.expressions.expression import evaluator
from auroral.sql.queries.statements import table_statement
from auroral.tables.sqlite import SqliteTables
from auroral.tables.values import in_key_order


@dataclass(frozen=True)
class Dead:
    """A tuple, or the start and group of a window, for which a box could not do its work.

    A Python function of the box raised, or its statement failed (the place is `table` then).
    """

    box: str
    reason: str
    row: Row
    place: str = "python function"


class Reference:
    """Interprets a network: push tuples, then look at what each arc carried.

    >>> net = Network("border")
    >>> reports = net.stream("reports", schema="sid int, pos int")
    >>> _ = net.output("across", reports.filter("pos >= 30", name="far"))
    >>> reference = Reference(net)
    >>> for row in [(1, 29), (2, 31)]:
    ...     reference.push("reports", row)
    >>> reference.collected("across"), reference.collected("far.rest")
    ([{'sid': 2, 'pos': 31}], [{'sid': 1, 'pos': 29}])
    """

    def __init__(
        self,
        network: Network,
        tables: Mapping[str, Iterable[Mapping[str, Any] | Sequence[Any]]] | None = None,
    ):
        network = with_lookups(network.importing())
        network = gated(expanded(network, _only_spark, _whole_query))
        self.network = network
        self.checked = network.check(_only_spark)
        self.dead: list[Dead] = []
        self.late: dict[tuple[str, str], int] = {}
        """How many tuples became part of no result, by box and reason."""
        self.errors: Counter[str] = Counter()
        """On how many tuples a Python function raised, by query."""
        self._tables = _filled(network, tables or {})
        self._database = self._opened()
        self._collected: dict[str, list[Tuple]] = {name: [] for name in self.checked.arcs}
        self._streams = running_names(network)
        self._marks = {name: StreamMarks(stream) for name, stream in network.streams.items()}
        self._moment = 0
        self._clock_us: int | None = None
        self._ended = False
        order = dict.fromkeys((*flow_order(network), *self.checked.order))
        self._operators = {name: self._operator(name) for name in order}
        self._rules = {
            arc.name: (box.sources(), rule(box, arc.port, self._schemas(name)))
            for name, box in ((name, network.boxes[name]) for name in self.checked.order)
            for arc in self.checked.outputs_of(name)
        }

    # ── in ──

    def push(
        self,
        stream: str,
        row: Mapping[str, Any] | Sequence[Any],
        at: float | None = None,
        *,
        origin: str | None = None,
    ) -> None:
        """Let a tuple arrive, at a time in seconds if time matters.

        `origin` is the source or partition it comes from, if the stream has several.
        """
        stream = self._stream(stream)
        arrived = _fitted(row, self.network.streams[stream].schema_)
        self._tick(at)
        self._marks[stream].take(arrived, origin)
        now_us = self._clock_us or 0
        self._flow({stream: [Tuple(arrived, now_us, self._moment, now_us)]})

    def open_origin(self, stream: str, origin: str) -> None:
        """Let the stream's mark wait for an origin."""
        self._marks[self._stream(stream)].open(origin)
        self._flow({})

    def rest_origin(self, stream: str, origin: str) -> None:
        """Let the stream's mark wait for an origin no more, until it brings something."""
        self._marks[self._stream(stream)].rest(origin)
        self._flow({})

    def punctuate(
        self,
        stream: str,
        value: Any,
        group: tuple[Any, ...] = (),
        at: float | None = None,
        *,
        origin: str | None = None,
    ) -> None:
        """Let a punctuation arrive: no tuple (of the group) below `value` comes any more."""
        stream = self._stream(stream)
        declared = self.network.streams[stream].punctuated
        if declared is None or len(group) != len(declared.by):
            expected = "no progress is declared" if declared is None else f"by {declared.by}"
            raise UsageError(
                "BAD_ROW", f"a punctuation of {group!r}: {expected}", where=declared_name(stream)
            )
        self._tick(at)
        self._marks[stream].punctuate(value, group, origin)
        self._flow({})

    def end(self) -> None:
        """Let all input end: every window closes, every buffer empties."""
        for mark in self._marks.values():
            mark.end()
        if not self._ended:
            self._ended = True
            self._flow({})

    # ── out ──

    def collected(self, name: str) -> list[Row]:
        """The rows of an output or an arc so far, in order of emission."""
        return [made.row for made in self.tuples(name)]

    def tuples(self, name: str) -> list[Tuple]:
        """The same with their hidden fields."""
        output = self.network.outputs.get(name)
        arc = output.from_ if output else self.network.aliases.get(name, name)
        if arc not in self._collected:
            names = [*self.network.outputs, *self._collected]
            raise UsageError(
                "UNKNOWN_OUTPUT",
                f"there is no output or arc {name}; {list_existing(names)}",
                hint=closest(name, names),
            )
        return self._collected[arc]

    def held(self, box: str) -> int:
        """How many tuples or windows a box keeps."""
        return self._operators[box].held()

    def mark(self, arc: str, attribute: str, group: tuple[Any, ...] = ()) -> Any | None:
        """The value below which nothing comes on an arc any more; None if nothing is promised.

        In the units of the field: µs for timestamps, days for dates, the least digit of decimals.
        """
        promise = self.promises(arc).get(attribute)
        return promise.of(group_key(group)) if promise else None

    def promises(self, arc: str) -> Promises:
        """Everything an arc promises now, by attribute."""
        return self.promised()[arc]

    def promised(self) -> dict[str, Promises]:
        """What every arc promises now."""
        found = {name: mark.promises() for name, mark in self._marks.items()}
        for arc, (sources, promise) in self._rules.items():
            # A table is no arc: it stands for None.
            found[arc] = promise([found.get(source) for source in sources])
            box = self.network.boxes[self.checked.arcs[arc].producer]
            if isinstance(box, Number) and box.input in self._marks:
                found[arc] = {**found[arc], box.as_: self._marks[box.input].numbers()}
        return found

    def table(self, name: str) -> list[Row]:
        """The rows of a table as they are now, in the order of its key."""
        if name not in self.network.tables:
            raise _unknown_table(self.network, name)
        declared = self.network.tables[name]
        if name in self._live():
            rows = self._database.rows(name, declared)
        else:
            rows = pa.Table.from_pylist(self._tables[name], declared.schema_.arrow())
        found: list[Row] = in_key_order(rows, declared.key).to_pylist()
        return found

    # ── inside ──

    def _live(self) -> set[str]:
        """The tables that boxes read or update."""
        boxes = [
            b for b in self.network.boxes.values() if isinstance(b, Read | Update | TableWrite)
        ]
        return {n for box in boxes for n in table_statement(box.sql, self.network.tables).tables}

    def _opened(self) -> SqliteTables:
        """A database with the tables that boxes use."""
        database = SqliteTables(None)
        for name in sorted(self._live()):
            declared = self.network.tables[name]
            rows = pa.Table.from_pylist(self._tables[name], declared.schema_.arrow())
            database.ensure(name, declared, rows)
        return database

    def _flow(self, arrived: dict[str, list[Tuple]]) -> None:
        """One moment: boxes after what feeds them, inputs in their order, then its progress."""
        promises = self.promised()
        for name, operator in self._operators.items():
            sources = self.network.boxes[name].sources()
            made: list[Emission | Failed] = []
            for port, arc in enumerate(sources):
                for one in arrived.get(arc, ()):
                    made += operator.push(port, one)
            # A table promises nothing, and needs not.
            known_now = [promises.get(arc, {}) for arc in sources]
            made += operator.settle(Now(known_now, self._clock_us, self._ended))
            for emitted in made:
                self._take(name, emitted, arrived)
        for arc, tuples in arrived.items():
            self._collected[arc] += tuples
        self._moment += 1

    def _take(self, box: str, emitted: Emission | Failed, arrived: dict[str, list[Tuple]]) -> None:
        if isinstance(emitted, Failed):
            dead = Dead(PartBoxId.owner(box), emitted.reason, emitted.row, emitted.place)
            self.dead.append(dead)
            return
        if emitted.reason is not None:
            counted = (box, emitted.reason)
            self.late[counted] = self.late.get(counted, 0) + 1
        if emitted.port is not None:
            arc = f"{box}.{emitted.port}" if emitted.port else box
            made = replace(emitted.tuple, moment=self._moment, reached_us=self._clock_us or 0)
            arrived.setdefault(arc, []).append(made)

    def _tick(self, at: float | None) -> None:
        """Let the clock pass: in a moment of its own, before what arrives then."""
        now_us = None if at is None else round(at * 1_000_000)
        if now_us is None or (self._clock_us is not None and now_us <= self._clock_us):
            return
        self._clock_us = now_us
        for mark in self._marks.values():
            mark.tick(now_us)
        self._flow({})

    def _operator(self, name: str) -> ReferenceOperator:
        box, schemas = self.network.boxes[name], self._schemas(name)
        scope = what_boxes_see(self.network, _only_spark)
        if isinstance(box, Join):
            return reference_join(box, schemas, tables=self._tables, scope=scope)
        if isinstance(box, Read):
            return TupleByTuple(ReferenceRead(name, box, schemas, scope, self._database))
        if isinstance(box, Update | TableWrite):
            return TupleByTuple(ReferenceUpdate(name, box, schemas, scope, self._database))
        if isinstance(box, SelectJoin):
            return ReferenceSelectJoin(box, schemas, self.errors, QueryBoxId.query_of(name) or name)
        return operator_of(self.network.place("boxes", name), box, schemas, scope)

    def _schemas(self, box: str) -> list[Schema]:
        tables, arcs = self.network.tables, self.checked.arcs
        sources = self.network.boxes[box].sources()
        return [arcs[n].schema if n in arcs else tables[n].schema_ for n in sources]

    def _stream(self, name: str) -> str:
        """What a stream is called in the network that runs."""
        if name not in self._streams:
            raise UsageError(
                "UNKNOWN_STREAM",
                f"there is no stream {name}; {list_existing(self._streams)}",
                hint=closest(name, self._streams),
            )
        return self._streams[name]


def operator_of(place: str, box: Box, inputs: Sequence[Schema], scope: Scope) -> ReferenceOperator:
    """The operator of one box, by itself."""
    directory = scope.directory
    if isinstance(box, Filter):
        return TupleByTuple(ReferenceFilter(box, inputs, scope))
    if isinstance(box, Map):
        return TupleByTuple(ReferenceMap(box, inputs, scope))
    if isinstance(box, Union):
        return TupleByTuple(ReferenceUnion(box, inputs, directory))
    if isinstance(box, Number):
        return TupleByTuple(ReferenceNumber(box, inputs, directory))
    if isinstance(box, Aggregate):
        return reference_aggregate(box, inputs, directory)
    if isinstance(box, BSort):
        return reference_bsort(box, inputs, directory)
    if isinstance(box, Dedup):
        return ReferenceDedup(box, inputs, directory)
    if isinstance(box, Gate):
        return ReferenceGate(box, inputs, directory)
    if isinstance(box, Resample):
        return ReferenceResample(box, inputs, directory)
    if isinstance(box, StatefulMap):
        return ReferenceStatefulMap(box, inputs, directory)
    if isinstance(box, Latch):
        return ReferenceLatch(box, inputs, directory)
    if isinstance(box, WaitFor):
        return ReferenceWaitFor(box, inputs, directory)
    raise not_executable(place, box)


def _whole_query(name: str, query: Query, reader: QueryReader) -> CompiledQuery | None:
    """A query that boxes cannot answer, as one box."""
    found = reader.asked(name, query)
    if found is None:
        return None
    asked, functions = found
    box = SelectJoin(inputs=asked.arcs, asked=asked, callables=dict(functions))
    return CompiledQuery({f"{name}#1": box}, f"{name}#1", asked.schema)


def _only_spark(text: str, schema: Schema) -> Type:
    """What `check` asks for an expression beyond the catalogue: refuse it by name."""
    evaluator(text, schema)
    raise AssertionError(f"the catalogue does have {text!r}")


def _filled(
    network: Network, tables: Mapping[str, Iterable[Mapping[str, Any] | Sequence[Any]]]
) -> dict[str, list[Row]]:
    """The rows of every table; one that is not given is empty."""
    for name in tables:
        if name not in network.tables:
            raise _unknown_table(network, name)
    return {
        name: [_fitted(row, table.schema_) for row in tables.get(name, ())]
        for name, table in network.tables.items()
    }


def _unknown_table(network: Network, name: str) -> UsageError:
    return UsageError(
        "UNKNOWN_TABLE",
        f"there is no table {name}; {list_existing(network.tables)}",
        hint=closest(name, network.tables),
    )


def _fitted(row: Mapping[str, Any] | Sequence[Any], schema: Schema) -> Row:
    """The row with exactly the values its fields hold; absent fields are NULL."""
    if not isinstance(row, Mapping):
        if len(row) != len(schema):
            raise UsageError("BAD_ROW", f"expected {len(schema)} values, found {len(row)}")
        row = dict(zip(schema.names, row, strict=True))
    given = {schema.field(name).name: value for name, value in row.items()}
    return {field.name: _value(given.get(field.name), field) for field in schema}


def _value(value: Any, field: Field) -> Any:
    try:
        return pa.array([value], field.type.arrow()).to_pylist(maps_as_pydicts="strict")[0]
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        why = f"{field.name}: expected {field.type}, found {value!r} ({error})"
        raise UsageError("BAD_ROW", why) from None
