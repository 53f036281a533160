"""Sources and sinks from what the network file or the command line says."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from auroral.errors import AuroralError, UsageError, closest
from auroral.io.fit import Extra, given_by
from auroral.io.kafka.options import OPTIONS as KAFKA_OPTIONS
from auroral.io.kafka.options import KafkaOptions
from auroral.io.kafka.source import KafkaSource
from auroral.io.paths import require_local
from auroral.io.sinks.callback import CallbackSink
from auroral.io.sinks.console import ConsoleSink
from auroral.io.sinks.csv import CsvSink
from auroral.io.sinks.jsonl import JsonlSink
from auroral.io.sinks.parquet import ParquetSink
from auroral.io.sinks.sink import Delivery, Sink
from auroral.io.sources.directory import DirectorySource
from auroral.io.sources.files import SUFFIXES, FileSource
from auroral.io.sources.iterable import IterableSource
from auroral.io.sources.rate import RateSource
from auroral.io.sources.source import Source
from auroral.network.environment import sink_of, sources_of
from auroral.network.network import Network
from auroral.network.types import Schema
from auroral.progress.durations import parse_duration_us

_ANY = {"name": False, "idle": False}
"""Options of every source: what it is called, and when its stream waits for it no more."""
_FILE_OPTIONS = {"path": True, "once": False, "extra": False, **_ANY}
SOURCES: dict[str, dict[str, bool]] = {
    "csv": {**_FILE_OPTIONS, "max_field_lines": False},
    "jsonl": _FILE_OPTIONS,
    "parquet": _FILE_OPTIONS,
    "rate": {"rows_per_second": True, "rows": False, "fields": False, "seed": False, **_ANY},
    "iterable": {"rows": True, "extra": False, **_ANY},
    "kafka": {**KAFKA_OPTIONS, **_ANY},
}
"""Each format's options, and whether they must be given."""
SINKS: dict[str, dict[str, bool]] = {
    "csv": {"path": True, "durable": False},
    "jsonl": {"path": True, "durable": False},
    "parquet": {"path": True, "durable": False},
    "console": {},
    "callback": {"function": True},
}
_WHOLE = {"rate": ("rows", "seed"), "csv": ("max_field_lines",)}
"""Options that are whole numbers."""
_ALIASES = {"json": "jsonl", "ndjson": "jsonl"}
SINKS_TO_COME = ("kafka",)
"""Formats that a network may name already, although nothing writes them yet."""
SPARK_FORMATS = frozenset(("binaryfile", "orc", "rate-micro-batch", "socket", "text", "xml"))
"""Formats of streams that Spark reads without the jar of a connector, besides ours."""
Spec = str | os.PathLike[str] | Mapping[str, Any]


def open_source(
    stream: str,
    spec: Spec,
    schema: Schema,
    *,
    progress_on: str | None = None,
    by: Sequence[str] = (),
    root: str | Path = ".",
    extra: Extra = "reject",
    **live: Any,
) -> Source:
    """The source a spec or a path names; relative paths are below `root`.

    `extra` counts unless the spec has one.
    A path given alone is finite, a directory too; in a spec a directory grows unless `once: true`.
    `live` goes to the rate source (`now`).
    """
    where = f"source of {stream}"
    plain = isinstance(spec, (str, os.PathLike))
    options = dict(_by_path(spec, where) if isinstance(spec, (str, os.PathLike)) else spec)
    kind = _check(options, SOURCES, where)
    _, idle_s = naming(options)
    for name in _ANY:
        options.pop(name, None)
    if kind == "kafka":
        return _kafka(stream, options, schema, where, idle_s, progress_on, by)
    if kind == "rate":
        return _rate(stream, options, schema, where, **live)
    extra = options.get("extra", extra)
    reading: dict[str, Any] = {"progress_on": progress_on, "by": by, "extra": extra}
    if kind == "iterable":
        return IterableSource(stream, options["rows"], schema, **reading)
    if "max_field_lines" in options:
        reading["max_field_lines"] = options["max_field_lines"]
    path = str(Path(root, options["path"]))
    if os.path.isdir(path) or str(options["path"]).endswith("/"):
        once = bool(options.get("once", plain))
        return DirectorySource(stream, path, schema, format=kind, once=once, **reading)
    return FileSource(stream, path, schema, format=kind, **reading)


def _rate(
    stream: str, options: dict[str, Any], schema: Schema, where: str, **live: Any
) -> RateSource:
    _number(options, "rows_per_second", where)
    rate = float(options.pop("rows_per_second"))
    try:
        return RateSource(stream, schema, rows_per_s=rate, **options, **live)
    except UsageError as error:
        raise error.at(where) from None


def _kafka(
    stream: str,
    options: dict[str, Any],
    schema: Schema,
    where: str,
    idle_s: float | None = None,
    progress_on: str | None = None,
    by: Sequence[str] = (),
) -> KafkaSource:
    try:
        parsed = KafkaOptions.parse(options, schema, idle_s)
        return KafkaSource(stream, parsed, schema, progress_on=progress_on, by=by)
    except AuroralError as error:
        raise error.at(where) from None


def check_sources(specs: Sequence[Mapping[str, Any]], schema: Schema) -> None:
    """Refuse sources of a stream whose options there are not; other formats are Spark's."""
    for spec in specs:
        if is_native(spec):
            _check_source(dict(spec), schema)
        elif len(specs) > 1:
            raise UsageError(
                "BAD_OPTION",
                f"{spec['format']} is a format of Spark's, which cannot be one of several sources",
                hint=f"use one of {', '.join(SOURCES)}",
            )


def _check_source(options: dict[str, Any], schema: Schema) -> None:
    naming(options)
    kind = _check(options, SOURCES, "source")
    for name in _ANY:
        options.pop(name, None)
    if kind == "rate":
        _rate("", options, schema, "source")
    elif kind == "kafka":
        _kafka("", options, schema, "source")
    else:
        given_by(schema, extra_of([options]))


def is_native(spec: Mapping[str, Any]) -> bool:
    """Whether Auroral reads a source itself, and not one of Spark's connectors."""
    kind = spec.get("format")
    return not isinstance(kind, str) or _ALIASES.get(kind, kind) in SOURCES


def connectors_needed(network: Network) -> list[str]:
    """Streams whose format neither Auroral nor Spark reads by itself, in words."""
    return [
        f"stream {name}: the format {spec['format']} needs the jar of a connector, and the network"
        " names none: whether Spark can read it is not verified (engine: {jars: […]} or --jars"
        " give one)"
        for name in network.streams
        for spec in sources_of(network, name)
        if not is_native(spec)
        and spec["format"].lower() not in SPARK_FORMATS
        and not network.engine.jars
    ]


def naming(spec: Mapping[str, Any]) -> tuple[str | None, float | None]:
    """What a declared source is called, and after how many seconds its stream goes on without it.

    >>> naming({"format": "kafka", "name": "east", "idle": "1 min"})
    ('east', 60.0)
    """
    name, idle = spec.get("name"), spec.get("idle")
    if name is not None and (not isinstance(name, str) or not name or "/" in name):
        raise UsageError("BAD_OPTION", f"name: expected text without /, found {name!r}")
    return name, idle_seconds(idle)


def idle_seconds(idle: Any) -> float | None:
    """The option `idle` in seconds: a number, or text such as `30 s`."""
    if isinstance(idle, str):
        try:
            return parse_duration_us(idle) / 1_000_000
        except AuroralError as error:
            raise UsageError("BAD_OPTION", f"idle: {error.message}") from None
    good = isinstance(idle, (int, float)) and not isinstance(idle, bool) and idle > 0
    if idle is not None and not good:
        raise UsageError("BAD_OPTION", f"idle: expected a time such as 30 s, found {idle!r}")
    return None if idle is None else float(idle)


def extra_of(sources: Sequence[Mapping[str, Any]]) -> Extra:
    """What a stream does with fields that its schema does not have: as its first source says.

    A file that does not fit is a mistake. Messages are written by others, who add fields.
    """
    source = sources[0] if sources else {}
    default: Extra = "ignore" if source.get("format") == "kafka" else "reject"
    return source.get("extra", default)  # type: ignore[no-any-return]


def open_sink(output: str, spec: Spec, schema: Schema, *, root: str | Path = ".") -> Sink:
    """The sink a spec or a path names; it still has to be opened."""
    where = f"sink of {output}"
    options = dict(_by_path(spec, where) if isinstance(spec, (str, os.PathLike)) else spec)
    kind = _check(options, SINKS, where)
    if kind == "console":
        return ConsoleSink()
    if kind == "callback":
        return CallbackSink(options["function"])
    path, durable = Path(root, options["path"]), bool(options.get("durable", False))
    if kind == "csv":
        return CsvSink(path, schema, durable=durable)
    if kind == "jsonl":
        return JsonlSink(path, durable=durable)
    return ParquetSink(path, durable=durable)


def check_sink(spec: Mapping[str, Any]) -> None:
    """Refuse a sink of a network whose format or options there are not."""
    if spec.get("format") not in SINKS_TO_COME:
        _check(dict(spec), SINKS, "sink")


def sinks_to_come(network: Network) -> dict[str, str]:
    """The outputs whose sinks can be declared but not run yet, and the formats."""
    formats = {name: (sink_of(network, name) or {}).get("format") for name in network.outputs}
    return {name: str(format) for name, format in formats.items() if format in SINKS_TO_COME}


def as_sink(given: Sink | Callable[[Delivery], object]) -> Sink:
    """A sink, or a function that gets deliveries."""
    if callable(given):
        return CallbackSink(given)
    if not all(hasattr(given, name) for name in ("open", "write", "close")):
        problem = f"expected a sink or a function, found {type(given).__name__}"
        raise UsageError("BAD_OPTION", problem)
    return given


def _by_path(path: str | os.PathLike[str], where: str) -> dict[str, Any]:
    """The spec of a bare path: its suffix tells the format, or that of the files in it."""
    require_local(path, where)
    text = os.fspath(path)
    suffix = Path(text).suffix.lower()
    if suffix not in SUFFIXES and os.path.isdir(text):
        found = {SUFFIXES.get(Path(name).suffix.lower()) for name in os.listdir(text)} - {None}
        if len(found) == 1:
            return {"format": found.pop(), "path": text}
    if suffix not in SUFFIXES:
        raise UsageError(
            "UNKNOWN_FORMAT",
            f"cannot tell the format of {text}; the suffixes are {', '.join(SUFFIXES)}",
            where=where,
        )
    return {"format": SUFFIXES[suffix], "path": text}


def _check(options: dict[str, Any], formats: Mapping[str, dict[str, bool]], where: str) -> str:
    """Take the format out of a spec whose options are all known and all there."""
    if "format" not in options and isinstance(options.get("path"), str):
        options.update(_by_path(options["path"], where))
    kind = options.pop("format", None)
    kind = _ALIASES.get(kind, kind) if isinstance(kind, str) else kind
    if not isinstance(kind, str) or kind not in formats:
        raise UsageError(
            "UNKNOWN_FORMAT",
            f"there is no format {kind!r}; the formats are {', '.join(formats)}",
            where=where,
            hint=closest(str(kind), formats),
        )
    known = formats[kind]
    for name in options:
        if name not in known:
            raise UsageError(
                "UNKNOWN_OPTION",
                f"{kind} has no option {name}; its options are {', '.join(known) or 'none'}",
                where=where,
                hint=closest(str(name), known),
            )
    for name, required in known.items():
        if required and name not in options:
            raise UsageError("MISSING_OPTION", f"{kind} needs the option {name}", where=where)
    if "path" in options:
        if not isinstance(options["path"], (str, os.PathLike)):
            problem = f"expected a path, found {options['path']!r}"
            raise UsageError("BAD_OPTION", problem, where=where)
        require_local(options["path"], where)
    for name in _WHOLE.get(kind, ()):
        if options.get(name) is not None:
            _number(options, name, where, whole=True)
    if options.get("max_field_lines", 1) < 1:
        raise UsageError("BAD_OPTION", "max_field_lines: expected at least 1", where=where)
    return kind


def _number(options: Mapping[str, Any], name: str, where: str, whole: bool = False) -> None:
    value = options[name]
    kinds = int if whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds):
        raise UsageError("BAD_OPTION", f"{name}: expected a number, found {value!r}", where=where)
