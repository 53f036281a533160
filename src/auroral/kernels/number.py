"""Number tuples in order of arrival."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from auroral.kernels.kernel import Context, Emitted
from auroral.kernels.ordering import sub_bytes

_COUNT = pa.schema([("count", pa.int64())])


@dataclass(frozen=True)
class NumberKernel:
    """Numbers tuples from 0, continuing after the tuples of earlier steps."""

    fields: tuple[str, ...]

    def tables(self) -> Mapping[str, pa.Schema]:
        return {"count": _COUNT}

    def step(
        self, inputs: Sequence[pa.Table], state: Mapping[str, pa.Table], _context: Context
    ) -> Emitted:
        (tuples,) = inputs
        if not tuples.num_rows:
            return Emitted(held=0)
        before = state["count"]["count"][0].as_py() if state["count"].num_rows else 0
        numbers = before + np.arange(tuples.num_rows, dtype=np.int64)
        columns = {"_seq": tuples["_seq"], "_ts": tuples["_ts"], "_sub": sub_bytes(tuples)}
        columns |= {name: tuples[name] for name in self.fields}
        emitted = pa.table({**columns, "number": pa.array(numbers)})
        count = pa.table({"count": [before + tuples.num_rows]}, schema=_COUNT)
        return Emitted({"": emitted}, {"count": count}, held=0)
