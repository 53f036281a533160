"""The OpenAPI document: who may call what, and every status that can come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from auroral.server.models import ProblemDetails
from auroral.server.problems import PROBLEM_JSON
from auroral.server.tokens import Role

_REASONS = {
    "400": "a mistake in the network or the call",
    "401": "no token, or a wrong one",
    "403": "the role of the token may not do this, or a page of another site asked",
    "404": "something of this name does not exist",
    "406": "no form of the answer that the client takes",
    "409": "the state of the engine does not allow it now",
    "412": "the network changed meanwhile",
    "413": "the body is too large",
    "415": "the body is of a kind that this call does not take",
    "421": "addressed to another host",
    "422": "the body or a parameter does not fit",
    "429": "too many connections",
    "500": "the server failed",
    "503": "the engine is not ready, has failed, or took too long",
}


def describe_interface(app: FastAPI, parts: Sequence[tuple[str, APIRouter]]) -> None:
    """Let the application give a complete description of itself.

    `parts` are its routers, each with the prefix of its paths.
    """
    roles = {
        (f"{prefix}{route.path_format}", method.lower()): getattr(route.endpoint, "role", None)
        for prefix, router in parts
        for route in router.routes
        if isinstance(route, APIRoute)
        for method in route.methods or ()
    }

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _document(app, roles)
        return app.openapi_schema

    app.openapi = described  # type: ignore[method-assign]


def _document(app: FastAPI, roles: Mapping[tuple[str, str], Role | None]) -> dict[str, Any]:
    found = get_openapi(
        title=app.title, version=app.version, summary=app.summary, routes=app.routes
    )
    parts = found.setdefault("components", {})
    schemas = parts.setdefault("schemas", {})
    for leftover in ("HTTPValidationError", "ValidationError"):
        schemas.pop(leftover, None)
    schemas["ProblemDetails"] = ProblemDetails.model_json_schema()
    parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    problem = {PROBLEM_JSON: {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}}
    for path, operations in found["paths"].items():
        for method, operation in operations.items():
            role = roles.get((path, method))
            if role is not None:
                operation["security"] = [{"token": []}]
                operation["x-role"] = role
            answers = operation["responses"]
            for status, reason in _REASONS.items():
                known = answers.get(status)
                if known is None or status == "422":
                    answers[status] = {"description": reason, "content": problem}
    return found
