"""Files with a header go on only with outputs that have its fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from auroral.engine.sinks.sinks import Sinks
from auroral.errors import UsageError
from auroral.ids import MemberId
from auroral.io.sinks.csv import CsvSink
from auroral.network.types import Schema


def require_query_fields(
    sinks: Sinks, replaced: Mapping[str, Any], schema_of: Callable[[str, Any], Schema]
) -> None:
    """Refuse queries with other fields than the header of a file that goes on with them."""
    for output, sink in list(sinks.open.items()):
        query = sinks.outputs.readers.query_of(output)
        if query in replaced and isinstance(sink, CsvSink):
            names = schema_of(query, replaced[query]).names
            if MemberId.parse(output).key is not None:
                names = names[1:]  # a member gives no key
            if names != sink.fields:
                raise UsageError(
                    "SINK_FIELDS",
                    f"{sink.path} has the fields {', '.join(sink.fields)}, the new {query}"
                    f" has {', '.join(names)}",
                    hint="give the query another name, or remove the old one before",
                )


def require_output_fields(sinks: Sinks, fields: Mapping[str, Sequence[str]]) -> None:
    """Refuse outputs with other fields than the header of a file that goes on with them."""
    for output, sink in list(sinks.open.items()):
        names = list(fields.get(output, ()))
        if names and isinstance(sink, CsvSink) and names != list(sink.fields):
            raise UsageError(
                "SINK_FIELDS",
                f"{sink.path} has the fields {', '.join(sink.fields)}, the output {output}"
                f" would have {', '.join(names)}",
                hint="give the output another name and another file",
            )
