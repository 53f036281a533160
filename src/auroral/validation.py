"""Pydantic's findings in our words: what was expected, what was found, which keys exist."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from pydantic import (
    BaseModel,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from auroral.errors import NetworkError, closest

KeyPath = tuple[str | int, ...]
_EXPECTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "list_type": "a list",
    "missing": "a pair",
    "too_long": "a pair",
    "model_type": "keys ({keys})",
    "dict_type": "names and what they stand for",
    "callable_type": "a function",
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than_equal": "at most {le}",
    "literal_error": "{expected}",
    "finite_number": "a finite number",
}
_OURS = "auroral"


def carried(error: NetworkError) -> PydanticCustomError:
    """One of our errors on its way through Pydantic, which knows the key it belongs to."""
    return PydanticCustomError(_OURS, "{error}", {"error": error})


@dataclass(frozen=True)
class Mistake:
    """One mistake in a declaration, and the keys that lead to it."""

    error: NetworkError
    keys: KeyPath
    is_carried: bool = False
    """Whether the error is one of ours that came through Pydantic; it may say a place itself."""


class WordedModel(BaseModel):
    """A model whose mistakes are errors of ours when Python builds it.

    With a validation context it is part of something larger, which knows the place and explains.
    """

    @model_validator(mode="wrap")
    @classmethod
    def _in_words(
        cls, declared: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo
    ) -> Self:
        try:
            return handler(declared)
        except ValidationError as error:
            if info.context is not None:
                raise
            raise worst_mistake(error, cls, declared).error from None


def worst_mistake(error: ValidationError, cls: type[BaseModel], declared: Any) -> Mistake:
    """The finding that says most, as a NetworkError."""
    findings = error.errors(include_url=False)
    paths = [_keys_of(finding, declared) for finding in findings]
    at = _most_telling(findings, paths)
    finding, location = findings[at], paths[at]
    if finding["type"] == _OURS:
        return Mistake(finding["ctx"]["error"], location, is_carried=True)
    if finding["type"] == "missing" and isinstance(location[-1], int):
        location = location[:-1]  # a list is too short
    name = str(location[-1]) if location else ""
    exist = _keys(_model_at(cls, location))
    hint = None
    if finding["type"] == "extra_forbidden":
        code, message = "UNKNOWN_KEY", f"unknown key {name}; the keys here are {', '.join(exist)}"
        hint = closest(name, exist)
    elif finding["type"] == "missing" and location == paths[at]:
        code, message = "MISSING_KEY", f"the key {name} is missing; the keys here are"
        message = f"{message} {', '.join(exist)}"
    else:
        same = [f for f, other in zip(findings, paths, strict=True) if other == paths[at]]
        expected = _expected(same, _keys(_model_at(cls, (*location, ""))))
        found = repr(finding["input"])
        found = found if len(found) <= 100 else f"{found[:99]}…"
        code, message = "BAD_PARAMETER", f"expected {expected}, found {found}"
        if isinstance(finding["input"], str):
            words = [word for f in same for word in _words(f)]
            hint = closest(finding["input"], words)
    key = ".".join(map(str, location))
    return Mistake(
        NetworkError(code, message, where=f"key {key}" if key else None, hint=hint), location
    )


def _keys_of(finding: ErrorDetails, declared: Any) -> KeyPath:
    """The location without the branches of unions, which Pydantic names too (`int`, `Keep`)."""
    location: list[str | int] = []
    for part in finding["loc"]:
        is_item = isinstance(declared, Sequence) and isinstance(part, int) and part < len(declared)
        if is_item or (isinstance(declared, Mapping) and part in declared):
            declared = declared[part]
        elif finding["type"] != "missing" or part is not finding["loc"][-1]:
            continue
        location.append(part)
    return tuple(location)


def _most_telling(findings: Sequence[ErrorDetails], keys: Sequence[KeyPath]) -> int:
    """An unknown key explains a missing one; of a union's branches, the one that got furthest."""
    for at, finding in enumerate(findings):
        if finding["type"] == "extra_forbidden":
            return at
    below = [at for at, key in enumerate(keys) if key[: len(keys[0])] == keys[0]]
    return max(below, key=lambda at: len(keys[at]))


def _expected(findings: Sequence[ErrorDetails], keys: Sequence[str]) -> str:
    words: dict[str, None] = {}
    for finding in findings:
        template = _EXPECTED.get(finding["type"])
        message = finding["msg"].removeprefix("Input should be ")
        context = {**finding.get("ctx", {}), "keys": ", ".join(keys)}
        words[template.format(**context) if template else message] = None
    if "a number" in words or "a finite number" in words:
        words.pop("a whole number", None)
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last


def _words(finding: ErrorDetails) -> list[str]:
    """The words of which one was expected."""
    is_word = finding["type"] == "literal_error"
    return re.findall(r"'([^']*)'", finding["ctx"]["expected"]) if is_word else []


def _keys(cls: type[BaseModel]) -> list[str]:
    """The keys of a model, what every part of a network may have last."""
    names = [field.alias or name for name, field in cls.model_fields.items()]
    return sorted(names, key=lambda name: name in ("on_change", "description", "tags"))


def _model_at(cls: type[BaseModel], location: KeyPath) -> type[BaseModel]:
    """The model whose key the location's last part is."""
    for part in location[:-1]:
        field = next((f for n, f in cls.model_fields.items() if part in (n, f.alias)), None)
        models = [t for t in _types(field.annotation) if _is_model(t)] if field else []
        cls = models[0] if models else cls
    return cls


def _types(annotation: Any) -> list[Any]:
    arguments = getattr(annotation, "__args__", None)
    return [t for a in arguments for t in _types(a)] if arguments else [annotation]


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)
