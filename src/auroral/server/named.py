"""What a network names outside itself: files, options of clients and connectors, functions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from auroral.errors import DocumentPlace
from auroral.io.open import SPARK_FORMATS, is_native
from auroral.network.function import Function
from auroral.network.network import Network
from auroral.network.queries import Family

_VARIABLE = re.compile(r"(?<!\$)\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_FILE_STORES = ("sqlite:///", "parquet:", "csv:", "file://", "file:")
_LOCAL = re.compile(r"^(/|~|\.\.?/|file:|jdbc:|[A-Za-z]:[\\/])", re.IGNORECASE)
"""Options of any source or sink that look like this are paths, whatever their name."""
_TABLE = re.compile(r"#[^#]*$")
"""What the address of a table has behind the file."""
_SELF_CONTAINED = ("rate", "iterable")
"""Sources that reach for nothing outside the network."""
_KAFKA_NAMES = """
    acks api.version.request api.version.request.timeout.ms batch.num.messages batch.size
    broker.address.family broker.address.ttl check.crcs client.dns.lookup client.id client.rack
    compression.codec compression.level compression.type connections.max.idle.ms
    delivery.timeout.ms enable.idempotence enable.ssl.certificate.verification
    fetch.error.backoff.ms
    fetch.max.bytes fetch.message.max.bytes fetch.min.bytes fetch.queue.backoff.ms fetch.wait.max.ms
    group.id group.instance.id heartbeat.interval.ms isolation.level linger.ms
    max.in.flight max.in.flight.requests.per.connection max.partition.fetch.bytes
    max.poll.interval.ms message.max.bytes message.send.max.retries message.timeout.ms
    metadata.max.age.ms partitioner queue.buffering.max.kbytes queue.buffering.max.messages
    queue.buffering.max.ms queued.max.messages.kbytes queued.min.messages
    receive.message.max.bytes reconnect.backoff.max.ms reconnect.backoff.ms request.required.acks
    request.timeout.ms retries retry.backoff.max.ms retry.backoff.ms sasl.mechanism sasl.mechanisms
    sasl.password sasl.username security.protocol session.timeout.ms
    socket.connection.setup.timeout.ms socket.keepalive.enable socket.max.fails
    socket.nagle.disable socket.receive.buffer.bytes socket.send.buffer.bytes socket.timeout.ms
    ssl.ca.pem ssl.certificate.pem ssl.cipher.suites ssl.curves.list
    ssl.endpoint.identification.algorithm ssl.key.password ssl.key.pem ssl.sigalgs.list
    topic.metadata.refresh.interval.ms topic.metadata.refresh.sparse transaction.timeout.ms
    transactional.id
"""
_KAFKA = frozenset(_KAFKA_NAMES.split())
"""Options of Kafka's client that load no code, run no program and open no file."""
_SPARK_NAMES = """
    advancemillisperbatch attributeprefix charset columnnameofcorruptrecord dateformat encoding
    excludeattribute extra filenameonly format host idle ignoresurroundingspaces
    includetimestamp latestfirst linesep locale maxbytespertrigger maxfileage maxfilespertrigger
    mergeschema mode name nullvalue numpartitions path port rowsperbatch rowtag starttimestamp
    timestampformat timezone valuetag wholetext
"""
_SPARK = frozenset(_SPARK_NAMES.split())
"""Options of Spark's own formats that neither name other files nor remove any, in lower case."""
_POSTGRESQL_NAMES = """
    application_name channel_binding connect_timeout gssencmode keepalives keepalives_count
    keepalives_idle keepalives_interval sslmode target_session_attrs tcp_user_timeout
"""
_POSTGRESQL = frozenset(_POSTGRESQL_NAMES.split())
"""Parameters of a database's URL that name no files."""


@dataclass(frozen=True)
class NamedPath:
    """A path that a part of a network names, and where it stands."""

    section: str
    path: str
    place: DocumentPlace


@dataclass(frozen=True)
class NamedOption:
    """An option that could reach beyond what a source, sink or store is for."""

    format: str
    option: str
    """Empty for the source or sink as a whole."""
    value: str
    place: DocumentPlace


@dataclass(frozen=True)
class NamedFunction:
    """A Python function that a network names, and where it stands."""

    udf: str
    place: DocumentPlace


Named = NamedPath | NamedOption


def functions_of(network: Network) -> Iterator[NamedFunction]:
    """The Python functions that a network names as text."""
    for name, function in network.functions.items():
        yield from _function(function, network.place("functions", name, "udf"))
    plain = network.flattened()
    for name, box in plain.boxes.items():
        for function in box.functions():
            yield from _function(function, plain.place("boxes", name))


def _function(function: Function, place: DocumentPlace) -> Iterator[NamedFunction]:
    if isinstance(function.udf, str):
        yield NamedFunction(function.udf, place)


def named_outside(network: Network) -> Iterator[Named]:
    """The paths and options that sources, sinks, stores and families of a network name."""
    for name, stream in network.streams.items():
        for spec in stream.sources:
            yield from _in_spec("streams", spec, network.place("streams", name, "source"))
    for name, output in network.outputs.items():
        if output.sink:
            yield from _in_spec("outputs", output.sink, network.place("outputs", name, "sink"))
    for name, table in network.tables.items():
        if table.store is not None:
            yield from _in_address("tables", table.store, network.place("tables", name, "store"))
    for name, point in network.connection_points.items():
        if point.store is not None:
            place = network.place("connection_points", name, "store")
            yield from _in_address("connection_points", point.store, place)
    for name, query in network.queries.items():
        if isinstance(query, Family) and isinstance(query.values, str):
            yield NamedPath("queries", query.values, network.place("queries", name, "values"))


def _in_spec(section: str, spec: Mapping[str, Any], place: DocumentPlace) -> Iterator[Named]:
    kind = spec.get("format")
    if kind in _SELF_CONTAINED:
        return
    if kind == "kafka":
        client = spec.get("options")
        rest = {key: value for key, value in spec.items() if key != "options"}
        yield from _in_values(section, rest, place)
        for key, value in client.items() if isinstance(client, Mapping) else ():
            if key not in _KAFKA or not _is_scalar(value):
                yield NamedOption("kafka", key, _text(value), _below(place, "options", key))
        return
    yield from _in_values(section, spec, place)
    if section == "streams" and not is_native(spec):
        assert isinstance(kind, str)
        yield from _of_spark(kind, spec, place)


def _of_spark(kind: str, spec: Mapping[str, Any], place: DocumentPlace) -> Iterator[NamedOption]:
    if kind.lower() not in SPARK_FORMATS:
        # What a connector does with its options is not known: all or none.
        rest = {k: v for k, v in spec.items() if k.lower() not in ("path", "name", "idle")}
        yield NamedOption(kind, "", _text(rest), _below(place, "format"))
        return
    for key, value in spec.items():
        if key.lower() not in _SPARK or not _is_scalar(value):
            yield NamedOption(kind, key, _text(value), _below(place, key))


def _in_values(
    section: str, value: Any, place: DocumentPlace, *, is_path: bool = False
) -> Iterator[NamedPath]:
    if isinstance(value, Mapping):
        for key, one in value.items():
            path = is_path or str(key).lower() == "path"
            yield from _in_values(section, one, _below(place, str(key)), is_path=path)
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _in_values(section, one, place, is_path=is_path)
    elif isinstance(value, str) and (is_path or _LOCAL.match(value)):
        yield NamedPath(section, value, place)


def _in_address(section: str, address: str, place: DocumentPlace) -> Iterator[Named]:
    for scheme in _FILE_STORES:
        if address.startswith(scheme):
            path = _TABLE.sub("", address.removeprefix(scheme))
            yield NamedPath(section, path, place)
            return
    for key, value in parse_qsl(urlsplit(address).query, keep_blank_values=True):
        if key.lower() not in _POSTGRESQL:
            yield NamedOption("postgresql", key, value, place)


def _is_scalar(value: Any) -> bool:
    return isinstance(value, (str, int, float))


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _below(place: DocumentPlace, *keys: str) -> DocumentPlace:
    return DocumentPlace(place, (*place.path, *keys))


def variables_of(document: Any) -> set[str]:
    """The variables of the environment that a document names.

    >>> sorted(variables_of({"a": ["${HOME}/x", "$${NOT}"], "b": {"c": "${B}"}}))
    ['B', 'HOME']
    """
    if isinstance(document, str):
        return set(_VARIABLE.findall(document))
    if isinstance(document, Mapping):
        return set().union(*map(variables_of, document.values()))
    if isinstance(document, (list, tuple)):
        return set().union(*map(variables_of, document))
    return set()


def referring(network: Network) -> list[Any]:
    """The parts of a network in which variables have values."""
    return [
        *(stream.sources for stream in network.streams.values()),
        *(output.sink for output in network.outputs.values()),
        *(table.store for table in network.tables.values()),
        *(point.store for point in network.connection_points.values()),
        *network.engine.jars,
    ]
