"""A real Kafka broker for tests: one node on free loopback ports."""

from __future__ import annotations

import importlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
LIB = Path(os.environ.get("AURORAL_KAFKA", ROOT / ".make" / "kafka" / "lib"))
_START_S = 90


class Broker:
    """Keeps its data over restarts; `stop` before the end of the tests."""

    def __init__(self, directory: Path):
        self.directory = directory
        self._admin: Any = importlib.import_module("confluent_kafka.admin")
        self._port, self._controller = _free_ports(2)
        self.servers = f"127.0.0.1:{self._port}"
        self._process: subprocess.Popen[bytes] | None = None
        self._log = (directory / "log").open("wb")
        properties = directory / "server.properties"
        properties.write_text(
            "process.roles=broker,controller\n"
            "node.id=1\n"
            f"controller.quorum.bootstrap.servers=127.0.0.1:{self._controller}\n"
            f"listeners=PLAINTEXT://{self.servers},CONTROLLER://127.0.0.1:{self._controller}\n"
            f"advertised.listeners=PLAINTEXT://{self.servers}\n"
            "controller.listener.names=CONTROLLER\n"
            f"log.dirs={directory / 'data'}\n"
            "offsets.topic.replication.factor=1\n"
            "auto.create.topics.enable=false\n"
        )
        identity = self._run("kafka.tools.StorageTool", "random-uuid").stdout.decode().split()[-1]
        given = ["format", "-t", identity, "-c", str(properties), "--standalone"]
        self._run("kafka.tools.StorageTool", *given)
        self._properties = properties

    def _command(self, main: str, *given: str) -> list[str]:
        home = os.environ.get("JAVA_HOME")
        java = f"{home}/bin/java" if home else "java"
        return [java, "-Xmx256m", "-cp", f"{LIB}/*", main, *given]

    def _run(self, main: str, *given: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(self._command(main, *given), check=True, capture_output=True)

    def start(self) -> None:
        command = self._command("kafka.Kafka", str(self._properties))
        self._process = subprocess.Popen(command, stdout=self._log, stderr=self._log)
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline:
            assert self._process.poll() is None, (self.directory / "log").read_text()[-2000:]
            try:
                self.admin().list_topics(timeout=1)
            except Exception:
                continue
            return
        raise AssertionError(f"no broker after {_START_S} s")

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(60)
            self._process = None

    def admin(self) -> Any:
        return self._admin.AdminClient({"bootstrap.servers": self.servers, "logger": Silent()})

    def topic(self, name: str, partitions: int = 1, **config: str) -> str:
        """Make a topic, and wait until it can be used."""
        admin = self.admin()
        made = admin.create_topics([self._admin.NewTopic(name, partitions, 1, config=config)])
        made[name].result(30)
        wait(lambda: len(admin.list_topics(name, timeout=5).topics[name].partitions) == partitions)
        return name

    def add_partitions(self, topic: str, total: int) -> None:
        admin = self.admin()
        admin.create_partitions([self._admin.NewPartitions(topic, total)])[topic].result(30)
        wait(lambda: len(admin.list_topics(topic, timeout=5).topics[topic].partitions) == total)

    def send(self, topic: str, messages: Sequence[tuple[Any, ...]], **options: Any) -> None:
        """Write (partition, value) pairs, or (partition, value, key, headers)."""
        from confluent_kafka import Producer

        producer = Producer(
            {"bootstrap.servers": self.servers, "linger.ms": 20, "logger": Silent()}
        )
        for partition, value, *rest in messages:
            key = rest[0] if rest else None
            headers = rest[1] if len(rest) > 1 else None
            producer.produce(
                topic, value, key, partition=partition, headers=headers or [], **options
            )
            producer.poll(0)
        assert producer.flush(60) == 0

    def remove(self) -> None:
        self.stop()
        self._log.close()
        shutil.rmtree(self.directory, ignore_errors=True)


class Silent:
    """Takes what the library would write to standard error."""

    def log(self, *_: Any) -> None: ...


def wait(condition: Callable[[], bool], seconds: float = 60) -> None:
    """Ask again and again until something holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not so after {seconds} s"


def _free_ports(count: int) -> list[int]:
    held = [socket.socket() for _ in range(count)]
    for one in held:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports
