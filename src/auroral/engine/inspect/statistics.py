"""What can be seen of a running engine."""

from __future__ import annotations

import statistics as st
import time
from collections.abc import Mapping, Sequence
from typing import Any

from auroral.boxes import Filter, Map
from auroral.boxes.filter import REST
from auroral.continuous.boxing.gates import running_names
from auroral.engine.inspect.cautions import infeasible_outputs
from auroral.engine.queries.catalogue import summed
from auroral.engine.queries.registry import QueryRegistry
from auroral.engine.runtime.eddy_step import EddyStep
from auroral.engine.runtime.kernel_run import LATE
from auroral.engine.runtime.watermarks import origins_log
from auroral.engine.topology.execution import Execution
from auroral.errors import UsageError, closest, list_existing, require_name
from auroral.ids import ArcId, EddyId, PartBoxId
from auroral.network.check import CheckedNetwork, TypedArc
from auroral.network.declarations import notes
from auroral.network.network import Network
from auroral.network.superboxes import boxes_of
from auroral.scheduling.costs import BoxCost
from auroral.scheduling.flow_models import flow_model
from auroral.scheduling.superboxes import Superbox
from auroral.scheduling.table_stages import statement_of
from auroral.storage import Store

_LATE_PREFIX = "late: "
_NOTHING_QUEUED: Mapping[str, Any] = {"queued": 0, "oldest_s": None}


def statistics(
    execution: Execution, store: Store, queries: QueryRegistry, *, wall: bool
) -> dict[str, Any]:
    """Counts, times and marks as plain data."""
    checked, watermarks, outputs = execution.plan.unmoved, execution.watermarks, execution.outputs
    superboxes, stateful = execution.superboxes, execution.stateful
    with store.lock:
        counts, costs = dict(store.counters), dict(store.costs)
    late_counts = {key: n for key, n in counts.items() if key[1].startswith(_LATE_PREFIX)}
    displaced = execution.checked.displaced
    progress = {arc: marks for arc, marks in watermarks.shown().items() if arc not in displaced}
    rates = execution.context.rates.all(time.monotonic())
    streams = {
        name: {
            "in": counts.get((name, "in"), 0),
            "rate": round(rates.get(name, 0.0), 3),
            "dead": counts.get((name, "dead"), 0),
            "waiting": _waiting(store, log, superboxes),
            "progress": progress.get(log, {}),
            **({"late": _reasons(late_counts, name)} if log != name else {}),
            **({"origins": origins} if (origins := _origins(execution, store, log)) else {}),
        }
        for name, log in running_names(checked.network).items()
    }
    queues = _queues(execution)
    arcs = {
        name: {
            "tuples": _passed(checked, counts, costs, arc),
            "progress": progress.get(name, {}),
            **queues.get(name, _NOTHING_QUEUED),
        }
        for name, arc in checked.arcs.items()
        if arc.producer in checked.network.boxes and not PartBoxId.parse(arc.producer)
    }
    for name, log in running_names(checked.network).items():
        streams[name] |= queues.get(log, _NOTHING_QUEUED)
    boxes: dict[str, dict[str, Any]] = {
        name: {"dead": counts.get((name, "dead"), 0), **_measured(costs.get(name, BoxCost()))}
        for name in checked.network.boxes
        if name not in streams and not PartBoxId.parse(name)
    }
    for name, found in _queued(execution).items():
        if name in boxes:
            boxes[name] |= found
    for name, box in stateful.items():
        if name in streams:
            continue
        state = box.state()
        boxes[PartBoxId.owner(name)] |= {
            "late": _reasons(late_counts, name),
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
    quality = _quality(execution, costs)
    recent = list(execution.stepper.durations_s)
    steps = sum(value for (entity, _), value in counts.items() if entity == "steps")
    registered = queries.catalogue.statistics()
    late = sum(value for (_, name), value in counts.items() if name == "late")
    late += sum(query.get("late", {}).get(why, 0) for query in registered.values() for why in LATE)
    for name, query in registered.items():
        if not query["shared"]:
            own = [box for box in boxes if queries.standalone.running.owner(box) == name]
            query["late"] = summed([_reasons(late_counts, box) for box in own])
    return {
        "streams": streams,
        "arcs": arcs,
        "boxes": boxes,
        "outputs": shown,
        "qos": quality,
        "qos_outside": _outside(quality),
        "queries": registered,
        "eddies": {
            EddyId(box.arcs).joined: box.statistics()
            for box in stateful.values()
            if isinstance(box, EddyStep)
        },
        "tables": _tables(execution, counts),
        "scheduler": _scheduling(execution),
        "memory": memory.statistics() if (memory := execution.context.memory) else {},
        "optimizer": execution.context.optimizer.statistics(
            execution.plan.subnetworks, execution.plan.epoch.moves
        ),
        "steps": {
            "count": steps,
            "median_s": round(st.median(recent), 6) if recent else None,
            "last_s": round(recent[-1], 6) if recent else None,
            "loop_s": keeper.loop_s if (keeper := execution.context.statistics) else None,
        },
        "late": late,
        "dead": sum(value for (_, name), value in counts.items() if name == "dead"),
        "moments": store.next_moment,
    }


def _outside(quality: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Which outputs are outside their good zone, and what share of all: dynamic analysis [1 §4.4].

    >>> _outside({"alerts": {"good_zone": False}, "all": {"good_zone": True}})
    {'share': 0.5, 'outputs': ['alerts']}
    """
    names = [name for name, one in quality.items() if not one["good_zone"]]
    return {"share": round(len(names) / max(len(quality), 1), 6), "outputs": names}


def _passed(
    checked: CheckedNetwork,
    counts: Mapping[tuple[str, str], int],
    costs: Mapping[str, BoxCost],
    arc: TypedArc,
) -> int:
    """How many tuples an arc has carried; what nobody reads follows from what boxes got."""
    counted = counts.get((arc.name, "tuples"))
    cost = costs.get(arc.producer)
    box = checked.network.boxes[arc.producer]
    if counted is not None or cost is None or not isinstance(box, Filter | Map):
        return counted or 0
    if not arc.port:
        return cost.tuples_out
    if arc.port != REST:
        return 0
    others = list(box.predicates) if isinstance(box, Filter) else []
    known = [counts.get((str(ArcId(arc.producer, port)), "tuples")) for port in others]
    return max(cost.tuples_in - sum(n for n in known if n), 0) if None not in known else 0


def _queues(execution: Execution) -> dict[str, dict[str, Any]]:
    """What waits on each arc that is read from a log: for the slowest of its readers."""
    store, times = execution.context.store, execution.context.times
    found: dict[str, dict[str, Any]] = {}
    for superbox in execution.superboxes:
        for source in superbox.sources:
            head = store.head(source, superbox.name)
            held = [segment for segment in store.segments(source, head) if segment.file]
            rows = round(sum(segment.rows_from(head) for segment in held))
            first = max(min((segment.first for segment in held), default=head), head)
            if rows and rows > found.get(source, _NOTHING_QUEUED)["queued"]:
                found[source] = {"queued": rows, "oldest_s": times.age_s(first)}
    return found


def _queued(execution: Execution) -> dict[str, dict[str, Any]]:
    """What waits for the boxes that read logs, how old it is, and how urgent its scheduler is."""
    stepper, scheduler = execution.stepper, execution.stepper.scheduler
    found: dict[str, dict[str, Any]] = {}
    for superbox in execution.superboxes:
        waiting = stepper.waiting_tuples(superbox.name)
        queue = scheduler.table.queues.get(superbox.name) if scheduler is not None else None
        age_s = execution.context.times.age_s(waiting.first) if waiting.rows else None
        for at, box in enumerate(superbox.boxes):
            reads = at == 0 or any(
                arc.name in superbox.sources for arc in execution.checked.inputs_of(box)
            )
            found[box] = {
                "queued": waiting.rows if reads else 0,
                "oldest_s": age_s if reads else None,
                "resident": round(waiting.resident, 6) if reads else 1.0,
                "priority": queue.priority if queue is not None else None,
                "superbox": superbox.name,
            }
            if (halt := stepper.halted.get(superbox.name)) is not None:
                found[box]["halted"] = halt.message
    return found


def _scheduling(execution: Execution) -> dict[str, Any]:
    """How it is decided what runs next, and what that has cost."""
    scheduler = execution.stepper.scheduler
    if scheduler is None:
        return {"scheduler": "thread-per-box", "reasons": []}
    return {**scheduler.chosen(), **vars(scheduler.effort)}


def _quality(execution: Execution, costs: Mapping[str, BoxCost]) -> dict[str, dict[str, Any]]:
    """How outputs do, and of which graphs more is asked than was measured."""
    quality = execution.context.quality
    outputs, found = quality.flow_outputs(), quality.statistics()
    if any(one.qos is not None and one.qos.latency is not None for one in outputs.values()):
        model = flow_model(execution.checked, costs, outputs)
        for caution in infeasible_outputs(model, costs):
            output = found.get(caution.where.removeprefix("output "))
            if output is not None:  # an epoch may have begun meanwhile
                output["infeasible"] = caution.message
    return found


def _measured(cost: BoxCost) -> dict[str, Any]:
    """What a box costs, and how many tuples come out of it."""
    return {
        "cost_s": cost.cost_s,
        "call_s": cost.call_s,
        "selectivity": cost.selectivity,
        "calls": cost.calls,
        "in": cost.tuples_in,
        "out": cost.tuples_out,
        "seconds": cost.seconds,
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
    """How many tuples of a box were late, by reason; `counts` are those of late tuples."""
    return {
        name.removeprefix(_LATE_PREFIX): counts[entity, name]
        for entity, name in sorted(key for key in counts if key[0] == box)
    }


def entities(network: Network, queries: Sequence[str] | None = None) -> dict[str, list[str]]:
    """Names by kind; queries are those that are registered now, if they are known.

    Boxes are those of superboxes, too, and the instances of superboxes.
    """
    declared = network.compact or network
    return {
        "streams": list(network.streams),
        "tables": list(network.tables),
        "superboxes": list(declared.superboxes),
        "boxes": [*network.boxes, *declared.instances],
        "queries": list(network.queries if queries is None else queries),
        "functions": list(network.functions),
        "connection_points": list(network.connection_points),
        "views": list(network.views),
        "groups": list(network.groups),
        "outputs": list(network.outputs),
    }


def describe_entity(
    name: str, running: Network, checked: CheckedNetwork, stats: Mapping[str, Any]
) -> dict[str, Any]:
    """Everything known of a part of the network as it was declared, or of a box or arc that runs.

    `running` is the network that the engine was given, `checked` that of all boxes.
    """
    require_name(name, "a stream, box, arc or output")
    network, declared = checked.network, running.compact or running
    found: dict[str, Any] = {"name": name}
    if name in running.streams:
        stream = running.streams[name]
        found |= {"kind": "stream", **stream.document(), **stats["streams"][name]}
    elif name in network.boxes:
        box = network.boxes[name]
        ports = {arc.name: str(arc.schema) for arc in checked.outputs_of(name)}
        counts = {arc: stats["arcs"][arc] for arc in ports}
        found |= {"kind": "box", **box.document(), "box": box.box, "arcs": ports, "stats": counts}
        found["statistics"] = stats["boxes"].get(name, {})
    elif name in declared.instances:
        inner = boxes_of(running, [name])
        found |= {"kind": "instance", **declared.instances[name].document(), "boxes": inner}
        found["arcs"] = {
            arc: {"arc": of, "schema": str(checked.arcs[of].schema)}
            for arc, of in running.aliases.items()
            if ArcId.parse(arc).producer == name
        }
        found["stats"] = {box: stats["boxes"][box] for box in inner if box in stats["boxes"]}
    elif name in declared.superboxes:
        used = [own for own, one in declared.instances.items() if one.box == name]
        found |= {"kind": "superbox", **declared.superboxes[name].document(), "instances": used}
    elif name in declared.connection_points:
        point = declared.connection_points[name].document()
        found |= {"kind": "connection point", **point}
    elif name in declared.views:
        view, kept = declared.views[name].document(), stats["connection_points"].get(name)
        found |= {"kind": "view", **view, "runs": kept is not None, **(kept or {})}
    elif name in network.tables:
        found |= {"kind": "table", **network.tables[name].document()}
    elif name in checked.arcs:
        arc = checked.arcs[name]
        found |= {"kind": "arc", "schema": str(arc.schema), **stats["arcs"].get(name, {})}
    if name in stats["outputs"]:
        output = declared.outputs[name].document() if name in declared.outputs else {}
        found["output"] = {**output, **stats["outputs"][name]}
        found.setdefault("kind", "output")
    if name in stats["qos"]:
        found["quality"] = stats["qos"][name]
    if name in stats["queries"]:
        query = declared.queries.get(name)
        found |= {"kind": "query", **notes(query and query.document()), **stats["queries"][name]}
    if name in declared.groups:
        group = declared.groups[name]
        found["group"] = {"members": list(group.members), **notes(group.document())}
        found.setdefault("kind", "group")
    if "kind" not in found:
        arcs = [arc for arc in checked.arcs if "@" not in arc]
        names = [*arcs, *network.tables, *network.outputs, *stats["queries"]]
        names += [*declared.instances, *declared.superboxes, *declared.groups, *declared.views]
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
