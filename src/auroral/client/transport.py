"""Requests to a server: paths, tokens, and its problems as the errors that an engine raises."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from time import monotonic, sleep
from typing import Any
from urllib.parse import quote, urlsplit

import httpx

from auroral.errors import (
    AuroralError,
    NetworkError,
    RunError,
    SinkError,
    StateError,
    UsageError,
    conceal,
)

API = "api/v1"
ARROW = "application/vnd.apache.arrow.stream"
JSON = "application/json"
_KINDS: Mapping[str, type[AuroralError]] = {
    kind.__name__: kind for kind in (NetworkError, UsageError, RunError, SinkError, StateError)
}
_USAGE = range(400, 500)
_TOO_MUCH = 429
_LONG = 16
"""Tokens of servers are at least this long; a shorter text may stand in any message."""
_REST = frozenset(("/", ""))


def named(name: str) -> str:
    """A name as a part of a path."""
    if not isinstance(name, str):
        raise UsageError("BAD_CALL", f"expected a name, found {name!r}")
    return quote(name, safe="")


class Transport:
    """One connection pool to one server."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        timeout_s: float,
        verify: bool | str | ssl.SSLContext,
        transport: httpx.BaseTransport | None = None,
    ):
        self.url = _checked(url)
        self.token = token
        self.timeout_s = timeout_s
        self.tls = _context(verify) if self.url.startswith("https:") else None
        if len(token) >= _LONG:
            conceal(token, "TOKEN")
        self._http = httpx.Client(
            base_url=self.url,
            headers={"Authorization": f"Bearer {token}"},
            timeout=httpx.Timeout(timeout_s, connect=min(timeout_s, 10.0)),
            verify=self.tls if self.tls is not None else True,
            transport=transport,
        )

    def close(self) -> None:
        self._http.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        content: bytes | None = None,
        type: str | None = None,
        accept: str = JSON,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> httpx.Response:
        """The answer to a request; a problem is raised as the error that it tells.

        `body` is sent as JSON, `content` as it is.
        """
        given = {"Accept": accept, **(headers or {})}
        if content is not None:
            given["Content-Type"] = type or JSON
        wanted = {key: value for key, value in (query or {}).items() if value is not None}
        extra: dict[str, Any] = {} if timeout_s is None else {"timeout": timeout_s}
        deadline = monotonic() + (timeout_s or self.timeout_s)
        try:
            while True:
                answer = self._http.request(
                    method,
                    f"{API}/{path}",
                    params=wanted,
                    headers=given,
                    content=content,
                    json=body if content is None and method in ("POST", "PUT", "PATCH") else None,
                    **extra,
                )
                wait_s = _asked_to_wait(answer)
                if wait_s is None or monotonic() + wait_s > deadline:
                    break
                sleep(wait_s)
        except httpx.TimeoutException:
            raise RunError(
                "TIMEOUT",
                f"the server did not answer within {timeout_s or self.timeout_s:g} s",
                where=self.url,
            ) from None
        except httpx.TransportError as error:
            raise unreachable(self.url, error) from None
        if answer.is_success:
            return answer
        raise told(answer.status_code, answer.content, self.url)

    def json(self, method: str, path: str, **given: Any) -> Any:
        """The answer as plain data; None if it is empty."""
        answer = self.request(method, path, **given)
        return answer.json() if answer.content else None


def _asked_to_wait(answer: httpx.Response) -> float | None:
    """After how many seconds to send a request again that was refused because of load."""
    after = answer.headers.get("Retry-After", "")
    return float(after) if answer.status_code == _TOO_MUCH and after.isdecimal() else None


def unreachable(url: str, error: Exception) -> RunError:
    """Nobody answers."""
    return RunError(
        "UNREACHABLE",
        f"the server cannot be reached: {error or type(error).__name__}",
        where=url,
        hint="is `auroral serve` running there, and is it http or https?",
    )


def told(status: int, content: bytes, url: str) -> AuroralError:
    """The error that a problem tells; its type names the kind."""
    try:
        return error_of({"status": status, **httpx.Response(status, content=content).json()})
    except (ValueError, KeyError, TypeError):
        text = content[:200].decode(errors="replace")
        return RunError("BAD_ANSWER", f"the server answered {status}: {text!r}", where=url)


def error_of(problem: Mapping[str, Any]) -> AuroralError:
    """A problem as an error of its kind.

    >>> error_of({"status": 404, "code": "UNKNOWN_STREAM", "detail": "there is no stream s"})
    UsageError('UNKNOWN_STREAM', 'there is no stream s')
    """
    usual = UsageError if problem["status"] in _USAGE else RunError
    kind = _KINDS.get(str(problem.get("type", "")).rpartition(":")[2], usual)
    code, message = str(problem["code"]), str(problem["detail"])
    return kind(code, message, where=problem.get("where"), hint=problem.get("hint"))


def _checked(url: str) -> str:
    parts = urlsplit(url) if isinstance(url, str) else None
    if parts is None or parts.scheme not in ("http", "https") or not parts.netloc:
        raise UsageError("BAD_CALL", f"expected a URL such as http://127.0.0.1:8640, found {url!r}")
    return f"{parts.scheme}://{parts.netloc}{parts.path if parts.path not in _REST else ''}/"


def _context(verify: bool | str | ssl.SSLContext) -> ssl.SSLContext:
    """How certificates are checked: as usual, by a file of authorities, or not at all."""
    if isinstance(verify, ssl.SSLContext):
        return verify
    if isinstance(verify, str):
        try:
            return ssl.create_default_context(cafile=verify)
        except OSError as error:
            problem = f"cannot read the certificates in {verify}: {error}"
            raise UsageError("CANNOT_READ", problem) from None
    context = ssl.create_default_context()
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
