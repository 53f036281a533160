"""The log of a connection point's marks: how far its arc had progressed at the moments it keeps."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from auroral.engine.points.mark_series import names_in, until_moment
from auroral.ids import MarksLogId
from auroral.progress.lowwater import LowWater, Moments, Values, as_values
from auroral.storage import Segment, Store, UnwrittenSegment
from auroral.storage.segment import Punctuations

_FEW_MOVES = 256
"""So many moves stand in the manifest itself; more are a file."""
_SCHEMA = pa.schema(
    [("_seq", pa.int64()), ("series", pa.int32()), ("number", pa.int64()), ("text", pa.string())]
)
Moves = Mapping[str, tuple[Moments, Values]]
"""By series: at which moments it moved, and to which values."""


class MarksLog:
    """The moves of the marks of one arc, and what held before the first of them."""

    def __init__(self, store: Store, point: str):
        self._store = store
        self.log = str(MarksLogId(point))
        self._recorded_key, self._base_key = self.keys_of(point)
        saved = store.manifest.progress()
        self.recorded: int = saved.get(self._recorded_key, 0)
        """The moment before which all moves are in the log."""
        base = saved.get(self._base_key, {"moment": 0, "values": {}})
        self.base_moment: int = base["moment"]
        """The moment from which on the log has moves."""
        self._base: dict[str, Any] = base["values"]

    @staticmethod
    def keys_of(point: str) -> tuple[str, str]:
        """Under which the manifest remembers up to where the log goes, and what held before it."""
        return f"recorded of {MarksLogId(point)}", f"base of {MarksLogId(point)}"

    def begin(self, series: Mapping[str, LowWater], moment: int) -> dict[str, Any]:
        """Record from a moment on; what held before is the base. Returns what to remember."""
        self._base, self.base_moment = until_moment(series, moment), moment
        self.recorded = moment
        return {self._recorded_key: moment, self._base_key: self._saved_base()}

    def moves(
        self, series: Mapping[str, LowWater], until: int
    ) -> tuple[list[UnwrittenSegment], dict[str, Any]]:
        """What is to be written of the moves before a moment, and what to remember then."""
        if until <= self.recorded:
            return [], {}
        found = moves_between(series, self.recorded, until)
        self.recorded = until
        written = [self._segment(found, until)] if found else []
        return written, {self._recorded_key: until}

    def _segment(self, moves: Moves, until: int) -> UnwrittenSegment:
        count = sum(len(moments) for moments, _ in moves.values())
        if count > _FEW_MOVES:
            return UnwrittenSegment(self.log, _table(moves), until)
        rows = [
            (moment, value, (name,))
            for name, (moments, values) in moves.items()
            for moment, value in zip(moments.tolist(), values.tolist(), strict=True)
        ]
        return UnwrittenSegment(
            self.log, _SCHEMA.empty_table(), until, tuple(sorted(rows, key=lambda row: row[0]))
        )

    def read(self, first: int, last: int) -> Moves:
        """The moves from a moment on, before another."""
        return self._moves(
            [s for s in self._store.segments(self.log, first) if s.first < last], first, last
        )

    def before(self, moment: int, wanted: set[str] | None) -> dict[str, Any]:
        """What holds just before a moment; of the `wanted` series, or of all there may be.

        Marks never fall back, so the latest move of a series is all that counts.
        """
        found: dict[str, Any] = {}
        for segment in reversed(self._store.segments(self.log)):
            if segment.first >= moment:
                continue
            if wanted is not None and wanted <= found.keys():
                return found
            for name, (_, values) in self._moves([segment], segment.first, moment).items():
                value = values[-1:].tolist()[0]
                found[name] = max(found.get(name, value), value)
        return {**self._base, **found}

    def drop_before(self, moment: int) -> dict[str, Any]:
        """Let the base be what holds just before a moment; returns what to remember then."""
        if moment <= self.base_moment:
            return {}
        self._base = self.before(moment, None)
        self.base_moment = moment
        return {self._base_key: self._saved_base()}

    def merged(self, segments: Iterable[Segment]) -> UnwrittenSegment:
        """Several segments as one."""
        held = list(segments)
        first, last = min(s.first for s in held), max(s.last for s in held)
        moves = self._moves(held, first, last + 1)
        return UnwrittenSegment(self.log, _table(moves), max(s.complete_before for s in held))

    def _saved_base(self) -> dict[str, Any]:
        return {"moment": self.base_moment, "values": self._base}

    def _moves(self, segments: Iterable[Segment], first: int, last: int) -> Moves:
        found: dict[str, list[tuple[Moments, Values]]] = {}
        for segment in segments:
            for name, part in _noted(segment.punctuations).items():
                found.setdefault(name, []).append(part)
            if segment.file:
                for name, part in _rows(self._store.table(segment)).items():
                    found.setdefault(name, []).append(part)
        cut = {name: _together(parts, first, last) for name, parts in found.items()}
        return {name: part for name, part in cut.items() if len(part[0])}


def moves_between(series: Mapping[str, LowWater], first: int, last: int) -> Moves:
    """The moves of some series from a moment on, before another."""
    found = {}
    for name, mark in series.items():
        start, stop = np.searchsorted(mark.moments, [first, last])
        if stop > start:
            found[name] = mark.moments[start:stop], mark.values[start:stop]
    return found


def _noted(punctuations: Punctuations) -> dict[str, tuple[Moments, Values]]:
    rows: dict[str, list[tuple[int, Any]]] = {}
    for moment, value, (name,) in punctuations:
        rows.setdefault(name, []).append((moment, value))
    return {
        name: (np.array([m for m, _ in found], np.int64), as_values([v for _, v in found]))
        for name, found in rows.items()
    }


def _table(moves: Moves) -> pa.Table:
    names = names_in(moves)
    parts = []
    for code, name in enumerate(names):
        moments, values = moves[name]
        whole = values.dtype == np.int64
        texts = None if whole else [json.dumps(value) for value in values.tolist()]
        parts.append(
            pa.table(
                [
                    pa.array(moments, pa.int64()),
                    pa.array(np.full(len(moments), code, np.int32)),
                    pa.array(values) if whole else pa.nulls(len(moments), pa.int64()),
                    pa.array(texts) if texts is not None else pa.nulls(len(moments), pa.string()),
                ],
                schema=_SCHEMA,
            )
        )
    table = pa.concat_tables(parts).sort_by([("_seq", "ascending"), ("series", "ascending")])
    return table.replace_schema_metadata({"series": json.dumps(names)})


def _rows(table: pa.Table) -> dict[str, tuple[Moments, Values]]:
    names = json.loads((table.schema.metadata or {})[b"series"])
    codes, moments = table["series"].to_numpy(), table["_seq"].to_numpy()
    found = {}
    for code, name in enumerate(names):
        chosen = codes == code
        numbers = table["number"].filter(pa.array(chosen))
        if numbers.null_count:
            texts = table["text"].filter(pa.array(chosen)).to_pylist()
            values = as_values([json.loads(text) for text in texts])
        else:
            values = numbers.to_numpy()
        found[name] = moments[chosen], values
    return found


def _together(parts: list[tuple[Moments, Values]], first: int, last: int) -> tuple[Moments, Values]:
    moments = np.concatenate([moments for moments, _ in parts])
    values = np.concatenate([values for _, values in parts])
    order = np.argsort(moments, kind="stable")
    moments, values = moments[order], values[order]
    start, stop = np.searchsorted(moments, [first, last])
    return moments[start:stop], values[start:stop]
