"""A server in a process of its own, and a browser, as the tests of the studio use them."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Error, sync_playwright

from auroral.cli.serve import load_or_begin
from auroral.engine import Engine
from auroral.engine.runtime.in_process import InProcessExecutor
from auroral.server.app import create_app
from auroral.server.network_file import NetworkFile
from auroral.server.running import HttpServer
from auroral.server.service import EngineService
from auroral.server.settings import ServerSettings
from auroral.server.tokens import ROLES, AccessTokens

STUDIO = Path(__file__).parents[2] / "src" / "auroral" / "server" / "static" / "index.html"
NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@dataclass(frozen=True)
class Served:
    """Where a server is, and how to talk to it."""

    url: str
    tokens: dict[str, str]
    file: Path

    def page(self, role: str = "editor") -> str:
        """The address that `auroral serve` prints, for a role."""
        return f"{self.url}/#token={self.tokens[role]}"

    def client(self, role: str = "editor") -> httpx.Client:
        """For requests beside the page's."""
        headers = {"Authorization": f"Bearer {self.tokens[role]}"}
        return httpx.Client(base_url=f"{self.url}/api/v1", headers=headers, timeout=60)

    def send(self, stream: str, rows: list[dict[str, object]]) -> None:
        """Enqueue rows."""
        with self.client("operator") as client:
            client.post(f"/streams/{stream}", json=rows).raise_for_status()


@contextmanager
def serving(file: Path, state: Path, *options: str) -> Iterator[Served]:
    """`auroral serve` on a free port, until the block ends."""
    command = [sys.executable, "-m", "auroral", "serve", str(file), "--state", str(state)]
    log = state.with_suffix(".log")
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [*command, "--port", "0", "--master", "local[2]", *options],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    try:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        found = next((m for line in lines if (m := re.match(r"studio: (.*)/#token=", line))), None)
        assert found, f"the server did not start: {log.read_text(encoding='utf-8')}"
        tokens = json.loads((state / "tokens.json").read_text(encoding="utf-8"))
        yield Served(found[1], tokens, file)
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate()
    assert process.returncode == 0, log.read_text(encoding="utf-8")[-4000:]


class ServerHere:
    """The same server in this process, without Spark; it can be stopped and begun again."""

    def __init__(self, file: Path):
        network = load_or_begin(file)
        dead_letters = file.with_suffix(".dead.jsonl")
        engine = Engine(network, executor=InProcessExecutor(), dead_letters=dead_letters)
        engine.start()
        self._file = file
        self._service = EngineService(engine, ServerSettings(), file=NetworkFile(file))
        self._tokens = AccessTokens.made()
        self._port = 0
        self.begin()

    def begin(self) -> None:
        """Listen, at the same port as before."""
        app = create_app(self._service, self._tokens)
        self._server = HttpServer(app, "127.0.0.1", self._port)
        self._server.start()
        self._port = int(self._server.url.rpartition(":")[2])

    def stop(self) -> None:
        """Answer nothing more; the engine goes on."""
        self._server.stop()

    def change_tokens(self) -> None:
        """The tokens that were given out are not taken any more."""
        self.stop()
        self._tokens = AccessTokens.made()
        self.begin()

    @property
    def served(self) -> Served:
        """How to talk to it."""
        return Served(self._server.url, {role: self._tokens[role] for role in ROLES}, self._file)

    def close(self) -> None:
        """End server and engine."""
        self.stop()
        self._service.close()


@contextmanager
def serving_here(file: Path) -> Iterator[Served]:
    """A server in this process, until the block ends."""
    here = ServerHere(file)
    try:
        yield here.served
    finally:
        here.close()


@contextmanager
def browsing() -> Iterator[Browser]:
    """The distribution's Chromium; a test is skipped if there is none, or no studio was built."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip("there is no Chromium; scripts/browser.sh installs it")
    if not STUDIO.exists():
        pytest.skip("the studio is not built; make studio does that")
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        except Error as error:
            pytest.skip(f"Chromium does not start: {error.message.splitlines()[0]}")
        yield browser
        browser.close()
