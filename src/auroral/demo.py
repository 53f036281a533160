"""`make demo`: a small lively network on generated readings."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from auroral.cli.main import main
from auroral.errors import UsageError

NETWORK = Path(__file__).parents[2] / "examples" / "plant.yaml"
_BEFORE = """\
Auroral demo: three machines report temperature and pressure, 2,000 readings a second.
One network routes each reading, words an alert and merges both kinds; Spark does the work.
"""
_AFTER = """
That was examples/plant.yaml. Run it again on your own file (machine,at,celsius,bar):
  .venv/bin/auroral run examples/plant.yaml --input readings=FILE.csv --output alerts=alerts.csv
Look at what flows where, and how Spark runs it:
  .venv/bin/auroral check examples/plant.yaml
  .venv/bin/auroral explain examples/plant.yaml
Go on with docs/tutorial/first-network.md.
"""


def demo() -> None:
    """Run the plant for about half a minute and say how to go on."""
    if not NETWORK.exists():
        raise UsageError("NO_DEMO", "the demo needs a source checkout with examples/plant.yaml")
    sys.stderr.write(_BEFORE)
    sys.argv = ["auroral", "run", os.path.relpath(NETWORK)]
    try:
        main()
    except SystemExit as done:
        if done.code:
            raise
    sys.stderr.write(_AFTER)


if __name__ == "__main__":
    demo()
