"""What is told at the end of a run."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from auroral.cli.display import summary
from auroral.cli.run import _show_warnings
from auroral.errors import Caution


def test_what_is_in_no_result_is_told_by_reason() -> None:
    stats: dict[str, Any] = {
        "streams": {"pos": {"in": 9, "dead": 0}},
        "steps": {"count": 1, "median_s": None},
        "outputs": {},
        "queries": {
            "hour": {"shared": True, "matches": 2, "late": {"late": 3, "outside": 1}},
            "all": {"shared": True, "matches": 9, "late": {}},
        },
        "boxes": {
            "eddy@pos+news": {"dead": 0, "late": {"null": 1_000}},
            "sort": {"dead": 0, "late": {"late": 2}},
            "map": {"dead": 0},
        },
        "dead": 0,
    }
    told = summary(
        stats, {}, elapsed_s=1.0, stopped=False, resumable=False, dead_letters=Path("dead")
    )
    assert told.splitlines()[-5:] == [
        "  query hour: 2 matches",
        "  query all: 9 matches",
        "  query hour: 4 in no result (late 3, outside 1)",
        "  joins of pos+news: 1,000 in no result (null 1,000)",
        "  box sort: 2 in no result (late 2)",
    ]


def test_warnings_are_lines_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    log = logging.getLogger("auroral")
    try:
        for _ in range(2):
            _show_warnings()
        log.warning(Caution("NEVER_CLOSES", "waits", "box w"))
    finally:
        log.handlers, log.propagate = [], True
    assert capsys.readouterr().err == "warning: box w: waits [NEVER_CLOSES]\n"
