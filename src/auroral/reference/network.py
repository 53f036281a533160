"""A network, one tuple at a time: each tuple goes through all of it before the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from auroral.boxes import Filter, Map, Union
from auroral.errors import UsageError, closest, known
from auroral.network.box import Box, not_executable
from auroral.network.network import Network
from auroral.network.types import Field, Schema, Type
from auroral.reference.filter import ReferenceFilter
from auroral.reference.map import ReferenceMap
from auroral.reference.marks import Promises, StreamMark, group_key, passed_on
from auroral.reference.operator import FunctionFailedError, Operator, Row
from auroral.reference.union import ReferenceUnion
from auroral.sql.expression import evaluator


@dataclass(frozen=True)
class Dead:
    """A tuple for which a Python function of a box raised."""

    box: str
    reason: str
    row: Row


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

    def __init__(self, network: Network):
        for name, box in network.boxes.items():
            if not box.executable:
                raise not_executable(network.place("boxes", name), box)
        if network.queries:
            raise UsageError(
                "QUERY_NOT_EXECUTABLE",
                "this version checks continuous queries but does not run them yet",
                where=network.place("queries", next(iter(network.queries))),
            )
        self.network = network
        self.checked = network.check(_only_spark)
        self.dead: list[Dead] = []
        self._collected: dict[str, list[Row]] = {name: [] for name in self.checked.arcs}
        self._marks = {name: StreamMark(stream) for name, stream in network.streams.items()}
        self._inputs = {n: [a.name for a in self.checked.inputs_of(n)] for n in self.checked.order}
        self._operators = {
            name: _operator(name, network.boxes[name], self._schemas(name), network.directory)
            for name in self.checked.order
        }

    # ── in ──

    def push(
        self, stream: str, row: Mapping[str, Any] | Sequence[Any], at: float | None = None
    ) -> None:
        """Let a tuple arrive, at a time in seconds if time matters."""
        self._require_stream(stream)
        arrived = _fitted(row, self.network.streams[stream].schema_)
        self._tick(at)
        self._marks[stream].take(arrived)
        self._flow(stream, arrived)

    def punctuate(
        self, stream: str, value: Any, group: tuple[Any, ...] = (), at: float | None = None
    ) -> None:
        """Let a punctuation arrive: no tuple (of the group) below `value` comes any more."""
        self._require_stream(stream)
        declared = self.network.streams[stream].progress
        if declared is None or len(group) != len(declared.by):
            expected = "no progress is declared" if declared is None else f"by {declared.by}"
            raise UsageError("BAD_ROW", f"a punctuation of {group!r}: {expected}", where=stream)
        self._tick(at)
        self._marks[stream].punctuate(value, group)

    def end(self) -> None:
        """Let all input end."""
        for mark in self._marks.values():
            mark.ended = True

    # ── out ──

    def collected(self, name: str) -> list[Row]:
        """The tuples of an output or an arc so far, in order of emission."""
        output = self.network.outputs.get(name)
        arc = output.from_ if output else name
        if arc not in self._collected:
            names = [*self.network.outputs, *self._collected]
            raise UsageError(
                "UNKNOWN_OUTPUT",
                f"there is no output or arc {name}; {known(names)}",
                hint=closest(name, names),
            )
        return self._collected[arc]

    def mark(self, arc: str, attribute: str, group: tuple[Any, ...] = ()) -> Any | None:
        """The value below which nothing comes on an arc any more; None if nothing is promised.

        In the units of the field: µs for timestamps, days for dates, the least digit of decimals.
        """
        promise = self.promises(arc).get(attribute)
        return promise.of(group_key(group)) if promise else None

    def promises(self, arc: str) -> Promises:
        """Everything an arc promises now, by attribute."""
        producer = self.checked.arcs[arc].producer
        if producer in self._marks:
            return self._marks[producer].promises()
        inputs = [self.promises(name) for name in self._inputs[producer]]
        return passed_on(self.network.boxes[producer], self._schemas(producer), inputs)

    # ── inside ──

    def _flow(self, stream: str, row: Row) -> None:
        """One moment: boxes after what feeds them, inputs in their order."""
        moment: dict[str, list[Row]] = {stream: [row]}
        for box, operator in self._operators.items():
            for port, arc in enumerate(self._inputs[box]):
                for arrived in moment.get(arc, ()):
                    try:
                        emitted = operator.push(port, arrived)
                    except FunctionFailedError as error:
                        self.dead.append(Dead(box, str(error), arrived))
                        continue
                    for out, made in emitted:
                        moment.setdefault(f"{box}.{out}" if out else box, []).append(made)
        for arc, rows in moment.items():
            self._collected[arc] += rows

    def _tick(self, at: float | None) -> None:
        if at is not None:
            for mark in self._marks.values():
                mark.tick(round(at * 1_000_000))

    def _schemas(self, box: str) -> list[Schema]:
        return [self.checked.arcs[arc].schema for arc in self._inputs[box]]

    def _require_stream(self, stream: str) -> None:
        if stream not in self.network.streams:
            names = self.network.streams
            raise UsageError(
                "UNKNOWN_STREAM",
                f"there is no stream {stream}; {known(names)}",
                hint=closest(stream, names),
            )


def _operator(name: str, box: Box, inputs: list[Schema], directory: Path | None) -> Operator:
    if isinstance(box, Filter):
        return ReferenceFilter(box, inputs, directory)
    if isinstance(box, Map):
        return ReferenceMap(box, inputs, directory)
    if isinstance(box, Union):
        return ReferenceUnion(box, inputs, directory)
    raise not_executable(f"box {name}", box)


def _only_spark(text: str, schema: Schema) -> Type:
    """What `check` asks for an expression beyond the catalogue: refuse it by name."""
    evaluator(text, schema)
    raise AssertionError(f"the catalogue does have {text!r}")


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
