"""Aggregate on Spark: arguments as expressions, windows in a kernel, arithmetic as expressions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from auroral.boxes.aggregate import Aggregate
from auroral.boxes.computed import analyzed_over
from auroral.boxes.order import TUPLE_NUMBER
from auroral.kernels.accumulators.choice import CallSpec
from auroral.kernels.aggregate import AggregateKernel
from auroral.network.box import Resolver
from auroral.network.function import Function
from auroral.network.types import Field, Type
from auroral.spark.plans.physical import Given, KernelColumns, Physical, mark_fields, quoted
from auroral.sql.aggregates.calls import AggregateCall

FLUSH_ROWS = {"eager": None, "slow": 65_536, "lazy": 0}
_BOOLEAN = Type("boolean")


def lower(box: Aggregate, given: Given) -> Physical:
    """Groups are spread over buckets; only what the functions read travels."""
    columns = KernelColumns(given.schemas[0])
    by = columns.fields(box.order.by)
    counted = box.order.on == TUPLE_NUMBER
    start = Type("bigint") if counted else columns.schema.field(box.order.on).type
    size, advance, history = box.lengths(start)
    calls = AggregateCalls.of(box.compute, columns, given)
    fields = columns.fields() if "late" in given.wanted else ()
    timeout = box.window.timeout
    kernel = AggregateKernel(
        on=None if counted else columns.field(box.order.on),
        by=by,
        slack=box.order.slack,
        size=size,
        advance=advance,
        start_type=start.arrow(),
        calls=tuple(calls.specs),
        arguments=tuple(calls.arguments),
        align_first=box.window.align == "first" and box.opens is None,
        opens=None if box.opens is None else columns.computed(box.opens, _BOOLEAN),
        timeout_us=None if timeout is None else round(timeout * 1_000_000),
        history=history,
        fields=fields,
        by_mark=columns.fields(mark_fields(given.marks[0])),
        flush_rows=FLUSH_ROWS[given.flush],
        types=columns.types(),
    )
    head = ("start", *by)
    revises = ("revises",) if box.late else ()
    made = tuple(f"agg{n}" for n in range(len(calls.specs)))
    physical = Physical(
        kernel, (columns,), {"": (*head, *made, *revises), "late": fields}, (by,) if by else None
    )
    if not calls.outer:
        return physical
    types = [start, *(columns.texts[name][1] for name in by), *calls.types]
    types += [_BOOLEAN] if revises else []
    names = (*head, *made, *revises)
    texts = [*map(quoted, head), *calls.texts, *map(quoted, revises)]
    return Physical(
        kernel,
        (columns,),
        physical.ports,
        physical.keys,
        compute=dict(zip(given.output.names, texts, strict=True)),
        returns=tuple(zip(names, types, strict=True)),
    )


class PairedSides(Protocol):
    """Tuples of two sides: functions over the one may name a constant, the tuple of the other."""

    constant: Field | None

    def computed(self, text: str, type: Type) -> str:
        """The column of an argument."""


@dataclass
class AggregateCalls:
    """The aggregate calls of a box's computed fields, and the expressions over them."""

    specs: list[CallSpec] = field(default_factory=list)
    arguments: list[tuple[str, ...]] = field(default_factory=list)
    types: list[Type] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    outer: bool = False
    pairs: PairedSides | None = None
    """What functions may name beside the columns they are computed over."""

    @staticmethod
    def of(
        compute: Mapping[str, str | Function],
        columns: KernelColumns,
        given: Given,
        pairs: PairedSides | None = None,
    ) -> AggregateCalls:
        calls = AggregateCalls(pairs=pairs)
        for how in compute.values():
            if isinstance(how, Function):
                calls._function(how, columns, given)
            else:
                calls._expression(how, columns, given.resolver)
        return calls

    def _expression(self, text: str, columns: KernelColumns, resolver: Resolver | None) -> None:
        constant = self.pairs.constant if self.pairs else None
        found = analyzed_over(text, columns.schema, resolver, constant)
        base = len(self.specs)
        for call in found.calls:
            self._call(call, columns)
        if found.outer is None:
            self.texts.append(f"agg{base}")
        else:
            self.outer = True
            self.texts.append(f"CAST(({_shifted(found.outer, base)}) AS {found.type})")

    def _call(self, call: AggregateCall, columns: KernelColumns) -> None:
        computed = columns.computed if self.pairs is None else self.pairs.computed
        given = [computed(*argument) for argument in zip(call.args, call.types, strict=True)]
        if call.where is not None:
            given.append(computed(call.where, _BOOLEAN))
        self.specs.append(CallSpec.of(call))
        self.arguments.append(tuple(given))
        self.types.append(call.type)

    def _function(self, how: Function, columns: KernelColumns, given: Given) -> None:
        directory, imports = given.directory, given.imports
        names = how.window_arguments(columns.schema, directory, imports=imports)
        taken = columns.fields(names)
        returns = how.type(directory, imports=imports)
        self.specs.append(
            CallSpec(
                "udf",
                tuple(columns.texts[name][1].arrow() for name in taken),
                returns.arrow(),
                function=how.udf,
                directory=str(directory) if directory else None,
            )
        )
        self.texts.append(f"agg{len(self.types)}")
        self.arguments.append(taken)
        self.types.append(returns)


def _shifted(text: str, base: int) -> str:
    """An expression over a field's own calls as one over all calls of the box."""

    def shifted(found: re.Match[str]) -> str:
        return found[0] if found[1] is None else f"agg{base + int(found[1])}"

    return re.sub(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|\bagg(\d+)\b", shifted, text)
