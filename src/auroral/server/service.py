"""The engine as the server uses it: its network and versions, changes one at a time."""

from __future__ import annotations

import copy
import datetime as dt
import hashlib
import json
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from auroral.engine import Engine
from auroral.engine.lifecycle.edits import read_edit
from auroral.errors import AuroralError, NetworkError, RunError, UsageError, closest, list_existing
from auroral.ids import MemberId
from auroral.network.network import Network
from auroral.network.positions import DocumentPositions
from auroral.qos.graphs import QoS
from auroral.server.allowed import AllowedReferences
from auroral.server.audit import AuditLog
from auroral.server.feeds import Feed
from auroral.server.models import LayoutChange, StudioLayout
from auroral.server.network_file import NetworkFile
from auroral.server.problems import RequestError
from auroral.server.settings import ServerSettings
from auroral.server.taking import TakenPages

_log = logging.getLogger("auroral.server")


@dataclass(frozen=True)
class MadeChange:
    """A change of the network that was made: what it changed, and the versions around it."""

    report: dict[str, list[str]]
    before: str
    after: str


class EngineService:
    """What all requests share: the engine, its network file, and what may be named."""

    def __init__(
        self,
        engine: Engine,
        settings: ServerSettings,
        *,
        file: NetworkFile | None = None,
        state: Path | None = None,
    ):
        self.engine = engine
        self.settings = settings
        self.file = file
        self.durable = state is not None
        self.feeds: list[Feed] = []
        """Other ways in that were started beside this one."""
        self.started_at = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
        self.allowed = AllowedReferences.of(
            engine.network.compact or engine.network,
            settings.modules,
            settings.roots,
            (
                *settings.protected,
                *(() if file is None else file.files),
                *(() if state is None else (state,)),
            ),
        )
        self.audit = AuditLog(None if state is None else state / "audit.jsonl")
        self._changes = threading.Lock()
        """Held while the network changes, so that a version that was checked still holds."""
        self.taken = TakenPages()
        """Results that may not have arrived."""
        self._layout = StudioLayout()
        self._layouts = threading.Lock()
        """Held while the layout changes, so that nobody's change is lost."""
        self._judging = threading.Lock()
        """Held while graphs change, so that what is said of them is what the engine has."""
        self.set_graphs: dict[str, QoS | None] = {}
        """Graphs that were set here and hold in place of declared ones."""
        self.qos_version = 0
        self._known: tuple[Network | None, tuple[str, ...], dict[str, Any], str] = (
            None,
            (),
            {},
            "",
        )

    # ── the network that runs ──

    @property
    def network(self) -> Network:
        """The network as it was declared, whatever queries have come and gone since."""
        return self.engine.network.compact or self.engine.network

    def document(self) -> dict[str, Any]:
        """The network as its file would have it, with the queries that run now."""
        return self.declared()[0]

    def declared(self) -> tuple[dict[str, Any], str]:
        """The document and its version, of one moment."""
        _, _, document, version = self._declared()
        return copy.deepcopy(document), version

    @property
    def version(self) -> str:
        """What tells this network from any other: the value of `ETag`."""
        return self._declared()[3]

    def _declared(self) -> tuple[Network | None, tuple[str, ...], dict[str, Any], str]:
        network, added = self.network, self.added_queries()
        gone = network.queries.keys() - set(self.engine.list_entities()["queries"])
        key = (*(f"{name}={sql}" for name, sql in added.items()), *sorted(gone))
        known = self._known
        if known[0] is network and known[1] == key:
            return known
        document = network.document()
        if added or gone:
            queries = {**document.get("queries", {}), **added}
            document["queries"] = {n: one for n, one in queries.items() if n not in gone}
        self._known = (network, key, document, version_of(document))
        return self._known

    def added_queries(self) -> dict[str, str]:
        """The SQL of queries that were added while the engine ran; families are left out."""
        declared = self.network.queries
        names = [n for n in self.engine.list_entities()["queries"] if n not in declared]
        if not names:
            return {}
        found = self.engine.stats()["queries"]
        return {n: found[n]["sql"] for n in names if n in found and "members" not in found[n]}

    def version_or_last(self) -> str:
        """The version, also of an engine that has failed."""
        try:
            return self.version
        except AuroralError:
            return self._known[3]

    def set_qos(self, output: str, graphs: Any) -> None:
        """Judge an output by other graphs from now on."""
        with self._judging:
            self.engine.set_qos(output, graphs)
            qos = None if graphs is None else QoS.model_validate(graphs)
            self.set_graphs = {**self.set_graphs, output: qos}
            self.qos_version += 1

    def failure(self) -> AuroralError | None:
        """Why the engine does nothing more; None while it runs."""
        try:
            self.engine.list_entities()
            self.engine.wait(0)
        except AuroralError as error:
            return error
        return None

    def require_not_behind(self) -> None:
        """Refuse tuples while the engine has more to do than it should."""
        if self.engine.backlog() >= self.settings.limits.backlog:
            raise RequestError(
                429,
                "BEHIND",
                "the engine has too much to do; nothing was taken",
                hint="send it again later",
                headers={"Retry-After": "1"},
            )

    # ── networks from the wire ──

    def parse(self, document: Mapping[str, Any], positions: DocumentPositions) -> Network:
        """A network from the wire; refused if it names what it may not."""
        network = Network.parse(document, positions, self.network.directory)
        self.allowed.require(network)
        return network

    def deploy(
        self,
        document: Mapping[str, Any],
        positions: DocumentPositions,
        *,
        match: str | None = None,
        dry_run: bool = False,
    ) -> MadeChange:
        """Put another network in the place of the one that runs, or tell what that would do."""
        wanted = self.parse(document, positions)
        with self._changes:
            self._require_version(match)
            self._take_name(wanted)
            added = self.added_queries()
            same = [n for n, sql in added.items() if _is_plain(wanted, n, sql)]
            gone = [n for n in added if n not in wanted.queries]
            # A query that was added while the engine ran stays what it is.
            wanted.queries = {n: q for n, q in wanted.queries.items() if n not in same}
            if dry_run:
                version = self.version
                report = self.engine.preview_change(network=wanted, remove=gone)
                return MadeChange(report, version, version)
            return self._kept(lambda: self.engine.modify(network=wanted, remove=gone))

    def _take_name(self, wanted: Network) -> None:
        """Give a network the name of the one that runs, if that is empty: else it must have it.

        The name is the identity of a state directory.
        """
        name = self.network.name
        if wanted.name != name and set(self.network.document()) - {"network", "engine"}:
            raise NetworkError(
                "CANNOT_CHANGE",
                f"the network that runs is called {name}, found {wanted.name}",
                where=wanted.place("network"),
                hint=f"network: {name}",
            )
        wanted.name = name

    def modify(self, add: Mapping[str, Any], remove: list[str]) -> MadeChange:
        """Add and remove parts of the network."""
        with self._changes:
            edit = read_edit(self.network, add, remove, None)
            self.allowed.require(edit.network or self._with_queries(edit.add))
            return self._kept(lambda: self.engine.modify(add=add, remove=remove))

    def preview_modify(self, add: Mapping[str, Any], remove: list[str]) -> dict[str, list[str]]:
        """What `modify` would do."""
        edit = read_edit(self.network, add, remove, None)
        self.allowed.require(edit.network or self._with_queries(edit.add))
        return self.engine.preview_change(add=add, remove=remove)

    def remove_query(self, name: str) -> MadeChange:
        """Remove a query, or a member of a family; nothing else."""
        found = self.engine.list_entities()["queries"]
        family = MemberId.parse(name).family
        if name not in found and family not in found:
            raise UsageError(
                "UNKNOWN_QUERY",
                f"there is no query {name}; {list_existing(found)}",
                hint=closest(name, found),
            )
        with self._changes:
            return self._kept(lambda: self.engine.modify(remove=[name]))

    def _with_queries(self, queries: Mapping[str, Any]) -> Network:
        """A network of some queries alone, to look at what they name."""
        found = Network(self.network.name, directory=self.network.directory)
        for name, given in queries.items():
            if isinstance(given, (str, Mapping)):  # else rows of a family that is there
                found.declare("queries", name, given)
        return found

    def _require_version(self, match: str | None) -> None:
        if match is None or match.strip() == "*":
            return
        given = {one.strip().removeprefix("W/") for one in match.split(",")}
        if not given & {self.version, self.version.strip('"')}:
            raise RequestError(
                412,
                "CHANGED_MEANWHILE",
                "the network is not the version that was asked for any more",
                hint="fetch it again, and make the change to what is there now",
                headers={"ETag": self.version},
            )

    def _kept(self, change: Callable[[], dict[str, list[str]]]) -> MadeChange:
        """Make a change, and let the network file say what runs; `_changes` is held.

        Nothing is changed if the file cannot be written. If that fails afterwards, who asked is
        told that the change is made and not kept; the next change writes the file again.
        """
        before = self.version_or_last()
        if self.file is None:
            report = change()
            return MadeChange(report, before, self.version_or_last())
        self.file.require_writable()
        report = change()
        document, after = self.declared()
        try:
            self.file.write(document)
        except UsageError as error:
            raise RunError(
                "NOT_KEPT",
                f"the change is made, but the network file does not say so: {error.message}",
                where=error.where,
                hint="a restart would undo it; make room, and deploy again what runs",
            ) from None
        return MadeChange(report, before, after)

    # ── the canvas ──

    def layout(self) -> StudioLayout:
        """Where people put things on the canvas; nothing yet if the file cannot be read."""
        try:
            return self._layout_to_change()
        except UsageError as error:
            _log.warning("%s", error)
            return StudioLayout()

    def _layout_to_change(self) -> StudioLayout:
        return self._layout if self.file is None else self.file.layout()

    def save_layout(self, layout: StudioLayout) -> None:
        """Keep where people put things on the canvas; without a file, while the server runs."""
        with self._layouts:
            self._save(layout)

    def change_layout(self, change: LayoutChange) -> None:
        """Keep what one person has changed; what others have changed meanwhile stays."""
        with self._layouts:
            self._save(change.applied(self._layout_to_change()))

    def _save(self, layout: StudioLayout) -> None:
        self._layout = layout
        if self.file is not None:
            self.file.save_layout(layout)

    def close(self) -> None:
        """End the engine."""
        try:
            self.engine.shutdown()
        finally:
            self.audit.close()


def version_of(document: Mapping[str, Any]) -> str:
    """The version of a network's document, as an ETag."""
    text = json.dumps(document, ensure_ascii=True)
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:16]}"'


def _is_plain(network: Network, name: str, sql: str) -> bool:
    """Whether a network declares a query by this text, and says nothing else of it."""
    return name in network.queries and network.queries[name].document() == sql
