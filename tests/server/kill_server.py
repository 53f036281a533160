"""A server in a process of its own, for tests that kill it."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from auroral.engine import Engine
from auroral.engine.runtime.in_process import InProcessExecutor
from auroral.network.network import Network
from auroral.server.app import create_app
from auroral.server.running import HttpServer
from auroral.server.service import EngineService
from auroral.server.settings import ServerSettings
from auroral.server.tokens import AccessTokens


def main(state: Path) -> None:
    network = Network("kill")
    network.output("out", network.stream("s", "n int, batch int").filter("n >= 0", name="all"))
    engine = Engine(network, state=state, executor=InProcessExecutor()).start()
    service = EngineService(engine, ServerSettings(), state=state)
    server = HttpServer(
        create_app(service, AccessTokens.kept(state / "tokens.json")), "127.0.0.1", 0
    )
    server.start()
    sys.stdout.write(f"{server.url}\n")
    sys.stdout.flush()
    threading.Event().wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
