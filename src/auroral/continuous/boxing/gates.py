"""A network in which streams that route late tuples have a gate.

In the network that runs, a stream `S` with `below: route` is called `S@in`, and a gate of the name
`S` reads it. So the arcs `S` and `S.late` are the gate's, and whatever reads them needs no change;
`S@in` is known only to what writes the stream's log and to what computes its marks.
"""

from __future__ import annotations

import copy

from auroral.boxes.gate import Gate
from auroral.boxes.order import Order
from auroral.ids import StreamLogId
from auroral.network.declarations import Stream
from auroral.network.network import Network


def gated(network: Network) -> Network:
    """The same network with a gate for each stream that routes late tuples.

    >>> from auroral.progress.declaration import Delayed
    >>> net = Network("late")
    >>> stream = net.stream("s", schema="t bigint", progress=Delayed("t", 5, below="route"))
    >>> _ = net.output("o", stream.filter("t > 0", name="f"))
    >>> plain = gated(net)
    >>> list(plain.streams), {name: box.sources() for name, box in plain.boxes.items()}
    (['s@in'], {'s': ('s@in',), 'f': ('s',)})
    """
    routed = {name: stream for name, stream in network.streams.items() if stream.routed}
    if not routed:
        return network
    changed = copy.copy(network)
    changed.streams = {
        str(_entry(name)) if name in routed else name: _ungated(stream)
        for name, stream in network.streams.items()
    }
    changed.boxes = {name: _gate(name, stream) for name, stream in routed.items()} | network.boxes
    return changed


def declared_name(stream: str) -> str:
    """What users call a stream of a network that runs.

    >>> declared_name("s@in"), declared_name("other")
    ('s', 'other')
    """
    return StreamLogId.parse(stream).stream


def running_names(network: Network) -> dict[str, str]:
    """What the streams of a network that runs are called there, by what users call them."""
    return {declared_name(name): name for name in network.streams}


def _entry(stream: str) -> StreamLogId:
    """The log of a stream before its gate."""
    return StreamLogId(stream, "in")


def _gate(name: str, stream: Stream) -> Gate:
    orders = tuple(Order(progress.on, by=progress.by) for progress in stream.routed)
    return Gate(input=str(_entry(name)), orders=orders)


def _ungated(stream: Stream) -> Stream:
    """The same stream, whose tuples all enter."""
    if not stream.routed:
        return stream
    entries = tuple(one.model_copy(update={"below": None}) for one in stream.progressing)
    return stream.model_copy(update={"progress": entries})
