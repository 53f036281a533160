"""Join: pairs of tuples within a band."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field as Limits
from pydantic import StrictInt, StrictStr

from auroral.boxes.order import Order
from auroral.boxes.predicate import require_boolean, sided, with_calls
from auroral.boxes.window import Length, Seconds, in_marks, require_length, require_timeout
from auroral.errors import NetworkError
from auroral.ids import PartBoxId
from auroral.network.box import ManyInputs, Scope, register, require_inputs
from auroral.network.types import Field, Schema, Type
from auroral.progress.durations import LONGEST
from auroral.progress.lowwater import JointLowWater, Mark
from auroral.progress.propagation import ArcProgress, paired, relied_on, renamed
from auroral.sql.expressions.function_calls import FunctionCalls
from auroral.sql.expressions.parser import parse
from auroral.sql.expressions.syntax import Call, Member, Name, Node

PositiveCount = Annotated[StrictInt, Limits(ge=1, le=LONGEST)]


@register
class Join(ManyInputs):
    """Pair left and right tuples that satisfy `on` and lie within a band [1 §5.2.2.3, 3 §5.3].

    `within: s` means abs(left.on − right.on) <= s; `range: [r0, r1]` means
    left.on − r0 <= right.on <= left.on + r1, where one of the two may be negative as long as the
    band is not empty; `rows: [n, m]` means that the earlier of the two is among the latest n left
    (m right) tuples when the later arrives. A table side has no window. With `timeout: t` a tuple
    is kept for t seconds at most: the two of a pair reach the join within t seconds of each other.
    """

    kind: ClassVar[str] = "join"
    executable: ClassVar[bool] = True
    stateful: ClassVar[bool] = True
    takes_tables: ClassVar[bool] = True

    box: Literal["join"] = "join"
    on: StrictStr | None = None
    left: Order | None = None
    right: Order | None = None
    within: Length | None = None
    range: tuple[Length, Length] | None = None
    rows: tuple[PositiveCount, PositiveCount] | None = None
    timeout: Seconds | None = None

    def model_post_init(self, _context: Any) -> None:
        require_inputs(self, 2)
        require_timeout(self.timeout)
        given = [key for key in ("within", "range", "rows") if getattr(self, key) is not None]
        if len(given) > 1:
            raise NetworkError(
                "BAD_PARAMETER",
                f"a join takes one of within, range and rows, found {' and '.join(given)}",
                where=f"key {given[1]}",
            )

    def ports(self, inputs: Sequence[Schema], scope: Scope) -> dict[str, Schema]:
        left, right = inputs
        if self.on is not None:
            (found,) = self.calls(inputs, scope).expressions
            require_boolean(found, self.on, "on")
        tables = [name in scope.tables for name in self.inputs]
        if all(tables):
            raise NetworkError(
                "BAD_PARAMETER",
                "a join needs at least one stream, found two tables",
                where="key inputs",
            )
        types = [
            order.type_in(schema, key, tuple_number=True) if order else None
            for order, schema, key in ((self.left, left, "left"), (self.right, right, "right"))
        ]
        if any(tables):
            self._require_no_window(self.inputs[tables.index(True)])
        elif self.rows is None:
            self._require_band(*types)
        ports = {"": joined(left, right)}
        if self.rows is not None:
            return ports
        for name, table, order, schema in zip(
            ("left_late", "right_late"), tables, (self.left, self.right), inputs, strict=True
        ):
            if not table and not (order and order.numbered):  # arrival numbers are never late
                ports[name] = schema
        return ports

    def state_shape(self) -> dict[str, Any]:
        return {**super().state_shape(), "timeout": self.times_out}

    def calls(self, inputs: Sequence[Schema], scope: Scope) -> FunctionCalls:
        """Its predicate, and the Python functions that it calls.

        They are called for pairs whose fields are equal where the predicate says so.
        """
        left, right = inputs
        return with_calls({"on": self.on or "true"}, sided(left=left, right=right), scope)

    def reads(self, inputs: Sequence[Schema], _scope: Scope) -> tuple[frozenset[str], ...]:
        return tuple(frozenset(schema.names) for schema in inputs)

    def lengths(self, on: Type) -> tuple[Any, Any]:
        """How far right.on may lie below and above left.on, in the units of marks."""
        before, after = self.range if self.range is not None else (self.within, self.within)
        assert before is not None
        assert after is not None
        return in_marks(before, on), in_marks(after, on)

    def progress(self, inputs: Sequence[ArcProgress], schemas: Sequence[Schema]) -> ArcProgress:
        names = joined(*schemas).names
        if self.has_table:
            # Only one side can promise anything: the stream.
            placed = zip(schemas[1].names, names[len(schemas[0]) :], strict=True)
            right = renamed(inputs[1], {name: [as_] for name, as_ in placed})
            return {**inputs[0], **right}
        orders = (self.left, self.right)
        if self.rows is not None or any(o is None or o.attribute is None for o in orders):
            return {}
        assert self.left is not None
        assert self.right is not None
        on = (schemas[0].field(self.left.on), schemas[1].field(self.right.on))
        at = len(schemas[0]) + schemas[1].names.index(on[1].name)
        before, after = self.lengths(on[0].type)
        attributes, named = (on[0].name, on[1].name), (on[0].name, names[at])
        return paired(inputs[0], inputs[1], attributes, named, before, after)

    @property
    def times_out(self) -> bool:
        return self.timeout is not None

    @property
    def has_table(self) -> bool:
        """Whether one input is a table: two streams need a window."""
        return self.within is None and self.range is None and self.rows is None

    def relies_on(self, inputs: Sequence[ArcProgress]) -> tuple[Mark | JointLowWater, ...]:
        return tuple(
            relied_on(progress, order.attribute if order else None, order.by if order else ())
            for progress, order in zip(inputs, (self.left, self.right), strict=True)
        )

    def _require_no_window(self, table: str) -> None:
        for key in ("within", "range", "rows", "timeout"):
            if getattr(self, key) is not None:
                lacks = "keeps no tuples" if key == "timeout" else "has no window"
                raise NetworkError(
                    "BAD_PARAMETER", f"a join with a table ({table}) {lacks}", where=f"key {key}"
                )

    def _require_band(self, left: Type | None, right: Type | None) -> None:
        if left is None or right is None:
            missing = "left" if left is None else "right"
            raise NetworkError(
                "MISSING_KEY", f"a join of two streams needs the order of its {missing}"
            )
        require_comparable(left, right)
        if self.within is not None:
            require_length("within", self.within, left, zero=True)
        elif self.range is None:
            raise NetworkError("MISSING_KEY", "a join of two streams needs within, range or rows")
        else:
            for at, length in enumerate(self.range):
                require_length(f"range.{at}", length, left, negative=True)
            if sum(self.lengths(left)) < 0:
                raise NetworkError(
                    "BAD_WINDOW",
                    f"the band is empty: expected -r0 <= r1, found {list(self.range)}",
                    where="key range",
                    hint="range: [r0, r1] means left.on - r0 <= right.on <= left.on + r1",
                )


SIDES = ("left", "right")
"""What predicates call the two inputs."""


@dataclass(frozen=True)
class Sieve:
    """A predicate of a filter behind a join that reads fields of one side of the join only."""

    side: int
    filter: str
    """The declared filter."""
    where: str
    """The predicate over the fields of that side."""

    @property
    def name(self) -> str:
        """Under which its work is known.

        >>> Sieve(0, "far", "pos > 3").name
        'far@left'
        """
        return str(PartBoxId(self.filter, SIDES[self.side]))


class SiftedJoin(Join):
    """A join in front of a filter, by whose predicates it already sifts the tuples of a side.

    What a sieve drops finds no partners, but is judged and kept as other tuples are. So the filter
    behind it gives what it gives behind the plain join. The optimiser makes such joins; nobody
    declares them.
    """

    sieves: tuple[Sieve, ...] = ()

    @staticmethod
    def of(join: Join, sieve: Sieve) -> SiftedJoin:
        """A join with one more sieve."""
        known = join.sieves if isinstance(join, SiftedJoin) else ()
        given = {name: getattr(join, name) for name in Join.model_fields}
        return SiftedJoin(**given, sieves=(*known, sieve))

    def as_declared(self) -> Join:
        return Join(**{name: getattr(self, name) for name in Join.model_fields})

    def of_side(self, side: int) -> tuple[Sieve, ...]:
        """The sieves of one input, in their order."""
        return tuple(sieve for sieve in self.sieves if sieve.side == side)


def equal_fields(on: str, sides: tuple[str, str] = SIDES) -> list[tuple[str, str]]:
    """The fields of left and right that a predicate compares by `=`, whatever else it says.

    >>> equal_fields("left.a = right.b AND right.c = left.d AND f(left.x) > 1")
    [('a', 'b'), ('d', 'c')]
    """
    found = [_equal(part, sides) for part in _conjuncts(parse(on))]
    return [pair for pair in found if pair is not None]


def is_equalities(on: str, sides: tuple[str, str] = SIDES) -> bool:
    """Whether a predicate compares fields by `=`, and says nothing else."""
    return all(_equal(part, sides) is not None for part in _conjuncts(parse(on)))


def _conjuncts(node: Node) -> list[Node]:
    if isinstance(node, Call) and node.name == "and":
        return [part for argument in node.args for part in _conjuncts(argument)]
    return [node]


def _equal(node: Node, sides: tuple[str, str]) -> tuple[str, str] | None:
    if not isinstance(node, Call) or node.name not in ("=", "==") or len(node.args) != 2:
        return None
    named: dict[str, str] = {}
    for argument in node.args:
        if isinstance(argument, Member) and isinstance(argument.base, Name):
            named[argument.base.name.lower()] = argument.name
    return (named[sides[0]], named[sides[1]]) if set(named) == set(sides) else None


def require_comparable(left: Type, right: Type) -> None:
    """Refuse a band between attributes whose difference means nothing."""
    if _family(left) != _family(right):
        raise NetworkError(
            "TYPE_MISMATCH",
            f"left.on and right.on must be comparable: {left} and {right}",
            where="key right.on",
        )


def joined(left: Schema, right: Schema) -> Schema:
    """Left fields, then right fields; a right name already taken becomes `right_<name>`."""
    fields = list(left.fields)
    taken = {field.name.lower() for field in left}
    for field in right:
        name = field.name
        while name.lower() in taken:
            name = f"right_{name}"
        taken.add(name.lower())
        fields.append(Field(name, field.type))
    return Schema(tuple(fields))


def _family(of: Type) -> str:
    if of.name == "decimal" and of.scale:
        return f"decimal with {of.scale} places"
    return "number" if of.is_numeric else of.name
