"""How fast tuples get in, how soon results are seen, and what the server costs the engine."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import httpx
import numpy as np
import pyarrow as pa
from pyarrow import flight

import auroral as au
from auroral.errors import RunError
from auroral.server.app import create_app
from auroral.server.running import HttpServer
from auroral.server.service import EngineService
from auroral.server.settings import ServerSettings
from auroral.server.tokens import AccessTokens
from auroral.spark.session.session import start_session
from benchmarks.lab import Experiments, Lab, choose, run_experiments
from benchmarks.report import Report
from benchmarks.server.serving import COLUMNS, ServedNetwork, serving, wide_network

_FLIGHT_TUPLES = 10_000_000
_FLIGHT_BATCH = 100_000
_UNACKNOWLEDGED = 8
_NDJSON_TUPLES = 500_000
_NDJSON_BATCH = 10_000
_RATE = 10_000
_PACE_S = 0.02
_LATENCY_S = 16.0
_TRAIN = 100_000
_TURN_S = 2.2
_TURNS = 12
_STUDIOS = 5


def server(*, quick: bool = False, only: Sequence[str] = ()) -> Report:
    """Run the experiments; about three minutes, `quick` less than one."""
    experiments: Experiments = {"feeds": feeds, "cost": cost}
    chosen = choose(experiments, only)
    report = Report("server")
    lab = Lab(start_session("local[2]"), quick, Path())
    run_experiments(experiments, report, lab, chosen)
    return report


# ── feeds and latency, against a server of its own ──


def feeds(report: Report, lab: Lab) -> None:
    """Enqueue by Flight and NDJSON, then follow an output over a WebSocket."""
    with serving(wide_network()) as place:
        _enqueue(place, 10 * _FLIGHT_BATCH)  # lets Spark compile
        place.client().drain(120)
        section = report.section("Enqueue", "way", "tuples", "seconds", "tuples_per_s")
        for way, send, tuples in (
            ("Flight, 64 bytes, Arrow", _enqueue, lab.rows(_FLIGHT_TUPLES)),
            ("HTTP, NDJSON", _post, lab.rows(_NDJSON_TUPLES)),
        ):
            lab.say(way)
            seconds = send(place, tuples)
            section.rows.append((way, tuples, seconds, tuples / seconds))
            place.client().drain(300)
            place.client().dequeue("some")
        rates = [row[3] for row in section.rows]
        report.bar("Flight: tuples of 64 bytes per second", rates[0], least=1_000_000)
        report.bar("NDJSON over HTTP: tuples per second", rates[1], least=50_000)
        lab.say("latency")
        _latency(report, place, 4.0 if lab.quick else _LATENCY_S)


def _enqueue(place: ServedNetwork, tuples: int) -> float:
    """Seconds from the first batch to the acknowledgement that the last is durable."""
    names = [f"c{number}" for number in range(COLUMNS)]
    columns = [pa.array(np.arange(_FLIGHT_BATCH) + number) for number in range(COLUMNS)]
    batch = pa.record_batch(columns, names)
    with flight.FlightClient(place.flight) as client:
        descriptor = flight.FlightDescriptor.for_path("wide")
        started = time.perf_counter()
        writer, reader = client.do_put(descriptor, batch.schema, _bearing(place.token))
        batches, acknowledged = max(tuples // _FLIGHT_BATCH, 1), 0
        for sent in range(batches):
            writer.write_batch(batch)
            if sent - acknowledged >= _UNACKNOWLEDGED:
                reader.read()
                acknowledged += 1
        while acknowledged < batches:
            told = reader.read()
            acknowledged += 1
        seconds = time.perf_counter() - started
        writer.close()
    accepted = json.loads(told.to_pybytes())["accepted"]
    assert accepted == batches * _FLIGHT_BATCH, accepted
    return float(seconds * tuples / accepted)


def _post(place: ServedNetwork, tuples: int) -> float:
    row = {f"c{number}": 1_000_000 + number for number in range(COLUMNS)}
    body = (json.dumps(row) + "\n").encode() * _NDJSON_BATCH
    headers = {
        "Authorization": f"Bearer {place.token}",
        "Content-Type": "application/x-ndjson",
    }
    with httpx.Client(base_url=place.url, headers=headers, timeout=60) as client:
        started = time.perf_counter()
        for _ in range(tuples // _NDJSON_BATCH):
            answer = client.post("/api/v1/streams/wide", content=body).raise_for_status()
            assert answer.json()["accepted"] == _NDJSON_BATCH
        return time.perf_counter() - started


def _latency(report: Report, place: ServedNetwork, seconds: float) -> None:
    """From the call that enqueues a tuple to the message that shows it."""
    seen: list[float] = []
    with place.client() as client, client.follow("some") as follower:
        stop, sent = threading.Event(), [0]
        feeding = threading.Thread(target=_paced, args=(place, stop, sent))
        feeding.start()
        started = time.monotonic()
        while (now := time.monotonic()) - started < seconds:
            table = follower.next(1.0)
            if table is not None and now - started > seconds / 4:  # the first ones warm up
                sent_us = table.column("c1").to_numpy()
                seen += ((time.time_ns() // 1000 - sent_us) / 1e6).tolist()
        rate = sent[0] / (time.monotonic() - started)
        stop.set()
        feeding.join()
        client.drain(60)
        client.dequeue("some")
    median, p99 = statistics.median(seen), float(np.percentile(seen, 99))
    section = report.section(
        f"From enqueue to a WebSocket, {_RATE:,} tuples per second, one in a hundred is a result",
        *("tuples_per_s", "results", "p50_s", "p99_s", "slowest_s"),
    )
    section.rows.append((rate, len(seen), median, p99, max(seen)))
    report.bar("tuples per second that were acknowledged / sent", rate / _RATE, least=0.95)
    report.bar("ingest to WebSocket: p50, in s", median, most=0.25)
    report.bar("ingest to WebSocket: p99, in s", p99, most=1.0)


def _paced(place: ServedNetwork, stop: threading.Event, acknowledged: list[int]) -> None:
    """Enqueue at a steady rate; each tuple has the time at which it was sent."""
    count = int(_RATE * _PACE_S)
    empty = pa.schema([(f"c{number}", pa.int64()) for number in range(COLUMNS)])
    with flight.FlightClient(place.flight) as client:
        descriptor = flight.FlightDescriptor.for_path("wide")
        writer, reader = client.do_put(descriptor, empty, _bearing(place.token))

        def read() -> None:
            while (told := reader.read()) is not None:
                acknowledged[0] = json.loads(told.to_pybytes())["accepted"]

        reading = threading.Thread(target=read)
        reading.start()
        number, due = 0, time.monotonic()
        while not stop.wait(max(due - time.monotonic(), 0.0)):
            due += _PACE_S
            now_us = np.full(count, time.time_ns() // 1000)
            others = [np.zeros(count, np.int64)] * (COLUMNS - 2)
            columns = [number + np.arange(count), now_us, *others]
            writer.write_batch(pa.record_batch(list(map(pa.array, columns)), schema=empty))
            number += count
        writer.done_writing()
        reading.join()
        writer.close()


def _bearing(token: str) -> flight.FlightCallOptions:
    return flight.FlightCallOptions(headers=[(b"authorization", f"Bearer {token}".encode())])


# ── cost, of a server in the engine's own process ──


def cost(report: Report, lab: Lab) -> None:
    """Throughput without a server, with one that nobody looks at, and with five studios open."""
    network = wide_network()
    ways: Mapping[str, Callable[[au.Engine], AbstractContextManager[None]]] = {
        "no server": lambda _engine: _nothing(),
        "server, nobody looks": lambda engine: _server_beside(engine, 0),
        f"server, {_STUDIOS} studios": lambda engine: _server_beside(engine, _STUDIOS),
    }
    rates: dict[str, list[float]] = {way: [] for way in ways}
    turn_s = 1.0 if lab.quick else _TURN_S
    with au.Engine(network, spark=lab.spark, train=_TRAIN) as engine:
        _throughput(engine, turn_s)  # lets Spark compile
        for turn in range(_TURNS):
            lab.say(f"cost, round {turn + 1} of {_TURNS}")
            first = turn % len(ways)  # who is first, when a round begins, changes
            for way in [*list(ways)[first:], *list(ways)[:first]]:
                with ways[way](engine):
                    rates[way].append(_throughput(engine, turn_s))
    section = report.section(
        f"Throughput of the engine, {_TURNS} rounds; shares are of the same round without a server",
        *("beside it", "tuples_per_s", "share_q1", "share_median", "share_q3"),
    )
    # A round takes seconds: whatever else the machine does slows its ways about alike.
    shares: dict[str, float] = {}
    for way, own in rates.items():
        paired = [one / alone for one, alone in zip(own, rates["no server"], strict=True)]
        low, shares[way], high = (float(q) for q in np.percentile(paired, (25, 50, 75)))
        section.rows.append((way, statistics.median(own), low, shares[way], high))
    _, idle, watched = shares.values()
    report.bar("cost of a server that nobody looks at", 1 - idle, most=0.05)
    report.bar(f"cost of {_STUDIOS} open studios", 1 - watched, most=0.15)


def _throughput(engine: au.Engine, seconds: float) -> float:
    rows = pa.table({f"c{i}": np.arange(_TRAIN) + i for i in range(COLUMNS)})
    done = 0
    started = time.perf_counter()
    while time.perf_counter() - started < seconds:
        engine.enqueue("wide", rows)
        engine.drain()
        engine.dequeue("some")
        done += _TRAIN
    return done / (time.perf_counter() - started)


@contextmanager
def _nothing() -> Iterator[None]:
    yield


@contextmanager
def _server_beside(engine: au.Engine, studios: int) -> Iterator[None]:
    """A server on the engine, and studios that watch it."""
    tokens = AccessTokens.made()
    service = EngineService(engine, ServerSettings())
    http = HttpServer(create_app(service, tokens), "127.0.0.1", 0)
    http.start()
    try:
        if not studios:
            yield
            return
        url = http.url.replace("http", "ws", 1)
        command = [sys.executable, "-m", "benchmarks.server.watching", url, str(studios)]
        watching = subprocess.Popen(
            [*command, "wide", "filter_1"],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "AURORAL_TOKEN": tokens["viewer"]},
            cwd=Path(__file__).parents[2],
        )
        with watching:
            try:
                assert watching.stdout is not None
                for _ in range(studios):
                    assert watching.stdout.readline() == "watching\n"
                yield
                if watching.poll() is not None:
                    raise RunError("DISCONNECTED", "the studios did not watch until the end")
            finally:
                watching.terminate()
            frames = [int(line) for line in watching.stdout]
            if len(frames) != studios or min(frames) < 2:
                raise RunError("DISCONNECTED", f"the studios received {frames} frames")
    finally:
        http.stop()
