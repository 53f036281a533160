"""Parts of networks: complete when taken out, and the same when put in elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

import auroral as au
from auroral.catalog import merged, part_of
from auroral.errors import NetworkError, UsageError
from auroral.testing import run
from tests.catalog.test_catalog import command
from tests.network.test_superboxes import NETWORK, ROWS, load

MORE = NETWORK.replace(
    "outputs:\n  alerts",
    """connection_points:
  kept: {on: north.few, keep: 1 hour}
outputs:
  late: {from: north/crowd.late}
  counted: {from: counts}
  alerts""",
)
OTHER = """\
network: other   # its own
streams:
  reports: {schema: {sid: int, time: bigint, pos: int}}   # the same stream
  quotes: {schema: {sym: string}}
boxes:
  after: {box: filter, input: quotes, where: "sym = 'A'"}   # another box of this name
outputs:
  later: {from: after}
"""


@pytest.mark.parametrize("name", ["alerts", "few", "later", "late", "counted", "counts", "low"])
def test_a_part_gives_what_the_whole_gives(tmp_path: Path, name: str) -> None:
    whole = load(tmp_path, MORE)
    part = au.Network.parse(part_of(whole.document(), [name]))
    assert part.name == "border"
    found, wanted = (run(net, {"reports": ROWS}) for net in (part, whole))
    assert found[name] == wanted[name]


def test_a_part_has_what_it_needs_and_no_more(tmp_path: Path) -> None:
    document = load(tmp_path, MORE).document()
    names = {
        key: list(own) for key, own in part_of(document, ["later"]).items() if key != "network"
    }
    assert names == {
        "streams": ["reports"],
        "superboxes": ["crowding"],
        "boxes": ["after", "north"],
        "outputs": ["later"],
    }
    both = part_of(document, ["alerts", "kept"])
    assert list(both["superboxes"]) == ["crowding", "doubled"]
    assert list(both["connection_points"]) == ["kept"]
    assert "queries" not in both
    group = part_of(document, ["all"])
    assert list(group["groups"]) == ["all", "rest"]
    assert set(group["boxes"]) == {"north", "south", "after"}
    with pytest.raises(UsageError, match="UNKNOWN_ENTITY"):
        part_of(document, ["lter"])


def test_tables_and_functions_come_along() -> None:
    document = {
        "network": "n",
        "functions": {"near": {"udf": "m:f", "returns": "boolean"}, "far": {"udf": "m:g"}},
        "streams": {"s": {"schema": {"x": "int"}}},
        "tables": {"t": {"schema": {"x": "int"}}, "u": {"schema": {"x": "int"}}},
        "boxes": {
            "j": {"box": "join", "inputs": ["s", "t"], "on": "left.x = right.x"},
            "f": {"box": "filter", "input": "j", "where": "near(x)"},
        },
    }
    part = part_of(document, ["f"])
    assert (list(part["functions"]), list(part["tables"])) == (["near"], ["t"])


def test_an_import_with_a_prefix_gives_the_same(tmp_path: Path) -> None:
    whole = load(tmp_path, MORE)
    document = load(tmp_path, OTHER).document()
    part = part_of(whole.document(), [*whole.outputs, *whole.queries, "all", "kept"])
    added = merged(document, part, "b_")
    assert "streams" not in added, "the same stream is used by both"
    assert set(added["boxes"]) == {"b_north", "b_south", "b_after"}
    assert added["queries"]["b_low"] == "SELECT f.cnt FROM b_north.few AS f"
    assert added["queries"]["b_counts"].startswith("SELECT cnt FROM b_north AS north WHERE")
    assert added["groups"]["b_all"] == ["b_north", "b_south", "b_rest"]
    sections = {key: {**document.get(key, {}), **own} for key, own in added.items()}
    net = au.Network.parse({**document, **sections})
    found = run(net, {"reports": ROWS, "quotes": [("A",)]})
    wanted = run(whole, {"reports": ROWS})
    assert {f"b_{name}": rows for name, rows in wanted.items()}.items() <= found.items()
    assert found["later"] == [{"sym": "A"}]


def test_clashes_are_refused(tmp_path: Path) -> None:
    document = load(tmp_path, OTHER).document()
    part = part_of(load(tmp_path).document(), ["later"])
    with pytest.raises(NetworkError, match=r"DUPLICATE_NAME: the network has a box after already"):
        merged(document, part)
    document["streams"]["b_reports"] = {"schema": {"x": "int"}}
    document["streams"]["reports"] = {"schema": {"x": "int"}}
    with pytest.raises(NetworkError, match="b_reports"):
        merged(document, part, "b_")
    tables = {"network": "n", "tables": {"t": {"schema": {"x": "int"}}}}
    with pytest.raises(NetworkError, match="rename one of them"):
        merged({"network": "m", "tables": {"t": {"schema": {"x": "bigint"}}}}, tables, "b_")


def test_the_import_command_keeps_comments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    load(tmp_path, MORE)
    part, into = tmp_path / "part.yaml", tmp_path / "other.yaml"
    into.write_text(OTHER)
    source = tmp_path / "net.yaml"
    code, _, err = command(
        monkeypatch, capsys, "catalog", "export", source, "--only", "later,low", "-o", part
    )
    assert (code, err) == (0, "")
    words = ("catalog", "import", part, "--into", into)
    code, _, err = command(monkeypatch, capsys, *words)
    assert (code, "DUPLICATE_NAME" in err, into.read_text()) == (2, True, OTHER), "nothing was done"
    code, out, _ = command(monkeypatch, capsys, *words, "--prefix", "b_")
    assert code == 0
    assert "boxes: b_after, b_north" in out
    text = into.read_text()
    for comment in ("# its own", "# the same stream", "# another box of this name"):
        assert comment in text
    found = run(au.Network.load(into), {"reports": ROWS, "quotes": []})
    assert found["b_later"] == run(load(tmp_path, MORE), {"reports": ROWS})["later"] != []
    code, _, err = command(monkeypatch, capsys, *words, "--prefix", "2nd ")
    assert (code, "BAD_NAME" in err, into.read_text()) == (2, True, text)


def test_the_import_command_takes_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    part, into = tmp_path / "net.yaml", tmp_path / "other.json"
    load(tmp_path, OTHER).save(into)
    load(tmp_path)
    words = ("catalog", "import", part, "--into", into, "--prefix", "b_")
    assert command(monkeypatch, capsys, *words)[0] == 0
    assert "b_north" in au.Network.load(into).instances
