"""Mistakes in a network's parts, each at its place in the file."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ValidationError

from auroral.errors import NetworkError
from auroral.network.positions import DocumentPath, DocumentPositions
from auroral.validation import worst_mistake


def explained(
    error: ValidationError,
    cls: type[BaseModel],
    declared: Any,
    positions: DocumentPositions,
    path: DocumentPath = (),
) -> NetworkError:
    """The finding that says most, as a NetworkError."""
    mistake = worst_mistake(error, cls, declared)
    problem = mistake.error
    if not path:
        return problem
    if mistake.is_carried:
        return positions.locate(problem, *path, *mistake.keys)
    place = positions.describe(*path, *mistake.keys)
    return NetworkError(problem.code, problem.message, where=place, hint=problem.hint)
