"""Superboxes on Spark, and a look into the state directory of the run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from auroral.testing import run
from tests.network.test_superboxes import ROWS, load

if TYPE_CHECKING:
    from .conftest import Run

pytestmark = pytest.mark.spark


def test_a_network_of_superboxes_runs_on_spark(command: Run, tmp_path: Path) -> None:
    wanted = run(load(tmp_path), {"reports": ROWS})
    lines = [",".join(map(str, row)) for row in ROWS]
    (tmp_path / "in.csv").write_text("\n".join(["sid,time,pos", *lines]) + "\n")
    outputs = ["alerts", "counts", "north", "north/across.rest"]
    words = [
        word for name in outputs for word in ("--output", f"{name}={name[:5]}_{len(name)}.jsonl")
    ]
    code, _, err = command(
        *("run", "net.yaml", "--input", "reports=in.csv", "--train", "90", "--state", "state"),
        *words,
    )
    assert code == 0, err
    for name in outputs:
        text = (tmp_path / f"{name[:5]}_{len(name)}.jsonl").read_text()
        assert [json.loads(line) for line in text.splitlines()] == wanted[name] != []
    code, out, _ = command("catalog", "list", "state", "--json")
    costs = {one["name"]: one for one in json.loads(out) if one["kind"] == "box"}
    assert costs["north/across"]["tuples_in"] == len(ROWS)
    assert costs["north/across"]["tuples_out"] == len(ROWS), "somebody reads both of its arcs"
    assert costs["south/one/across"]["tuples_out"] == sum(pos >= 5 for _, _, pos in ROWS)
    assert costs["south/two"]["selectivity"] == 1
    code, out, _ = command("explain", "net.yaml")
    assert "boxes   south/one/across → south/one/crowd" in out
