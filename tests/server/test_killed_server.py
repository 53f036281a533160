"""A server that is killed under load has lost nothing that it acknowledged."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

SCRIPT = Path(__file__).with_name("kill_server.py")
KILLS = 2
PER_LIFE = 60
"""So many batches are acknowledged before a life ends."""
ROWS = 5


class Life:
    """One process of the server."""

    def __init__(self, state: Path):
        self.process = subprocess.Popen(
            [sys.executable, str(SCRIPT), str(state)], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()
        token = json.loads((state / "tokens.json").read_text())["operator"]
        self.headers = {"Authorization": f"Bearer {token}"}

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=f"{self.url}/api/v1", headers=self.headers, timeout=30)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


def test_nothing_acknowledged_is_lost_and_nothing_comes_twice(tmp_path: Path) -> None:
    state = tmp_path / "state"
    acknowledged: set[int] = set()
    sent = 0
    lock = threading.Lock()

    def send_until_killed(life: Life, enough: threading.Event) -> None:
        nonlocal sent
        with life.client() as client:
            while True:
                with lock:
                    batch = sent
                    sent += 1
                rows = [{"n": n, "batch": batch} for n in range(ROWS)]
                try:
                    answer = client.post("/streams/s", json=rows)
                except httpx.HTTPError:
                    return
                if answer.status_code == 200:
                    assert answer.json()["accepted"] == ROWS
                    with lock:
                        acknowledged.add(batch)
                        if len(acknowledged) % PER_LIFE == 0:
                            enough.set()

    for _ in range(KILLS):
        life, enough = Life(state), threading.Event()
        with ThreadPoolExecutor(4) as pool:
            senders = [pool.submit(send_until_killed, life, enough) for _ in range(4)]
            assert enough.wait(120)
            life.kill()
            for sender in senders:
                sender.result()
    life = Life(state)
    try:
        with life.client() as client:
            assert client.post("/control/drain", json={"timeout_s": 30}).json()["drained"]
            rows = client.get("/outputs/out?limit=1000000").json()["rows"]
    finally:
        life.kill()
    by_batch: dict[int, list[int]] = {}
    for n, batch in rows:
        by_batch.setdefault(batch, []).append(n)
    assert acknowledged <= by_batch.keys()
    assert len(acknowledged) >= KILLS * PER_LIFE
    # A batch is taken wholly or not at all, and once.
    assert all(found == list(range(ROWS)) for found in by_batch.values())
