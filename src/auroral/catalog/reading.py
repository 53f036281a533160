"""Reading the catalog of a state directory, whether its network runs or not."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from auroral.catalog.recording import DOCUMENT
from auroral.eddy.report import unpacked
from auroral.errors import StateError, UsageError, closest, list_existing
from auroral.ids import ChunkId, StreamLogId
from auroral.network.declarations import Stream
from auroral.network.network import Network
from auroral.progress.lowwater import END
from auroral.progress.values import from_mark
from auroral.scheduling.costs import BoxCost
from auroral.storage.manifest import EntityRow, QueryRow
from auroral.storage.snapshot import ManifestSnapshot


@dataclass(frozen=True)
class CatalogSnapshot:
    """What the catalog said at one moment."""

    directory: Path
    meta: Mapping[str, str]
    entities: tuple[EntityRow, ...]
    queries: tuple[QueryRow, ...]
    """Those that are registered."""
    counters: Mapping[tuple[str, str], int]
    costs: Mapping[str, BoxCost]
    rates: Mapping[str, float]
    """Tuples per second of each stream when the latest ones came."""
    progress: Mapping[str, Any]
    cursors: Mapping[tuple[str, str], tuple[int, int]]
    matches: Mapping[str, int]
    """By query, as far as matches are counted."""
    logs: Mapping[str, tuple[int, int, int]]
    """By log the segments, rows and bytes that it holds."""

    @property
    def moments(self) -> int:
        """How many moments there were."""
        return int(self.meta.get("next_moment", 0))

    def document(self) -> dict[str, Any]:
        """The plain data of the network file as it is now: with the queries there are."""
        found: dict[str, Any] = json.loads(self.meta[DOCUMENT])
        declared = found.get("queries", {})
        queries: dict[str, Any] = {}
        for row in self.queries:
            own = declared.get(row.name)
            said = json.loads(row.document)
            if own is not None and row.declared is not None:
                queries[row.name] = own
            elif "key" not in said:
                keep = said["results"] == "keep"
                queries[row.name] = said["sql"] if keep else _only(said, "sql", "results")
        if queries:
            found["queries"] = queries
        else:
            found.pop("queries", None)
        return found

    def not_exported(self) -> list[str]:
        """Families whose values the catalog does not hold: given at run time, or very many."""
        known = self.document().get("queries", {})
        return [row.name for row in self.queries if row.name not in known]

    def network(self) -> Network:
        """The network as it is now."""
        return Network.parse(self.document())

    def listed(self) -> list[dict[str, Any]]:
        """Everything there is: kind, name, schema, counts, cost and selectivity."""
        rows = [
            _filled(
                kind=row.kind,
                name=row.name,
                schema=_schema(row),
                tuples=self._tuples(row.name),
                **self._cost(row.name),
            )
            for row in self.entities
            if row.kind != "query"
        ]
        return [*rows, *(self._query(row, "schema", "matches") for row in self.queries)]

    def described(self, name: str) -> list[dict[str, Any]]:
        """All that is known under a name; an output may be called like a box."""
        found = [
            self._described(row)
            for row in self.entities
            if row.name == name and row.kind != "query"
        ]
        found += [self._query(row) for row in self.queries if row.name == name]
        if not found:
            names = [*(row.name for row in self.entities), *(row.name for row in self.queries)]
            raise UsageError(
                "UNKNOWN_ENTITY",
                f"there is no {name}; {list_existing(dict.fromkeys(names))}",
                where=str(self.directory),
                hint=closest(name, names),
            )
        return found

    def _described(self, row: EntityRow) -> dict[str, Any]:
        name = row.name
        counts = {what: count for (entity, what), count in self.counters.items() if entity == name}
        log = self.logs.get(name)
        heads = {
            log: head for (log, consumer), (head, _) in self.cursors.items() if consumer == name
        }
        readers = {
            consumer: head for (log, consumer), (head, _) in self.cursors.items() if log == name
        }
        return _filled(
            kind=row.kind,
            name=name,
            declaration=None if row.declaration is None else json.loads(row.declaration),
            schema=_schema(row),
            counts=counts,
            cost=self._cost(name),
            rate=self.rates.get(name) if row.kind == "stream" else None,
            progress=self._marks(row),
            log=None if log is None else dict(zip(("segments", "rows", "bytes"), log, strict=True)),
            reads=heads,
            read_by=readers,
        )

    def _query(self, row: QueryRow, *only: str) -> dict[str, Any]:
        own = next((e for e in self.entities if e.kind == "query" and e.name == row.name), None)
        said = None if own is None or row.declared is None else own.declaration
        found = _filled(
            kind="query",
            name=row.name,
            declaration=json.loads(said or row.document),
            schema=None if own is None or row.declared is None else _schema(own),
            since=row.since,
            members=row.count if "key" in json.loads(row.document) else None,
            matches=self.matches.get(row.name),
        )
        return {key: found[key] for key in found if not only or key in ("kind", "name", *only)}

    def _marks(self, row: EntityRow) -> dict[str, Any]:
        """Below which value nothing comes any more, by field of a stream."""
        if row.kind != "stream" or row.declaration is None:
            return {}
        stream = Stream.model_validate(json.loads(row.declaration))
        entry = str(StreamLogId(row.name, "in"))  # if late tuples leave before it
        log = entry if entry in self.progress else row.name
        found = {}
        for number, declared in enumerate(stream.progressing):
            saved = self.progress.get(log if not number else f"{log}@{declared.on}")
            kind = stream.schema_.field(declared.on).type
            show = partial(_shown_mark, kind=kind.name, scale=kind.scale)
            if saved is not None and declared.by:
                groups = {", ".join(map(str, group)): show(mark) for group, mark in saved["mark"]}
                found[declared.on] = groups
            elif saved is not None:
                found[declared.on] = show(saved["mark"])
        return _filled(**found)

    def _tuples(self, name: str) -> int | None:
        for what in ("in", "tuples", "out"):
            if (name, what) in self.counters:
                return self.counters[name, what]
        return None

    def _cost(self, box: str) -> dict[str, Any]:
        cost = self.costs.get(box)
        if cost is None:
            return {}
        return _filled(
            calls=cost.calls,
            tuples_in=cost.tuples_in,
            tuples_out=cost.tuples_out,
            seconds=cost.seconds,
            call_s=cost.call_s,
            cost_s=cost.cost_s,
            selectivity=cost.selectivity,
        )


def read_catalog(directory: Path) -> CatalogSnapshot:
    """What the catalog of a state directory says now; nothing is locked, changed or waited for."""
    with ManifestSnapshot(directory) as manifest:
        meta = manifest.all_meta()
        if DOCUMENT not in meta:
            raise StateError(
                "NO_CATALOG",
                "the state directory has no catalog yet: no network was started with it",
                where=str(directory),
                hint="run a network with --state and this directory first",
            )
        rows = manifest.queries()
        return CatalogSnapshot(
            directory,
            meta,
            tuple(manifest.entities()),
            tuple(_whole(rows)),
            manifest.counters(),
            manifest.costs(),
            {name: kept.rate for name, kept in manifest.statistics().rates.items()},
            manifest.progress(),
            manifest.cursors(),
            _matches(rows, manifest.tallies()),
            manifest.log_sizes(),
        )


def _whole(rows: Iterable[QueryRow]) -> list[QueryRow]:
    """Queries and families that are registered, each once."""
    return [row for row in rows if row.until is None and not ChunkId.parse(row.name).number]


def _matches(rows: Iterable[QueryRow], tallies: Iterable[tuple[bytes, bytes]]) -> dict[str, int]:
    """How often each query matched, or all members of a family; as far as that is counted."""
    own = [row for row in rows if row.until is None and json.loads(row.document).get("shared")]
    counted = [unpacked(ids, counts) for ids, counts in tallies]
    ids = np.concatenate([np.zeros(0, np.int32), *(found for found, _ in counted)])
    more = np.concatenate([np.zeros(0, np.int64), *(found for _, found in counted)])
    order = np.argsort(ids, kind="stable")
    total = np.concatenate([[0], np.cumsum(more[order])])
    found: dict[str, int] = {}
    for row in own:
        first, last = np.searchsorted(ids[order], [row.first, row.first + row.count])
        family = ChunkId.parse(row.name).family
        found[family] = found.get(family, 0) + int(total[last] - total[first])
    return found


def _shown_mark(steps: Sequence[Any], *, kind: str, scale: int) -> Any:
    """The value of the latest step of a saved mark."""
    if not steps:
        return None
    value = steps[-1][1]
    return "end" if value == END else from_mark(value, kind, scale)


def _schema(row: EntityRow) -> dict[str, str] | None:
    return None if row.schema is None else json.loads(row.schema)


def _only(document: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: document[key] for key in keys}


def _filled(**parts: Any) -> dict[str, Any]:
    """What is known; what is not, or empty, is left out."""
    return {key: part for key, part in parts.items() if part not in (None, {}, [])}
