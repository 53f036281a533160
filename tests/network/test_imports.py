"""Checking a network file imports none of the modules that it names, unless it is told to."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import auroral as au
from auroral.errors import NetworkError
from auroral.testing import run

from .test_check_command import called

MODULE = """
from pathlib import Path

import auroral as au

Path(__file__).with_suffix(".imported").touch()


@au.function("double")
def half(n):
    return [value / 2 for value in n.to_pylist()]


class Last:
    returns = "int"

    def init(self):
        return None

    def incr(self, _state, n):
        return n

    def final(self, state):
        return state
"""

DECLARED = """
network: halves
functions:
  big: {{udf: "{module}:half", returns: boolean}}
streams:
  s: {{schema: {{n: int}}, progress: {{on: n, ordered: true}}}}
boxes:
  halves: {{box: map, input: s, keep: "*", compute: {{h: {half}}}}}
  last:
    box: aggregate
    input: s
    order: {{on: n}}
    window: {{size: 10}}
    compute: {{x: {last}}}
queries:
  many: "SELECT n FROM s WHERE big(n)"
outputs:
  out: {{from: halves}}
  lasts: {{from: last}}
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """A module beside the network file that leaves a trace when somebody imports it."""
    name = f"telltale_{abs(hash(request.node.name))}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return name


def written(directory: Path, module: str, half: str = "", last: str = "") -> Path:
    path = directory / "halves.yaml"
    half = f'{{udf: "{module}:half"{half}}}'
    last = f'{{udf: "{module}:Last"{last}}}'
    path.write_text(DECLARED.format(module=module, half=half, last=last))
    return path


def imported(directory: Path) -> bool:
    return any(directory.glob("*.imported"))


def test_what_is_declared_suffices(
    tmp_path: Path,
    module: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = written(tmp_path, module, ", returns: double", ", returns: int")
    assert called(monkeypatch, "check", str(path)) == 0
    shown = capsys.readouterr()
    assert "halves     n int, h double" in shown.out
    assert f"note: {module}:half was not imported" in shown.err
    assert f"note: {module}:Last was not imported" in shown.err
    assert not imported(tmp_path)
    network = au.Network.load(path)
    network.check()
    network.save(tmp_path / "again.yaml")
    assert not imported(tmp_path)
    assert called(monkeypatch, "check", "--import", str(path)) == 0
    assert "was not imported" not in capsys.readouterr().err
    assert imported(tmp_path)


@pytest.mark.parametrize(
    ("half", "last", "box"),
    [(", args: [n]", ", returns: int", "halves"), (", returns: double", "", "last")],
)
def test_a_type_that_only_the_module_knows_is_asked_for(
    half: str,
    last: str,
    box: str,
    tmp_path: Path,
    module: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = written(tmp_path, module, half, last)
    assert called(monkeypatch, "check", str(path)) == 2
    said = capsys.readouterr().err
    assert "MISSING_KEY" in said
    assert f"boxes.{box}" in said or f"box {box}" in said
    assert "its type is not known, because its module is not imported" in said
    assert "add returns: type beside udf, or allow the import: --import" in said
    assert not imported(tmp_path)
    assert called(monkeypatch, "check", "--import", str(path)) == 0


def test_a_name_that_is_no_function_is_told_without_importing(tmp_path: Path, module: str) -> None:
    net = au.Network("n", directory=tmp_path)
    with pytest.raises(NetworkError, match="expected module:function, found"):
        net.stream("s", "n int").map(h={"udf": module, "returns": "int"})
    assert not imported(tmp_path)


def test_what_a_check_took_on_trust_is_found_when_it_runs(tmp_path: Path, module: str) -> None:
    net = au.Network("n", directory=tmp_path)
    net.stream("s", "m int").map(h={"udf": f"{module}:half", "returns": "double"}, name="h")
    net.output("o", "h")
    assert [str(arc.schema) for arc in net.check().arcs.values()] == ["m int", "h double"]
    assert not imported(tmp_path)
    with pytest.raises(NetworkError, match="UNKNOWN_FIELD"):
        run(net, {"s": [(1,)]})
    assert imported(tmp_path)


def test_running_imports(tmp_path: Path, module: str) -> None:
    network = au.Network.load(written(tmp_path, module))
    network.queries.clear()
    assert not imported(tmp_path)
    out = run(network, {"s": [(3,), (7,)]})
    assert out["out"] == [{"n": 3, "h": 1.5}, {"n": 7, "h": 3.5}]
    assert out["lasts"] == [{"n": 0, "x": 7}]
    assert not network.imports, "it is the run that may import, not the network"


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_explain_does_not_import(
    tmp_path: Path,
    module: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = written(tmp_path, module, ", args: [n], returns: double", ", returns: int")
    assert called(monkeypatch, "explain", str(path)) == 0
    assert "superbox halves" in capsys.readouterr().out
    assert not imported(tmp_path)
    path = written(tmp_path, module, ", returns: double", ", returns: int")
    assert called(monkeypatch, "explain", str(path)) == 2
    assert "add args: [fields] beside udf" in capsys.readouterr().err
    assert not imported(tmp_path)
