"""Files that are no network at all: one sentence, with the line where there is one."""

from __future__ import annotations

from pathlib import Path

import pytest

from auroral import AuroralError, Network
from auroral.network import files

from .documents import SOLDIERS

LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{','.join([f'*{chr(97 + n)}'] * 10)}]\n" for n in range(8)
)
FILES = [
    # name, content, code, line (0: none), said
    ("n.yaml", b"", "BAD_FILE", 0, "found nothing"),
    ("n.yaml", b"# only a comment\n", "BAD_FILE", 0, "found nothing"),
    ("n.yaml", b"- network\n- streams\n", "BAD_FILE", 0, "found a list"),
    ("n.yaml", b"just words\n", "BAD_FILE", 0, "found a value"),
    ("n.yaml", b"network: n\nstreams: {a: [}\n", "BAD_FILE", 2, "not valid YAML"),
    ("n.yaml", b"network: n\nstreams:\n\ta: b\n", "BAD_FILE", 3, "spaces, not tabs"),
    ("n.yaml", b"network: n\n  boxes: x\n", "BAD_FILE", 2, "not valid YAML"),
    ("n.yaml", b"network: 'n\n", "BAD_FILE", 2, "not valid YAML"),
    ("n.yaml", b"network: n\n---\nnetwork: m\n", "BAD_FILE", 2, "not valid YAML"),
    ("n.yaml", b"network: n\nboxes: *nowhere\n", "BAD_FILE", 2, "not valid YAML"),
    ("n.yaml", b"network: n\nqueries: !!int x\n", "BAD_FILE", 0, "not valid YAML"),
    ("n.yaml", b"network: n\nengine: {train: " + b"9" * 5000 + b"}\n", "BAD_FILE", 0, "not valid"),
    ("n.yaml", b"network: n\nengine: {train: " + b"9" * 30 + b"}\n", "BAD_FILE", 2, "64 bits"),
    ("n.yaml", b"network: n\nstreams: !!set {a, b}\n", "BAD_FILE", 2, "plain YAML"),
    ("n.yaml", b"network: n\nboxes: {b: !foo [a]}\n", "BAD_FILE", 2, "found the tag !foo"),
    ("n.yaml", b"network: n\n\nx: !foo [a]\n", "BAD_FILE", 3, "found the tag !foo"),
    ("n.yaml", b"network: n\nboxes: !foo\n  b: {}\n", "BAD_FILE", 2, "found the tag !foo"),
    ("n.yaml", b"network: n\nboxes:\n  b: !bar {a: 1}\n", "BAD_FILE", 3, "found the tag !bar"),
    ("n.yaml", b"network: n\nboxes: {b: {a: !baz 1}}\n", "BAD_FILE", 2, "found the tag !baz"),
    ("n.yaml", b"network: n\nboxes: {!foo b: {}}\n", "BAD_FILE", 2, "found the tag !foo"),
    ("n.yaml", b"!foo\nnetwork: n\n", "BAD_FILE", 1, "found the tag !foo"),
    ("n.yaml", b"network: n\nb: !!python/tuple [1]\n", "BAD_FILE", 2, "!!python/tuple"),
    ("n.yaml", b"network: n\nnetwork: m\n", "DUPLICATE_KEY", 2, '"network" occurs twice'),
    ("n.yaml", b"network: n\nboxes:\n  a: {b: 1, b: 2}\n", "DUPLICATE_KEY", 3, '"b" occurs twice'),
    ("n.yaml", b"network: n\nboxes: " + b"[" * 40 + b"]" * 40, "BAD_FILE", 2, "names under boxes"),
    ("n.yaml", b"network: n\nboxes: " + b"[" * 90 + b"]" * 90, "BAD_FILE", 2, "too deeply"),
    ("n.yaml", b"network: n\nboxes: " + b"[" * 400 + b"]" * 400, "BAD_FILE", 0, "too deeply"),
    ("n.yaml", b"network: n\nboxes: \x00\n", "BAD_FILE", 0, "not valid YAML"),
    ("n.yaml", b"network: n\nboxes: caf\xe9\n", "BAD_ENCODING", 2, "not UTF-8"),
    ("n.yaml", SOLDIERS.encode("utf-16"), "BAD_ENCODING", 1, "not UTF-8"),
    ("n.yaml", b"streams: {}\n", "MISSING_KEY", 0, "network: name"),
    ("n.yaml", b'network: n\nqueries: {a: "\\ud800"}\n', "BAD_FILE", 2, "expected text"),
    ("n.json", b"", "BAD_FILE", 1, "not valid JSON"),
    ("n.json", b"[]", "BAD_FILE", 0, "found a list"),
    ("n.json", b"null", "BAD_FILE", 0, "found nothing"),
    ("n.json", b'{\n "network": "n",\n "boxes" 5}', "BAD_FILE", 3, "not valid JSON"),
    ("n.json", b"network: n\n", "BAD_FILE", 1, "not valid JSON"),
    ("n.json", b'{"network": "n",\n"network": "m"}', "DUPLICATE_KEY", 2, '"network" occurs twice'),
    ("n.json", b'{"network": "n",\n\t"boxs": {}}', "UNKNOWN_KEY", 2, "did you mean boxes?"),
    ("n.json", b'{"network": "n",\n"engine": {"train": NaN}}', "BAD_FILE", 2, "finite"),
    ("n.json", b'{"network": "n",\n"queries": {"a": "\\ud800"}}', "BAD_FILE", 2, "expected text"),
    ("n.json", b'{"network": ' + b"[" * 99999 + b"]" * 99999 + b"}", "BAD_FILE", 0, "too deeply"),
    ("n.json", b'{"network": ' + b"9" * 5000 + b"}", "BAD_FILE", 0, "not valid JSON"),
]


@pytest.mark.parametrize(
    ("name", "content", "code", "line", "said"), FILES, ids=[str(f[1][:30]) for f in FILES]
)
def test_unreadable(
    tmp_path: Path, name: str, content: bytes, code: str, line: int, said: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(AuroralError) as raised:
        Network.load(path).check()
    error = raised.value
    assert (error.code, error.exit_code) == (code, 2)
    where = f"{path}:{line}" if line else str(path)
    assert str(error).startswith(f"{code}: {where}")
    assert said in str(error)
    assert len(str(error).splitlines()) == 1


def test_aliases_do_not_multiply_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "n.yaml"
    path.write_text(LAUGHS)
    monkeypatch.setattr(files, "MOST_PARTS", 10_000)
    with pytest.raises(AuroralError, match=r"n\.yaml:[0-9]+: too large for a network"):
        Network.load(path)


@pytest.mark.parametrize(
    ("path", "said"),
    [("nowhere.yaml", "No such file"), (".", "directory"), ("no\0where.yaml", "null byte")],
)
def test_files_that_cannot_be_read(tmp_path: Path, path: str, said: str) -> None:
    with pytest.raises(AuroralError, match=said) as raised:
        Network.load(tmp_path / path)
    assert (raised.value.code, raised.value.exit_code) == ("CANNOT_READ", 2)
    assert str(tmp_path) in str(raised.value)


@pytest.mark.parametrize("path", ["nowhere/net.yaml", "."])
def test_files_that_cannot_be_written(tmp_path: Path, path: str) -> None:
    with pytest.raises(AuroralError) as raised:
        Network("n").save(tmp_path / path)
    assert (raised.value.code, raised.value.exit_code) == ("CANNOT_WRITE", 2)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ([], "expected the keys of a network"),
        (None, "expected the keys of a network"),
        ({1: 2}, "expected text as a key, found 1"),
        ({"network": "n", "streams": {None: {}}}, "streams: expected text as a key"),
        ({"network": "n", "streams": {"s": {1, 2}}}, "stream s: .*found set"),
        ({"network": "n", "boxes": object()}, "boxes: .*found object"),
        ({"network": "n", "queries": {"q": b"x"}}, "query q: .*found bytes"),
    ],
)
def test_documents_that_are_not_plain(document: object, said: str) -> None:
    with pytest.raises(AuroralError, match=said) as raised:
        Network.parse(document)  # type: ignore[arg-type]
    assert raised.value.code == "BAD_FILE"
