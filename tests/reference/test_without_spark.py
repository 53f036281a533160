"""The reference and `auroral.testing` are of use where there is no Java."""

from __future__ import annotations

import subprocess
import sys


def test_reference_and_testing_do_not_need_spark() -> None:
    code = "import sys, auroral.testing; sys.exit('pyspark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=False)
    assert done.returncode == 0
