"""What a network file says of a Kafka source, checked without a broker and without its library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from auroral.errors import UsageError, closest, list_existing
from auroral.io.fit import Extra
from auroral.network.types import Schema, Type

OPTIONS: dict[str, bool] = {
    "servers": False,
    "topic": True,
    "decode": False,
    "starting": False,
    "until": False,
    "metadata": False,
    "extra": False,
    "options": False,
}
"""The options of a Kafka source, and whether they must be given."""
METADATA: dict[str, tuple[str, ...]] = {
    "topic": ("string",),
    "partition": ("int", "bigint"),
    "offset": ("bigint",),
    "timestamp": ("timestamp", "timestamp_ntz", "bigint"),
    "key": ("string", "binary"),
    "headers": ("map<string,string>", "map<string,binary>"),
}
"""What a message has besides its value, and the types of fields that can hold it."""
RAW = "value"
"""The field that receives the whole value with `decode: raw`."""
_SERVERS = "localhost:9092"
_DECODE = ("json", "csv", "raw")
_OURS = ("bootstrap.servers", "enable.auto.commit", "enable.auto.offset.store", "auto.offset.reset")
"""Options of the client that Auroral sets: it keeps the offsets itself."""


@dataclass(frozen=True)
class KafkaOptions:
    """Which topic is read, from where to where, and what becomes of its messages."""

    servers: str
    topic: str
    decode: str = "json"
    starting: str = "earliest"
    until: str | None = None
    metadata: Mapping[str, str] | None = None
    """Fields that receive metadata, and which; None: those named like some."""
    extra: Extra = "ignore"
    client: Mapping[str, Any] = field(default_factory=dict)
    idle_s: float | None = None

    @staticmethod
    def parse(spec: Mapping[str, Any], schema: Schema, idle_s: float | None = None) -> KafkaOptions:
        """The options of a source with this schema; a mistake is told with what exists."""
        options = KafkaOptions(
            servers=_servers(spec.get("servers", _SERVERS)),
            topic=_text(spec, "topic"),
            decode=_one_of(spec, "decode", "json", (*_DECODE, "avro")),
            starting=_one_of(spec, "starting", "earliest", ("earliest", "latest")),
            until=_one_of(spec, "until", None, ("latest",)),
            metadata=_metadata(spec.get("metadata"), schema),
            extra=spec.get("extra", "ignore"),
            client=_client(spec.get("options", {})),
            idle_s=idle_s,
        )
        if options.decode == "avro":
            problem = f"decode: avro is not supported yet; use one of {', '.join(_DECODE)}"
            raise UsageError("BAD_OPTION", problem)
        if options.decode == "raw":
            _require_raw(schema, options)
        return options

    def fallbacks(self, schema: Schema) -> dict[str, str]:
        """The fields that are metadata where the value does not have them, and which."""
        if self.metadata is not None:
            return {}
        own = {f.name: f.name.lower() for f in schema if f.name.lower() in METADATA}
        return {name: kind for name, kind in own.items() if holds(schema.field(name).type, kind)}

    def payload(self, schema: Schema) -> Schema:
        """The fields that values have themselves."""
        taken = self.metadata or {}
        return Schema(tuple(f for f in schema if f.name not in taken))


def holds(type: Type, kind: str) -> bool:
    """Whether a field of a type can receive some metadata."""
    return str(type).replace(" ", "") in METADATA[kind]


def _servers(given: Any) -> str:
    servers = [given] if isinstance(given, str) else given
    if not isinstance(servers, (list, tuple)) or not all(isinstance(s, str) for s in servers):
        problem = f"servers: expected host:port, or a list of them, found {given!r}"
        raise UsageError("BAD_OPTION", problem)
    return ",".join(servers)


def _text(spec: Mapping[str, Any], name: str) -> str:
    value = spec[name]
    if not isinstance(value, str) or not value:
        raise UsageError("BAD_OPTION", f"{name}: expected text, found {value!r}")
    return value


def _one_of(spec: Mapping[str, Any], name: str, default: Any, choices: tuple[str, ...]) -> Any:
    value = spec.get(name, default)
    if value is not default and value not in choices:
        raise UsageError(
            "BAD_OPTION",
            f"{name}: expected one of {', '.join(choices)}, found {value!r}",
            hint=closest(str(value), choices),
        )
    return value


def _metadata(given: Any, schema: Schema) -> dict[str, str] | None:
    if given is None:
        return None
    if isinstance(given, (list, tuple)):
        given = {name: name for name in given}
    if not isinstance(given, Mapping):
        problem = f"metadata: expected fields and what they receive, found {given!r}"
        raise UsageError("BAD_OPTION", problem)
    found = {}
    for name, kind in given.items():
        if kind not in METADATA:
            raise UsageError(
                "BAD_OPTION",
                f"metadata: a message has no {kind!r}; {list_existing(METADATA)}",
                hint=closest(str(kind), METADATA),
            )
        declared = schema.field(str(name))
        if not holds(declared.type, kind):
            raise UsageError(
                "BAD_OPTION",
                f"metadata: {declared.name} is {declared.type}, but {kind} needs"
                f" {' or '.join(METADATA[kind])}",
            )
        found[declared.name] = kind
    return found


def _client(given: Any) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise UsageError("BAD_OPTION", f"options: expected names and values, found {given!r}")
    for name in given:
        if name in _OURS:
            hint = "use servers" if name == "bootstrap.servers" else "use starting"
            problem = f"options: {name} is set by Auroral, which keeps the offsets itself"
            raise UsageError("BAD_OPTION", problem, hint=hint)
    return dict(given)


def _require_raw(schema: Schema, options: KafkaOptions) -> None:
    """With `decode: raw` there is a field for the value, and all others are metadata."""
    found = {**options.fallbacks(schema), **(options.metadata or {})}
    rest = [f.name for f in schema if f.name not in found and f.name.lower() != RAW]
    types = [str(f.type) for f in schema if f.name.lower() == RAW]
    if rest or types not in (["binary"], ["string"]):
        what = f"it has also {', '.join(rest)}" if rest else "it has none, or of another type"
        raise UsageError(
            "BAD_OPTION",
            f"decode: raw needs a field {RAW} of type binary or string, and metadata; {what}",
        )
