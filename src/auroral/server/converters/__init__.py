"""Converters: formats that packages add by the entry point group `auroral.converters`.

A converter decodes the bodies of `POST /streams/{s}` and what line feeds bring, and encodes what
`GET /outputs/{o}` takes. JSON, NDJSON, CSV and Arrow need none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points

from auroral.errors import UsageError, closest, list_existing
from auroral.server.converters.converter import DecodedRows, FormatConverter, LineConverter
from auroral.server.converters.influx import InfluxConverter
from auroral.server.converters.syslog import SyslogConverter
from auroral.server.converters.xml import XmlConverter

GROUP = "auroral.converters"

__all__ = [
    "DecodedRows",
    "FormatConverter",
    "LineConverter",
    "converter",
    "for_media_type",
    "media_types",
    "names",
]


def names() -> list[str]:
    """The names of all converters."""
    return sorted(_found())


def converter(name: str) -> FormatConverter:
    """The converter of a name."""
    known = _found()
    if name not in known:
        raise UsageError(
            "UNKNOWN_CONVERTER",
            f"there is no converter {name}; {list_existing(known)}",
            hint=closest(name, known),
        )
    return known[name]


def for_media_type(media_type: str) -> FormatConverter | None:
    """The converter of a Content-Type; parameters such as `charset` do not matter.

    >>> found = for_media_type("Application/XML; charset=utf-8")
    >>> found.name if found else None
    'xml'
    """
    wanted = media_type.partition(";")[0].strip().lower()
    for found in _found().values():
        if wanted in found.media_types:
            return found
    return None


def media_types() -> list[str]:
    """The media types of all converters."""
    return [media_type for found in _found().values() for media_type in found.media_types]


@lru_cache(maxsize=1)
def _found() -> Mapping[str, FormatConverter]:
    """All converters by name; those of other packages may not take a shipped one's name."""
    known: dict[str, FormatConverter] = {}
    for point in entry_points(group=GROUP):
        if point.name not in _SHIPPED:
            known[point.name] = _load(point)
    return known | {name: make() for name, make in _SHIPPED.items()}


def _load(point: EntryPoint) -> FormatConverter:
    try:
        made = point.load()()
    except Exception as error:
        raise UsageError(
            "BAD_CONVERTER",
            f"the converter {point.name} ({point.value}) cannot be loaded: {error}",
        ) from error
    if not isinstance(made, FormatConverter):
        raise UsageError(
            "BAD_CONVERTER",
            f"the converter {point.name} ({point.value}) lacks one of name, media_types, decode,"
            " decode_block, encode and cut",
        )
    return made


_SHIPPED: dict[str, Callable[[], FormatConverter]] = {
    "influx": InfluxConverter,
    "syslog": SyslogConverter,
    "xml": XmlConverter,
}
"""Known even where the package's metadata is not installed, as in a source checkout."""
