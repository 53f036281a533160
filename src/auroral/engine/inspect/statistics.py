"""What can be seen of a running engine."""

from __future__ import annotations

import statistics as st
from collections.abc import Mapping, Sequence
from typing import Any

from auroral.continuous.boxing.gates import running_names
from auroral.engine.queries.catalogue import summed
from auroral.engine.queries.registry import QueryRegistry
from auroral.engine.runtime.eddy_step import EddyStep
from auroral.engine.runtime.kernel_run import LATE
from auroral.engine.runtime.watermarks import origins_log
from auroral.engine.topology.execution import Execution
from auroral.errors import UsageError, closest, list_existing, require_name
from auroral.ids import EddyId, PartBoxId
from auroral.network.check import CheckedNetwork
from auroral.network.declarations import Stream
from auroral.network.network import Network
from auroral.scheduling.superboxes import Superbox
from auroral.scheduling.table_stages import statement_of
from auroral.storage import Store


def statistics(
    execution: Execution, store: Store, queries: QueryRegistry, *, wall: bool
) -> dict[str, Any]:
    """Counts, times and marks as plain data."""
    checked, watermarks, outputs = execution.checked, execution.watermarks, execution.outputs
    superboxes, stateful = execution.superboxes, execution.stateful
    with store.lock:
        counts = dict(store.counters)
    progress = watermarks.shown()
    streams = {
        name: {
            "in": counts.get((name, "in"), 0),
            "dead": counts.get((name, "dead"), 0),
            "waiting": _waiting(store, log, superboxes),
            "progress": progress.get(log, {}),
            **({"late": _reasons(counts, name)} if log != name else {}),
            **({"origins": origins} if (origins := _origins(execution, store, log)) else {}),
        }
        for name, log in running_names(checked.network).items()
    }
    arcs = {
        name: {"tuples": counts.get((name, "tuples"), 0), "progress": progress.get(name, {})}
        for name, arc in checked.arcs.items()
        if arc.producer in checked.network.boxes and not PartBoxId.parse(arc.producer)
    }
    boxes: dict[str, dict[str, Any]] = {
        name: {"dead": counts.get((name, "dead"), 0)}
        for name in checked.network.boxes
        if name not in streams and not PartBoxId.parse(name)
    }
    for name, box in stateful.items():
        if name in streams:
            continue
        state = box.state()
        boxes[PartBoxId.owner(name)] |= {
            "late": _reasons(counts, name),
            "state": state,
            "held": box.held,
        }
    shown: dict[str, dict[str, Any]] = {
        name: {
            "out": counts.get((name, "out"), 0),
            "waiting": waiting,
            "lag_s": outputs.lag_s.get(name) if wall else None,
            "behind_s": outputs.behind_s(name) if wall else None,
        }
        for name in outputs.names
        if (waiting := outputs.waiting(name)) is not None
    }
    behind_s = execution.sinks.behind_s() if wall else {}
    for name, left in execution.sinks.left().items():
        nothing = {"out": 0, "waiting": 0, "lag_s": None, "behind_s": behind_s.get(name)}
        output = shown.setdefault(name, nothing)
        output["left"] = left
        if name in behind_s:  # what is left is older
            output["behind_s"] = behind_s[name]
    for name, error in list(execution.sinks.failed.items()):
        if name in shown:
            shown[name]["failed"] = error.message
    recent = list(execution.stepper.durations_s)
    steps = sum(value for (entity, _), value in counts.items() if entity == "steps")
    registered = queries.catalogue.statistics()
    late = sum(value for (_, name), value in counts.items() if name == "late")
    late += sum(query.get("late", {}).get(why, 0) for query in registered.values() for why in LATE)
    for name, query in registered.items():
        if not query["shared"]:
            own = [box for box in boxes if queries.standalone.running.owner(box) == name]
            query["late"] = summed([_reasons(counts, box) for box in own])
    return {
        "streams": streams,
        "arcs": arcs,
        "boxes": boxes,
        "outputs": shown,
        "queries": registered,
        "eddies": {
            EddyId(box.arcs).joined: box.statistics()
            for box in stateful.values()
            if isinstance(box, EddyStep)
        },
        "tables": _tables(execution, counts),
        "steps": {
            "count": steps,
            "median_s": round(st.median(recent), 6) if recent else None,
            "last_s": round(recent[-1], 6) if recent else None,
        },
        "late": late,
        "dead": sum(value for (_, name), value in counts.items() if name == "dead"),
        "moments": store.next_moment,
    }


def _tables(
    execution: Execution, counts: Mapping[tuple[str, str], int]
) -> dict[str, dict[str, Any]]:
    """The tables that boxes use: where they are, how many tuples used them, what is waited for."""
    checked, waiting = execution.checked, execution.stepper.waiting
    found: dict[str, dict[str, Any]] = {}
    for superbox, step in execution.table_steps.items():
        late = waiting.get(superbox)
        for box in step.superbox.boxes:
            statement = statement_of(checked, box)
            for table in statement.tables:
                entry = found.setdefault(
                    table,
                    {"store": step.database.where, "reads": 0, "updates": 0, "waiting": None},
                )
                use = "updates" if statement.writes == table else "reads"
                entry[use] += counts.get((box, "processed"), 0)
                entry["waiting"] = entry["waiting"] or (late and late.reason)
    return found


def _reasons(counts: Mapping[tuple[str, str], int], box: str) -> dict[str, int]:
    """How many tuples of a box were late, by reason."""
    prefix = "late: "
    return {
        name.removeprefix(prefix): counts[entity, name]
        for entity, name in sorted(key for key in counts if key[0] == box)
        if name.startswith(prefix)
    }


def entities(network: Network, queries: Sequence[str] | None = None) -> dict[str, list[str]]:
    """Names by kind; queries are those that are registered now, if they are known."""
    return {
        "streams": list(network.streams),
        "tables": list(network.tables),
        "boxes": list(network.boxes),
        "queries": list(network.queries if queries is None else queries),
        "functions": list(network.functions),
        "connection_points": list(network.connection_points),
        "groups": list(network.groups),
        "outputs": list(network.outputs),
    }


def describe_entity(
    name: str, streams: Mapping[str, Stream], checked: CheckedNetwork, stats: Mapping[str, Any]
) -> dict[str, Any]:
    """Everything known of a stream as it was declared, or of a box, arc or output that runs."""
    require_name(name, "a stream, box, arc or output")
    network = checked.network
    found: dict[str, Any] = {"name": name}
    if name in streams:
        found |= {"kind": "stream", **streams[name].document(), **stats["streams"][name]}
    elif name in network.boxes:
        box = network.boxes[name]
        ports = {arc.name: str(arc.schema) for arc in checked.outputs_of(name)}
        counts = {arc: stats["arcs"][arc] for arc in ports}
        found |= {"kind": "box", **box.document(), "box": box.box, "arcs": ports, "stats": counts}
    elif name in network.tables:
        found |= {"kind": "table", **network.tables[name].document()}
    elif name in checked.arcs:
        arc = checked.arcs[name]
        found |= {"kind": "arc", "schema": str(arc.schema), **stats["arcs"].get(name, {})}
    if name in stats["outputs"]:
        declared = network.outputs[name].document() if name in network.outputs else {}
        found["output"] = {**declared, **stats["outputs"][name]}
        found.setdefault("kind", "output")
    if name in stats["queries"]:
        found |= {"kind": "query", **stats["queries"][name]}
    if "kind" not in found:
        arcs = [arc for arc in checked.arcs if "@" not in arc]
        names = [*arcs, *network.tables, *network.outputs, *stats["queries"]]
        raise UsageError(
            "UNKNOWN_ENTITY",
            f"there is no {name}; {list_existing(names)}",
            hint=closest(name, names),
        )
    return found


def _origins(execution: Execution, store: Store, stream: str) -> dict[str, Any]:
    """The mark of each source or partition of a stream that has several, and which are idle."""
    with store.lock:
        names = store.manifest.source(origins_log(stream)) or []
    return execution.watermarks.shown_origins(stream, names)


def _waiting(store: Store, stream: str, superboxes: Sequence[Superbox]) -> int:
    readers = [box.name for box in superboxes if stream in box.sources]
    return max((store.rows_since(stream, store.head(stream, r)) for r in readers), default=0)
