"""The sources and sinks of an engine: given before it starts, or bound while it runs."""

from __future__ import annotations

from collections.abc import Callable

from auroral.engine.ingest.declared_sources import declared_sources, named
from auroral.engine.parts import EngineParts
from auroral.engine.sinks.declared import declared_sinks
from auroral.engine.sinks.file_ownership import require_own_files
from auroral.errors import UsageError
from auroral.io.open import naming
from auroral.io.sinks.sink import Sink
from auroral.io.sources.source import Source
from auroral.network.network import Network


class Endpoints:
    """What an engine reads from and delivers to, besides what its network declares."""

    def __init__(self) -> None:
        self.sources: list[Source] = []
        """Those that were given."""
        self.sinks: dict[str, Sink] = {}
        """Those that were given before the start, by output or arc."""
        self.endless = False
        """Whether some source never ends."""
        self._parts: EngineParts | None = None

    def serve(self, parts: EngineParts) -> None:
        """The engine runs from now on."""
        self._parts = parts

    def all_sources(self, network: Network) -> list[Source]:
        """The sources that were given, and those that a network declares."""
        given = [source for source in self.sources if source.stream in network.streams]
        sources = [*given, *declared_sources(network, given)]
        self.endless = not all(source.finite for source in sources)
        return sources

    def bind_declared(self, network: Network, *, last: bool) -> None:
        """Give the outputs of a network their sinks; if it is the `last` time, what is no output
        is refused.
        """
        assert self._parts is not None
        execution = self._parts.loop.execution
        have = {**self.sinks, **execution.sinks.all}
        declared = declared_sinks(network, execution.checked, execution.sinks.schema, have)
        execution.sinks.bind_all({**declared, **self.sinks}, network, last=last)

    def labelled(
        self, network: Network, source: Source, name: str | None, idle: str | float | None
    ) -> Source:
        """A source with its name and its patience, if it was given one of them."""
        label, idle_s = naming({"name": name, "idle": idle})
        if label is None and idle_s is None:
            return source
        own = [other for other in self.sources if other.stream == source.stream]
        return named(network, source, label or str(len(own) + 1), idle_s)

    def bind_source(self, network: Network, source: Source) -> None:
        """Read from a source besides the others, while the engine runs."""
        assert self._parts is not None
        self._parts.ingest.position(source.stream)  # there must be such a stream
        self._parts.loop.change_sources((), [source], network.streams)
        self.endless = self.endless or not source.finite
        self._parts.loop.wake()
        self.sources.append(source)

    def unbind_source(self, network: Network, stream: str, name: str | None) -> None:
        """Read no more from the sources of a stream, or from the one that has a name."""
        assert self._parts is not None
        self._parts.ingest.position(stream)
        key = stream if name is None else f"{stream}/{name}"
        self._parts.loop.change_sources([key], (), network.streams)
        self.sources = [
            s for s in self.sources if key not in (s.stream, getattr(s, "key", s.stream))
        ]
        self._parts.loop.wake()

    def bind_sink(
        self, network: Network, output: str, sink: Sink, require_running: Callable[[], None]
    ) -> None:
        """Deliver an output or a query to a sink, while the engine runs."""
        assert self._parts is not None
        loop, changing = self._parts.loop, self._parts.changing
        changing.await_ready_for(output)
        with loop.between_rounds(), changing.lock:  # a query that is here stays
            require_running()
            sinks = changing.ready_for(output)
            require_own_files(network, self.sources, {**sinks.all, output: sink})
            sinks.bind(output, sink)
        loop.wake()

    def unbind_sink(self, output: str) -> None:
        """Deliver an output no more."""
        assert self._parts is not None
        loop = self._parts.loop
        loop.require_outside("unbind itself")
        with loop.between_rounds(), self._parts.changing.lock:
            sinks = loop.execution.sinks
            if output not in sinks.open:
                raise UsageError("NO_SINK", f"the output {output} has no sink")
            released = sinks.detach(output)
            self.sinks.pop(output, None)
        sinks.await_closed(released)
