"""Python functions of queries, which Spark's workers import by name."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def is_odd(values: pa.Array) -> pa.Array:
    """Whether whole numbers are odd; it does not know negative ones."""
    if pc.any(pc.less(values, 0)).as_py():
        raise ValueError("negative")
    return pc.equal(pc.bit_wise_and(values, 1), 1)


def more_than(one: pa.Array, other: pa.Array) -> pa.Array:
    """By how much one number exceeds another; it does not like sevens."""
    found = pc.subtract(pc.cast(one, pa.float64()), pc.cast(other, pa.float64()))
    if pc.any(pc.equal(found, 7.0)).as_py():
        raise ValueError("seven")
    return found
