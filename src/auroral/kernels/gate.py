"""Gate on one bucket: compare each tuple with the marks of the moment before its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from auroral.kernels.arrivals import InputOrder, OrderedArrivals
from auroral.kernels.kernel import Context, Emitted
from auroral.kernels.steps import mark_of
from auroral.kernels.stored import with_sub


@dataclass(frozen=True)
class GateKernel:
    """Lets tuples pass that are below none of several marks; it remembers nothing."""

    orders: tuple[InputOrder, ...]
    """What it judges by, one for each mark of the context."""
    fields: tuple[str, ...]
    late_fields: tuple[str, ...] = ()

    def tables(self) -> Mapping[str, pa.Schema]:
        return {}

    def step(
        self, inputs: Sequence[pa.Table], _state: Mapping[str, pa.Table], context: Context
    ) -> Emitted:
        new = with_sub(inputs[0])
        late = np.zeros(new.num_rows, bool)
        for at, order in enumerate(self.orders):
            late |= OrderedArrivals.of(order, new, None, mark_of(context, at), context).late
        hidden = ["_seq", "_ts", "_sub"]
        ports = {"": new.filter(pa.array(~late)).select([*hidden, *self.fields])}
        if self.late_fields:
            ports["late"] = new.filter(pa.array(late)).select([*hidden, *self.late_fields])
        count = int(late.sum())
        return Emitted(ports, late={"late": count} if count else {}, held=0)
