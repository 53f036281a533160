"""Passwords of sources, sinks and stores are for editors only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from auroral.engine import Engine
from auroral.server.tokens import Role
from tests.server.serving import Site, site

SECRET = "hunter2"
SOURCE = {
    "format": "kafka",
    "topic": "t",
    "servers": f"kafka://me:{SECRET}@broker",
    "password": SECRET,
    "options": {"sasl.password": SECRET},
}
DECLARED: dict[str, Any] = {
    "source": SOURCE,
    "sink": {"format": "kafka", "topic": "o", "servers": "broker", "options": {"ssl": SECRET}},
    "store": f"postgresql://me:{SECRET}@host/db?password={SECRET}#t",
}


@pytest.fixture
def secretive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    with site(file=tmp_path / "n.yaml") as found:
        document = found.service.document()
        for section, name, key in (
            ("streams", "readings", "source"),
            ("outputs", "alerts", "sink"),
            ("tables", "seen", "store"),
            ("connection_points", "recent", "store"),
        ):
            document[section][name][key] = DECLARED[key]
        monkeypatch.setattr(found.service, "declared", lambda: (document, '"1"'))
        describe = Engine.describe

        def described(engine: Engine, name: str) -> dict[str, Any]:
            of_output = {"output": {"sink": DECLARED["sink"]}} if name == "hot" else {}
            return {**describe(engine, name), **DECLARED, **of_output}

        monkeypatch.setattr(Engine, "describe", described)
        yield found


PATHS = ("network", "entities/readings", "entities/alerts", "entities/hot", "entities/seen")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("role", ["viewer", "operator"])
def test_who_may_not_change_the_network_does_not_see_them(
    secretive: Site, path: str, role: Role
) -> None:
    for media in ("application/json", "application/yaml"):
        headers = {"Accept": media if path == "network" else "application/json"}
        told = secretive.ask("GET", path, role=role, headers=headers)
        assert told.status_code == 200
        assert SECRET not in told.text
        assert "kafka" in told.text
        assert "broker" in told.text


@pytest.mark.parametrize("path", PATHS)
def test_an_editor_gets_what_was_written(secretive: Site, path: str) -> None:
    assert SECRET in secretive.ask("GET", path, role="editor").text
