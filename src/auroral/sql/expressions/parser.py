"""Parse scalar Spark SQL expressions by Spark's own grammar (`SqlBaseParser.g4`).

sqlglot is not used here: it gives `&`, `^`, `|` and `||` one precedence, folds functions into one
another and takes what Spark refuses (`a IS NULL = true`): it would not read what Spark runs.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from auroral.errors import NetworkError
from auroral.network.types import Type
from auroral.sql.aggregates.syntax import read_quantifier, read_tail, sees_inner_nulls
from auroral.sql.expressions.cursor import Cursor
from auroral.sql.expressions.lexer import Token, syntax_error, unquote
from auroral.sql.expressions.literals import typed_literal
from auroral.sql.expressions.syntax import (
    Call,
    Case,
    Cast,
    IndexAccess,
    Lambda,
    Literal,
    Member,
    Name,
    Node,
)
from auroral.sql.queries.refusals import star, subquery

# Loosest first, as in Spark's valueExpression.
_LEVELS: tuple[dict[str, str], ...] = (
    {"=": "=", "==": "=", "<=>": "<=>", "<>": "<>", "!=": "<>", "<": "<", "<=": "<=", "!>": "<="}
    | {">": ">", ">=": ">=", "!<": ">="},
    {"|": "|"},
    {"^": "^"},
    {"&": "&"},
    {"<<": "shiftleft", ">>": "shiftright", ">>>": "shiftrightunsigned"},
    {"+": "+", "-": "-", "||": "concat"},
    {"*": "*", "/": "/", "%": "%", "div": "div"},
)
_LEVEL_OF = {text: at for at, names in enumerate(_LEVELS) for text in names}
_NO_OPERAND = frozenset(
    "and or not in is between like ilike rlike regexp div then when as".split()  # noqa: SIM905
)
_STATEMENTS = frozenset("select with insert update delete create drop from values".split())  # noqa: SIM905
_LITERAL_TYPES = ("date", "timestamp", "timestamp_ltz", "timestamp_ntz", "x")
_UNIT_CALLS = ("date_add", "dateadd", "timestampadd", "datediff", "date_diff", "timestampdiff")
_MAX_DEPTH = 100


def parse(text: str) -> Node:
    """The tree of exactly one scalar expression.

    >>> parse("a | b & 3")
    Call(name='|', args=(Name(name='a'), Call(name='&', args=(Name(name='b'), \
Literal(value=3, type=Type(name='int', precision=0, scale=0, children=()))), aliases=())), \
aliases=())
    """
    if not isinstance(text, str) or not text.strip():
        raise NetworkError(
            "EMPTY_EXPRESSION", "expected an expression, found nothing", hint="write e.g. pos >= 30"
        )
    return _parsed(text)


@lru_cache(maxsize=8192)
def _parsed(text: str) -> Node:
    """Cached: trees are immutable, and queries have most of their parts in common."""
    return _Parser(text).whole()


class _Parser(Cursor):
    # Boolean expressions

    def whole(self) -> Node:
        if self.sees(*_STATEMENTS) and (
            self.peek(1).kind in ("word", "quoted", "number", "string") or self.sees("*", ahead=1)
        ):
            raise NetworkError(
                "NOT_AN_EXPRESSION",
                f"expected one scalar expression, found a {self.peek().text.upper()} statement",
                hint="write only what would stand in its select list or WHERE",
            )
        tree = self.expression()
        if self.take(";"):
            last = self.peek().kind == "end"
            raise NetworkError(
                "NOT_AN_EXPRESSION",
                f"expected one scalar expression, found {'a' if last else 'another after'} ';'",
                hint="leave out the ;" if last else "join conditions with AND",
            )
        if self.take("as"):
            raise NetworkError(
                "NOT_AN_EXPRESSION",
                f"expected a scalar expression, found it named with AS {self.peek().text}",
                hint="leave out the AS; the name stands before the expression",
            )
        if self.peek().kind != "end":
            raise self.error("an operator or the end")
        return tree

    def expression(self) -> Node:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise syntax_error(self.text, self.peek().start, "this is nested too deeply")
        terms = [self.conjunction()]
        while self.take("or"):
            terms.append(self.conjunction())
        self.depth -= 1
        return terms[0] if len(terms) == 1 else Call("or", tuple(terms))

    def conjunction(self) -> Node:
        terms = [self.negation()]
        while self.take("and"):
            terms.append(self.negation())
        return terms[0] if len(terms) == 1 else Call("and", tuple(terms))

    def negation(self) -> Node:
        nots = 0
        while self.take("not", "!"):
            nots += 1
        tree = self.predicated()
        for _ in range(nots):
            tree = Call("not", (tree,))
        return tree

    def predicated(self) -> Node:
        if self.sees("exists") and self.sees("(", ahead=1) and self.sees(*_STATEMENTS, ahead=2):
            raise subquery()
        value = self.binary()
        if self.take("is"):
            negated = self.take("not", "!")
            tree = self.is_test(value)
        else:
            negated = self.take("not", "!")
            if self.sees("like", "ilike") and self.sees("any", "some", "all", ahead=1):
                return self.quantified(self.next().text, value, negated)
            found = self.predicate(value)
            if found is None:
                if negated:
                    raise self.error("BETWEEN, IN, LIKE, ILIKE or RLIKE after NOT")
                return value
            tree = found
        return Call("not", (tree,)) if negated else tree

    def is_test(self, value: Node) -> Node:
        if self.take("null"):
            return Call("isnull", (value,))
        if self.take("true"):
            return Call("<=>", (value, Literal(True, Type("boolean"))))
        if self.take("false"):
            return Call("<=>", (value, Literal(False, Type("boolean"))))
        if self.take("unknown"):
            return Call("isunknown", (value,))
        if self.take("distinct"):
            self.expect("from")
            return Call("not", (Call("<=>", (value, self.binary())),))
        raise self.error("NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM")

    def predicate(self, value: Node) -> Node | None:
        if self.take("between"):
            low = self.binary()
            self.expect("and")
            high = self.binary()
            return Call("and", (Call(">=", (value, low)), Call("<=", (value, high))))
        if self.take("in"):
            self.expect("(")
            if self.sees(*_STATEMENTS):
                raise subquery()
            return Call("in", (value, *self.arguments()))
        if self.take("rlike", "regexp"):
            return Call("rlike", (value, self.binary()))
        if self.sees("like", "ilike"):
            name = self.next().text
            pattern = self.binary()
            if self.take("escape"):
                return Call(name, (value, pattern, self.string("an escape character")))
            return Call(name, (value, pattern))
        return None

    def quantified(self, name: str, value: Node, negated: bool) -> Node:
        """`LIKE ANY (…)`; its NOT applies to each pattern, so it is resolved here."""
        quantifier = "and" if self.next().text == "all" else "or"
        self.next()
        tests: list[Node] = [Call(name, (value, pattern)) for pattern in self.arguments()]
        if negated:
            tests = [Call("not", (test,)) for test in tests]
        return tests[0] if len(tests) == 1 else Call(quantifier, tuple(tests))

    # Values

    def binary(self, level: int = 0) -> Node:
        """Operators of this level or tighter, by precedence climbing."""
        left = self.unary()
        while self.peek().kind in ("op", "word") and self.peek().text in _LEVEL_OF:
            at = _LEVEL_OF[self.peek().text]
            if at < level:
                break
            name = _LEVELS[at][self.next().text]
            left = Call(name, (left, self.binary(at + 1)))
        return left

    def unary(self) -> Node:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise syntax_error(self.text, self.peek().start, "this is nested too deeply")
        tree: Node
        if self.sees("-") and self.peek(1).kind == "number":
            self.next()
            tree = self.postfix(self.number("-"))
        elif self.sees("-", "+", "~"):
            name = {"-": "negative", "+": "positive", "~": "~"}[self.next().text]
            tree = Call(name, (self.unary(),))
        else:
            tree = self.postfix(self.primary())
        self.depth -= 1
        return tree

    def postfix(self, tree: Node) -> Node:
        while True:
            if self.take("["):
                tree = IndexAccess(tree, self.binary())
                self.expect("]")
            elif self.take("::"):
                tree = Cast(tree, self.type())
            elif self.sees("."):
                self.next()
                if self.sees("*"):
                    raise star()
                tree = Member(tree, self.identifier("a field after the dot"))
            elif self.sees("collate") or self.sees(":"):
                raise NetworkError(
                    "UNSUPPORTED_EXPRESSION",
                    f"{self.peek().text.upper()} cannot be used in an expression here",
                )
            else:
                return tree

    def primary(self) -> Node:
        token = self.peek()
        if token.kind == "number":
            return self.number()
        if token.kind == "string":
            return self.string("a string")
        if self.take("("):
            return self.parenthesised()
        if self.sees("*"):
            raise star()
        if self.sees(":") and self.peek(1).start == token.end:
            return self.parameter()
        if token.kind not in ("word", "quoted"):
            raise self.error("a value, field or function")
        if token.kind == "word":
            special = self.special(token)
            if special is not None:
                return special
            if token.text in _NO_OPERAND:
                raise self.error("a value, field or function")
        if self.sees("(", ahead=1):
            return self.call()
        if self.sees("->", ahead=1):
            name = self.identifier("a parameter")
            self.next()
            return Lambda((name,), self.expression())
        return Name(self.identifier("a field"))

    def special(self, token: Token) -> Node | None:
        """Constants and forms with a syntax of their own, None if the word is a plain name."""
        word, call = token.text, self.sees("(", ahead=1)
        if word in ("null", "true", "false") and not call:
            self.next()
            value = {"null": None, "true": True, "false": False}[word]
            return Literal(value, Type("void" if value is None else "boolean"))
        if word in _LITERAL_TYPES and self.peek(1).kind == "string":
            self.next()
            return replace(typed_literal(word, unquote(self.next().text)), place=token.start)
        if word == "interval" and (
            self.peek(1).kind in ("number", "string") or self.sees("-", "+", ahead=1)
        ):
            self.next()
            return self.interval()
        if word == "case":
            self.next()
            return self.case()
        if word in ("cast", "try_cast") and call:
            self.at += 2
            child = self.expression()
            self.expect("as")
            tree = Cast(child, self.type(), attempt=word == "try_cast")
            self.expect(")")
            return tree
        return None

    def case(self) -> Node:
        subject = None if self.sees("when") else self.expression()
        branches: list[tuple[Node, Node]] = []
        while self.take("when"):
            test = self.expression()
            self.expect("then")
            if subject is not None:
                test = Call("=", (subject, test))
            branches.append((test, self.expression()))
        if not branches:
            raise self.error("WHEN")
        default = self.expression() if self.take("else") else None
        self.expect("end")
        return Case(tuple(branches), default)

    def parenthesised(self) -> Node:
        if self.sees(*_STATEMENTS) and self.peek(1).kind != "op":
            raise subquery()
        first = self.expression()
        if self.sees(","):
            items = [first]
            while self.take(","):
                items.append(self.expression())
            self.expect(")")
            if self.take("->"):
                names = tuple(item.name for item in items if isinstance(item, Name))
                return Lambda(names, self.expression())
            return Call("struct", tuple(items))
        self.expect(")")
        return first

    def call(self) -> Node:
        start = self.peek().start
        name = self.identifier("a function").lower()
        self.next()
        if name == "count" and self.take("*"):
            self.expect(")")
            return read_tail(self, Call(name, ()), start, ())
        if self.sees("*"):
            raise star(name)
        if self.sees(*_STATEMENTS) and self.peek(1).kind != "op" and name != "trim":
            raise subquery()
        if name in ("trim", "extract", "substr", "substring", "position", "overlay"):
            special = self.keyword_call(name)
            if special is not None:
                return special
        clauses = read_quantifier(self)
        args, aliases, spans = self.aliased_arguments(name)
        if name in _UNIT_CALLS and len(args) == 3 and isinstance(args[0], Name):
            unit = Literal(args[0].name, Type("string"))
            return Call(f"{name}(unit, …)", (unit, *args[1:]))
        call = Call(name, tuple(args), aliases if any(aliases) else (), clauses)
        return read_tail(self, call, start, spans)

    def keyword_call(self, name: str) -> Node | None:
        """`trim(BOTH x FROM y)` and its kind, None if the arguments are divided by commas."""
        start = self.at
        if name == "trim":
            side = self.next().text if self.sees("both", "leading", "trailing") else "both"
            function = {"both": "trim", "leading": "ltrim", "trailing": "rtrim"}[side]
            chars = None if self.sees("from") else self.binary()
            if self.take("from"):
                source = self.binary()
                self.expect(")")
                return Call(function, (source,) if chars is None else (chars, source))
        elif name == "extract":
            unit = self.identifier("a unit such as YEAR")
            if self.take("from"):
                source = self.binary()
                self.expect(")")
                return Call("date_part", (Literal(unit, Type("string")), source))
        elif name == "position":
            sought = self.binary()
            if self.take("in"):
                source = self.binary()
                self.expect(")")
                return Call("locate", (sought, source))
        elif name in ("substr", "substring") and not self.sees(")"):
            parts = [self.expression()]
            if self.take("from"):
                parts.append(self.binary())
                if self.take("for"):
                    parts.append(self.binary())
                self.expect(")")
                return Call(name, tuple(parts))
        self.at = start
        return None

    def arguments(self) -> list[Node]:
        """Arguments up to and with the closing parenthesis; at least one."""
        found = [self.expression()]
        while self.take(","):
            found.append(self.expression())
        self.expect(")")
        return found

    def aliased_arguments(
        self, name: str
    ) -> tuple[list[Node], tuple[str | None, ...], tuple[tuple[int, int], ...]]:
        """Arguments with their names and places, up to and with the closing parenthesis."""
        args: list[Node] = []
        aliases: list[str | None] = []
        spans: list[tuple[int, int]] = []
        while not self.take(")"):
            if args:
                self.expect(",")
            if self.sees("*"):
                raise star()
            start = self.peek().start
            args.append(self.expression())
            spans.append((start, self.tokens[self.at - 1].end))
            aliases.append(self.identifier("a name") if self.take("as") else None)
            if sees_inner_nulls(self, name):
                break
        return args, tuple(aliases), tuple(spans)
