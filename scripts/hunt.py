"""Try every law with fresh seeds until the time is up; says how to repeat what it finds.

    scripts/hunt.py [--seconds N] [--seed N] [what pytest takes]

With --seed there is one round, with that seed and without a limit.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import time

FAILED = 1
STOPPED = (2, 5)
"""Exit codes of pytest when the time was up, and when no test was left to run."""


def main() -> int:
    """Run rounds; 1 if one of them found something."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int)
    chosen, rest = parser.parse_known_args()
    if chosen.seed is not None:
        return run_round(chosen.seed, None, rest)
    until = time.time() + chosen.seconds
    found, rounds = 0, 0
    while time.time() < until:
        code = run_round(random.SystemRandom().randrange(10**9), until, rest)
        if code not in (0, FAILED, *STOPPED):
            return code
        found += code == FAILED
        rounds += 1
    sys.stdout.write(f"hunt: {rounds} rounds, {found} of them found something\n")
    return FAILED if found else 0


def run_round(seed: int, until: float | None, rest: list[str]) -> int:
    """Run all laws, or those that `rest` names, with one seed."""
    sys.stdout.write(f"hunt: seed {seed}\n")
    sys.stdout.flush()
    command = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "worksteal"]
    command += ["--hunt", str(seed), "--hypothesis-seed", str(seed)]
    if until is not None:
        command += ["--hunt-until", str(until)]
    return subprocess.run([*command, *rest], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
