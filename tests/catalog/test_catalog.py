"""The catalog of a state directory: what it says, who may read it when, what it must not say."""

from __future__ import annotations

import json
import re
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest

import auroral as au
from auroral.catalog import read_catalog
from auroral.catalog.document import public_document
from auroral.cli import main as cli
from auroral.errors import StateError, UsageError
from auroral.storage.manifest import CATALOG, FORMAT
from auroral.storage.snapshot import ManifestSnapshot
from tests.conformance.sparkless import make_engine
from tests.network.test_superboxes import NETWORK, ROWS, load

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "catalog.md"


def made(directory: Path, rows: Any = ROWS) -> Path:
    """A state directory of a network that has run."""
    with make_engine(load(directory), state=directory / "state") as engine:
        engine.enqueue("reports", rows)
        engine.drain()
    return directory / "state"


def command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str | Path
) -> tuple[int, str, str]:
    """The exit code of a command, and what it printed on each channel."""
    monkeypatch.setattr(sys, "argv", ["auroral", *map(str, words)])
    with pytest.raises(SystemExit) as done:
        cli.main()
    shown = capsys.readouterr()
    return int(done.value.code or 0), shown.out, shown.err


# ── the documented schema ──


def test_the_page_describes_every_table_and_column(tmp_path: Path) -> None:
    state = made(tmp_path, ROWS[:3])
    with sqlite3.connect(f"file:{state / 'manifest.db'}?mode=ro", uri=True) as db:
        names = [n for (n,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        found = {
            (table, column, kind)
            for table in names
            for _, column, kind, *_ in db.execute(f"PRAGMA table_info({table})")
        }
        versions = dict(
            db.execute("SELECT key, value FROM meta WHERE key IN ('format', 'catalog')")
        )
    text = PAGE.read_text()
    described = {
        (table, column, kind)
        for table, body in re.findall(
            r"^### `(\w+)`\n(.*?)(?=^#|\Z)", text, re.DOTALL | re.MULTILINE
        )
        for column, kind in re.findall(r"^\| `(\w+)` \| (\w+) \|", body, re.MULTILINE)
    }
    assert described == found
    assert versions == {"format": str(FORMAT), "catalog": str(CATALOG)}
    assert f"version {CATALOG} of the catalog and format {FORMAT}" in text


# ── reading ──


def test_entities_have_declarations_schemas_counts_and_costs(tmp_path: Path) -> None:
    catalog = read_catalog(made(tmp_path))
    listed = {(one["kind"], one["name"]): one for one in catalog.listed()}
    assert listed["stream", "reports"]["tuples"] == len(ROWS)
    assert listed["instance", "north"]["schema"] == {"time": "bigint", "cnt": "bigint"}
    assert listed["box", "north/across"]["selectivity"] < 1
    assert listed["box", "north/across"]["calls"] >= 1
    assert listed["query", "counts"]["matches"] > 0
    assert listed["arc", "north/enough.rest"]["schema"] == {"time": "bigint", "cnt": "bigint"}
    assert ("group", "rest") in listed
    assert ("superbox", "crowding") in listed
    (across,) = catalog.described("north/across")
    assert across["declaration"]["where"] == "`pos` >= 40"
    assert across["cost"]["tuples_in"] == len(ROWS)
    (alerts,) = catalog.described("alerts")
    assert alerts["declaration"] == {"from": "south"}
    with pytest.raises(UsageError, match="UNKNOWN_ENTITY"):
        catalog.described("nroth")


def test_progress_is_told_in_values_of_the_field(tmp_path: Path) -> None:
    net = au.Network("n")
    stream = net.stream("s", schema="at timestamp, x int", progress=au.Delayed("at", "5 s"))
    net.output("o", stream.filter("x > 0"))
    with make_engine(net, state=tmp_path / "state") as engine:
        engine.enqueue("s", [("2024-01-01T00:00:10", 1)])
        engine.drain()
        wanted = engine.describe("s")["progress"]
        (found,) = read_catalog(tmp_path / "state").described("s")
    assert found["progress"] == wanted == {"at": "2024-01-01T00:00:05"}


def test_a_catalog_is_read_while_the_engine_runs(tmp_path: Path) -> None:
    state = tmp_path / "state"
    counts = []
    with make_engine(load(tmp_path), state=state) as engine:
        for start in range(0, len(ROWS), 50):
            engine.enqueue("reports", ROWS[start : start + 50])
            engine.drain()
            catalog = read_catalog(state)
            counts.append(catalog.counters["reports", "in"])
            assert catalog.costs["north/across"].tuples_in == counts[-1], "one state, not a mix"
    assert counts == list(range(50, len(ROWS) + 1, 50))


def test_a_reader_sees_one_state_and_holds_nobody_up(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with make_engine(load(tmp_path), state=state) as engine:
        engine.enqueue("reports", ROWS[:50])
        engine.drain()
        with ManifestSnapshot(state) as manifest:
            before = manifest.counters()
            engine.enqueue("reports", ROWS[50:])
            engine.drain()
            assert manifest.counters() == before
            with pytest.raises(sqlite3.OperationalError):
                manifest.set_meta("format", "0")
        assert read_catalog(state).counters["reports", "in"] == len(ROWS)


def test_directories_without_a_catalog_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="NO_STATE"):
        read_catalog(tmp_path)
    state = made(tmp_path, ROWS[:3])
    db = sqlite3.connect(state / "manifest.db")
    db.execute("DELETE FROM meta WHERE key = 'document'")
    db.commit()
    with pytest.raises(StateError, match="NO_CATALOG"):
        read_catalog(state)
    db.execute("UPDATE meta SET value = '1' WHERE key = 'format'")
    db.commit()
    db.close()
    with pytest.raises(StateError, match="STATE_TOO_OLD"):
        read_catalog(state)
    (state / "manifest.db").write_bytes(b"nonsense" * 1000)
    with pytest.raises(StateError, match="MANIFEST_DAMAGED"):
        read_catalog(state)


# ── what it keeps ──


def test_the_document_is_the_network_over_restarts(tmp_path: Path) -> None:
    state = made(tmp_path)
    assert au.Network.parse(read_catalog(state).document()) == load(tmp_path)
    described = NETWORK.replace("tags: [cold]", "tags: [cold, windy], description: up there")
    with make_engine(load(tmp_path, described), state=state) as engine:
        found = engine.describe("north")
    assert found["tags"] == ["cold", "windy"], "descriptions and tags may change"
    assert read_catalog(state).document()["boxes"]["north"]["description"] == "up there"


def test_queries_are_those_that_are_registered(tmp_path: Path) -> None:
    state = tmp_path / "state"
    rows = [{"rule": "a", "least": 3}]
    family = au.Family("SELECT * FROM reports WHERE pos > :least", rows, "rule")
    with make_engine(load(tmp_path), state=state) as engine:
        engine.modify(add={"more": "SELECT sid FROM reports", "rules": family}, remove=["low"])
        catalog = read_catalog(state)
    assert list(catalog.document()["queries"]) == ["counts", "more"]
    assert catalog.not_exported() == ["rules"]
    assert {one["name"] for one in catalog.listed() if one["kind"] == "query"} == {
        "counts",
        "more",
        "rules",
    }


def test_large_families_are_not_copied(tmp_path: Path) -> None:
    net = au.Network("n")
    net.stream("s", schema="x int")
    rows = [{"rule": n, "least": n} for n in range(1_001)]
    sql = "SELECT * FROM s WHERE x > :least"
    net.family("many", sql, rows, "rule")
    net.family("few", sql, rows[:5], "rule")
    with make_engine(net, state=tmp_path / "state"):
        catalog = read_catalog(tmp_path / "state")
    assert list(catalog.document()["queries"]) == ["few"]
    assert catalog.not_exported() == ["many"]
    assert catalog.described("many")[0]["members"] == 1_001


def test_no_secret_is_stored(tmp_path: Path) -> None:
    text = """\
network: n
streams:
  s:
    schema: {x: int}
    source: [{format: jsonl, path: in, password: hunter2, name: a}]
tables:
  t: {schema: {x: int}, key: [x], store: "postgresql://me:hunter2@host/db?password=hunter2"}
outputs:
  o: {from: s, sink: {format: csv, path: out.csv, token: hunter2, key: "${KEY}"}}
"""
    document = public_document(load(tmp_path, text))
    assert "hunter2" not in json.dumps(document)
    assert document["tables"]["t"]["store"] == "postgresql://host/db"
    assert document["outputs"]["o"]["sink"]["key"] == "${KEY}", "a variable is no secret"
    assert document["streams"]["s"]["source"] == [{"format": "jsonl", "path": "in", "name": "a"}]


# ── commands ──


def test_commands_on_a_state_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    state = made(tmp_path)
    code, out, _ = command(monkeypatch, capsys, "catalog", "list", state, "--kind", "box")
    assert code == 0
    assert [line.split()[1] for line in out.splitlines()][:2] == ["after", "north/across"]
    assert "selectivity" in out
    code, out, _ = command(monkeypatch, capsys, "catalog", "list", state, "--json")
    assert {"kind": "group", "name": "rest"} in json.loads(out)
    code, out, _ = command(monkeypatch, capsys, "catalog", "describe", state, "north", "--json")
    assert json.loads(out)[0]["declaration"]["limit"] == 40
    code, out, _ = command(monkeypatch, capsys, "catalog", "describe", state, "north")
    assert out.startswith("kind: instance\nname: north\n")
    code, _, err = command(monkeypatch, capsys, "catalog", "describe", state, "nrth")
    assert (code, "UNKNOWN_ENTITY" in err, "Traceback" in err) == (2, True, False)
    code, _, err = command(monkeypatch, capsys, "catalog", "list", tmp_path / "nowhere")
    assert (code, "NO_STATE" in err) == (2, True)
    whole = tmp_path / "whole.yaml"
    code, _, _ = command(monkeypatch, capsys, "catalog", "export", state, "-o", whole)
    assert code == 0
    assert au.Network.load(whole) == load(tmp_path)


def test_find_looks_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    net = load(tmp_path)

    def found(text: str) -> set[tuple[str, str, str]]:
        return {(one.kind, one.name, one.where) for one in net.find(text)}

    assert ("box", "north", "tag") in found("COLD")
    assert ("superbox", "crowding", "description") in found("many are")
    assert ("stream", "reports", "field") in found("sid")
    assert ("box", "after", "where") in found("cnt > 1")
    assert ("query", "low", "sql") in found("north.few")
    assert ("group", "rest", "name") in found("rest")
    assert ("output", "alerts", "from") in found("south")
    assert not found("bigint"), "types are everywhere"
    assert not found("nowhere")
    state = made(tmp_path)
    code, out, _ = command(monkeypatch, capsys, "find", "cold", "--state", state)
    assert (code, out) == (0, "box north: tag: cold\n")
    code, out, _ = command(monkeypatch, capsys, "find", "cold", tmp_path / "net.yaml", "--json")
    assert json.loads(out) == [{"kind": "box", "name": "north", "where": "tag", "text": "cold"}]
    code, out, err = command(monkeypatch, capsys, "find", "nothing", tmp_path / "net.yaml")
    assert (code, out) == (0, "")
    assert "nothing has 'nothing'" in err
    code, _, err = command(monkeypatch, capsys, "find", "cold")
    assert (code, "BAD_OPTION" in err) == (2, True)
