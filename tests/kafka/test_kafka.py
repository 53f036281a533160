"""Streams from a real broker: nothing is lost, late or read twice."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from auroral import Network, Order, Window
from auroral.engine import Engine
from auroral.errors import AuroralError
from auroral.io.kafka.client import KafkaSourceError
from auroral.progress.declaration import Progress
from auroral.testing import Collector
from tests.conformance import sparkless
from tests.conformance.running import Crash, Faults

from .broker import Broker, wait

DELAY = 5


def network(broker: Broker, topic: str, **source: Any) -> Network:
    given = {"format": "kafka", "servers": broker.servers, "topic": topic, "until": "latest"}
    net = Network("orders")
    progress = Progress(on="at", delay=DELAY)
    s = net.stream("s", "k int, at bigint", progress=progress, source={**given, **source})
    windows = s.aggregate(
        order=Order("at", by=["k"]), window=Window(size=10), c="count(*)", name="w"
    )
    net.output("counts", windows)
    net.output("rows", s)
    return net


@contextlib.contextmanager
def running(
    net: Network, sinks: Mapping[str, Collector] | None = None, **options: Any
) -> Iterator[Engine]:
    engine = Engine(net, executor=sparkless.InProcessExecutor(), background=False, **options)
    for name, sink in (sinks or {}).items():
        engine.bind_sink(name, sink)
    try:
        engine.start()
        yield engine
    except Crash:
        engine._started = False
        engine._store.close()
        raise
    except BaseException:
        engine.shutdown()
        raise
    engine.shutdown()


def messages(rng: Random, partitions: int, each: int) -> list[tuple[int, bytes]]:
    """Each partition in order but for the delay, one partition after the other."""
    found = []
    for partition in range(partitions):
        at = rng.choice([0, 50])
        for _ in range(each):
            at += rng.choice([0, 1, 2])
            row = {"k": rng.randint(0, 3), "at": max(at - rng.randint(0, DELAY), 0)}
            found.append((partition, json.dumps(row).encode()))
    return found


def expected(sent: list[tuple[int, bytes]]) -> dict[tuple[int, int], int]:
    counts: dict[tuple[int, int], int] = {}
    for _, value in sent:
        row = json.loads(value)
        window = (row["at"] // 10 * 10, row["k"])
        counts[window] = counts.get(window, 0) + 1
    return counts


def counted(rows: list[dict[str, Any]]) -> dict[tuple[int, int], int]:
    return {(row["at"], row["k"]): row["c"] for row in rows}


def test_partitions_in_order_lose_nothing_whatever_the_cuts(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = messages(Random(1), 4, 500)
    topic = broker.topic("in-order", 4)
    broker.send(topic, sent)
    found = []
    for read, train in ((50_000, 100_000), (37, 100), (400, 61), (7, 1_000)):
        monkeypatch.setattr("auroral.io.kafka.source._MOST_READ", read)
        with running(network(broker, topic), train=train) as engine:
            engine.finish()
            assert engine.stats()["boxes"]["w"]["late"] == {}
            rows = engine.dequeue("rows").to_pylist()
            found.append((engine.dequeue("counts").to_pylist(), rows))
    assert counted(found[0][0]) == expected(sent)
    assert len(found[0][1]) == 2_000
    for other in found[1:]:
        assert other == found[0], "the order of arrival depends on how batches were cut"


def test_a_crash_repeats_and_loses_nothing(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = messages(Random(2), 3, 120)
    topic = broker.topic("crash", 3)
    broker.send(topic, sent)
    net = network(broker, topic)
    with running(net) as engine:
        engine.finish()
        whole = engine.dequeue("counts").to_pylist(), engine.dequeue("rows").to_pylist()
    monkeypatch.setattr("auroral.io.kafka.source._MOST_READ", 50)
    sinks = {name: Collector() for name in net.outputs}
    faults = Faults(frozenset((3, 9, 20, 33)))
    for _ in range(6):
        with contextlib.suppress(Crash):
            with running(net, sinks, state=tmp_path, train=70, fault=faults) as engine:
                engine.finish()
            break
    assert (sinks["counts"].rows, sinks["rows"].rows) == whole


def letters(engine: Engine) -> list[dict[str, Any]]:
    return [json.loads(line) for line in engine.dead_letters.read_text().splitlines()]


def test_bad_messages_are_dead_letters_and_the_run_goes_on(broker: Broker) -> None:
    topic = broker.topic("bad", 2)
    good = [(1, b'{"k": 1, "at": 1}'), (1, b'{"k": 2, "at": 2, "added": {"x": [1]}}')]
    bad = [(0, b"\xff\xfe"), (0, b"{no json"), (0, b'{"k": "x", "at": 1}'), (0, None), (0, b"[1]")]
    broker.send(topic, [*good, *bad, (0, b'{"k": 3, "at": 3}')])
    with running(network(broker, topic)) as engine:
        engine.finish()
        assert [row["k"] for row in engine.dequeue("rows").to_pylist()] == [1, 2, 3]
        found = letters(engine)
        assert [letter["place"] for letter in found] == [
            f"topic {topic}, partition 0, offset {i}" for i in range(5)
        ]
        reasons = [letter["reason"] for letter in found]
        assert reasons[0] == "invalid UTF-8"
        assert reasons[1].startswith("invalid JSON")
        assert reasons[2] == "k: expected int, found 'x'"
        assert reasons[3].startswith("no value (a tombstone)")
        assert reasons[4] == "expected a JSON object"
        assert found[0]["row"] == "\\xff\\xfe"
        assert engine.stats()["streams"]["s"]["dead"] == 5


def test_other_fields_are_rejected_if_asked(broker: Broker) -> None:
    topic = broker.topic("extra", 1)
    broker.send(topic, [(0, b'{"k": 1, "at": 1, "z": 1}'), (0, b'{"k": 2, "at": 2}')])
    with running(network(broker, topic, extra="reject")) as engine:
        engine.finish()
        assert [row["k"] for row in engine.dequeue("rows").to_pylist()] == [2]
        assert letters(engine)[0]["reason"] == "there is no field z"


META = (
    "k int, topic string, partition int, offset bigint, timestamp timestamp, key string,"
    " headers map<string,binary>"
)


def read(broker: Broker, topic: str, schema: str, **source: Any) -> list[dict[str, Any]]:
    given = {"format": "kafka", "servers": broker.servers, "topic": topic, "until": "latest"}
    net = Network("meta")
    net.output("rows", net.stream("s", schema, source={**given, **source}))
    with running(net) as engine:
        engine.finish()
        rows: list[dict[str, Any]] = engine.dequeue("rows").to_pylist()
        return rows


def test_payload_and_metadata_stand_side_by_side(broker: Broker) -> None:
    topic = broker.topic("meta", 1)
    headers = [("h", b"1"), ("h", b"2")]
    sent = [(0, b'{"k": 7}', b"one", headers), (0, b'{"k": 8, "offset": 99, "key": "own"}', b"two")]
    broker.send(topic, sent, timestamp=1_700_000_000_123)
    rows = read(broker, topic, META)
    assert [row["k"] for row in rows] == [7, 8]
    assert [row["offset"] for row in rows] == [0, 99], "the payload's own field comes first"
    assert [row["key"] for row in rows] == ["one", "own"]
    assert rows[0]["topic"] == topic
    assert rows[0]["partition"] == 0
    assert rows[0]["timestamp"].timestamp() == pytest.approx(1_700_000_000.123)
    assert dict(rows[0]["headers"]) == {"h": b"2"}
    mapped = {"at": "timestamp", "from": "offset"}
    rows = read(broker, topic, "k int, offset bigint, from bigint, at bigint", metadata=mapped)
    assert [(row["offset"], row["from"]) for row in rows] == [(None, 0), (99, 1)]
    assert rows[0]["at"] == 1_700_000_000_123


def test_tombstones_are_tuples_where_the_key_is_taken(broker: Broker) -> None:
    topic = broker.topic("tombstones", 1)
    broker.send(topic, [(0, b'{"k": 1}', b"a"), (0, None, b"a"), (0, b'{"k": 2}', b"b")])
    rows = read(broker, topic, "key string, k int")
    assert [(row["key"], row["k"]) for row in rows] == [("a", 1), ("a", None), ("b", 2)]


def test_other_encodings(broker: Broker) -> None:
    topic = broker.topic("csv", 1)
    broker.send(topic, [(0, b'1,"a, b"'), (0, b"2,"), (0, b"3"), (0, b"x,y")])
    rows = read(broker, topic, "n int, t string", decode="csv")
    assert [(row["n"], row["t"]) for row in rows] == [(1, "a, b"), (2, None)]
    raw = broker.topic("raw", 1)
    broker.send(raw, [(0, b"\xff"), (0, None)])
    rows = read(broker, raw, "value binary, offset bigint", decode="raw")
    assert [(row["value"], row["offset"]) for row in rows] == [(b"\xff", 0), (None, 1)]


def work(engine: Engine) -> None:
    engine._loop.work()


def test_a_partition_added_while_running_is_read_from_its_beginning(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("auroral.io.kafka.source._DISCOVER_S", 0.2)
    topic = broker.topic("grows", 1)
    broker.send(topic, [(0, b'{"k": 1, "at": 1}')])
    net = network(broker, topic, until=None)
    rows: list[dict[str, Any]] = []
    with running(net) as engine:

        def has(count: int) -> bool:
            work(engine)
            rows.extend(engine.dequeue("rows").to_pylist())
            return len(rows) >= count

        wait(lambda: has(1))
        broker.add_partitions(topic, 2)
        broker.send(topic, [(1, b'{"k": 2, "at": 100}'), (0, b'{"k": 3, "at": 50}')])
        wait(lambda: has(3))
        assert sorted(row["k"] for row in rows) == [1, 2, 3]
        origins = engine.stats()["streams"]["s"]["origins"]
        assert {name: origin["mark"] for name, origin in origins.items()} == {
            "grows/0": 45, "grows/1": 95,
        }  # fmt: skip


def test_an_idle_partition_holds_nothing_back(broker: Broker) -> None:
    topic = broker.topic("idle", 2)
    broker.send(topic, [(0, b'{"k": 1, "at": 1}'), (0, b'{"k": 1, "at": 100}')])
    with running(network(broker, topic, until=None, idle="300 ms")) as engine:
        rows: list[dict[str, Any]] = []

        def has() -> bool:
            work(engine)
            rows.extend(engine.dequeue("counts").to_pylist())
            return bool(rows)

        wait(has)
        assert rows == [{"at": 0, "k": 1, "c": 1}]
        assert engine.stats()["streams"]["s"]["origins"]["idle/1"]["idle"] is True


def test_messages_that_are_gone_are_told(broker: Broker, tmp_path: Path) -> None:
    topic = broker.topic("gone", 1)
    broker.send(topic, [(0, json.dumps({"k": i, "at": i}).encode()) for i in range(10)])
    net = network(broker, topic, until=None)
    with running(net, state=tmp_path) as engine:
        wait(lambda: bool(engine._loop.work()) and engine.stats()["streams"]["s"]["in"] == 10)
    broker.send(topic, [(0, json.dumps({"k": i, "at": i}).encode()) for i in range(10)])
    _delete_before(broker, topic, 15)
    with (
        pytest.raises(AuroralError, match="5 messages are lost"),
        running(net, state=tmp_path) as engine,
    ):
        work(engine)
    admin = broker.admin()
    admin.delete_topics([topic])[topic].result(30)
    with (
        pytest.raises(AuroralError, match="there is no such topic"),
        running(net, state=tmp_path) as engine,
    ):
        work(engine)


def _delete_before(broker: Broker, topic: str, offset: int) -> None:
    from confluent_kafka import TopicPartition

    admin = broker.admin()
    deleted = admin.delete_records([TopicPartition(topic, 0, offset)])
    next(iter(deleted.values())).result(30)


def test_a_broker_that_restarts_is_read_on(broker: Broker) -> None:
    topic = broker.topic("restart", 1)
    broker.send(topic, [(0, b'{"k": 1, "at": 1}')])
    rows: list[dict[str, Any]] = []
    with running(network(broker, topic, until=None)) as engine:

        def has(count: int) -> bool:
            work(engine)
            rows.extend(engine.dequeue("rows").to_pylist())
            return len(rows) == count

        wait(lambda: has(1))
        broker.stop()
        for _ in range(3):
            work(engine)
        broker.start()
        broker.send(topic, [(0, b'{"k": 2, "at": 2}')])
        wait(lambda: has(2))
    assert [row["k"] for row in rows] == [1, 2]


def test_a_broker_that_starts_later_is_waited_for(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("auroral.io.kafka.client._ASK_S", 0.5)
    monkeypatch.setattr("auroral.io.sources.attempts.FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr("auroral.io.sources.attempts.LONGEST_PAUSE_S", 0.01)
    monkeypatch.setattr("auroral.io.sources.attempts.MOST_RETRIES", 1_000_000)
    topic = broker.topic("later", 2)
    broker.send(topic, [(0, b'{"k": 1, "at": 1}'), (1, b'{"k": 2, "at": 2}')])
    broker.stop()
    rows: list[dict[str, Any]] = []
    with running(network(broker, topic, until=None)) as engine:
        for _ in range(3):
            work(engine)
        broker.start()

        def has() -> bool:
            work(engine)
            rows.extend(engine.dequeue("rows").to_pylist())
            return len(rows) == 2

        wait(has)
    assert sorted(row["k"] for row in rows) == [1, 2]


def test_a_broker_that_cannot_be_reached_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("confluent_kafka")
    monkeypatch.setattr("auroral.io.kafka.client._ASK_S", 0.5)
    monkeypatch.setattr("auroral.io.sources.attempts.MOST_RETRIES", 0)
    net = Network("n")
    source = {"format": "kafka", "servers": "127.0.0.1:1", "topic": "t", "until": "latest"}
    net.output("rows", net.stream("s", "k int", source=source))
    with pytest.raises(AuroralError) as caught, running(net) as engine:
        engine.finish()
    assert caught.value.code == "SOURCE_FAILED"
    assert isinstance(caught.value, KafkaSourceError)
    assert caught.value.retryable
    assert "source of s, topic t at 127.0.0.1:1" in str(caught.value)
