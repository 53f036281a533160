"""What a call of `modify` asks for, read and checked against the queries there are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from auroral.eddy.families import family_of
from auroral.eddy.query_index import Draft, QueryIndex
from auroral.eddy.registered import RegisteredQuery
from auroral.engine.lifecycle.standalone import StandaloneQuery
from auroral.engine.queries.catalogue import Catalogue
from auroral.engine.queries.registrar import Registrar
from auroral.errors import NetworkError, UsageError, closest, list_existing
from auroral.ids import ChunkId
from auroral.network.queries import Query


@dataclass
class Modification:
    """What a call of `modify` changes, read and checked; nothing of it is true yet."""

    entries: list[RegisteredQuery] = field(default_factory=list)
    standalone: list[StandaloneQuery] = field(default_factory=list)
    removed: list[RegisteredQuery] = field(default_factory=list)
    unboxed: list[str] = field(default_factory=list)
    members: dict[str, list[int]] = field(default_factory=dict)
    """By entry, the members of a family that go."""
    by_network: bool = False
    """Whether it is the network that says so; what it adds is declared."""
    drafts: dict[str, Draft] = field(default_factory=dict)
    """By arc its predicates as they will be."""
    files: dict[str, str | None] = field(default_factory=dict)
    """By entry where the values of a family are."""

    @property
    def changes_boxes(self) -> bool:
        """Whether queries come or go that run as boxes of their own."""
        return bool(self.standalone or self.unboxed)


class ModificationReader:
    """Reads modifications; it changes nothing."""

    def __init__(
        self,
        query_index: QueryIndex,
        standalone: Mapping[str, StandaloneQuery],
        catalogue: Catalogue,
        registrar: Registrar,
    ):
        self._query_index = query_index
        self._boxed = standalone
        self._catalogue = catalogue
        self._registrar = registrar

    def read(self, add: Mapping[str, Any], remove: Sequence[str]) -> Modification:
        """What is to come and to go; a mistake says which query, and nothing has happened."""
        wanted = Modification()
        self._remove(dict.fromkeys(remove), wanted)
        for entry in wanted.removed:  # its members go with it
            wanted.members.pop(entry.name, None)
        going = {*(family_of(entry.name) for entry in wanted.removed), *wanted.unboxed}
        fresh: dict[str, Query] = {}
        for name, given in add.items():
            if given is None or isinstance(given, bool | int | float):
                what = "SQL, a Query, a Family, or rows of a family that is there"
                raise UsageError("BAD_CALL", f"{name}: expected {what}, found {given!r}")
            if not isinstance(given, str | Query | Mapping) and name not in going:
                wanted.entries += self._more(name, given, wanted.members)
            else:
                self._require_free(name, going)
                fresh[name] = self._registrar.query(name, given)
        entries, wanted.standalone = self._registrar.read(fresh)
        wanted.entries += entries
        return wanted

    def _remove(self, names: Iterable[str], wanted: Modification) -> None:
        members = []
        for name in names:
            chunks = self._catalogue.chunks(name)
            if chunks:
                wanted.removed += chunks
            elif name in self._boxed:
                self._registrar.require_removable(name)
                wanted.unboxed.append(name)
            else:
                members.append(name)
        for entry, member in self._catalogue.members(members).values():
            wanted.members.setdefault(entry.name, []).append(member)

    def _more(
        self, name: str, rows: Any, going: Mapping[str, Sequence[int]]
    ) -> list[RegisteredQuery]:
        """More members of a family; nothing if there are no rows."""
        family = self._query_index.families.get(name)
        if family is None:
            names = list(self._query_index.families.names())
            raise UsageError(
                "UNKNOWN_QUERY",
                f"there is no family {name} to add rows to; {list_existing(names)}",
                hint=closest(name, names) or "a query is SQL text, a Query or a Family",
            )
        if isinstance(rows, list) and not rows:
            return []
        fields = self._catalogue.schema(name)
        assert fields is not None
        entry = self._registrar.more(name, family.query, rows, fields, family.key_type)
        assert entry.keys is not None
        twice = family.taken(entry.keys, going)
        if twice is not None:
            raise NetworkError("DUPLICATE_NAME", f"the family {name} has a member {twice} already")
        entry.name = str(ChunkId(name, family.last_number + 1))
        return [entry] if entry.count else []

    def _require_free(self, name: str, going: set[str]) -> None:
        self._registrar.require_name(name)
        if name in going or not (name in self._boxed or self._catalogue.chunks(name)):
            return
        hint = "to replace it, remove it in the same call"
        if self._query_index.families.get(name) is not None:
            hint += "; for more members give rows, an Arrow table or a pandas frame, not a path"
        raise NetworkError("DUPLICATE_NAME", f"there is a query {name} already", hint=hint)


def requested(add: Any, remove: Any) -> tuple[Mapping[str, Any], list[str]]:
    """What a call of `modify` asks for, if it is names and what to put under them."""
    if not isinstance(add or {}, Mapping) or not all(isinstance(name, str) for name in add or {}):
        raise UsageError("BAD_CALL", "add maps names to queries, families or rows")
    names = [remove] if isinstance(remove, str) else remove
    names = list(names) if isinstance(names, Iterable) else [names]
    if not all(isinstance(name, str) for name in names):
        raise UsageError("BAD_CALL", "remove lists names of queries, families or members")
    return add or {}, names
