"""Which options of a source or sink say what its data are; the others say how it is reached.

A state directory belongs to a network with the same defining options. Servers, credentials, batch
sizes, pauses and retries may change between two runs, and are not stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_COMMON = frozenset(
    (
        *("format", "path", "topic", "topics", "table", "dbtable", "query", "stream", "queue"),
        *("decode", "encode", "schema", "key", "extra", "name"),
    )
)
"""Options that define the data in every format, also in those of Spark's connectors."""
DEFINING: Mapping[str, frozenset[str]] = {
    "csv": frozenset({"max_field_lines"}),
    "rate": frozenset({"rows_per_second", "rows", "fields", "seed"}),
    "kafka": frozenset({"metadata"}),
}
"""What defines the data of a format besides the common options.

An option of a connector of Spark's that is not listed does not count: nearly all of them are
addresses, credentials and limits, and to store a password would be worse than to miss a change.
"""


def defining(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a source or a sink that its data depend on.

    >>> defining({"format": "kafka", "topic": "t", "servers": "a:9092", "password": "secret"})
    {'format': 'kafka', 'topic': 't'}
    """
    count = _COMMON | DEFINING.get(str(spec.get("format")), frozenset())
    return {key: value for key, value in spec.items() if key in count}
