"""A power failure at any moment: the state opens, nothing acknowledged is lost or repeated."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest

import auroral as au
import auroral.engine.queries.family_values
import auroral.spark.running.worker
import auroral.storage.compaction
import auroral.storage.journal
import auroral.storage.segment
from auroral.disk import Operation, Unsynced, write_whole
from auroral.engine.ingest.dead_letters import POSITION
from auroral.engine.queries.family_values import FamilyValues
from auroral.io.sinks.append import AppendFile
from auroral.spark.plans.plan import arc_schema
from auroral.storage import Journal, Manifest, Store
from tests.conformance import sparkless
from tests.storage.failing_disk import FailingDisk, Mode, Note, Recorder

WIDTH = 4
ROWS = 30
MODES: tuple[Mode, ...] = ("dropped", "kept", "random")


NETWORK = f"""
network: outage
streams:
  s: {{schema: {{n: bigint, v: int}}, progress: {{on: n, ordered: true}}}}
boxes:
  same: {{box: map, input: s, keep: "*"}}
  pairs: {{box: filter, input: same, where: n % 2 = 0}}
  sums: {{box: aggregate, input: s, order: {{on: n}}, window: {{size: {WIDTH}}},
         compute: {{c: count(*), t: sum(v)}}}}
outputs:
  all: {{from: same, sink: {{path: run/all.csv}}}}
  even: {{from: pairs, sink: {{path: run/even.jsonl}}}}
  sums: {{from: sums, sink: {{format: parquet, path: run/sums}}}}
"""


def network(root: Path) -> au.Network:
    file = root.parent / "net.yaml"
    if not file.exists():
        file.write_text(NETWORK)
    net = au.Network.load(file)
    net.family("alerts", "SELECT n FROM s WHERE v > :limit", [{"rule": 1, "limit": 5}], "rule")
    return net


@dataclass(frozen=True)
class Told:
    """What the application was told: it may rely on that."""

    rows: int = 0
    """Accepted, of those with the numbers 0, 1, …"""
    bad: int = 0
    rules: int = 1
    delivered: int = 0


def run(net: au.Network, record: Recorder) -> None:
    """Enqueue, step, deliver, change queries, compact; tell the recorder what was acknowledged."""
    told = Told()
    with sparkless.make_engine(net, state=record.root / "state") as engine:
        record.note(told)
        for n in range(ROWS):
            if n % 10 == 7:
                engine.enqueue("s", [{"n": "x", "v": 0}])
                told = replace(told, bad=told.bad + 1)
                record.note(told)
            engine.enqueue("s", [{"n": n, "v": n % 9}])
            told = replace(told, rows=n + 1)
            record.note(told)
            if n % 13 == 12:
                engine.modify(add={"alerts": [{"rule": n, "limit": 1}]})
                told = replace(told, rules=told.rules + 1)
                record.note(told)
            if n % 6 == 5:
                engine.drain()
                told = replace(told, delivered=n + 1)
                record.note(told)
            if n % 11 == 10:
                for log in engine._store.names()[0]:
                    engine._store.compact(log)


Check = Callable[[au.Network, Path, Told, Told], None]
"""Compares what a failure left with what was told before it, and with the next that would be."""


def opens(net: au.Network, root: Path, told: Told, most: Told) -> None:
    """Open the state and count: every tuple is in a segment or in the journal."""
    store = Store(root / "state", durability="process")
    try:
        accepted = store.counters.get(("s", "in"), 0)
        schema = arc_schema(net.streams["s"].schema_)
        for _, first, batch in Journal(store.directory / "journal").entries({"s": schema}):
            accepted += batch.num_rows if first >= store.next_moment else 0
        assert told.rows <= accepted <= most.rows, "acknowledged tuples are lost"
        queries = store.manifest.queries()
        assert told.rules <= sum(row.count for row in queries) <= most.rules
        for row in queries:
            FamilyValues(store).query_of(row)
        sinks = store.manifest.sinks()
        at = (sinks.get("all") or {"at": None})["at"] or 0  # None: it is written anew
        assert len(_numbers(root / "all.csv", at)) >= told.delivered, "delivered rows are lost"
        position = sinks.get(POSITION)
        if position is not None:
            lines = (store.directory / "dead-letters.jsonl").read_bytes()[:position]
            assert told.bad <= lines.count(b"\n") <= most.bad
    finally:
        store.close()


def goes_on(net: au.Network, root: Path, told: Told, most: Told) -> None:
    """Go on to the end, and compare all results with what they must be."""
    with sparkless.make_engine(net, state=root / "state", durability="process") as engine:
        assert engine.matches("alerts").num_rows >= told.rules, "a change of queries is lost"
        engine.finish()
    numbers = _numbers(root / "all.csv")
    assert told.rows <= len(numbers) <= most.rows, "acknowledged tuples are lost"
    assert numbers == list(range(len(numbers)))
    even = [json.loads(line)["n"] for line in (root / "even.jsonl").read_text().splitlines()]
    assert even == [n for n in numbers if n % 2 == 0]
    parts = sorted((root / "sums").glob("part-*.parquet"))
    sums = [row for part in parts for row in pq.read_table(part).to_pylist()]
    starts = range(0, len(numbers), WIDTH)
    windows = [(start, numbers[start : start + WIDTH]) for start in starts]
    assert sums == [
        {"n": start, "c": len(held), "t": sum(n % 9 for n in held)} for start, held in windows
    ]
    letters = root / "state" / "dead-letters.jsonl"
    bad = len(letters.read_text().splitlines()) if letters.exists() else 0
    assert told.bad <= bad <= most.bad


def _numbers(path: Path, size: int | None = None) -> list[int]:
    """The first fields of a CSV file, of so many of its bytes."""
    text = path.read_bytes()[:size].decode() if path.exists() and size != 0 else ""
    return [int(line.partition(",")[0]) for line in text.splitlines()[1:]]


class HarmDoneError(Exception):
    """A failure of power did harm."""


def fail_everywhere(
    net: au.Network, record: Recorder, modes: Sequence[Mode], check: Check, every: int = 1
) -> int:
    """Fail after each event, or every so many; returns how many failures were tried."""
    rng = Random(3)
    disk = FailingDisk()
    notes = [event.value for event in record.events if isinstance(event, Note)]
    told, seen, tried = None, 0, 0
    for number, event in enumerate(record.events):
        disk.apply(event)
        if isinstance(event, Note):
            told, seen = event.value, seen + 1
        if told is None or number % every:
            continue
        most = notes[min(seen, len(notes) - 1)]
        writes = isinstance(event, Operation) and not event.kind.startswith("sync")
        for mode in modes:
            if every == 1 and mode != "random" and writes == (mode == "dropped"):
                continue  # it leaves what the event before left
            disk.fail(record.root, mode, rng)
            try:
                check(net, record.root, told, most)
            except (AssertionError, ValueError, au.AuroralError) as error:
                raise HarmDoneError(
                    f"after event {number}, {mode}: {event!r:.200}: {error}"
                ) from error
            tried += 1
    return tried


def recorded(root: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[au.Network, Recorder]:
    monkeypatch.setattr(auroral.storage.compaction, "FAN_IN", 2)
    root.mkdir()
    net = network(root)
    record = Recorder(root)
    with record.recording(monkeypatch):
        run(net, record)
    return net, record


def test_the_state_opens_after_a_failure_at_any_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    net, record = recorded(tmp_path / "run", monkeypatch)
    assert fail_everywhere(net, record, MODES, opens) > 500


def test_the_run_goes_on_as_if_power_had_not_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    net, record = recorded(tmp_path / "run", monkeypatch)
    assert fail_everywhere(net, record, MODES, goes_on, every=29) > 30


def _nothing(*_: Any, **__: Any) -> None:
    """Stands where a sync was."""


def _unsynced(path: Path, data: Any, *, sync: bool) -> None:
    write_whole(path, data, sync=False)


@pytest.mark.parametrize(
    ("place", "name", "instead"),
    [
        (Unsynced, "sync", _nothing),
        (Journal, "sync", _nothing),
        (auroral.storage.journal, "sync_directory", _nothing),
        (auroral.storage.segment, "write_whole", _unsynced),
        (auroral.engine.queries.family_values, "write_whole", _unsynced),
        (auroral.spark.running.worker, "sync_files", _nothing),
        (AppendFile, "sync", _nothing),
        (Manifest, "_sync_commits", lambda m, **_: m._db.execute("PRAGMA synchronous=NORMAL")),
    ],
    ids=lambda value: value if isinstance(value, str) else getattr(value, "__name__", None),
)
def test_without_one_of_the_syncs_a_failure_does_harm(
    place: Any, name: str, instead: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(place, name, instead)
        net, record = recorded(tmp_path / "run", monkeypatch)
    with pytest.raises(HarmDoneError):
        fail_everywhere(net, record, MODES, opens)
