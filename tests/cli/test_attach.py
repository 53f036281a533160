"""`auroral attach` as a user sees it, on a directory that a run has left."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

NETWORK = """
network: border
streams:
  reports: {schema: {sid: int, time: bigint, pos: int}, progress: {on: time, ordered: true}}
boxes:
  across: {box: filter, input: reports, where: pos >= 30}
connection_points:
  recent: {on: across, keep: {rows: 3}, key: sid}
"""
Run = Callable[..., tuple[int, str, str]]


def test_the_history_of_a_state_directory(command: Run, tmp_path: Path) -> None:
    (tmp_path / "net.yaml").write_text(NETWORK)
    lines = [f"{time % 2},{time},{20 + 10 * (time % 3)}" for time in range(9)]
    (tmp_path / "reports.csv").write_text("\n".join(["sid,time,pos", *lines, ""]))
    code, _, said = command("run", "net.yaml", "--input", "reports=reports.csv", "--state", "state")
    assert code == 0, said
    code, out, said = command("attach", "state", "recent", "SELECT time, pos FROM recent")
    assert code == 0, said
    assert [json.loads(line) for line in out.splitlines()] == [
        {"time": 5, "pos": 40},
        {"time": 7, "pos": 30},
        {"time": 8, "pos": 40},
    ]
    sql = "SELECT sid, count(*) AS n FROM recent [RANGE 100, WA time] GROUP BY sid"
    code, _, said = command("attach", "state", "recent", sql, "--output", "n.csv")
    assert code == 0, said
    assert Path("n.csv").read_text() == "sid,n\n0,1\n1,2\n", "the input has ended"
    code, _, said = command("attach", "state", "other", sql)
    assert (code, "UNKNOWN_POINT" in said) == (2, True)
    code, _, said = command("attach", "state", "recent", sql, "--follow")
    assert (code, "NOT_RUNNING" in said) == (2, True)
    code, _, said = command("attach", "nowhere", "recent", sql)
    assert (code, "NO_STATE" in said) == (1, True)
