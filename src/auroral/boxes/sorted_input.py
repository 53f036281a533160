"""Boxes that may have their input sorted first: what that adds to them."""

from __future__ import annotations

from collections.abc import Sequence

from auroral.boxes.bsort import BSort
from auroral.boxes.order import Order
from auroral.network.box import Scope
from auroral.network.types import Schema
from auroral.progress.propagation import ArcProgress


def sorted_ports(
    input: str, order: Order | None, inputs: Sequence[Schema], scope: Scope
) -> dict[str, Schema]:
    """The arc of tuples that are late for the sort before a box, if it has one."""
    if order is None:
        return {}
    return BSort(input=input, order=order).ports(inputs, scope)


def ordering(order: Order | None, schema: Schema) -> frozenset[str]:
    return order.attributes(schema) if order is not None else frozenset()


def sorted_progress(
    input: str, order: Order | None, inputs: Sequence[ArcProgress], schemas: Sequence[Schema]
) -> ArcProgress:
    """What is promised behind the sort before a box."""
    if order is None:
        return inputs[0]
    return BSort(input=input, order=order).progress(inputs, schemas)
