"""The broker, as the source sees it; the only place that knows the library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from auroral.errors import RunError, UsageError
from auroral.io.kafka.options import KafkaOptions

_ASK_S = 10.0


class KafkaSourceError(RunError):
    """The broker or the topic cannot be read; `retryable` if it may be possible later."""

    retryable = False

    @staticmethod
    def of(
        stream: str,
        options: KafkaOptions,
        problem: str,
        *,
        retryable: bool = False,
        hint: str | None = None,
    ) -> KafkaSourceError:
        where = f"source of {stream}, topic {options.topic} at {options.servers}"
        error = KafkaSourceError("SOURCE_FAILED", problem, where=where, hint=hint)
        error.retryable = retryable
        return error


@dataclass
class PolledMessages:
    """What came at once."""

    messages: list[Any] = field(default_factory=list)
    ends: dict[int, int] = field(default_factory=dict)
    """Partitions of which everything has been read, and the next offset."""


class KafkaClient:
    """A consumer of one topic with partitions of its own choice."""

    def __init__(self, stream: str, options: KafkaOptions):
        try:
            import confluent_kafka
        except ImportError:
            raise UsageError(
                "MISSING_PACKAGE",
                "Kafka sources need the package confluent-kafka, which is not installed",
                where=f"source of {stream}",
                hint="pip install 'auroral[kafka]'",
            ) from None
        self._kafka = confluent_kafka
        self._stream = stream
        self._options = options
        self._told: str | None = None
        """What the library said last of brokers that cannot be reached."""
        settings = {
            "group.id": "auroral",
            "fetch.wait.max.ms": 50,
            **options.client,
            "bootstrap.servers": options.servers,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            # An offset that is gone is an error, never a jump over messages.
            "auto.offset.reset": "error",
            "error_cb": self._note,
            "logger": _Silent(),
        }
        try:
            self._consumer = confluent_kafka.Consumer(settings)
        except confluent_kafka.KafkaException as error:
            problem = f"options: {error.args[0].str()}"
            raise UsageError("BAD_OPTION", problem, where=f"source of {stream}") from None

    def partitions(self) -> list[int]:
        """The partitions that the topic has now."""
        topic = self._options.topic
        try:
            found = self._consumer.list_topics(topic, timeout=_ASK_S).topics[topic]
        except self._kafka.KafkaException as error:
            raise self._failed(error.args[0]) from None
        if found.error is not None:
            raise self._failed(found.error)
        return sorted(found.partitions)

    def bounds(self, partition: int) -> tuple[int, int]:
        """The first offset that a partition has, and the next that it will have."""
        at = self._kafka.TopicPartition(self._options.topic, partition)
        try:
            low, high = self._consumer.get_watermark_offsets(at, timeout=_ASK_S)
        except self._kafka.KafkaException as error:
            raise self._failed(error.args[0]) from None
        return low, high

    def require(self, known: Mapping[int, int], found: list[int]) -> None:
        """Refuse a topic that has fewer partitions than were read."""
        gone = sorted(set(known) - set(found))
        if gone:
            raise self._refused(
                f"partition {gone[0]} is gone, of which offsets up to {known[gone[0]]} were read:"
                " the topic was deleted and made anew"
            )

    def require_offset(self, partition: int, offset: int, low: int, high: int) -> None:
        """Refuse to go on where messages are missing."""
        if offset < low:
            raise self._refused(
                f"partition {partition}: the next offset to read is {offset}, but the broker"
                f" keeps only those from {low} on; {low - offset} messages are lost"
            )
        if offset > high:
            raise self._refused(
                f"partition {partition}: offsets up to {offset} were read, but it ends at"
                f" {high}: the topic was deleted and made anew"
            )

    def assign(self, partition: int, offset: int) -> None:
        """Read a partition from an offset on."""
        at = self._kafka.TopicPartition(self._options.topic, partition, offset)
        self._consumer.incremental_assign([at])

    def pause(self, partition: int) -> None:
        self._consumer.pause([self._kafka.TopicPartition(self._options.topic, partition)])

    def resume(self, partition: int) -> None:
        self._consumer.resume([self._kafka.TopicPartition(self._options.topic, partition)])

    def read(self, limit: int, timeout_s: float) -> PolledMessages:
        """What the broker has sent, waiting a little for it."""
        read = PolledMessages()
        found: list[Any] = self._consumer.consume(limit, timeout_s)
        for message in found:
            error = message.error()
            if error is None:
                read.messages.append(message)
                if read.ends:
                    read.ends.pop(message.partition(), None)
            elif error.code() == self._kafka.KafkaError._PARTITION_EOF:
                read.ends[message.partition()] = message.offset()
            elif error.code() == self._kafka.KafkaError._AUTO_OFFSET_RESET:
                raise self._refused(
                    f"partition {message.partition()}: an offset that was to be read is gone:"
                    f" {error.str()}"
                )
            elif error.code() not in self._passing():
                raise self._failed(error)
        return read

    def close(self) -> None:
        self._consumer.close()

    def _note(self, error: Any) -> None:
        self._told = error.str()

    def _passing(self) -> tuple[int, ...]:
        """Errors that the library mends by itself: it connects again."""
        codes = self._kafka.KafkaError
        return (codes._TRANSPORT, codes._ALL_BROKERS_DOWN, codes._TIMED_OUT, codes._RESOLVE)

    def _failed(self, error: Any) -> KafkaSourceError:
        codes = self._kafka.KafkaError
        unknown = (codes.UNKNOWN_TOPIC_OR_PART, codes._UNKNOWN_TOPIC, codes._UNKNOWN_PARTITION)
        if error.code() in unknown:
            return self._refused("there is no such topic")
        electing = (  # brokers that have just started
            codes.LEADER_NOT_AVAILABLE,
            codes.NOT_LEADER_FOR_PARTITION,
            codes.REQUEST_TIMED_OUT,
            codes.BROKER_NOT_AVAILABLE,
            codes.REPLICA_NOT_AVAILABLE,
            codes.NETWORK_EXCEPTION,
        )
        retryable = error.retriable() or error.code() in (*self._passing(), *electing)
        told = f": {self._told}" if self._told and error.code() in self._passing() else ""
        problem = f"{error.str()}{told}"
        return KafkaSourceError.of(self._stream, self._options, problem, retryable=retryable)

    def _refused(self, problem: str) -> KafkaSourceError:
        hint = "start with another state directory to read what there is"
        return KafkaSourceError.of(self._stream, self._options, problem, hint=hint)


class _Silent:
    """Takes what the library would write to standard error."""

    def log(self, *_: Any) -> None: ...
