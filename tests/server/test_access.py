"""Who may do what, and what is refused before it is looked at."""

from __future__ import annotations

import json
import socket
import stat
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from auroral.errors import UsageError
from auroral.server.guards import HEADERS
from auroral.server.running import TlsFiles, require_safe
from auroral.server.settings import ServerLimits
from auroral.server.tokens import ROLES, AccessTokens, Role, may
from tests.server.serving import READINGS, Site, site

LIMITS = ServerLimits(body_bytes=20_000, rows=100, sockets=3)


@pytest.fixture(scope="module")
def plant() -> Iterator[Site]:
    with site(limits=LIMITS, settings={"hosts": ("127.0.0.1", "localhost")}) as found:
        yield found


def operations(found: Site) -> list[tuple[str, str, Role | None]]:
    """Every operation of the interface, and the role that it needs."""
    document = found.get("/openapi.json", role="viewer")
    return [
        (method.upper(), path, operation.get("x-role"))
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


def test_every_call_needs_a_token_and_its_role(plant: Site) -> None:
    every = operations(plant)
    assert len(every) > 40
    free = {path for _, path, role in every if role is None}
    assert free == {"/healthz"}
    for method, path, needed in every:
        if needed is None:
            continue
        where = path.replace("{", "").replace("}", "")
        none = plant.ask(method, where, role=None)
        assert (none.status_code, none.json()["code"]) == (401, "UNAUTHORIZED"), where
        assert none.headers["WWW-Authenticate"] == "Bearer"
        wrong = plant.asking.request(method, where, headers={"Authorization": "Bearer guess"})
        assert wrong.status_code == 401
        for role in ROLES:
            if not may(role, needed):
                refused = plant.ask(method, where, role=role, content=b"not even JSON")
                assert (refused.status_code, refused.json()["code"]) == (403, "FORBIDDEN"), where


def test_reading_is_for_viewers_and_changing_is_not(plant: Site) -> None:
    by_call = {(method, path): role for method, path, role in operations(plant)}
    assert by_call["GET", "/api/v1/network"] == "viewer"
    assert by_call["PUT", "/api/v1/network"] == "editor"
    assert by_call["POST", "/api/v1/streams/{stream}"] == "operator"
    assert by_call["GET", "/api/v1/outputs/{output}"] == "operator"
    readers = {path for (method, path), role in by_call.items() if role == "viewer"}
    assert not {"/api/v1/modify", "/api/v1/queries", "/api/v1/control/pause"} & readers


def test_sockets_need_a_token(plant: Site) -> None:
    offers: list[Any] = [None, ["auroral"], ["auroral", "bearer.guess"], ["auroral", "bearer."]]
    for path in ("live", "outputs/alerts/live", "outputs/nope/live"):
        where = f"{plant.http.url.replace('http', 'ws')}/api/v1/{path}"
        for offered in offers:
            with (
                pytest.raises(InvalidStatus) as refused,
                connect(where, subprotocols=offered),
            ):
                pass
            assert refused.value.response.status_code == 401
            assert json.loads(refused.value.response.body)["code"] == "UNAUTHORIZED"
    with plant.socket("live") as opened:
        assert opened.subprotocol == "auroral"


def test_pages_of_other_sites_are_refused(plant: Site) -> None:
    evil = {"Origin": "http://evil.example"}
    answer = plant.ask("POST", "sql", json={"query": "SELECT 1"}, headers=evil)
    assert (answer.status_code, answer.json()["code"]) == (403, "FOREIGN_ORIGIN")
    with pytest.raises(InvalidStatus), plant.socket("live", origin="http://evil.example"):
        pass
    own = {"Origin": plant.http.url}
    assert plant.ask("POST", "streams/readings", json=READINGS, headers=own).status_code == 200
    for broken in ("http://[", "http://[::1"):
        refused = plant.ask("POST", "streams/readings", role=None, headers={"Origin": broken})
        assert (refused.status_code, refused.json()["code"]) == (403, "FOREIGN_ORIGIN")
    opaque = plant.ask("POST", "streams/readings", json=READINGS, headers={"Origin": "null"})
    assert opaque.status_code == 403
    with plant.socket("live", origin=plant.http.url) as opened:
        assert opened.subprotocol == "auroral"


def test_names_that_another_site_points_here_are_refused(plant: Site) -> None:
    for host, status in (("evil.example", 421), ("localhost:1", 200), ("127.0.0.1", 200)):
        answer = plant.ask("GET", "server", headers={"Host": host})
        assert answer.status_code == status, host


def test_answers_tell_browsers_to_be_careful(plant: Site) -> None:
    for path in ("/", "/healthz", "/api/v1/server", "/nope"):
        headers = plant.ask("GET", path).headers
        for name, value in HEADERS.items():
            assert headers[name] == value
        assert headers["X-Request-ID"]
    policy = HEADERS["Content-Security-Policy"]
    assert "script-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    scripts = next(part for part in policy.split(";") if "script-src" in part)
    assert "unsafe-inline" not in scripts


def test_the_page_needs_no_token_and_leads_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "static/assets").mkdir(parents=True)
    (tmp_path / "static/index.html").write_text("<title>studio</title>")
    (tmp_path / "static/assets/index-abcd1234.js").write_text("1")
    (tmp_path / "secret").write_text("x")
    with site(settings={"static": tmp_path / "static"}) as found:
        page = found.ask("GET", "/", role=None)
        assert "studio" in page.text
        assert page.headers["Cache-Control"] == "no-cache"
        script = found.ask("GET", "/assets/index-abcd1234.js", role=None)
        assert "immutable" in script.headers["Cache-Control"]
        for path in ("/../secret", "/%2e%2e/secret", "/assets/../../secret", "/secret"):
            assert found.ask("GET", path, role=None).status_code == 404


def test_bodies_have_a_limit(plant: Site) -> None:
    whole = plant.ask("POST", "check", content=b"x" * 30_000)
    assert (whole.status_code, whole.json()["code"]) == (413, "TOO_LARGE")

    def parts() -> Iterator[bytes]:
        for _ in range(30):
            yield b"x" * 1000

    chunked = plant.ask("POST", "check", content=parts())
    assert (chunked.status_code, chunked.json()["code"]) == (413, "TOO_LARGE")
    many = plant.ask("POST", "streams/readings", json=[{"at": 1}] * 101)
    assert (many.status_code, many.json()["code"]) == (413, "TOO_LARGE")


def test_every_call_refuses_a_body_that_is_too_large(plant: Site) -> None:
    headers = {"Authorization": f"Bearer {plant.tokens['editor']}"}
    wanting = [one for one in operations(plant) if one[0] not in ("GET", "DELETE")]
    assert len(wanting) > 15
    for method, path, _ in operations(plant):
        where = path.replace("{", "").replace("}", "")
        long = plant.asking.request(method, where, headers=headers, content=b"x" * 30_000)
        assert (long.status_code, long.json()["code"]) == (413, "TOO_LARGE"), (method, where)
    for method, path, _ in wanting:
        where = path.replace("{", "").replace("}", "")
        parts = (b" " * 1000 for _ in range(30))
        chunked = plant.asking.request(
            method, where, headers={**headers, "Content-Type": "application/json"}, content=parts
        )
        assert (chunked.status_code, chunked.json()["code"]) == (413, "TOO_LARGE"), (method, where)


def test_two_hundred_clients_at_once(plant: Site) -> None:
    before = plant.engine.stats()["streams"]["readings"]["in"]
    start = threading.Barrier(200)

    def ask(number: int) -> int:
        headers = {"Authorization": f"Bearer {plant.tokens['operator']}"}
        row = {"machine": f"m{number}", "at": 100, "celsius": 1.0}
        given: Any = {"headers": headers, "timeout": 60, "verify": False, "trust_env": False}
        with httpx.Client(base_url=plant.http.url, **given) as client:
            start.wait()
            return client.post("/api/v1/streams/readings", json=[row]).status_code

    with ThreadPoolExecutor(200) as pool:
        assert set(pool.map(ask, range(200))) == {200}
    plant.engine.drain(30)
    assert plant.engine.stats()["streams"]["readings"]["in"] == before + 200


def test_too_many_sockets_are_refused(plant: Site) -> None:
    with ExitStack() as stack:
        for _ in range(LIMITS.sockets):
            stack.enter_context(plant.socket("live"))
        with pytest.raises(InvalidStatus) as refused, plant.socket("live"):
            pass
        assert refused.value.response.status_code == 429
        assert refused.value.response.headers["Retry-After"] == "1"


def test_too_many_requests_are_refused_and_health_is_not() -> None:
    with site(limits=ServerLimits(requests=1)) as found, socket.socket() as held:
        # A request whose body never ends holds the only place, once its head has been read.
        held.connect(("127.0.0.1", int(found.http.url.rpartition(":")[2])))
        head = "POST /api/v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n"
        held.sendall(f"{head}Authorization: Bearer {found.tokens['viewer']}\r\n\r\n".encode())
        deadline = time.monotonic() + 20
        while (answer := found.ask("GET", "server")).status_code == 200:
            assert time.monotonic() < deadline, "nothing was refused"
        assert (answer.status_code, answer.json()["code"]) == (429, "TOO_MANY_CONNECTIONS")
        assert found.ask("GET", "/healthz", role=None).status_code == 200


def test_calls_that_take_too_long_are_answered() -> None:
    with site(limits=ServerLimits(request_s=0.05)) as found:
        hold = threading.Event()
        found.engine.list_entities = lambda: hold.wait(30) and {}  # type: ignore[method-assign,assignment,return-value]
        try:
            answer = found.ask("GET", "entities")
            assert (answer.status_code, answer.json()["code"]) == (503, "TIMEOUT")
        finally:
            hold.set()


def test_failures_are_told_without_details(caplog: pytest.LogCaptureFixture) -> None:
    with site() as found:

        def broken() -> None:
            raise ZeroDivisionError("a secret")

        found.engine.list_entities = broken  # type: ignore[method-assign,assignment]
        answer = found.ask("GET", "entities")
        assert (answer.status_code, answer.json()["code"]) == (500, "INTERNAL")
        assert "secret" not in answer.text
        assert answer.headers["X-Request-ID"] in answer.json()["detail"]


def test_logs_have_no_tokens(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "auroral"), site() as found:
        found.ask("PUT", "layout", json={})
        found.ask("GET", "server?token=abc")
        with found.socket("live"):
            pass
        token = found.tokens["editor"]
        viewer = found.tokens["viewer"]
    assert "save layout" in caplog.text
    assert token not in caplog.text
    assert viewer not in caplog.text
    assert "token=abc" not in caplog.text


# ── tokens ──


def test_tokens_are_kept_for_their_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "tokens.json"
    made = AccessTokens.kept(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    again = AccessTokens.kept(path)
    assert [again[role] for role in ROLES] == [made[role] for role in ROLES]
    assert len({made[role] for role in ROLES}) == 3
    path.chmod(0o640)
    with pytest.raises(UsageError, match="TOKENS_EXPOSED"):
        AccessTokens.kept(path)


@pytest.mark.parametrize(
    "text",
    [
        "nonsense",
        "[]",
        '{"viewer": "x"}',
        json.dumps(dict.fromkeys(ROLES, "short")),
        json.dumps(dict.fromkeys(ROLES, "the-same-for-all-roles")),
    ],
)
def test_files_that_hold_no_tokens_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "tokens.json"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(UsageError, match="BAD_TOKEN_FILE"):
        AccessTokens.kept(path)


def test_other_machines_need_tls(tmp_path: Path) -> None:
    files = TlsFiles(tmp_path / "c", tmp_path / "k")
    with pytest.raises(UsageError, match="INSECURE_BIND"):
        require_safe("0.0.0.0", None, insecure=False)
    require_safe("0.0.0.0", files, insecure=False)
    require_safe("0.0.0.0", None, insecure=True)
    for host in ("127.0.0.1", "localhost", "::1"):
        require_safe(host, None, insecure=False)
