"""What becomes of boxes, streams and outputs when a network changes (pure)."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from auroral.ids import HistoryReader, OutputReader, QueryBoxId, is_eddy, owner_of
from auroral.network.box import Box
from auroral.network.check import CheckedNetwork
from auroral.network.network import NAMED, Network
from auroral.storage import Forgotten

_WORD = re.compile(r"[a-z][a-z0-9_]*")


class Fate(StrEnum):
    """What becomes of a box or a stream."""

    SAME = "same"
    ADDED = "added"
    REMOVED = "removed"
    REBUILT = "rebuilt"
    """It is declared otherwise, and remembers nothing."""
    KEPT = "kept"
    """It is declared otherwise and goes on with its state."""
    DRAINED = "drained"
    """Its windows close, as at the end of the input, before it begins anew."""
    RESET = "reset"
    """It begins anew, without its state."""


@dataclass(frozen=True)
class NetworkChange:
    """What becomes of the parts of a running network; query boxes and eddies are not in it."""

    boxes: Mapping[str, Fate]
    streams: Mapping[str, Fate]
    """By the name that the running network has for them."""
    outputs: Mapping[str, Fate]
    retyped: frozenset[str]
    """Arcs that are in both networks, with other fields."""
    gone_arcs: frozenset[str]
    """Arcs that are no more."""
    rewound: frozenset[str]
    """Streams whose progress is declared for another field or other groups."""

    @property
    def drained(self) -> list[str]:
        return _having(self.boxes, Fate.DRAINED)

    @property
    def blocks_streams(self) -> bool:
        """Whether logs of streams change: then nothing may read them beyond the change."""
        return bool(self.rewound) or any(
            fate in (Fate.REMOVED, Fate.RESET) for fate in self.streams.values()
        )

    @property
    def removed_outputs(self) -> list[str]:
        return _having(self.outputs, Fate.REMOVED)

    @property
    def renewed_outputs(self) -> list[str]:
        """Outputs that read another arc, or one that has other fields."""
        return _having(self.outputs, Fate.RESET)

    @property
    def leaving_outputs(self) -> list[str]:
        """Outputs whose unread results cannot be read after the change."""
        return _having(self.outputs, Fate.REMOVED, Fate.RESET)

    def is_untouched(self, boxes: Iterable[str], sources: Iterable[str]) -> bool:
        """Whether boxes stay as they are, and so does what they read."""
        kept = all(self.boxes.get(box, Fate.SAME) == Fate.SAME for box in boxes)
        return kept and self.retyped.isdisjoint(sources) and self.rewound.isdisjoint(sources)

    def forgotten(
        self,
        logs: Iterable[str],
        cursors: Iterable[tuple[str, str]],
        progress: Iterable[str],
        counters: Iterable[tuple[str, str]],
        costs: Iterable[str],
    ) -> Forgotten:
        """What nobody needs any more, of all that a store has."""
        removed = {*_having(self.boxes, Fate.REMOVED), *_having(self.streams, Fate.REMOVED)}
        renewed = {*_having(self.boxes, Fate.RESET, Fate.DRAINED)}
        readers = {str(OutputReader(output)) for output in self.leaving_outputs}

        def is_gone(log: str) -> bool:
            owner = owner_of(log)
            return owner.name in removed or (owner.is_state and owner.name in renewed)

        places = list(cursors)
        # History with other fields is not continued.
        readers |= {r for log, r in places if log in self.retyped and HistoryReader.parse(r)}
        return Forgotten(
            logs=[log for log in logs if is_gone(log)],
            cursors=[(log, reader) for log, reader in places if is_gone(log) or reader in readers],
            progress=[name for name in progress if self.is_progress_gone(name)],
            counters=[
                (entity, name)
                for entity, name in counters
                if owner_of(entity).name in removed
                or (entity in self.outputs and self.outputs[entity] == Fate.REMOVED)
            ],
            costs=[box for box in costs if box in removed],
        )

    def is_progress_gone(self, name: str) -> bool:
        """Whether nobody needs what was remembered of progress under a name."""
        _, of, box = name.partition(" of ")
        if of:
            return self.boxes.get(box) in (Fate.REMOVED, Fate.RESET, Fate.DRAINED)
        gone = {*_having(self.streams, Fate.REMOVED), *self.rewound}
        return any(name == stream or name.startswith(f"{stream}@") for stream in gone)


def compare(
    before: CheckedNetwork, after: CheckedNetwork, declared: tuple[Network, Network]
) -> NetworkChange:
    """What becomes of each part of one running network in another.

    `declared` are both as users declare them: they have outputs that read queries, too.
    """
    both = before.arcs.keys() & after.arcs.keys()
    retyped = frozenset(arc for arc in both if before.arcs[arc].schema != after.arcs[arc].schema)
    one, other = _own_boxes(before), _own_boxes(after)
    boxes = {name: Fate.ADDED for name in other if name not in one}
    for name in one:
        boxes[name] = Fate.REMOVED if name not in other else _box_fate(name, before, after)
    streams = _fates(
        before.network.streams,
        after.network.streams,
        lambda name: Fate.RESET if name in retyped else Fate.REBUILT,
    )
    given = [{name: output.from_ for name, output in n.outputs.items()} for n in declared]
    outputs = _fates(given[0], given[1], lambda _name: Fate.RESET)
    outputs |= {n: Fate.RESET for n, arc in given[1].items() if n in given[0] and arc in retyped}
    gone = frozenset(before.arcs.keys() - after.arcs.keys())
    rewound = _rewound(before.network, after.network)
    return NetworkChange(boxes, streams, outputs, retyped, gone, rewound)


def reordered(before: CheckedNetwork, after: CheckedNetwork) -> NetworkChange:
    """What becomes of the boxes of a network in which the optimiser has moved some."""
    displaced = before.displaced | after.displaced
    boxes: dict[str, Fate] = {}
    for name, box in after.network.boxes.items():
        known = before.network.boxes.get(name)
        if known is None:
            boxes[name] = Fate.ADDED
        elif not _is_same(known, box) or not displaced.isdisjoint(box.sources()):
            boxes[name] = Fate.KEPT if box.stateful else Fate.REBUILT
    nothing = frozenset[str]()
    return NetworkChange(boxes, {}, {}, nothing, nothing, nothing)


def report(before: Network, after: Network, change: NetworkChange) -> dict[str, list[str]]:
    """What a change does, by what happens: names as `boxes.crowd`.

    `kept`, `drained` and `reset` say what becomes of the state of boxes that are rebuilt.
    """
    found: dict[str, list[str]] = {"added": [], "removed": [], "rebuilt": []}
    for section in NAMED:
        fates = _fates(getattr(before, section), getattr(after, section), lambda _: Fate.REBUILT)
        for name, fate in fates.items():
            if fate != Fate.SAME:
                found[str(fate)].append(f"{section}.{name}")
    indirectly = [
        f"boxes.{name}" for name, fate in change.boxes.items() if fate in (Fate.KEPT, Fate.RESET)
    ]
    known = {*found["rebuilt"], *(f"boxes.{name}" for name in after.boxes)}
    found["rebuilt"] += [n for n in indirectly if n in known and n not in found["rebuilt"]]
    for fate in (Fate.KEPT, Fate.DRAINED, Fate.RESET):
        found[str(fate)] = [f"boxes.{name}" for name in _having(change.boxes, fate)]
    return found


def _own_boxes(checked: CheckedNetwork) -> dict[str, Box]:
    """The boxes of a network without those of queries."""
    return {
        name: box
        for name, box in checked.network.boxes.items()
        if QueryBoxId.query_of(name) is None and not is_eddy(name)
    }


def _box_fate(name: str, before: CheckedNetwork, after: CheckedNetwork) -> Fate:
    one, other = before.network.boxes[name], after.network.boxes[name]
    same_fields = before.schemas_of(name) == after.schemas_of(name)
    declared = one.as_declared(), other.as_declared()
    if _is_same(*declared) and same_fields and not _rests_on(other, _differing(before, after)):
        return Fate.SAME if _is_same(one, other) else Fate.KEPT
    one, other = declared
    if not one.stateful and not other.stateful:
        return Fate.REBUILT
    if not one.stateful or not other.stateful:
        return Fate.RESET
    if other.on_change == "drain":
        return Fate.DRAINED
    fits = same_fields and type(one) is type(other)
    fits = fits and repr(one.state_shape()) == repr(other.state_shape())
    return Fate.KEPT if fits and other.on_change == "keep" else Fate.RESET


def _is_same(one: Box, other: Box) -> bool:
    """Whether two boxes do the same; how they are described, or rebuilt, does not matter."""
    # The order of computed fields and routes matters.
    return type(one) is type(other) and repr(one.meaning()) == repr(other.meaning())


def _differing(before: CheckedNetwork, after: CheckedNetwork) -> set[str]:
    """The functions and tables that are declared otherwise, in lower case."""
    found: set[str] = set()
    for section in ("functions", "tables"):
        one, other = getattr(before.network, section), getattr(after.network, section)
        found |= {name.lower() for name, part in other.items() if one.get(name, part) != part}
    return found


def _rests_on(box: Box, names: Collection[str]) -> bool:
    """Whether a box calls one of some functions, or reads one of some tables."""
    words = set(_WORD.findall(repr(box.meaning()).lower())) if names else set()
    return not words.isdisjoint(names)


def _fates(
    before: Mapping[str, Any], after: Mapping[str, Any], changed: Callable[[str], Fate]
) -> dict[str, Fate]:
    found = {name: Fate.REMOVED for name in before if name not in after}
    for name, declared in after.items():
        if name not in before:
            found[name] = Fate.ADDED
        else:
            found[name] = Fate.SAME if before[name] == declared else changed(name)
    return found


def _rewound(before: Network, after: Network) -> frozenset[str]:
    def promised(network: Network, name: str) -> list[tuple[str, tuple[str, ...]]]:
        return [(p.on, tuple(p.by)) for p in network.streams[name].progressing]

    both = before.streams.keys() & after.streams.keys()
    return frozenset(name for name in both if promised(before, name) != promised(after, name))


def _having(fates: Mapping[str, Fate], *wanted: Fate) -> list[str]:
    return [name for name, fate in fates.items() if fate in wanted]
