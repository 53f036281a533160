"""Fair arrival without a broker: cuts change nothing, no partition runs ahead."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auroral.errors import AuroralError
from auroral.io.kafka.client import PolledMessages
from auroral.io.kafka.decode import Decoder
from auroral.io.kafka.merge import Merge, MessageBatch
from auroral.io.kafka.options import KafkaOptions
from auroral.io.kafka.source import KafkaSource
from auroral.io.open import open_source
from auroral.io.readers.assemble import Records
from auroral.network.types import Schema
from auroral.progress.origins import IDLE, OPENED

Sent = list[list[float]]
KEYS = st.lists(st.lists(st.integers(0, 12) | st.just(np.nan), max_size=8), min_size=1, max_size=4)


def batch(partition: int, first: int, keys: list[float]) -> MessageBatch:
    count = len(keys)
    records = Records(count, [pa.array([f"{partition}/{first + i}" for i in range(count)])])
    offsets = np.arange(first, first + count)
    return MessageBatch(
        records, np.full(count, partition, np.int32), offsets, np.array(keys, float)
    )


def naive(sent: Sent) -> list[str]:
    """By (greatest so far, partition, offset); a partition rests after its last message."""
    found: list[tuple[float, int, int, str]] = []
    for partition, keys in enumerate(sent):
        most = -np.inf
        for offset, key in enumerate(keys):
            most = most if np.isnan(key) else max(most, key)
            found.append((most, partition, offset, f"{partition}/{offset}"))
        found.append((most, partition, len(keys), f"{partition} rests"))
    return [name for *_, name in sorted(found)]


def merged(sent: Sent, rng: Random) -> list[str]:
    merge, found = Merge(set(range(len(sent)))), list[str]()
    left = dict.fromkeys(range(len(sent)), 0)

    def take() -> None:
        while (released := merge.next(rng.randint(1, 5))) is not None:
            if released.records is None:
                assert released.event == IDLE
                found.append(f"{released.partitions[0]} rests")
            else:
                found.extend(released.records.columns[0].to_pylist())

    while left:
        partition = rng.choice(list(left))
        first = left[partition]
        some = sent[partition][first : first + rng.randint(1, 4)]
        if some:
            merge.add(batch(partition, first, some))
            left[partition] += len(some)
        else:
            del left[partition]
            merge.rest(partition)
        if rng.random() < 0.7:
            take()
    take()
    assert merge.is_empty
    return found


@given(KEYS, st.integers(0, 10**6))
def test_the_order_of_arrival_does_not_depend_on_cuts(sent: Sent, seed: int) -> None:
    assert merged(sent, Random(seed)) == naive(sent)


class Message:
    """As the library gives them."""

    def __init__(self, value: bytes | None, partition: int = 0, offset: int = 0, **more: Any):
        self._value, self._partition, self._offset, self._more = value, partition, offset, more

    def value(self) -> bytes | None:
        return self._value

    def partition(self) -> int:
        return self._partition

    def offset(self) -> int:
        return self._offset

    def topic(self) -> str:
        return "t"

    def timestamp(self) -> tuple[int, int]:
        return 1, self._more.get("ms", 0)

    def key(self) -> bytes | None:
        key: bytes | None = self._more.get("key")
        return key

    def headers(self) -> list[tuple[str, bytes]] | None:
        headers: list[tuple[str, bytes]] | None = self._more.get("headers")
        return headers


class Topic:
    """A broker of which tests say what it has, and how much comes at once."""

    def __init__(self, partitions: dict[int, list[bytes | None]], rng: Random):
        self.data, self.rng = partitions, rng
        self.at: dict[int, int] = {}
        self.paused: set[int] = set()

    def partitions(self) -> list[int]:
        return sorted(self.data)

    def bounds(self, partition: int) -> tuple[int, int]:
        return 0, len(self.data[partition])

    def require(self, known: Any, found: Any) -> None: ...

    def require_offset(self, *_: Any) -> None: ...

    def assign(self, partition: int, offset: int) -> None:
        self.at[partition] = offset

    def pause(self, partition: int) -> None:
        self.paused.add(partition)

    def resume(self, partition: int) -> None:
        self.paused.discard(partition)

    def close(self) -> None: ...

    def read(self, limit: int, timeout_s: float) -> PolledMessages:
        read = PolledMessages()
        for partition in self.rng.sample(sorted(self.at), len(self.at)):
            if partition in self.paused or self.rng.random() < 0.4:
                continue
            first = self.at[partition]
            some = self.data[partition][first : first + self.rng.randint(1, 5)]
            read.messages += [Message(v, partition, first + i) for i, v in enumerate(some)]
            self.at[partition] += len(some)
            if self.at[partition] == len(self.data[partition]):
                read.ends[partition] = self.at[partition]
        return read


SCHEMA = Schema.parse("k int, at bigint")


def topic(rng: Random) -> dict[int, list[bytes | None]]:
    found: dict[int, list[bytes | None]] = {}
    for partition in range(rng.randint(1, 4)):
        values = [b'{"k": %d, "at": %d}' % (partition, i * rng.randint(1, 3)) for i in range(30)]
        bad = [rng.choice([None, b"\xff", b"{"]) for _ in range(rng.randint(0, 2))]
        found[partition] = rng.sample([*values, *bad], rng.randint(0, 30))
    return found


def _given(topic: Topic, *_: Any) -> Topic:
    return topic


def read_all(data: dict[int, list[bytes | None]], rng: Random, *, stops: bool) -> list[Any]:
    """What a source gives in all, begun anew at its position now and then."""
    position, found = None, list[Any]()
    while True:
        given = Topic(data, rng)
        options = KafkaOptions("b:1", "t", until="latest")
        connect: Any = partial(_given, given)
        source = KafkaSource("s", options, SCHEMA, progress_on="at", connect=connect)
        if position is not None:
            source.seek(position)
        while not source.exhausted:
            chunk = source.poll(rng.randint(1, 9))
            if chunk is None:
                continue
            kept, _ = chunk.split(rng.randint(1, 9) if stops else chunk.count)
            position = kept.offset
            assert kept.origins is not None
            names = [kept.origins.names[code] for code in kept.origins.codes]
            rows = dict(zip(kept.positions.tolist(), kept.tuples.to_pylist(), strict=True))
            for i, (name, event) in enumerate(zip(names, kept.origins.events, strict=True)):
                if event != OPENED:
                    found.append((name, rows.get(i, "rests")))
            found += [(letter.place, letter.reason) for letter in kept.dead]
            if kept is not chunk or (stops and rng.random() < 0.3):
                break
        else:
            return found


@pytest.mark.parametrize("seed", range(40))
def test_a_source_goes_on_exactly_where_it_was(seed: int) -> None:
    rng = Random(seed)
    data = topic(rng)
    whole, again = read_all(data, Random(1), stops=False), read_all(data, rng, stops=True)

    def arrived(found: list[Any]) -> list[Any]:
        return [one for one in found if isinstance(one[1], dict)]

    def dead(found: list[Any]) -> list[Any]:
        return sorted(one for one in found if isinstance(one[1], str) and one[1] != "rests")

    assert arrived(again) == arrived(whole)
    assert dead(again) == dead(whole)
    assert len(arrived(whole)) + len(dead(whole)) == sum(map(len, data.values()))


def decoded(schema: str, messages: list[Message], **spec: Any) -> Records:
    parsed = Schema.parse(schema)
    options = KafkaOptions.parse({"servers": "b:1", "topic": "t", **spec}, parsed)
    return Decoder("s", parsed, options).decode(messages)


def test_metadata_stands_beside_the_payload() -> None:
    messages = [Message(b'{"k": 1}', offset=5, key=b"a"), Message(b'{"k": 2, "offset": 9}')]
    records = decoded("k int, offset bigint, key string", messages)
    assert [column.to_pylist() for column in records.columns] == [[1, 2], [5, 9], ["a", None]]
    only = decoded("k int, offset bigint", messages, metadata=[])
    assert only.columns[1].to_pylist() == [None, 9]
    wrong = decoded("k int, key string", [Message(b'{"k": 1}', key=b"\xff")])
    assert wrong.wrong[1] == {0: "invalid UTF-8"}


def test_a_message_of_several_lines_is_one_message() -> None:
    records = decoded("k int", [Message(b'{\n"k":\r\n1}'), Message(b' {"k": 2} ')])
    assert records.columns[0].to_pylist() == [1, 2]
    assert not records.broken


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({}, "kafka needs the option topic"),
        ({"servers": "b", "topic": "t", "decode": "avro"}, "avro is not supported yet"),
        ({"servers": "b", "topic": "t", "decode": "xml"}, "decode: expected one of"),
        ({"servers": "b", "topic": "t", "starting": "now"}, "starting: expected one of"),
        ({"servers": "b", "topic": "t", "metadata": {"k": "offset"}}, "k is int, but offset"),
        ({"servers": "b", "topic": "t", "metadata": {"k": "size"}}, "a message has no 'size'"),
        ({"servers": "b", "topic": "t", "options": {"enable.auto.commit": True}}, "keeps the off"),
        ({"servers": "b", "topic": "t", "decode": "raw"}, "decode: raw needs a field value"),
        ({"servers": "b", "topic": "t", "idle": "soon"}, "idle"),
        ({"servers": "b", "topic": "t", "toppic": "t"}, "has no option toppic"),
    ],
)
def test_bad_options_are_told_without_a_broker(spec: dict[str, Any], problem: str) -> None:
    with pytest.raises(AuroralError, match=problem):
        open_source("s", {"format": "kafka", **spec}, Schema.parse("k int"))
