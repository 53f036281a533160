"""Errors as RFC 9457 problem details: one status for each kind of error."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from auroral.errors import AuroralError, NetworkError, RunError, SinkError, StateError, UsageError
from auroral.server.models import ProblemDetails

PROBLEM_JSON = "application/problem+json"
_CONFLICTS = frozenset(
    (
        "ALREADY_BOUND",
        "ALREADY_STARTED",
        "DUPLICATE_NAME",
        "HAS_SINK",
        "INPUT_ENDED",
        "NOT_PAUSED",
        "ONLY_COUNTED",
        "PAUSED",
        "REENTRANT_CALL",
    )
)
"""Mistakes that depend on the state of the engine: the same call may succeed later."""
_BY_CODE = {"BAD_SELECT": 400}
"""Errors that do not have the status of their kind: Spark tells those of a SELECT."""
_KINDS = (NetworkError, UsageError, RunError, SinkError, StateError)
_NOT_READY = frozenset(("NOT_STARTED", "NO_SPARK", "TIMEOUT"))


class RequestError(AuroralError):
    """A request that the server does not answer as asked, with the HTTP status that says so."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        hint: str | None = None,
        headers: Mapping[str, str] | None = None,
    ):
        super().__init__(code, message, hint=hint)
        self.status = status
        self.headers = dict(headers or {})


def status_of(error: AuroralError) -> int:
    """The HTTP status of an error.

    >>> status_of(UsageError("UNKNOWN_STREAM", "")), status_of(NetworkError("UNKNOWN_ARC", ""))
    (404, 400)
    """
    if isinstance(error, RequestError):
        return error.status
    if error.code in _BY_CODE:
        return _BY_CODE[error.code]
    if error.code in _NOT_READY:
        return 503
    if isinstance(error, UsageError) and error.code.startswith("UNKNOWN_"):
        return 404
    if error.code in _CONFLICTS:
        return 409
    if isinstance(error, (NetworkError, UsageError)):
        return 400
    return 503 if isinstance(error, (RunError, StateError)) else 500


def problem_of(error: AuroralError) -> ProblemDetails:
    """An error as problem details."""
    return ProblemDetails(
        type=_type_of(error),
        title=error.code.replace("_", " ").capitalize(),
        status=status_of(error),
        detail=error.message,
        code=error.code,
        where=error.where,
        hint=error.hint,
        path=list(error.path) or None,
    )


def _type_of(error: AuroralError) -> str:
    """The kind of an error, so that clients can raise the same.

    >>> _type_of(UsageError("BAD_CALL", "")), _type_of(RequestError(422, "BAD_BODY", ""))
    ('urn:auroral:error:UsageError', 'about:blank')
    """
    kind = type(error)
    return f"urn:auroral:error:{kind.__name__}" if kind in _KINDS else "about:blank"


def problem_body(error: AuroralError) -> bytes:
    """The text of an answer."""
    found = problem_of(error).model_dump(exclude_none=True)
    return json.dumps(found, ensure_ascii=False).encode("utf-8", errors="replace")


def problem_response(error: AuroralError) -> Response:
    """The answer to a request that failed."""
    headers = error.headers if isinstance(error, RequestError) else {}
    return Response(problem_body(error), status_of(error), headers=headers, media_type=PROBLEM_JSON)


def internal(request: str) -> RequestError:
    """What is said of a failure that is no error of ours; the log has the details."""
    return RequestError(
        500, "INTERNAL", f"the server failed; its log says why, under request {request}"
    )


def unauthorized() -> RequestError:
    return RequestError(
        401,
        "UNAUTHORIZED",
        "this needs a token of this server",
        hint="commands take --token or AURORAL_TOKEN, requests Authorization: Bearer TOKEN;"
        " the file of tokens has them",
        headers={"WWW-Authenticate": "Bearer"},
    )


def forbidden(role: str, needed: str) -> RequestError:
    return RequestError(403, "FORBIDDEN", f"this needs the role {needed}, the token has {role}")


def bad_body(why: str) -> RequestError:
    return RequestError(422, "BAD_BODY", why)


def bad_query(name: str, expected: str, found: Any) -> RequestError:
    shown = f"{found!r:.100}"
    return RequestError(422, "BAD_BODY", f"{name}: expected {expected}, found {shown}")


def too_large(limit: int) -> RequestError:
    """A body is larger than the server takes."""
    return RequestError(
        413,
        "TOO_LARGE",
        f"a body has at most {limit} bytes",
        hint="send it in parts",
    )
