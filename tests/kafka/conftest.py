"""One broker for all tests of a process, started by the first that needs it."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import pytest

from .broker import LIB, Broker


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    if importlib.util.find_spec("confluent_kafka") is None:
        pytest.skip("confluent-kafka is not installed")
    if not any(LIB.glob("kafka_*.jar")):
        pytest.skip("there is no Kafka broker: run scripts/kafka.sh")
    broker = Broker(tmp_path_factory.mktemp("kafka"))
    try:
        broker.start()
        yield broker
    finally:
        broker.remove()
