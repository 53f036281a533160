"""A place in the tokens of an expression, and the literals, names and types read there."""

from __future__ import annotations

from dataclasses import replace

from auroral.errors import NetworkError
from auroral.network.types import Type
from auroral.sql.expressions.lexer import Token, syntax_error, tokens, unquote
from auroral.sql.expressions.literals import interval, number
from auroral.sql.expressions.syntax import Call, Literal, Name, Node


class Cursor:
    """Tokens with a current position."""

    def __init__(self, text: str):
        self.text = text
        self.tokens = tokens(text)
        self.at = 0
        self.depth = 0

    def peek(self, ahead: int = 0) -> Token:
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)]

    def next(self) -> Token:
        token = self.peek()
        self.at += 1
        return token

    def sees(self, *texts: str, ahead: int = 0) -> bool:
        token = self.peek(ahead)
        return token.kind in ("word", "op") and token.text in texts

    def take(self, *texts: str) -> bool:
        if self.sees(*texts):
            self.at += 1
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.take(text):
            raise self.error(text.upper() if text.isalpha() else repr(text))

    def error(self, expected: str) -> NetworkError:
        token = self.peek()
        found = repr(self.text[token.start : token.end]) if token.kind != "end" else "the end"
        return syntax_error(self.text, token.start, f"expected {expected}, found {found}")

    def number(self, sign: str = "") -> Literal:
        start = self.tokens[self.at - 1].start if sign else self.peek().start
        token = self.next()
        try:
            return replace(number(sign + token.text), place=start)
        except ValueError as error:
            raise syntax_error(self.text, token.start, str(error)) from None

    def string(self, expected: str) -> Literal:
        if self.peek().kind != "string":
            raise self.error(expected)
        place, values = self.peek().start, []
        while self.peek().kind == "string":
            values.append(unquote(self.next().text))
        return Literal("".join(values), Type("string"), place if len(values) == 1 else None)

    def parameter(self) -> Node:
        """`:name` or `:3`, a value given beside the text: a name that begins with the colon."""
        self.next()
        token = self.peek()
        if token.kind not in ("word", "number"):
            raise self.error("a parameter's name after the colon")
        self.next()
        return Name(":" + self.text[token.start : token.end])

    def interval(self) -> Node:
        parts: list[tuple[str, str]] = []
        while True:
            sign = self.next().text if self.sees("-", "+") else ""
            token = self.next()
            amount = sign + (unquote(token.text) if token.kind == "string" else token.text)
            if self.peek().kind != "word" or self.sees("and", "or", "is", "between", "in", "then"):
                return interval(amount)
            parts.append((amount, self.next().text))
            if self.take("to"):
                self.next()
                return Call("interval … to", ())
            if self.peek().kind not in ("number", "string") and not (
                self.sees("-") and self.peek(1).kind == "number" and self.peek(2).kind == "word"
            ):
                return interval(parts)

    def identifier(self, expected: str) -> str:
        token = self.next()
        if token.kind == "quoted":
            return token.text[1:-1].replace("``", "`")
        if token.kind != "word":
            self.at -= 1
            raise self.error(expected)
        return self.text[token.start : token.end]

    def type(self) -> Type:
        """A type name with its brackets, read by `Type.parse`."""
        start = self.peek().start
        if self.peek().kind != "word":
            raise self.error("a type")
        end = self.next().end
        depth = 0
        while depth or self.sees("(", "<"):
            token = self.next()
            if token.kind == "end":
                raise self.error("the rest of the type")
            depth += token.text.count("<") + token.text.count("(")
            depth -= token.text.count(">") + token.text.count(")")
            end = token.end
            if not depth:
                break
        return Type.parse(self.text[start:end])
