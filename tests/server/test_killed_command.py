"""`auroral serve` on Spark, stopped or killed at random moments: acknowledged rows come, once."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
from pyarrow import flight

from auroral.client import Client
from auroral.engine.ingest.ingest import LARGE_ROWS
from auroral.errors import AuroralError

NETWORK = """
network: killed
streams:
  by_http: {schema: {batch: int, n: int}}
  by_flight: {schema: {batch: int, n: int}}
boxes:
  http: {box: filter, input: by_http, where: n >= 0}
  flight: {box: filter, input: by_flight, where: n >= 0}
outputs: {by_http_out: {from: http}, by_flight_out: {from: flight}}
"""
ENDS = (signal.SIGTERM, signal.SIGKILL)
"""How lives end, each while rows come in."""
PATIENCE_S = 120
SIZES = (1, 7, LARGE_ROWS + 1)
Failures = (httpx.HTTPError, AuroralError, pa.ArrowException, flight.FlightError, OSError)


def size_of(batch: int) -> int:
    return SIZES[batch % len(SIZES)]


class Place:
    """Where a life of the server is reached."""

    def __init__(self, said: dict[str, str], token: str):
        self.url = said["studio"].partition("/#")[0].rstrip("/")
        self.flight = said["feed"]
        self.token = token

    def client(self) -> Client:
        return Client(self.url, self.token)


@contextmanager
def life(directory: Path, end: signal.Signals = signal.SIGKILL) -> Iterator[Place]:
    """One process of the server; it ends well if it may."""
    command = [
        *(sys.executable, "-m", "auroral", "serve", str(directory / "network.yaml")),
        *("--state", str(directory / "state"), "--port", "0", "--flight", "0"),
        *("--master", "local[2]"),
    ]
    with (
        (directory / "log").open("a") as log,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
        ) as process,
    ):
        try:
            said: dict[str, str] = {}
            assert process.stdout is not None
            while "studio" not in said:
                line = process.stdout.readline()
                assert line, (directory / "log").read_text()
                what, _, where = line.strip().partition(": ")
                said[what] = where
            token = json.loads((directory / "state" / "tokens.json").read_text())["editor"]
            yield Place(said, token)
            process.send_signal(end)
            code = process.wait(PATIENCE_S)
            assert code == (0 if end == signal.SIGTERM else -end), (directory / "log").read_text()
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def by_http(place: Place, first: int, acknowledged: Callable[[int], None]) -> None:
    headers = {"Authorization": f"Bearer {place.token}", "Content-Type": "application/x-ndjson"}
    with httpx.Client(base_url=f"{place.url}/api/v1", headers=headers, timeout=30) as client:
        batch = first
        while True:
            rows = (f'{{"batch": {batch}, "n": {n}}}\n' for n in range(size_of(batch)))
            answer = client.post(
                "/streams/by_http", content="".join(rows).encode(), params={"position": batch}
            ).raise_for_status()
            assert answer.json()["accepted"] == size_of(batch)
            acknowledged(batch)
            batch += 1


def by_flight(place: Place, first: int, acknowledged: Callable[[int], None]) -> None:
    schema = pa.schema([("batch", pa.int32()), ("n", pa.int32())])
    call = flight.FlightCallOptions(
        timeout=30, headers=[(b"authorization", f"Bearer {place.token}".encode())]
    )
    with flight.FlightClient(place.flight) as client:
        descriptor = flight.FlightDescriptor.for_path("by_flight")
        writer, reader = client.do_put(descriptor, schema, call)
        batch = first
        while True:
            size = size_of(batch)
            rows = pa.record_batch([pa.array([batch] * size), pa.array(range(size))], ["a", "b"])
            rows = rows.cast(pa.schema([("a", pa.int32()), ("b", pa.int32())]))
            named = pa.RecordBatch.from_arrays(rows.columns, schema=schema)
            writer.write_with_metadata(named, json.dumps({"position": batch}).encode())
            told = reader.read()
            if told is None:
                return
            assert json.loads(told.to_pybytes())["position"] == batch
            acknowledged(batch)
            batch += 1


@pytest.mark.spark
@pytest.mark.parametrize("seed", [7])
def test_nothing_acknowledged_is_lost_and_nothing_comes_twice(tmp_path: Path, seed: int) -> None:
    (tmp_path / "network.yaml").write_text(NETWORK)
    moments = random.Random(seed)
    senders = {"by_http": by_http, "by_flight": by_flight}
    acknowledged = dict.fromkeys(senders, -1)
    for ends in ENDS:
        enough, unexpected = threading.Event(), list[BaseException]()
        counted: dict[str, int] = dict.fromkeys(senders, 0)
        wanted = {stream: moments.randrange(2, 12) for stream in senders}

        def sending(place: Place, stream: str, first: int, end: Any = None) -> None:
            enough, unexpected, counted, wanted = end

            def note(batch: int) -> None:
                acknowledged[stream] = batch
                counted[stream] += 1
                if all(counted[name] >= least for name, least in wanted.items()):
                    enough.set()

            try:
                senders[stream](place, first, note)
            except Failures:
                pass
            except BaseException as error:
                unexpected.append(error)
                enough.set()

        with life(tmp_path, ends) as place:
            threads = []
            for stream in senders:
                first = next_batch(place, stream, acknowledged[stream])
                given = (place, stream, first, (enough, unexpected, counted, wanted))
                threads.append(threading.Thread(target=sending, args=given))
                threads[-1].start()
            assert enough.wait(PATIENCE_S)
        for thread in threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
        assert not unexpected
    with life(tmp_path) as place, place.client() as client:
        for stream in senders:
            last = next_batch(place, stream, acknowledged[stream]) - 1
            client.drain(PATIENCE_S)
            found = client.dequeue(f"{stream}_out").to_pylist()
            sent = [(batch, n) for batch in range(last + 1) for n in range(size_of(batch))]
            assert sorted((row["batch"], row["n"]) for row in found) == sent
            assert last >= len(ENDS) * 2 - 1


def next_batch(place: Place, stream: str, acknowledged: int) -> int:
    """The batch to go on with; what was acknowledged is there, and at most one more."""
    with place.client() as client:
        reached = client.position(stream)
    reached = -1 if reached is None else int(reached)
    assert acknowledged <= reached <= acknowledged + 1
    return reached + 1
