"""What you need to test a network of your own: no Spark, no waiting, no files.

`run` interprets a network one tuple at a time; the rest feeds and watches a real engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from auroral.errors import UsageError, list_existing
from auroral.io.chunk import DeadLetter
from auroral.io.rows import shown
from auroral.io.sinks.sink import Delivery
from auroral.io.sources.interleave import Interleaver, SourceShare
from auroral.io.sources.iterable import IterableSource
from auroral.io.sources.named import NamedSource
from auroral.io.sources.source import Source
from auroral.network.network import Network
from auroral.progress.origins import ARRIVED, OPENED
from auroral.reference import Reference

__all__ = ["Collector", "ManualClock", "Results", "ScriptedSource", "punctuation", "run"]

Rows = Iterable[Any]
_TRAIN = 1_000


class Results(dict[str, list[dict[str, Any]]]):
    """The rows of each output; any other arc (`b.rest`, `b.late`, a box) by its name too."""

    def __init__(self, reference: Reference, dead_letters: list[DeadLetter]):
        super().__init__({name: reference.collected(name) for name in reference.network.outputs})
        self.reference = reference
        self.dead_letters = dead_letters
        """Rows that did not fit their stream, then tuples that a box could not process."""

    def table(self, name: str) -> list[dict[str, Any]]:
        """The rows of a table at the end, in the order of its key."""
        return self.reference.table(name)

    def __missing__(self, arc: str) -> list[dict[str, Any]]:
        return self.reference.collected(arc)


def run(
    network: Network,
    inputs: Mapping[str, Rows | Mapping[str, Rows]],
    *,
    tables: Mapping[str, Rows] | None = None,
    hold: bool = False,
) -> Results:
    """Run rows through a network as `auroral run` would, and return what comes out.

    Rows are dicts or tuples. They arrive by `_at` (seconds) if they carry it, else one of each
    input in turn; `punctuation(…)` makes a row that is a punctuation. With `hold` the input
    counts as a prefix of an endless stream: what is open stays silent. `tables` are the first rows
    of tables; `results.table(name)` gives those at the end. Rows by name are those of
    several sources of one stream, each with a mark of its own. Only expressions of the catalogue
    can be evaluated; others raise NOT_IN_REFERENCE.

    >>> net = Network("border")
    >>> near, far = (net.stream(name, schema="pos int") for name in ("near", "far"))
    >>> both = net.union(near, far)
    >>> _ = net.output("across", both.filter("pos >= 30", name="across"))
    >>> out = run(net, {"near": [{"pos": 31}, {"pos": 7}], "far": [{"pos": 99}, {"pos": "x"}]})
    >>> out
    {'across': [{'pos': 31}, {'pos': 99}]}
    >>> out["across.rest"]
    [{'pos': 7}]
    >>> out.dead_letters[0].reason
    "pos: expected int, found 'x'"
    """
    reference = Reference(network, tables)
    interleaver = Interleaver(
        [source for name, rows in inputs.items() for source in _sources(network, name, rows)]
    )
    dead: list[DeadLetter] = []
    while not interleaver.exhausted:
        parts = interleaver.next(_TRAIN)
        dead += [letter for part in parts for letter in part.chunk.dead]
        arrivals = [arrival for part in parts for arrival in _arrivals(reference, part)]
        for _, arrive in sorted(arrivals, key=lambda arrival: arrival[0]):
            arrive()
    if not hold:
        reference.end()
    failed = [DeadLetter(d.box, d.place, None, d.reason, shown(d.row)) for d in reference.dead]
    return Results(reference, dead + failed)


def punctuation(value: Any, *, at: float | None = None, **group: Any) -> dict[str, Any]:
    """A row that promises: nothing below `value` comes any more (of that group).

    >>> punctuation(10, sid=7)
    {'sid': 7, '_punctuation': 10}
    """
    return {**group, "_punctuation": value, **({} if at is None else {"_at": at})}


class ScriptedSource(IterableSource):
    """Rows of one stream in the order they are listed; None stands for a pause.

    >>> net = Network("border")
    >>> _ = net.stream("reports", schema="pos int")
    >>> source = ScriptedSource(net, "reports", [{"pos": 1}, None, {"pos": 2}])
    >>> source.poll(10).tuples.to_pylist(), source.exhausted
    ([{'pos': 1}], False)

    An engine takes it by `engine.bind_source(source)`.
    """

    def __init__(self, network: Network, stream: str, rows: Rows):
        if stream not in network.streams:
            names = network.streams
            raise UsageError(
                "UNKNOWN_STREAM", f"there is no stream {stream}; {list_existing(names)}"
            )
        declared = network.streams[stream]
        told = declared.punctuated
        on, by = (told.on, told.by) if told is not None else (None, ())
        super().__init__(stream, rows, declared.schema_, progress_on=on, by=by)


class ManualClock:
    """A clock that stands still until it is told; `Engine(now_us=clock)` takes it.

    >>> clock = ManualClock(5)
    >>> clock.advance(0.5)
    >>> clock(), clock.now_s
    (5500000, 5.5)
    """

    def __init__(self, start_s: float = 0):
        self._now_us = round(start_s * 1_000_000)

    def __call__(self) -> int:
        return self._now_us

    @property
    def now_s(self) -> float:
        return self._now_us / 1_000_000

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        if seconds < 0:
            raise UsageError("BAD_OPTION", f"time does not go back: {seconds}")
        self._now_us += round(seconds * 1_000_000)


class Collector:
    """A sink that keeps what it gets; `engine.bind_sink(output, collector)` takes it.

    It may outlive an engine that crashed: the engine that goes on cuts away what was not
    committed, as it does with a file.

    >>> import pyarrow as pa
    >>> collector = Collector()
    >>> collector.open(None)
    >>> collector.write(Delivery("alerts", pa.table({"n": [1, 2]}), (0, b""), (1, b"")))
    2
    >>> collector.rows
    [{'n': 1}, {'n': 2}]
    """

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def open(self, position: Any | None) -> None:
        """Forget what lies after `position`, a number of rows."""
        del self.rows[position or 0 :]

    def write(self, delivery: Delivery) -> int:
        self.rows += delivery.table.to_pylist(maps_as_pydicts="strict")
        return len(self.rows)

    def close(self) -> None:
        """Nothing is held."""


def _arrivals(reference: Reference, part: SourceShare) -> Iterator[tuple[int, Callable[[], None]]]:
    """What one source's share of a train does to the reference, with its place in the train."""
    chunk, stream = part.chunk, part.stream
    times = [None] * chunk.count if chunk.at_us is None else (chunk.at_us / 1_000_000).tolist()
    rows = chunk.tuples.to_pylist(maps_as_pydicts="strict")
    told = chunk.origins
    origins = [None] * chunk.count if told is None else [told.names[c] for c in told.codes]
    for at, row in zip(chunk.positions.tolist(), rows, strict=True):
        push = partial(reference.push, stream, row, times[at], origin=origins[at])
        yield int(part.order[at]), push
    for noted in chunk.punctuations:
        at = noted.position
        promise = partial(reference.punctuate, stream, noted.value, noted.group, times[at])
        yield int(part.order[at]), partial(promise, origin=origins[at])
    if told is not None:
        for at in np.flatnonzero(told.events != ARRIVED).tolist():
            say = reference.open_origin if told.events[at] == OPENED else reference.rest_origin
            yield int(part.order[at]), partial(say, stream, told.names[told.codes[at]])


def _sources(network: Network, stream: str, rows: Rows | Mapping[str, Rows]) -> Iterator[Source]:
    if not isinstance(rows, Mapping):
        yield ScriptedSource(network, stream, rows)
        return
    for name, own in rows.items():
        source = ScriptedSource(network, stream, own)
        yield NamedSource(source, name, network.streams[stream].schema_.arrow())
