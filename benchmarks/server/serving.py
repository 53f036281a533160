"""A server to be measured: `auroral serve` in a process of its own, with Spark and a state."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import auroral as au

COLUMNS = 8
"""Of 8 bytes each: a tuple has 64."""


@dataclass(frozen=True)
class ServedNetwork:
    """Where a server is, and its tokens."""

    url: str
    flight: str
    token: str

    def client(self) -> au.Client:
        return au.Client(self.url, self.token)


def wide_network() -> au.Network:
    """Tuples of 64 bytes, of which one in a hundred is a result."""
    network = au.Network("wide")
    fields = ", ".join(f"c{number} bigint" for number in range(COLUMNS))
    network.output("some", network.stream("wide", schema=fields).filter("c0 % 100 = 0"))
    return network


@contextmanager
def serving(network: au.Network) -> Iterator[ServedNetwork]:
    """Run `auroral serve` until the block ends."""
    with tempfile.TemporaryDirectory(prefix="auroral-bench-") as place:
        file = Path(place, "network.yaml")
        network.save(file)
        tokens = Path(place, "tokens.json")
        command = [
            *(sys.executable, "-m", "auroral", "serve", str(file)),
            *("--state", str(Path(place, "state")), "--token-file", str(tokens)),
            *("--port", "0", "--flight", "0", "--master", "local[2]"),
        ]
        with (
            Path(place, "log").open("w") as log,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process,
        ):
            try:
                yield _told(process, tokens)
            finally:
                process.terminate()
                process.wait(60)


def _told(process: subprocess.Popen[str], tokens: Path) -> ServedNetwork:
    assert process.stdout is not None
    found: dict[str, str] = {}
    for line in process.stdout:
        what, _, where = line.strip().partition(": ")
        found[what] = where
        if what == "studio":
            token = json.loads(tokens.read_text())["editor"]
            return ServedNetwork(where.partition("/#")[0], found["feed"], token)
    raise RuntimeError("the server did not start")
