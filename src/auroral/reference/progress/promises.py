"""What each box promises on its arcs, given what its inputs promise. Independent of `progress/`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

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
from auroral.boxes.join import joined
from auroral.boxes.order import TUPLE_NUMBER, Order
from auroral.boxes.table_write import TableWrite
from auroral.boxes.window import in_marks, is_predicate
from auroral.network.box import Box
from auroral.network.types import Schema
from auroral.reference.join import band_of as join_band
from auroral.reference.progress.derived import Chain, Extreme, order_kept
from auroral.reference.progress.marks import Group, GroupMarks, JointMark, Promise, Promises, least
from auroral.reference.query import SelectJoin
from auroral.reference.resample import band_of as resample_band
from auroral.reference.windowing.grid import grid
from auroral.sql.expressions.parser import parse
from auroral.sql.expressions.syntax import Name

_NEVER: Group = (object(),)
"""A group that no tuple has."""


Rule = Callable[[Sequence[Promises | None]], Promises]
"""What an arc promises, given what the inputs of its box do; None stands for a table."""


def rule(box: Box, port: str, schemas: Sequence[Schema]) -> Rule:
    """The rule for one arc of a box."""
    if isinstance(box, Map):
        return partial(_computed, _made(box, schemas[0]))
    if isinstance(box, StatefulMap):
        kept = {n: Chain(n, schemas[0].field(n).type) for n in box.kept(schemas[0])}
        return partial(_computed, kept)
    if isinstance(box, Latch):
        keys = [schemas[0].field(name) for name in box.by]
        return partial(_computed, {key.name: Chain(key.name, key.type) for key in keys})
    if isinstance(box, Read):
        kept = {n: Chain(n, schemas[0].field(n).type) for n in box.kept(schemas[0])}
        return partial(_computed, kept)
    if isinstance(box, Update):
        return partial(_computed, _made(box.reporting(box.input), schemas[0]))
    if isinstance(box, Union):
        return partial(_united, schemas[0])
    if port and not isinstance(box, Filter):
        return lambda _: {}  # a late tuple is below what was promised
    if isinstance(box, SelectJoin):
        return lambda _: {}  # nothing reads its results but outputs
    if isinstance(box, Aggregate):
        return partial(_aggregated, box, schemas[0])
    if isinstance(box, BSort):
        return partial(_sorted, box, schemas[0])
    if isinstance(box, Join):
        return partial(_paired, box, schemas)
    if isinstance(box, Resample):
        return partial(_resampled, box, schemas)
    if isinstance(box, WaitFor):
        return lambda _: {}  # a tuple may wait while what is promised of its values moves on
    assert isinstance(box, Filter | Dedup | Gate | Number | TableWrite)
    return lambda inputs: inputs[0] or {}


def _aggregated(box: Aggregate, schema: Schema, inputs: Sequence[Promises | None]) -> Promises:
    """The start of the first window that can still come out, per group if groups stay apart."""
    size, advance = box.window.size, box.window.advance
    numbered = box.order.on == TUPLE_NUMBER
    if numbered or box.order.slack is not None or (advance is not None and is_predicate(advance)):
        return {}
    on = schema.field(box.order.on)
    promise = _by_groups((inputs[0] or {}).get(on.name), box.order, schema)
    if promise is None:
        return {}
    assert size is not None
    windows = grid(size, advance, on.type)
    history = 0 if box.history is None else in_marks(box.history, on.type)

    def first(mark: Any) -> Any:
        return None if mark is None else windows.first_open(mark, history)

    known = promise.marks
    marks = GroupMarks(lambda: known, lambda group: first(promise.of(group)))
    return {on.name: replace(promise, marks=marks, others=first(promise.others))}


def _sorted(box: BSort, schema: Schema, inputs: Sequence[Promises | None]) -> Promises:
    """Tuples wait, so that only what holds of the order itself still holds."""
    if box.order.numbered:
        return (inputs[0] or {}) if box.order.slack is None else {}
    on = schema.field(box.order.on).name
    promise = _by_groups((inputs[0] or {}).get(on), box.order, schema)
    return {on: promise} if promise is not None and box.order.slack is None else {}


def _paired(box: Join, schemas: Sequence[Schema], inputs: Sequence[Promises | None]) -> Promises:
    """Of each side what its own tuples and the other's can still bring [3 Fig. 4]."""
    names = joined(*schemas).names
    sides = dict(zip(schemas[0].names, names, strict=False))
    others = dict(zip(schemas[1].names, names[len(sides) :], strict=True))
    if inputs[1] is None:
        return _computed(_renamed(sides, schemas[0]), inputs)
    if inputs[0] is None:
        return _computed(_renamed(others, schemas[1]), inputs[1:])
    marks = _both(box.left, box.right, schemas, inputs)
    if box.rows is not None or marks is None:
        return {}
    assert box.left is not None
    assert box.right is not None
    left, right = (
        sides[schemas[0].field(box.left.on).name],
        others[schemas[1].field(box.right.on).name],
    )
    band, (own, other) = join_band(box, schemas), marks
    return {
        left: Promise((), {(): band.left_mark(own, other)}, joint=(JointMark(right, own, other),)),
        right: Promise((), {(): band.right_mark(own, other)}, joint=(JointMark(left, other, own),)),
    }


def _renamed(names: Mapping[str, str], schema: Schema) -> dict[str, Chain | Extreme]:
    """Fields that stay what they are under other names."""
    return {copy: Chain(name, schema.field(name).type) for name, copy in names.items()}


def _resampled(
    box: Resample, schemas: Sequence[Schema], inputs: Sequence[Promises | None]
) -> Promises:
    """A left tuple waits until the right has passed all that is near it."""
    marks = _both(box.left, box.right, schemas, inputs)
    if marks is None:
        return {}
    on = schemas[0].field(box.left.on).name
    return {on: Promise((), {(): resample_band(box, schemas).left_mark(*marks)})}


def _both(
    left: Order | None,
    right: Order | None,
    schemas: Sequence[Schema],
    inputs: Sequence[Promises | None],
) -> list[Any] | None:
    """The marks of two sides that rely on promises; None if one has slack or none is made."""
    marks = []
    for order, schema, promises in zip((left, right), schemas, inputs, strict=True):
        if order is None or order.slack is not None or order.numbered or promises is None:
            return None
        promise = promises.get(schema.field(order.on).name)
        if promise is None:
            return None
        marks.append(promise.least())
    return marks


def _by_groups(promise: Promise | None, order: Order, schema: Schema) -> Promise | None:
    """A promise as an order sees it: by groups only if those are among its own."""
    if promise is None:
        return None
    if {schema.field(name).name for name in order.by} >= set(promise.by):
        return replace(promise, joint=())
    return Promise((), {(): promise.least()})


def _made(box: Map, schema: Schema) -> dict[str, Chain | Extreme]:
    """How a map's fields keep the order of fields of its input; those that do not are left out."""
    made: dict[str, Chain | Extreme] = {
        name: Chain(name, schema.field(name).type) for name in box.kept(schema)
    }
    for name, how in box.compute.items():
        found = order_kept(how, schema) if isinstance(how, str) else None
        tree = parse(how) if isinstance(how, str) else None
        if isinstance(tree, Name):
            copied = schema.field(tree.name)
            found = Chain(copied.name, copied.type)
        if found is not None:
            made[name] = found
    return made


def _computed(made: Mapping[str, Chain | Extreme], inputs: Sequence[Promises | None]) -> Promises:
    """What is promised of fields holds of what is made of them; groups must be there too."""
    promises = inputs[0] or {}
    chains = {name: how for name, how in made.items() if isinstance(how, Chain)}
    copies: dict[str, str] = {}
    for name, chain in chains.items():
        if not chain.functions:
            copies.setdefault(chain.field, name)
    found = {}
    for name, how in made.items():
        promise = how.promise(promises)
        if promise is not None and all(group in copies for group in promise.by):
            joint = tuple(
                JointMark(other, one.own, chain(one.other))
                for one in promise.joint
                for other, chain in chains.items()
                if chain.field == one.by
            )
            by = tuple(copies[group] for group in promise.by)
            found[name] = replace(promise, by=by, joint=joint)
    return found


def _united(schema: Schema, inputs: Sequence[Promises | None]) -> Promises:
    """Per attribute the least of all inputs; a promise for all groups is one for each."""
    found: dict[str, Promise] = {}
    for name in schema.names:
        given = [_fold(promises or {}).get(name.lower()) for promises in inputs]
        every = [promise for promise in given if promise is not None]
        shapes = {tuple(field.lower() for field in promise.by) for promise in every} - {()}
        if len(every) == len(inputs) and len(shapes) <= 1:
            by = next((promise.by for promise in every if promise.by), ())
            found[name] = Promise(by, _united_marks(every, by), _least_of(every, _NEVER))
    return found


def _united_marks(every: Sequence[Promise], by: tuple[str, ...]) -> GroupMarks:
    """The marks of all groups that are known to one of several promises."""

    def groups() -> Iterable[Group]:
        return dict.fromkeys(g for promise in every if promise.by for g in promise.marks)

    return GroupMarks(groups if by else lambda: [()], partial(_least_of, every))


def _fold(promises: Promises) -> Promises:
    return {attribute.lower(): promise for attribute, promise in promises.items()}


def _least_of(promises: Sequence[Promise], group: Group) -> Any:
    return least([promise.of(group) for promise in promises])
