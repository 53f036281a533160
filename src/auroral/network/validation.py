"""Pydantic's findings in our words: where, what was expected, what exists."""

from __future__ import annotations

from pydantic import BaseModel, ValidationError

from auroral.errors import NetworkError, closest
from auroral.network.positions import Positions


def explained(
    error: ValidationError, cls: type[BaseModel], positions: Positions, path: tuple[str, ...]
) -> NetworkError:
    """The first finding as a NetworkError."""
    finding = error.errors(include_url=False)[0]
    location = tuple(part for part in finding["loc"] if not _is_branch(part))
    place = positions.describe(*path, *location)
    key = ".".join(map(str, location))
    if finding["type"] == "extra_forbidden":
        keys = _keys(_model_at(cls, location))
        name = str(location[-1])
        return NetworkError(
            "UNKNOWN_KEY",
            f"unknown key {name}; the keys here are {', '.join(keys)}",
            where=place,
            hint=closest(name, keys),
        )
    if finding["type"] == "missing":
        return NetworkError("MISSING_KEY", f"the key {key} is missing", where=place)
    if finding["type"] in ("model_type", "model_attributes_type", "dict_type"):
        keys = _keys(_model_at(cls, (*location, "")))
        return NetworkError(
            "BAD_PARAMETER",
            f"expected keys ({', '.join(keys)}), found {finding['input']!r}",
            where=place,
        )
    return NetworkError(
        "BAD_PARAMETER",
        f"{key}: {_lowered(finding['msg'])}, found {finding['input']!r}",
        where=place,
    )


def _is_branch(part: str | int) -> bool:
    """Pydantic names the branch of a union in the location (`int`, `KeepRows`)."""
    return isinstance(part, str) and (
        part[:1].isupper() or part in ("int", "float", "str", "bool") or "[" in part
    )


def _keys(cls: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in cls.model_fields.items()]


def _model_at(cls: type[BaseModel], location: tuple[str | int, ...]) -> type[BaseModel]:
    """The model whose key the location's last part is."""
    for part in location[:-1]:
        field = next((f for n, f in cls.model_fields.items() if part in (n, f.alias)), None)
        inner = field and next(
            (
                t
                for t in _types(field.annotation)
                if isinstance(t, type) and issubclass(t, BaseModel)
            ),
            None,
        )
        if not inner:
            break
        cls = inner
    return cls


def _types(annotation: object) -> list[object]:
    arguments = getattr(annotation, "__args__", None)
    return [t for a in arguments for t in _types(a)] if arguments else [annotation]


def _lowered(message: str) -> str:
    return message[:1].lower() + message[1:]
