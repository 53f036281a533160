"""Decide the predicates that grouped filters cannot: those that contain constants of the query."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from auroral.eddy.bitmap import mask_of, set_bits
from auroral.eddy.filters.grouped import QueryBlock
from auroral.eddy.filters.keys import Mask
from auroral.eddy.filters.portion import Portion
from auroral.eddy.filters.tally import At
from auroral.eddy.filters.verification import Verifier

Words = NDArray[np.uint64]

PAIRS = 1 << 20
"""So many pairs of a tuple and a query are looked at together."""


def verify(verifier: Verifier, portion: Portion, rows: At, queries: At) -> tuple[Mask, Mask, str]:
    """Which pairs satisfy all clauses, which could not be decided because of a failure, and why."""
    alive = np.arange(len(rows))
    at_fault = np.zeros(len(rows), bool)
    reason = ""
    for clause in verifier.clauses:
        true, failed, why = verifier.decide(clause, portion, rows[alive], queries[alive])
        if failed is not None:
            at_fault[alive[failed]] = True
            true = true | failed
            reason = reason or why or ""
        alive = alive[true]
    left = np.zeros(len(rows), bool)
    left[alive] = True
    return left & ~at_fault, left & at_fault, reason


def settle(
    block: QueryBlock,
    portion: Portion,
    lineage: Words,
    at_fault: Words | None,
    reasons: list[tuple[Words, str]],
) -> Words | None:
    """Decide the clauses that need tuple and query together; return the failed ones."""
    for begin, stop, verifier in block.residues:
        low, high = begin // 64, -(-stop // 64)
        step = max(1, PAIRS // (stop - begin))
        for start in range(0, len(lineage), step):
            rows, bits = set_bits(lineage[start : start + step, low:high])
            rows, bits = rows + start, bits + low * 64
            mine = (bits >= begin) & (bits < stop)
            rows, bits = rows[mine], bits[mine]
            true, doubtful, why = verify(verifier, portion, rows, bits - begin)
            false = ~(true | doubtful)
            one = np.left_shift(1, bits & 7).astype(np.uint8)
            bytes_ = lineage.view(np.uint8)
            np.bitwise_and.at(bytes_, (rows[false], bits[false] >> 3), ~one[false])
            if doubtful.any():
                at_fault = np.zeros_like(lineage) if at_fault is None else at_fault
                asking = np.zeros(lineage.shape[1] * 64, bool)
                asking[begin:stop] = True
                reasons.append((mask_of(asking, lineage.shape[1]), why))
                where = rows[doubtful], bits[doubtful] >> 3
                np.bitwise_or.at(at_fault.view(np.uint8), where, one[doubtful])
    return at_fault
