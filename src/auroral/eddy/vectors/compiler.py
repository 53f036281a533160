"""Compile a syntax tree into a function of whole columns.

The row evaluator computes what has no such function tuple by tuple.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from auroral.eddy.vectors.batch import TupleBatch
from auroral.eddy.vectors.computed import Computed, cast, choose, constant
from auroral.eddy.vectors.functions import FUNCTIONS
from auroral.eddy.vectors.python_calls import call
from auroral.eddy.vectors.vector import Vector, from_python
from auroral.errors import AuroralError
from auroral.network.types import Field, Schema, Type
from auroral.sql.expressions.compiler import compile_node, result_type
from auroral.sql.expressions.syntax import Call, Case, Cast, Literal, Name, Node, free_names, walk
from auroral.sql.queries.names import substituted


class Compiler:
    """Compiles trees over some fields; names are fields, calls may be of Python functions."""

    def __init__(self, schema: Schema, functions: Mapping[str, Type]):
        self.schema = schema
        self.functions = functions

    def compile(self, node: Node) -> Computed:
        """The computation of a tree; refuse what the row evaluator refuses."""
        result_type(compile_node(*self.without_calls(node)[:2]).type)
        return self.node(node)

    def node(self, node: Node) -> Computed:
        match node:
            case Literal(value, type):
                return constant(value, type, literal=True)
            case Name(name):
                field = self.schema.field(name)
                return Computed(field.type, lambda batch: batch.vector(field.name))
            case Cast(child, to, attempt):
                return cast(self.node(child), to, attempt)
            case Case(branches, default):
                pairs = [(self.node(a), self.node(b)) for a, b in branches]
                return choose(pairs, None if default is None else self.node(default))
            case Call(name, args) if name in self.functions:
                return call(self.functions[name], name, [self.node(arg) for arg in args])
            case Call(name, args, aliases) if name in FUNCTIONS and not aliases:
                found = FUNCTIONS[name]([self.node(arg) for arg in args])
                if found is not None:
                    return found
        return self.by_rows(node)

    def without_calls(self, node: Node) -> tuple[Node, Schema, dict[str, Node]]:
        """The tree with a field in place of each call of a Python function, and those calls."""
        calls: dict[str, Node] = {}

        def look(found: Node) -> Node | None:
            if isinstance(found, Call) and found.name in self.functions:
                calls[f"call {len(calls)}"] = found
                return Name(f"call {len(calls) - 1}")
            return None

        if not any(isinstance(n, Call) and n.name in self.functions for n in walk(node)):
            return node, self.schema, {}
        plain = substituted(node, look)
        results = [
            Field(name, self.functions[made.name])
            for name, made in calls.items()
            if isinstance(made, Call)
        ]
        return plain, Schema((*self.schema.fields, *results)), calls

    def by_rows(self, node: Node) -> Computed:
        """Compute tuple by tuple what has no function of whole columns."""
        plain, schema, calls = self.without_calls(node)
        typed = compile_node(plain, schema)
        used = {schema.field(name).name for name in free_names(plain)}
        parts = {name: self.node(made) for name, made in calls.items()}
        names = [name for name in used if name not in parts]
        if typed.constant and not parts:
            try:
                return constant(typed.value(), typed.type)
            except AuroralError:
                pass

        def run(batch: TupleBatch) -> Vector:
            columns = {name: batch.python(batch.vector(name)) for name in names}
            for name, part in parts.items():
                columns[name] = batch.python(part.run(batch))
            keys = list(columns)
            values = list(columns.values())
            if not values:
                return from_python(
                    batch.each(lambda _: typed.run({}), [None] * batch.rows), typed.type
                )

            def one(*row: Any) -> Any:
                return typed.run(dict(zip(keys, row, strict=True)))

            return from_python(batch.each(one, *values), typed.type)

        return Computed(typed.type, run, fallible=True)
