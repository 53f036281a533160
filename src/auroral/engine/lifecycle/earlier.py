"""What outputs gave before a change of the network and nobody has read yet (pure)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from auroral.engine.lifecycle.fates import NetworkChange
from auroral.engine.lifecycle.pending import StoredPositions
from auroral.ids import EarlierLogId, OutputReader
from auroral.storage import Change, Forgotten, MovedLog

EARLIER = "earlier"
"""Under which the manifest keeps where unread results lie of outputs that read other arcs now."""


@dataclass(frozen=True)
class EarlierResults:
    """Results of an output up to a moment, in a log that it reads no more."""

    log: str
    until: int


class EarlierOutputs:
    """By output what is to be read before what it gives now, the oldest first."""

    def __init__(self, stored: StoredPositions, saved: str | None):
        self._stored = stored
        self._held: dict[str, list[EarlierResults]] = {
            output: [EarlierResults(log, until) for log, until in places]
            for output, places in json.loads(saved or "{}").items()
        }

    def of(self, output: str) -> EarlierResults | None:
        """What is to be read next, if there is something."""
        held = self._held.get(output)
        return held[0] if held else None

    def leave(
        self, change: NetworkChange, before: Mapping[str, str], start: int, sunk: Sequence[str]
    ) -> Change:
        """Outputs read other arcs, or arcs with other fields, from a moment on.

        `before` are their arcs until then; outputs that are `sunk` have been given everything.
        """
        moved: list[MovedLog] = []
        for output in [o for o in change.renewed_outputs if o not in sunk and o in before]:
            log, reader = before[output], str(OutputReader(output))
            if (log, reader) not in self._stored.readers(reader):
                continue
            if log in change.retyped or log in change.gone_arcs:
                place = EarlierResults(str(EarlierLogId(log, start)), start)
                moved.append(MovedLog(log, place.log, reader))
            else:
                place = EarlierResults(log, start)
            self._held.setdefault(output, []).append(place)
        for output in change.removed_outputs:
            self._held.pop(output, None)
        return Change(moved=moved, meta=self._remembered())

    def keeps(self, log: str, reader: str) -> bool:
        """Whether a reader of a log has still to read it, although its output reads another."""
        found = OutputReader.parse(reader)
        held = self._held.get(found.output, ()) if found is not None else ()
        return any(place.log == log for place in held)

    def got(self, output: str) -> Change:
        """All of the oldest was read."""
        place, *rest = self._held.pop(output)
        if rest:
            self._held[output] = rest
        reader = str(OutputReader(output))
        others = [p.log for held in self._held.values() for p in held]
        own = EarlierLogId.parse(place.log) is not None and place.log not in others
        gone = Forgotten([place.log] if own else [], [(place.log, reader)])
        return Change(meta=self._remembered(), forgotten=gone)

    def _remembered(self) -> dict[str, str]:
        held = {o: [(p.log, p.until) for p in places] for o, places in self._held.items()}
        return {EARLIER: json.dumps(held)}
