"""What boxes made of the tuples of a step, as the database keeps it for a step that runs again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

_FAILURES = b"failures"
Failures = dict[tuple[int, int], str]
"""Why tuples could not be processed, by their moment and their place among those of the moment."""


@dataclass
class StepPayload:
    """The rows that a read gave, and the tuples that failed."""

    rows: pa.Table | None = None
    failures: Failures = field(default_factory=dict)

    def encode(self) -> bytes:
        """As bytes: an Arrow stream with the failures beside its schema."""
        listed = [[moment, place, why] for (moment, place), why in self.failures.items()]
        rows = self.rows if self.rows is not None else pa.table({})
        schema = rows.schema.with_metadata({_FAILURES: json.dumps(listed).encode()})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, schema) as writer:
            writer.write_table(rows.cast(schema))
        encoded: bytes = sink.getvalue().to_pybytes()
        return encoded

    @staticmethod
    def decode(data: bytes) -> StepPayload:
        table = pa.ipc.open_stream(data).read_all()
        metadata: Mapping[bytes, bytes] = table.schema.metadata or {}
        listed = json.loads(metadata.get(_FAILURES, b"[]"))
        failures = {(moment, place): why for moment, place, why in listed}
        rows = table.replace_schema_metadata(None) if table.num_columns else None
        return StepPayload(rows, failures)

    def between(self, first: int, last: int) -> StepPayload:
        """What is of the moments from `first` up to, not including, `last`."""
        rows = self.rows
        if rows is not None:
            moments = rows["_seq"]
            rows = rows.filter(pc.and_(pc.greater_equal(moments, first), pc.less(moments, last)))
        failures = {place: why for place, why in self.failures.items() if first <= place[0] < last}
        return StepPayload(rows, failures)

    def then(self, more: StepPayload) -> StepPayload:
        """This and what came after it."""
        both = [table for table in (self.rows, more.rows) if table is not None]
        rows = pa.concat_tables(both) if both else None
        return StepPayload(rows, {**self.failures, **more.failures})
