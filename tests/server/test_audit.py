"""Who changed what: nothing that was tried is missing."""

from __future__ import annotations

import copy
import json
import logging
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from auroral.server.audit import AuditLog
from auroral.server.settings import ServerLimits
from tests.server.serving import PLANT, site

WHO: dict[str, Any] = {"role": "editor", "client": "127.0.0.1", "request": "1", "what": "deploy"}


def noted(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_versions_and_the_report_are_recorded(tmp_path: Path) -> None:
    with site(state=tmp_path) as found:
        before = found.service.version
        changed = copy.deepcopy(PLANT)
        changed["outputs"]["all"] = {"from": "hot.rest"}
        made = found.ask("PUT", "network", json=changed)
        found.ask("DELETE", "queries/nope")
        found.ask("DELETE", "queries/mild")
        deployed, refused, removed = noted(tmp_path / "audit.jsonl")
    assert deployed["result"] == "ok"
    assert (deployed["before"], deployed["after"]) == (before, made.headers["ETag"])
    assert deployed["report"] == {"added": ["outputs.all"]}
    assert deployed["request"] == made.headers["X-Request-ID"]
    assert (refused["result"], refused["name"]) == ("UNKNOWN_QUERY", "nope")
    assert refused["before"] == refused["after"] == removed["before"] == made.headers["ETag"]
    assert removed["report"] == {"removed": ["queries.mild"]}


def test_who_may_not_is_recorded(tmp_path: Path) -> None:
    with site(state=tmp_path) as found:
        assert found.ask("PUT", "network", role="viewer", json=PLANT).status_code == 403
        assert found.ask("DELETE", "queries/mild", role="operator").status_code == 403
        assert found.ask("GET", "network", role="viewer").status_code == 200
    tried = [(one["role"], one["what"], one["result"]) for one in noted(tmp_path / "audit.jsonl")]
    assert tried == [
        ("viewer", "PUT /api/v1/network", "FORBIDDEN"),
        ("operator", "DELETE /api/v1/queries/mild", "FORBIDDEN"),
    ]


@pytest.mark.parametrize("fails", [False, True])
def test_a_change_that_takes_too_long_is_recorded_with_its_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    path, hold = tmp_path / "audit.jsonl", threading.Event()
    with site(state=tmp_path, limits=ServerLimits(request_s=0.1)) as found:
        modify = found.engine.modify

        def slow(**given: Any) -> Any:
            assert hold.wait(30)
            if fails:
                raise ZeroDivisionError
            return modify(**given)

        monkeypatch.setattr(found.engine, "modify", slow)
        try:
            answer = found.ask("DELETE", "queries/mild")
            assert (answer.status_code, answer.json()["code"]) == (503, "TIMEOUT")
            assert [one["result"] for one in noted(path)] == ["TIMEOUT"]
        finally:
            hold.set()
        deadline = time.monotonic() + 30
        while len(noted(path)) < 2:
            assert time.monotonic() < deadline, "its end was not recorded"
            found.engine.wait(0.02)
        told, ended = noted(path)
    assert told["request"] == ended["request"]
    assert ended["result"] == ("ZeroDivisionError" if fails else "ok")
    assert (ended["before"] == ended["after"]) is fails


def test_files_are_put_aside_and_bounded(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    path.write_text("")
    path.chmod(0o644)
    log = AuditLog(path, file_bytes=400, files=3)
    for number in range(40):
        log.note(**WHO, result="ok", number=number)
    log.close()
    log.note(**WHO, result="ok", number=99)  # it is closed
    files = [path.with_name("audit.jsonl.2"), path.with_name("audit.jsonl.1"), path]
    assert sorted(tmp_path.iterdir()) == sorted(files)
    numbers = [one["number"] for file in files for one in noted(file)]
    assert numbers == list(range(40 - len(numbers), 40))
    for file in files:
        assert file.stat().st_size <= 400
        assert file.stat().st_mode & 0o777 == 0o600


def test_long_values_are_cut(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    log = AuditLog(path)
    log.note(**{**WHO, "what": "x" * 10_000}, result="ok", qos=[["y"] * 10_000], few=[1])
    log.close()
    (one,) = noted(path)
    assert one["what"] == "x" * 2000 + "…"
    assert one["qos"].startswith('[["y", "y"')
    assert one["few"] == [1]
    assert path.stat().st_size < 6000


def test_a_viewer_cannot_push_the_changes_of_others_out(tmp_path: Path) -> None:
    path, now = tmp_path / "audit.jsonl", [0.0]
    log = AuditLog(path, clock=lambda: now[0])
    log.note(**WHO, result="ok")

    def refused(number: int, **given: str) -> None:
        who = {"role": "viewer", "client": "10.0.0.1", "method": "PUT", "result": "FORBIDDEN"}
        log.refused(**{**who, "request": str(number), "path": f"/{number}{'x' * 9000}", **given})

    for number in range(1000):
        now[0] += 0.01
        refused(number)
    refused(0, method="DELETE")
    refused(0, client="10.0.0.2")
    assert [one["what"][:5] for one in noted(path)] == ["deplo", "PUT /", "DELET", "PUT /"]
    now[0] += 60
    log.note(**WHO, result="ok")  # tells of those before it
    together, last = noted(path)[4:]
    assert (together["calls"], together["request"], together["role"]) == (999, "999", "viewer")
    assert last["what"] == "deploy"
    for number in range(1000):
        refused(number, client=f"10.0.1.{number}")
    log.close()
    assert sum(one.get("calls", 1) for one in noted(path)[6:]) == 1000
    assert len(noted(path)) < 45
    assert path.stat().st_size < 20_000


def test_graphs_are_small_bodies(tmp_path: Path) -> None:
    with site(state=tmp_path) as found:
        answer = found.ask("PUT", "outputs/alerts/qos", json={"latency": ["x" * 100_000]})
        assert answer.status_code == 413
        graphs = {"latency": ["x" * 10_000]}
        assert found.ask("PUT", "outputs/alerts/qos", json=graphs).status_code >= 400
        for _ in range(20):
            path = f"outputs/{'x' * 5000}/qos"
            assert found.ask("PUT", path, role="viewer", json=None).status_code == 403
    assert (tmp_path / "audit.jsonl").stat().st_size < 6000
    assert [one.get("calls") for one in noted(tmp_path / "audit.jsonl")] == [None, None, 19]


def test_a_disk_that_is_full_does_not_undo_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    log = AuditLog(tmp_path / "audit.jsonl")
    monkeypatch.setattr("auroral.server.audit.os.write", full)
    with caplog.at_level(logging.ERROR, "auroral"):
        log.note(**WHO, result="ok")
    log.close()
    assert "No space left on device" in caplog.text


def test_who_only_looks_does_not_see_it(tmp_path: Path) -> None:
    logs = logging.getLogger("auroral.server.audit"), logging.getLogger("auroral")
    levels = [log.level for log in logs]
    for log in logs:
        log.setLevel(logging.INFO)
    try:
        with site(state=tmp_path) as found, found.socket("live") as socket:
            socket.send(json.dumps({"picture": True}))
            asked = {"arc": "readings", "condition": "machine = 'a secret'"}
            assert found.ask("POST", "control/breakpoints", json=asked).status_code == 201
            logs[1].warning("this is for everybody")
            told: list[Any] = []
            while not any(one["text"] == "this is for everybody" for one in told):
                frame = json.loads(socket.recv(20))
                told += frame["entries"] if frame["type"] == "log" else []
    finally:
        for log, level in zip(logs, levels, strict=True):
            log.setLevel(level)
    assert "a secret" in (tmp_path / "audit.jsonl").read_text()
    assert not any("a secret" in one["text"] or "127.0.0.1" in one["text"] for one in told)
