"""Networks from the wire name only what they may: modules, files, variables, jars."""

from __future__ import annotations

import copy
import sys
from pathlib import Path
from typing import Any

import pytest

from auroral.network.network import Network
from auroral.server.allowed import AllowedReferences
from auroral.server.network_file import NetworkFile
from tests.server.serving import PLANT, site


def network(directory: Path, **parts: Any) -> Network:
    document = {"network": "n", "streams": {"s": {"schema": "a int"}}, **parts}
    return Network.parse(document, directory=directory)


def codes(allowed: AllowedReferences, found: Network) -> list[tuple[str, tuple[Any, ...]]]:
    return [(mistake.code, mistake.path) for mistake in allowed.mistakes(found)]


def source(**options: Any) -> dict[str, Any]:
    return {"s": {"schema": "a int", "source": options}}


def sink(**options: Any) -> dict[str, Any]:
    return {"o": {"from": "s", "sink": options}}


def kafka_with(client: dict[str, Any]) -> dict[str, Any]:
    return source(format="kafka", topic="t", servers="h", options=client)


FUNCTIONS = """
import functools, os, sys
from os import system
def f(a): return a
@functools.wraps(f)
def wrapped(a): return f(a)
class Window:
    def __init__(self): pass
    def __call__(self, a): return a
    def made(self): return self
called = sys.exit
partial = functools.partial(system, "true")
"""


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
            ("outputs", "o", "sink", "path"),
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
    tmp_path: Path, parts: dict[str, Any], path: tuple[str, ...]
) -> None:
    allowed = AllowedReferences.of(network(tmp_path))
    assert codes(allowed, network(tmp_path, **parts)) == [("PATH_NOT_ALLOWED", path)]


def test_files_in_data_and_those_that_the_file_names_are_allowed(tmp_path: Path) -> None:
    own = network(tmp_path, streams=source(format="csv", path="/data/in.csv"))
    other = tmp_path.parent / "other"
    allowed = AllowedReferences.of(own, roots=[other])
    for path in ("data/x.csv", "data/deep/x.csv", "/data/in.csv", str(other / "y.csv")):
        assert not codes(allowed, network(tmp_path, streams=source(format="csv", path=path)))
    assert codes(allowed, network(tmp_path, streams=source(format="csv", path="x.csv")))
    # What the file reads is not for others to write.
    assert codes(allowed, network(tmp_path, outputs=sink(format="csv", path="/data/in.csv")))
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "link").symlink_to("/etc")
    away = network(tmp_path, streams=source(format="csv", path="data/link/passwd"))
    assert codes(allowed, away)


@pytest.mark.parametrize(
    "path",
    [
        "plant.yaml",
        "plant.yaml.bak",
        "plant.yaml.layout.json",
        "keys/tokens.json",
        "tls.pem",
        "state/audit.jsonl",
        "state/tokens.json",
        "state",
        ".",
        "plant_functions.py",
        "package.PY/part.csv",
        ".bashrc",
        "deep/.ssh/id",
        "x*.csv",
        "x?.csv",
        "[x].csv",
        "{x,y}.csv",
        "${HOME}/x.csv",
        "$${x}.csv",
        "file:x.csv",
        "s3a://bucket/x.csv",
        "x\\y.csv",
    ],
)
def test_files_of_the_server_and_patterns_are_refused_also_below_an_allowed_directory(
    tmp_path: Path, path: str
) -> None:
    files = NetworkFile(tmp_path / "plant.yaml").files
    secret = [tmp_path / name for name in ("state", "tls.pem", "keys/tokens.json")]
    allowed = AllowedReferences.of(network(tmp_path), roots=[tmp_path], protected=[*files, *secret])
    assert not codes(allowed, network(tmp_path, outputs=sink(format="csv", path="x.csv")))
    for parts in (
        {"streams": source(format="csv", path=path)},
        {"streams": source(format="text", path=[path])},
        {"outputs": sink(format="csv", path=path)},
        {"outputs": sink(format="parquet", path=path)},
        {"connection_points": {"p": {"store": f"csv:{path}", "schema": "a int", "key": "a"}}},
    ):
        assert "PATH_NOT_ALLOWED" in [
            code for code, _ in codes(allowed, network(tmp_path, **parts))
        ]


def test_functions_are_those_of_modules_that_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine_a").mkdir()
    (tmp_path / "mine_a" / "__init__.py").write_text("")
    (tmp_path / "mine_a" / "__main__.py").write_text("raise SystemError('it was run')")
    (tmp_path / "mine_a" / "deep.py").write_text(FUNCTIONS)
    monkeypatch.syspath_prepend(str(tmp_path))

    def found(modules: list[str], udf: str) -> list[str]:
        boxes = {"m": {"box": "map", "input": "s", "compute": {"x": {"udf": udf}}}}
        allowed = AllowedReferences.of(network(tmp_path), modules=modules)
        said = codes(allowed, network(tmp_path, boxes=boxes))
        assert all(path == ("boxes", "m") for _, path in said)
        return [code for code, _ in said]

    for modules in (["mine_a.deep"], ["mine_a.*"]):
        for name in ("f", "Window", "Window.made", "wrapped"):
            assert found(modules, f"mine_a.deep:{name}") == []
        for name in (
            "os.system",
            "system",
            "sys.exit",
            "called",
            "Window.__init__.__globals__.get",
            "Window.__subclasses__",
            "partial",
        ):
            assert found(modules, f"mine_a.deep:{name}") == ["MODULE_NOT_ALLOWED"], name
    assert "mine_a.deep" in sys.modules
    assert found(["mine_a"], "mine_a.deep:f") == ["MODULE_NOT_ALLOWED"]
    assert found(["mine_a.*"], "mine_a.__main__:f") == ["MODULE_NOT_ALLOWED"]
    assert found([], "mine_a.deep:f") == ["MODULE_NOT_ALLOWED"]
    # The person who wrote the file may name what others may not.
    named = network(tmp_path, functions={"g": {"udf": "mine_a.deep:os.getpid", "returns": "int"}})
    assert codes(AllowedReferences.of(named), named) == []


def test_variables_are_those_of_the_file(tmp_path: Path) -> None:
    def kafka(servers: str) -> Network:
        return network(tmp_path, streams=source(format="kafka", topic="t", servers=servers))

    secret = kafka("${SECRET}")
    found = codes(AllowedReferences.of(network(tmp_path)), secret)
    assert [code for code, _ in found] == ["VARIABLE_NOT_ALLOWED"]
    assert codes(AllowedReferences.of(secret), secret) == []


@pytest.mark.parametrize(
    ("streams", "path"),
    [
        (kafka_with({"plugin.library.paths": "evil.so"}), ("options", "plugin.library.paths")),
        (kafka_with({"ssl.engine.location": "evil.so"}), ("options", "ssl.engine.location")),
        (kafka_with({"ssl.ca.location": "x.pem"}), ("options", "ssl.ca.location")),
        (
            kafka_with({"sasl.kerberos.kinit.cmd": "touch x"}),
            ("options", "sasl.kerberos.kinit.cmd"),
        ),
        (kafka_with({"client.id": ["a"]}), ("options", "client.id")),
        (source(format="text", path="data/x", cleanSource="delete"), ("cleanSource",)),
        (source(format="xml", path="data/x", rowValidationXSDPath="a.xsd"), None),
        (source(format="delta", path="data/x"), ("format",)),
        (source(format="CSV", path="data/x"), ("format",)),
        (source(format="org.example.Source", url="jdbc:h2:mem:x"), None),
    ],
)
def test_options_that_load_code_or_open_files_are_those_of_the_file(
    tmp_path: Path, streams: dict[str, Any], path: tuple[str, ...] | None
) -> None:
    found = codes(AllowedReferences.of(network(tmp_path)), network(tmp_path, streams=streams))
    if path is None:
        assert found
    else:
        assert found == [("OPTION_NOT_ALLOWED", ("streams", "s", "source", *path))]
    own = network(tmp_path, streams=streams)
    assert codes(AllowedReferences.of(own), own) == []


def test_options_of_a_database_that_name_files_are_refused(tmp_path: Path) -> None:
    def stored(query: str) -> Network:
        store = f"postgresql://u@h/db?{query}"
        return network(tmp_path, tables={"t": {"schema": "a int", "key": ["a"], "store": store}})

    allowed = AllowedReferences.of(network(tmp_path))
    assert codes(allowed, stored("sslmode=require")) == []
    assert codes(allowed, stored("passfile=/etc/pass")) == [
        ("OPTION_NOT_ALLOWED", ("tables", "t", "store"))
    ]


def test_common_options_of_clients_are_allowed(tmp_path: Path) -> None:
    client = {"security.protocol": "SASL_SSL", "sasl.password": "/a", "fetch.min.bytes": 1}
    rate = source(format="rate", rows_per_second=1, fields={"a": {"choice": ["/a", "/b"]}})
    for streams in (kafka_with(client), rate, source(format="text", path="data/x")):
        allowed = AllowedReferences.of(network(tmp_path))
        assert codes(allowed, network(tmp_path, streams=streams)) == []


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


def test_a_sink_reaches_neither_modules_nor_the_state(tmp_path: Path) -> None:
    (tmp_path / "plant_functions.py").write_text("def f(a): return a\n")
    file, state = tmp_path / "plant.yaml", tmp_path / "state"
    (tmp_path / "data").mkdir()
    with site(file=file, state=state, settings={"roots": [tmp_path]}) as found:
        audit = (state / "audit.jsonl").read_bytes()
        for path in ("plant_functions.py", "state/audit.jsonl", "plant.yaml", "state/tokens.json"):
            document = copy.deepcopy(PLANT)
            document["outputs"]["all"] = {"from": "hot", "sink": {"format": "csv", "path": path}}
            answer = found.ask("PUT", "network", json=document)
            assert answer.json()["code"] == "PATH_NOT_ALLOWED", answer.text
        assert (tmp_path / "plant_functions.py").read_text().startswith("def f")
        assert (state / "audit.jsonl").read_bytes().startswith(audit)
        document["outputs"]["all"]["sink"]["path"] = "data/all.csv"
        assert found.ask("PUT", "network", json=document).status_code == 200
        # What was deployed may be deployed again.
        again = found.get("network")
        assert found.ask("PUT", "network", json=again).status_code == 200


def test_a_check_imports_nothing_while_superboxes_hide_what_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "evil_too.py").write_text("raise SystemError('it was imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    document = copy.deepcopy(PLANT)
    document["functions"] = {"g": {"udf": "evil_too:f"}}
    inner = {"only": {"box": "filter", "input": "in", "where": "celsius > 1"}}
    document["superboxes"] = {"inner": {"inputs": ["in"], "boxes": inner, "outputs": "only"}}
    document["boxes"]["hidden"] = {"box": "inner", "input": "no_such_arc"}
    document["queries"]["q"] = "SELECT g(celsius) AS c FROM readings"
    with site() as found:
        checked = found.ask("POST", "check", json=document, role="viewer").json()
    assert "UNKNOWN_ARC" in [problem["code"] for problem in checked["problems"]]
    assert "it was imported" not in str(checked)
