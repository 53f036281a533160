"""Log lines: one for each event, whatever clients send, and without secrets."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from auroral.errors import RunError, conceal
from auroral.server.logs import JsonLines, TextLines
from tests.server.serving import READINGS, Site, site

SECRET = "hunter-two-of-the-tests"


def record(message: str = "", fields: dict[str, Any] | None = None) -> logging.LogRecord:
    made = logging.LogRecord("auroral.server", logging.INFO, __file__, 1, message, (), None)
    made.created = 0.0
    if fields is not None:
        made.fields = fields
    return made


@pytest.fixture(scope="module")
def plant() -> Iterator[Site]:
    with site() as found:
        yield found


def logged(caplog: pytest.LogCaptureFixture, name: str) -> list[logging.LogRecord]:
    return [one for one in caplog.records if one.name == name]


def test_a_line_of_text() -> None:
    assert TextLines().format(record("it began")) == (
        "1970-01-01T00:00:00.000+00:00 info auroral.server: it began"
    )
    fields = {
        "method": "GET",
        "path": "/a",
        "status": 200,
        "role": None,
        "report": {"added": ["a"]},
    }
    assert (
        TextLines()
        .format(record(fields=fields))
        .endswith('auroral.server: method=GET path=/a status=200 report={"added": ["a"]}')
    )


def test_a_line_of_json() -> None:
    said = json.loads(JsonLines().format(record("it began")))
    assert said == {
        "at": "1970-01-01T00:00:00.000+00:00",
        "level": "info",
        "logger": "auroral.server",
        "text": "it began",
    }
    said = json.loads(JsonLines().format(record(fields={"status": 200, "path": "/é"})))
    assert (said["status"], said["path"]) == (200, "/é")


@pytest.mark.parametrize("char", ["\n", "\r", "\x1b[2J", "\x85", "\u2028", "\x9b", "\ud800"])
def test_nothing_ends_a_line_but_its_end(char: str) -> None:
    for made in (record(f"a{char}b"), record(fields={"path": f"a{char}b"})):
        for formatter in (TextLines(), JsonLines()):
            line = formatter.format(made)
            assert line.isprintable()
            assert line.encode()
        said = json.loads(line)
        assert said.get("path", said.get("text")) == f"a{char}b"


def test_a_value_does_not_pass_for_another_field() -> None:
    line = TextLines().format(record(fields={"path": '/x role=editor "', "status": 401}))
    assert line.endswith('path="/x role=editor \\"" status=401')


def test_a_traceback_is_indented() -> None:
    try:
        raise ValueError("first\nsecond\rthird")
    except ValueError:
        made = record("it failed")
        made.exc_info = sys.exc_info()
    first, *others = TextLines().format(made).splitlines()
    assert first.endswith("it failed")
    assert all(line.startswith("  ") for line in others)
    assert "second" in "".join(others)
    assert "second" in json.loads(JsonLines().format(made))["traceback"]


def test_secrets_are_masked_in_fields_too() -> None:
    conceal(SECRET, "$TEST_SECRET")
    fields = {"where": f"x = '{SECRET}'", "more": [{"url": "kafka://me:pass@host"}]}
    for formatter in (TextLines(), JsonLines()):
        for line in (formatter.format(record(fields=fields)), formatter.format(record(SECRET))):
            assert SECRET not in line
            assert ":pass@" not in line
            assert "***" in line or "TEST_SECRET" in line


def test_a_path_forges_no_line(plant: Site, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "auroral")
    forged = "%0a1970-01-01T00:00:00.000+00:00%20info%20auroral.server.audit:%20what=deploy"
    assert plant.ask("GET", f"/{forged}", role=None).status_code in (401, 404)
    assert plant.ask("GET", f"/{'x' * 5000}", role=None).status_code in (401, 404)
    deadline = time.monotonic() + 30
    while len(found := logged(caplog, "auroral.server.access")) < 2:  # after the answers
        assert time.monotonic() < deadline
        time.sleep(0.01)
    forging, long = found
    assert "\\n1970" in TextLines().format(forging)
    for one in (forging, long):
        assert len(TextLines().format(one).splitlines()) == 1
        assert len(TextLines().format(one)) < 600


def test_why_the_engine_failed_is_logged_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails() -> bool:
        raise ValueError("nobody expected this")

    with site() as found:
        monkeypatch.setattr(found.engine._loop, "work", fails)
        found.engine.enqueue("readings", READINGS)
        with pytest.raises(RunError, match="nobody expected this"):
            found.engine.drain(30)
        with found.socket("live") as opened:
            opened.send(json.dumps({"picture": True}))
            while "nobody expected this" not in str(opened.recv(timeout=20)):
                pass
            for _ in range(2):  # more pictures
                assert json.loads(opened.recv(timeout=20))["type"] in ("picture", "log")
    told = [one for one in logged(caplog, "auroral.server") if one.levelno == logging.ERROR]
    assert [one.getMessage() for one in told] == [
        "the engine does not answer: INTERNAL: ValueError: nobody expected this"
    ]
    assert told[0].exc_info is not None
    assert isinstance(told[0].exc_info[1], ValueError)
