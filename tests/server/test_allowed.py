"""Networks from the wire name only what they may: modules, files, variables, jars."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from auroral.network.network import Network
from auroral.server.allowed import AllowedReferences
from tests.server.serving import PLANT, site


def network(directory: Path, **parts: Any) -> Network:
    document = {"network": "n", "streams": {"s": {"schema": "a int"}}, **parts}
    return Network.parse(document, directory=directory)


def codes(allowed: AllowedReferences, found: Network) -> list[tuple[str, tuple[Any, ...]]]:
    return [(mistake.code, mistake.path) for mistake in allowed.mistakes(found)]


def source(**options: Any) -> dict[str, Any]:
    return {"s": {"schema": "a int", "source": options}}


@pytest.mark.parametrize(
    ("parts", "path"),
    [
        ({"streams": source(format="csv", path="/etc/passwd")}, ("streams", "s", "source", "path")),
        ({"streams": source(format="csv", path="../x.csv")}, ("streams", "s", "source", "path")),
        (
            {"streams": source(format="text", path="file:///etc")},
            ("streams", "s", "source", "path"),
        ),
        (
            {"streams": source(format="kafka", servers="h", topic="t", ca="/etc/shadow")},
            ("streams", "s", "source", "ca"),
        ),
        (
            {"outputs": {"o": {"from": "s", "sink": {"format": "csv", "path": "~/x.csv"}}}},
            None,
        ),
        (
            {"outputs": {"o": {"from": "s", "sink": {"format": "csv", "path": "/x.csv"}}}},
            ("outputs", "o", "sink", "path"),
        ),
        (
            {"tables": {"t": {"schema": "a int", "key": ["a"], "store": "sqlite:////x.db"}}},
            ("tables", "t", "store"),
        ),
        (
            {"connection_points": {"p": {"store": "csv:/x.csv", "schema": "a int", "key": "a"}}},
            ("connection_points", "p", "store"),
        ),
        (
            {"queries": {"q": {"sql": "SELECT * FROM s", "values": "/x.csv", "key": "k"}}},
            ("queries", "q", "values"),
        ),
        ({"engine": {"jars": ["/evil.jar"]}}, ("engine", "jars")),
    ],
)
def test_files_elsewhere_are_refused(
    tmp_path: Path, parts: dict[str, Any], path: tuple[str, ...] | None
) -> None:
    allowed = AllowedReferences.of(network(tmp_path))
    found = codes(allowed, network(tmp_path, **parts))
    assert found == ([] if path is None else [("PATH_NOT_ALLOWED", path)])


def test_files_below_the_network_file_and_those_that_it_names_are_allowed(tmp_path: Path) -> None:
    own = network(tmp_path, streams=source(format="csv", path="/data/in.csv"))
    allowed = AllowedReferences.of(own, roots=[tmp_path.parent / "other"])
    for path in ("x.csv", "deep/x.csv", "/data/in.csv", str(tmp_path.parent / "other" / "y.csv")):
        assert not codes(allowed, network(tmp_path, streams=source(format="csv", path=path)))
    (tmp_path / "link").symlink_to("/etc")
    away = network(tmp_path, streams=source(format="csv", path="link/passwd"))
    assert codes(allowed, away)


def test_modules_and_variables_are_those_of_the_file(tmp_path: Path) -> None:
    mapped = {"m": {"box": "map", "input": "s", "compute": {"x": {"udf": "mine.deep:f"}}}}
    named = {"g": {"udf": "os:system", "returns": "int"}}
    allowed = AllowedReferences.of(network(tmp_path), modules=["mine"])
    assert codes(allowed, network(tmp_path, boxes=mapped)) == []
    assert codes(allowed, network(tmp_path, functions=named)) == [
        ("MODULE_NOT_ALLOWED", ("functions", "g", "udf"))
    ]
    assert codes(AllowedReferences.of(network(tmp_path)), network(tmp_path, boxes=mapped)) == [
        ("MODULE_NOT_ALLOWED", ("boxes", "m"))
    ]
    secret = network(tmp_path, streams=source(format="csv", path="${SECRET}.csv"))
    assert [code for code, _ in codes(allowed, secret)] == ["VARIABLE_NOT_ALLOWED"]
    assert codes(AllowedReferences.of(secret), secret) == []


def test_every_way_in_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "evil.py").write_text("raise SystemError('it was imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    evil = {"box": "map", "input": "readings", "compute": {"x": {"udf": "evil:f", "args": ["at"]}}}
    document = copy.deepcopy(PLANT)
    document["boxes"]["evil"] = evil
    sink = {"from": "hot", "sink": {"format": "csv", "path": "/etc/evil.csv"}}
    with site() as found:
        for method, path, body in (
            ("PUT", "network", document),
            ("PUT", "network?dry_run=true", document),
            ("POST", "modify", {"add": {"boxes": {"evil": evil}}}),
            ("POST", "modify?dry_run=true", {"add": {"evil": evil}}),
            ("POST", "modify", {"add": {"outputs": {"evil": sink}}}),
            ("POST", "modify", {"add": {"q": {"sql": "SELECT 1", "values": "/x", "key": "k"}}}),
        ):
            answer = found.ask(method, path, json=body)
            assert answer.status_code == 400, answer.text
            assert answer.json()["code"] in ("MODULE_NOT_ALLOWED", "PATH_NOT_ALLOWED")
        checked = found.ask("POST", "check", json=document).json()
        assert "MODULE_NOT_ALLOWED" in [problem["code"] for problem in checked["problems"]]
        assert "hot" in checked["arcs"]
