"""`${NAME}` in a network file: taken from the environment when it is needed, never told."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import auroral as au
from auroral import errors
from auroral.engine.ingest.tables import snapshot
from auroral.engine.topology.identity import identity
from auroral.errors import NetworkError, RunError, UsageError, conceal, masked
from auroral.io.open import open_source
from auroral.network.environment import sink_of, sources_of, store_of

TEXT = """\
network: n
streams:
  s:
    schema: {a: int}
    source: {format: delta, path: "${DIRECTORY}/in", options: {password: "${SECRET}-x"}}
tables:
  t: {schema: {a: int}, store: "${STORE}"}
outputs:
  o: {from: s, sink: {path: "${DIRECTORY}/$${o}.csv"}}
"""


@pytest.fixture(autouse=True)
def variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors, "_concealed", {})
    monkeypatch.setenv("DIRECTORY", "/data/hidden")
    monkeypatch.setenv("SECRET", "open sesame")
    monkeypatch.setenv("STORE", "postgresql://me:pw@host/db")


@pytest.fixture
def network(tmp_path: Path) -> au.Network:
    path = tmp_path / "n.yaml"
    path.write_text(TEXT)
    return au.Network.load(path)


def test_values_are_taken_when_they_are_needed(
    network: au.Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    network.check()
    assert sources_of(network, "s")[0] == {
        "format": "delta",
        "path": "/data/hidden/in",
        "options": {"password": "open sesame-x"},
    }
    assert sink_of(network, "o") == {"path": "/data/hidden/${o}.csv"}
    assert store_of(network, "t") == "postgresql://me:pw@host/db"
    monkeypatch.setenv("DIRECTORY", "/other")
    assert (sink_of(network, "o") or {})["path"] == "/other/${o}.csv"


def test_values_are_neither_saved_nor_stored(network: au.Network, tmp_path: Path) -> None:
    network.check()
    network.save(tmp_path / "saved.yaml")
    kept = [(tmp_path / "saved.yaml").read_text(), json.dumps(identity(network, ()))]
    for text in kept:
        assert "${DIRECTORY}" in text
        assert not any(value in text for value in ("hidden", "sesame", "pw"))
    assert au.Network.load(tmp_path / "saved.yaml") == network


def test_values_are_not_told_in_errors(network: au.Network, tmp_path: Path) -> None:
    spec = {**sources_of(network, "s")[0], "format": "csv"}
    with pytest.raises(UsageError) as failure:
        open_source("s", {"path": spec["path"], "format": "csv"}, network.streams["s"].schema_)
    assert "${DIRECTORY}/in" in str(failure.value)
    with pytest.raises(RunError) as unreachable:
        snapshot(network, "t", tmp_path, {}, sync=False)
    assert "pw" not in str(unreachable.value)
    assert "hidden" not in repr(unreachable.value)


@pytest.mark.parametrize(
    ("spec", "code", "line"),
    [
        ('{path: "${NOWHERE}/x.csv"}', "UNKNOWN_VARIABLE", 5),
        ('{path: "x.csv",\n      extra: "${}"}', "BAD_VARIABLE", 6),
        ('{path: "${A-B}"}', "BAD_VARIABLE", 5),
        ('{path: "x.csv${"}', "BAD_VARIABLE", 5),
    ],
)
def test_what_is_no_variable(tmp_path: Path, spec: str, code: str, line: int) -> None:
    path = tmp_path / "n.yaml"
    path.write_text(f"network: n\nstreams:\n  s:\n    schema: {{a: int}}\n    source: {spec}\n")
    with pytest.raises(NetworkError) as failure:
        au.Network.load(path).check()
    assert failure.value.code == code
    assert f"n.yaml:{line}" in str(failure.value.where)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("at postgresql://u:p:w@h/d!", "at postgresql://u:***@h/d!"),
        ("jdbc:postgresql://u:pw@h", "jdbc:postgresql://u:***@h"),
        ("http://h:80/a@b", "http://h:80/a@b"),
        ("line 7 of 7x7", "line ${N} of 7x7"),
        ("key=sw0rdfish.", "key=${KEY}."),
    ],
)
def test_masks(text: str, shown: str) -> None:
    conceal("7", "${N}")
    conceal("sw0rdfish", "${KEY}")
    assert masked(text) == shown


def test_lists_and_other_values_are_left_alone() -> None:
    net = au.Network("n")
    rows: Any = [{"a": "${NOWHERE}"}]
    net.stream("s", "a string", source={"format": "iterable", "rows": rows})
    net.check()
    found = sources_of(net, "s")[0]["rows"]
    assert found is rows
    assert re.fullmatch(r"\$\{\w+\}", found[0]["a"])
