"""A box is three small files of one name: what it means, the same in plain Python, on Spark."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import auroral
from auroral.network.box import BOXES

ROOT = Path(auroral.__file__).parent
EXECUTABLE = sorted(kind for kind, box in BOXES.items() if box.executable)


@pytest.mark.parametrize("kind", EXECUTABLE)
@pytest.mark.parametrize("place", ["boxes", "reference", "spark/boxes"])
def test_executable_box_has_its_three_files(kind: str, place: str) -> None:
    assert (ROOT / place / f"{kind}.py").is_file()


def test_every_box_on_spark_is_executable() -> None:
    files = {path.stem for path in (ROOT / "spark" / "boxes").glob("*.py")} - {"__init__"}
    assert files == set(EXECUTABLE)


def test_reference_and_testing_do_not_need_spark() -> None:
    code = "import sys, auroral.testing; sys.exit('pyspark' in sys.modules)"
    path = os.pathsep.join([str(ROOT.parent), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, env={**os.environ, "PYTHONPATH": path}
    )
    assert done.returncode == 0
