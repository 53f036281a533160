"""From predicates to atoms: an attribute, how it is compared, and the slot of the constant."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from auroral.continuous.sharing.constants import (
    SLOT_TYPES,
    Comparison,
    comparison,
    fits,
    membership,
)
from auroral.continuous.sharing.normal import Leaf, conjunctive
from auroral.continuous.sharing.spelling import spelled
from auroral.continuous.sharing.template import Atom, Attribute, Op
from auroral.errors import NetworkError, RunError, list_existing
from auroral.network.types import Field, Schema, Type
from auroral.sql.expressions.coercion import STRING, VOID, shown
from auroral.sql.expressions.compiler import compile_node
from auroral.sql.expressions.syntax import Call, Cast, Literal, Name, Node, free_names, walk
from auroral.sql.expressions.typed import Typed
from auroral.sql.queries.names import substituted

BOOLEAN = Type("boolean")
_FLIPPED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


class NotShared(Exception):  # noqa: N818 (it is no error: such a query runs as boxes)
    """The eddy does not run such a query; `reason` says why."""

    def __init__(self, reason: str):
        self.reason = reason
        super().__init__(reason)


class OtherShape(Exception):  # noqa: N818
    """A constant that would make another template of the same text."""


@dataclass(frozen=True)
class Slot:
    """How a constant is made: the values of `trees`, which hold literals and parameters.

    Those of `exact` are parameters that take the slot's type and must fit it.
    """

    type: Type
    trees: tuple[Node, ...] = ()
    finish: Callable[[Sequence[Any]], Any] = lambda values: values[0]
    exact: tuple[bool, ...] = ()
    listed: bool = False


class Names:
    """The fields, parameters and functions that a query's expressions may use.

    Over joined tuples the field x of the n-th source is called `sn.x`.
    """

    def __init__(
        self,
        schemas: Sequence[Schema],
        functions: Mapping[str, Type],
        parameters: Schema | None = None,
    ):
        self.joined = len(schemas) > 1
        self.functions = functions
        self.parameters = parameters
        self.side_of: dict[str, int] = {}
        fields: list[Field] = []
        for side, schema in enumerate(schemas):
            for field in schema:
                fields.append(Field(self.called(side, field.name), field.type))
                self.side_of[fields[-1].name] = side
        fields += [Field(f":{field.name}", field.type) for field in parameters or ()]
        self.schema = Schema(tuple(fields))

    def called(self, side: int, field: str) -> str:
        return f"s{side}.{field}" if self.joined else field

    def typed(self, tree: Node) -> Typed:
        """The type of an expression; OnlySparkError if the catalogue lacks what it uses."""
        results: list[Field] = []

        def look(node: Node) -> Node | None:
            if isinstance(node, Call) and node.name in self.functions:
                for arg in node.args:
                    self.typed(arg)
                results.append(Field(f"call {len(results)}", self.functions[node.name]))
                return Name(results[-1].name)
            return None

        if not self.calls(tree):
            return compile_node(tree, self.schema)
        plain = substituted(tree, look)
        return compile_node(plain, Schema((*self.schema.fields, *results)))

    def calls(self, tree: Node) -> bool:
        """Whether it calls a Python function."""
        return any(isinstance(node, Call) and node.name in self.functions for node in walk(tree))

    def sides(self, tree: Node) -> frozenset[int]:
        names = (name for name in free_names(tree) if not name.startswith(":"))
        return frozenset(self.side_of[name] for name in names if name in self.side_of)

    def fixed(self, tree: Node) -> bool:
        """Whether it is the same for every tuple."""
        return not self.calls(tree) and all(name.startswith(":") for name in free_names(tree))


class Atoms:
    """Makes atoms and collects the slots of their constants.

    `frozen` are the places of literals that decide more than a constant.
    """

    def __init__(self, names: Names):
        self.names = names
        self.slots: list[Slot] = []
        self.frozen: set[int] = set()
        self._made: dict[tuple[int, int | None], tuple[Leaf, Atom]] = {}

    def clauses(self, tree: Node) -> list[tuple[Leaf, ...]]:
        """A predicate in conjunctive normal form."""
        return conjunctive(tree, self._alike)

    def clause(self, leaves: Sequence[Leaf], side: int | None) -> tuple[Atom, ...] | bool:
        """The atoms of a clause; a truth value if no tuple matters.

        `side` is the source whose fields are called by their own names, None of joined tuples.
        """
        truths = [self._constant(leaf) for leaf in leaves]
        if True in truths:
            return True
        open_ = [leaf for leaf, truth in zip(leaves, truths, strict=True) if truth is None]
        return tuple(self.atom(leaf, side) for leaf in open_) or False

    def _constant(self, leaf: Leaf) -> bool | None:
        """Whether a predicate without fields holds, None if it has any."""
        tree = leaf.tree
        if not self.names.fixed(tree) or any(True for _ in free_names(tree)):
            return self._never(leaf)
        self.freeze(tree)
        return folded(tree) is (not leaf.negated)

    def _never(self, leaf: Leaf) -> bool | None:
        """False for a comparison with NULL as such."""
        if isinstance(leaf.tree, Call) and leaf.tree.name in _FLIPPED:
            types = [arg.type for arg in leaf.tree.args if isinstance(arg, Literal)]
            return False if VOID in types else None
        return None

    def atom(self, leaf: Leaf, side: int | None) -> Atom:
        """One predicate; that which several clauses hold is one atom."""
        key = (id(leaf), side)
        if key not in self._made:
            self._made[key] = (leaf, self._atom_of(leaf, side))
        return self._made[key][1]

    def _atom_of(self, leaf: Leaf, side: int | None) -> Atom:
        tree = leaf.tree
        if isinstance(tree, Call):
            found: Atom | None = None
            if tree.name in _FLIPPED and len(tree.args) == 2:
                found = self._compared(tree, side)
            elif tree.name == "isnull" and len(tree.args) == 1:
                found = self._null_test(tree.args[0], leaf.negated, side)
            elif tree.name == "in":
                found = self._sought(tree, leaf.negated, side)
            elif tree.name == "like":
                found = self._like(tree, leaf.negated, side)
            if found is not None:
                return found
        attribute = self.attribute(tree, side)
        return Atom(attribute, "=", self.add(Slot(BOOLEAN, (), lambda _: not leaf.negated)))

    def _compared(self, tree: Call, side: int | None) -> Atom | None:
        (left, right), op = tree.args, tree.name
        if self.names.fixed(left):
            left, right, op = right, left, _FLIPPED[op]
        if self.names.fixed(left) or not self.names.fixed(right):
            return None
        type = self.names.typed(left).type
        if _is_parameter(right):
            return self._given(left, op, right, type, side)
        how = comparison(type, op, self.names.typed(right).type)
        if how is None:
            return None
        if how.type == BOOLEAN and op == "<>":
            opposite = how.finish
            how = Comparison("=", how.type, lambda v: _not(opposite(v)), how.cast)
        return self._atom(left, how, (right,), side)

    def _given(self, left: Node, op: str, right: Node, type: Type, side: int | None) -> Atom | None:
        """A comparison with a parameter, which takes the attribute's type."""
        orders = op not in ("=", "<>")
        if type.name not in SLOT_TYPES or (type == BOOLEAN and orders):
            return None
        self._require_fit(right, type)
        written: Op = "!=" if op == "<>" else op  # type: ignore[assignment]
        attribute = self.attribute(left, side)
        return Atom(attribute, written, self.add(Slot(type, (right,), exact=(True,))))

    def _require_fit(self, parameter: Node, type: Type) -> None:
        found = self.names.typed(parameter).type
        assert isinstance(parameter, Name)
        if not fits(found, type):
            columns = [f"{field.name} {field.type}" for field in self.names.parameters or ()]
            raise NetworkError(
                "TYPE_MISMATCH",
                f"{parameter.name} is {shown(found)}, expected a value of type {shown(type)};"
                f" {list_existing(columns)}",
            )

    def _null_test(self, value: Node, negated: bool, side: int | None) -> Atom | None:
        type = self.names.typed(value).type
        if type == VOID or type.name.startswith("interval"):
            return None
        return Atom(self.attribute(value, side), "not null" if negated else "null")

    def _sought(self, tree: Call, negated: bool, side: int | None) -> Atom | None:
        value, *options = tree.args
        if self.names.fixed(value) or not all(map(self.names.fixed, options)):
            return None
        type = self.names.typed(value).type
        exact = tuple(map(_is_parameter, options))
        if any(exact) and type.name not in SLOT_TYPES:
            return None
        for option, given in zip(options, exact, strict=True):
            if given:
                self._require_fit(option, type)
        types = [
            type if given else self.names.typed(option).type
            for option, given in zip(options, exact, strict=True)
        ]
        how = membership(type, types, negated)
        if how is None or (any(exact) and how.cast):
            return None
        return self._atom(value, how, tuple(options), side, exact)

    def _like(self, tree: Call, negated: bool, side: int | None) -> Atom | None:
        value, pattern, *escape = tree.args
        if not isinstance(pattern, Literal) or pattern.type != STRING:
            return None
        if self.names.fixed(value) or self.names.typed(value).type != STRING:
            return None
        mark = escape[0].value if escape and isinstance(escape[0], Literal) else "\\"
        kind = like_shape(pattern.value, mark)
        if kind is None:
            return None
        self.freeze(*escape)

        def finish(values: Sequence[Any]) -> str:
            found = like_shape(values[0], mark)
            if found is None or found[0] != kind[0]:
                raise OtherShape
            return found[1]

        ops: dict[str, tuple[Op, Op]] = {"=": ("=", "!="), "prefix": ("prefix", "not prefix")}
        how = Comparison(ops[kind[0]][negated], STRING, finish)
        return self._atom(value, how, (pattern,), side)

    def _atom(
        self,
        value: Node,
        how: Comparison,
        trees: tuple[Node, ...],
        side: int | None,
        exact: tuple[bool, ...] = (),
    ) -> Atom:
        if how.cast:
            value = Cast(value, how.type)
        attribute = self.attribute(value, side)
        listed = how.op in ("in", "not in")
        return Atom(attribute, how.op, self.add(Slot(how.type, trees, how.finish, exact, listed)))

    def attribute(self, tree: Node, side: int | None) -> Attribute:
        """An expression as an attribute; its parameters become slots."""
        self.freeze(tree)
        typed = self.names.typed(tree)
        slots: list[int] = []

        def look(node: Node) -> Node | None:
            if not isinstance(node, Name):
                return None
            if _is_parameter(node):
                slots.append(self._shared(Slot(self.names.typed(node).type, (node,))))
                return Name(f":{slots[-1]}")
            return Name(self._called(node.name, side))

        tree = substituted(tree, look)
        fields = tuple(dict.fromkeys(n for n in free_names(tree) if not n.startswith(":")))
        text = spelled(tree, joined=self.names.joined and side is None)
        if text is None:
            raise NotShared("an expression that only Spark reads")
        field = tree.name if isinstance(tree, Name) and not slots else None
        costly = self.names.calls(tree)
        return Attribute(text, typed.type, field, fields, tuple(dict.fromkeys(slots)), costly)

    def _called(self, name: str, side: int | None) -> str:
        own = self.names.schema.field(name).name if name in self.names.schema else name
        return own.partition(".")[2] if self.names.joined and side is not None else own

    def _shared(self, slot: Slot) -> int:
        """A parameter as it is has one slot."""
        for at, other in enumerate(self.slots):
            if other.trees == slot.trees and other.type == slot.type and not other.exact:
                return at
        return self.add(slot)

    def add(self, slot: Slot) -> int:
        self.slots.append(slot)
        return len(self.slots) - 1

    def freeze(self, *trees: Node) -> None:
        for place in literal_places(*trees):
            self.frozen.add(place)

    def _alike(self, left: Node, right: Node) -> bool:
        one, other = self.names.typed(left).type, self.names.typed(right).type
        plain = all(type.is_numeric and type.name != "decimal" for type in (one, other))
        return one == other or VOID in (one, other) or plain


def literal_places(*trees: Node) -> Iterator[int]:
    """Where the literals of trees stand in the query."""
    for tree in trees:
        for node in walk(tree):
            if isinstance(node, Literal) and node.place is not None:
                yield node.place


def folded(tree: Node) -> Any:
    """The value of an expression without fields."""
    with sharing():
        return compile_node(tree, Schema(())).value()


@contextmanager
def sharing() -> Iterator[None]:
    """What Spark alone can say, such as the time of day, is not shared."""
    try:
        yield
    except RunError as error:
        raise NotShared(error.message) from None


def like_shape(pattern: str, escape: str) -> tuple[str, str] | None:
    """`=` or `prefix` and the text, of a pattern with nothing but % at its end."""
    text, at = "", 0
    while at < len(pattern):
        char = pattern[at]
        if char == escape:
            at += 1
            char = pattern[at : at + 1]
            if char not in ("_", "%", escape):
                return None
        elif char == "%":
            return ("prefix", text) if not pattern[at:].strip("%") else None
        elif char == "_":
            return None
        text += char
        at += 1
    return "=", text


def _is_parameter(tree: Node) -> bool:
    return isinstance(tree, Name) and tree.name.startswith(":")


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value
