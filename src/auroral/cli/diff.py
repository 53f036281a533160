"""`auroral diff`: what an edited network file would change in a state directory."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from auroral.cli.check import NetworkFile
from auroral.continuous.boxing.gates import gated
from auroral.engine.lifecycle.epochs import RUNNING
from auroral.engine.lifecycle.fates import compare, report
from auroral.engine.topology.identity import identity, restored
from auroral.errors import StateError
from auroral.ids import ArcId
from auroral.network.data_sets import with_data_sets
from auroral.network.network import Network
from auroral.network.queries import Query
from auroral.storage import QueryRow
from auroral.storage.identity import canonical, difference
from auroral.storage.snapshot import ManifestSnapshot


def diff(
    state: Annotated[Path, typer.Argument(metavar="STATE", help="the state directory")],
    file: NetworkFile,
) -> None:
    """Tell what `auroral run FILE --state STATE` would change, without doing it."""
    given = with_data_sets(Network.load(file).flattened())
    with ManifestSnapshot(state) as manifest:
        stored, running = manifest.meta("network"), manifest.meta(RUNNING)
        rows = manifest.queries()
    if stored is None or running is None:
        raise StateError("NO_STATE", "no network has run in this directory", where=str(state))
    wanted = canonical(identity(given, ()))
    if json.loads(stored).get("network") != given.name:
        raise StateError(
            "STATE_OF_OTHER_NETWORK",
            f"the state directory belongs to {difference(json.loads(stored), wanted)}",
            where=str(state),
        )
    before = copy.copy(restored(json.loads(running), given).network)
    before.queries = _declared(rows, given)
    plain = [_without_queries(network) for network in (before, given)]
    checked = [gated(network).check() for network in plain]
    found = report(before, given, compare(checked[0], checked[1], (before, given)))
    lines = [f"{what:8} {', '.join(names)}" for what, names in found.items() if names]
    typer.echo("\n".join(lines) if lines else "nothing changes")


def _without_queries(network: Network) -> Network:
    plain = copy.copy(network.flattened())
    outputs = plain.outputs.items()
    plain.outputs = {n: o for n, o in outputs if ArcId.parse(o.from_).producer not in plain.queries}
    plain.queries = {}
    return plain


def _declared(rows: Iterable[QueryRow], given: Network) -> dict[str, Query]:
    """The queries that the file declared when the state was left; values of families aside."""
    found: dict[str, Query] = {}
    for row in rows:
        if row.declared is None or row.until is not None:
            continue
        declared, now = json.loads(row.declared), given.queries.get(row.name)
        same = now is not None and (now.sql, now.results) == (declared["sql"], declared["results"])
        found[row.name] = now if same and now is not None else Query(declared["sql"])
    return found
