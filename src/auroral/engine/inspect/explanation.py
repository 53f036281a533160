"""How a network will run, in words and as Spark's plans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from auroral.eddy.query_index import QueryIndex
from auroral.eddy.routes.routing import RoutedOperator
from auroral.eddy.stems.group import JoinGroup
from auroral.engine.ingest.data_sets import StoredDataSets
from auroral.engine.inspect.box_order import EarlierRun, explained_fields, explained_order
from auroral.engine.queries.registrar import Registrar
from auroral.engine.runtime.watermarks import WatermarkTracker
from auroral.engine.topology.assembly import expanded_network, kernel_runner
from auroral.engine.topology.superboxes import running_superboxes
from auroral.errors import AuroralError
from auroral.ids import EddyId, PartBoxId, QueryBoxId, file_name
from auroral.network.check import CheckedNetwork
from auroral.network.data_sets import with_data_sets
from auroral.network.network import Network
from auroral.network.point_names import point_arcs
from auroral.scheduling.superboxes import Superbox
from auroral.scheduling.trains import DEFAULT_TRAIN
from auroral.spark.plans.plan import log_schemas
from auroral.spark.plans.slots import Slots
from auroral.spark.running.executor import SparkExecutor
from auroral.spark.running.runner import Runner
from auroral.spark.running.stateful_runner import StatefulRunner
from auroral.spark.session.analysis import spark_resolver
from auroral.spark.session.session import start_session, step_session
from auroral.storage.temporary import TemporaryDirectory

_MOST_SHOWN = 20


def explained(network: Network, master: str = "local[*]", earlier: EarlierRun | None = None) -> str:
    """Superboxes, materialised arcs and the Spark plan of each superbox.

    Where boxes may change places is told by the costs of an `earlier` run, if there was one.
    """
    network = with_data_sets(network.flattened())
    session = step_session(start_session(master))
    resolver = spark_resolver(session)
    with TemporaryDirectory() as directory:
        entries, standalone = Registrar(network, resolver).read(network.queries)
        query_index = QueryIndex(directory / "filters")
        first = 1
        for entry in entries:
            entry.first = first
            first = entry.after
        query_index.change(added=entries)
        eddies = query_index.flows()
        described = [line for arcs in eddies for line in _eddy(query_index, arcs)]
    plain = {query.name: query.query for query in standalone}
    checked = expanded_network(network, resolver, plain, eddies).check(resolver)
    outputs = checked.network.outputs.values()
    arcs = [output.from_ for output in outputs if output.from_ in checked.arcs]
    later = checked.not_executable()
    lines = [f"network {network.name}"]
    for name, stream in network.streams.items():
        lines.append(f"  stream {name}: input log, {len(stream.schema_)} fields")
    for name, query in list(network.queries.items())[:_MOST_SHOWN]:
        boxes = [box for box in checked.order if QueryBoxId.query_of(box) == name]
        lines.append(f"  query {name}: {' '.join(query.sql.split())}")
        own = [entry for entry in entries if entry.name == name]
        how = [str(EddyId(arcs)) for arcs in eddies if own and set(own[0].arcs) <= set(arcs)]
        shared = f"shared in {', '.join(how)}" if how else f"runs as {' → '.join(boxes)}"
        lines.append(f"    {shared}")
    if len(network.queries) > _MOST_SHOWN:
        lines.append(f"  and {len(network.queries) - _MOST_SHOWN} queries more")
    lines += described
    lines += _data_sets(network, checked)
    if later:
        kinds = ", ".join(f"{name} ({box.kind})" for name, box in later.items())
        lines.append(f"  declared, not run by this version: {kinds}")
        return "\n".join(lines)
    fused = running_superboxes(checked)
    kept = [*arcs, *point_arcs(network).values(), *(view.from_ for view in network.views.values())]
    idle = set(checked.network.boxes) - {box for superbox in fused for box in superbox.boxes}
    if idle:
        lines.append(f"  leading to no output, not run: {', '.join(sorted(idle))}")
    lines += explained_order(checked, kept, resolver, earlier)
    lines += explained_fields(checked, kept, resolver)
    with TemporaryDirectory() as directory:
        for superbox in fused:
            lines += ["", *_described(checked, superbox)]
            if superbox.tables:
                continue
            lines.append("  Spark plan:")
            tree = _plan(session, checked, superbox, directory)
            lines += [f"    {line}" for line in tree.replace(str(directory), "…").splitlines()]
    return "\n".join(lines)


def _data_sets(network: Network, checked: CheckedNetwork) -> list[str]:
    """How stored data sets are read; those are looked at now."""
    with TemporaryDirectory() as directory:
        try:
            found = StoredDataSets(network, directory, sync=False)
            return list(found.explained(checked, network.engine.train_tuples or DEFAULT_TRAIN))
        except AuroralError as error:
            return [f"  data sets: {error}"]


def _eddy(query_index: QueryIndex, arcs: tuple[str, ...]) -> list[str]:
    """What the queries over some arcs share, and how many there are of each."""
    version = query_index.version(arcs, 0)
    calls = {call.name: call.text for group in version.aggregates for call in group.calls}
    asking = _asking(query_index)
    lines = ["", f"{EddyId(arcs)}: {_queries(version.queries)} in one pass"]
    for name, snapshot in version.filters.items():
        # Windows of joins are predicates too, on attributes no user has written.
        shown = [o for o in snapshot.operators if not o.name.startswith("#")]
        if name not in arcs and not shown:
            continue
        filters = ", ".join(_filter(o, asking[name, o.name], calls) for o in shown) or "none"
        bits, filed = query_index.parts(name).split()
        lines.append(f"  filters of {name}: {filters}")
        lines.append(
            f"    {_queries(bits + filed)}: {bits} in bitmaps, {filed} by access predicates"
        )
    lines += _stems(query_index, version.joins)
    for group in version.joins:
        stems = [_stem(group, n) for n in range(len(group.shape.arcs))]
        windows = f"the latest {group.rows} rows" if group.rows else f"near on {group.shape.on}"
        lines.append(f"  {group.name}: {' ⋈ '.join(stems)}, {windows}")
        lines.append(f"    {_sharing(query_index, group.name)} one join")
    for aggregate in version.aggregates:
        keys = ", ".join(aggregate.shape.by) or "nothing"
        lines.append(f"  {aggregate.name}: panes on {aggregate.shape.on} by {keys}")
        lines.append(f"    {_sharing(query_index, aggregate.name)} partial aggregates")
    return lines


def _asking(query_index: QueryIndex) -> Counter[tuple[str, str]]:
    """How many queries have predicates on each attribute of an arc or a group."""
    found: Counter[tuple[str, str]] = Counter()
    for entry in query_index.entries.values():
        asked = {
            (arc, atom.attribute.text)
            for arc, selection in entry.selections()
            for clause in selection.clauses
            for atom in clause
        }
        found.update(dict.fromkeys(asked, entry.count))
    return found


def _stems(query_index: QueryIndex, joins: Sequence[JoinGroup]) -> list[str]:
    """The SteMs, each with the queries that probe it, in whichever joins."""
    probing: dict[str, list[str]] = {}
    for group in joins:
        for stem in dict.fromkeys(_stem(group, n) for n in range(len(group.shape.arcs))):
            probing.setdefault(stem, []).append(group.name)
    return [
        f"  SteM {stem}: {_queries(_count(query_index, *kinds))}" for stem, kinds in probing.items()
    ]


def _stem(group: JoinGroup, n: int) -> str:
    return f"{group.shape.arcs[n]}({', '.join(group.keys(n))})"


def _filter(operator: RoutedOperator, queries: int, calls: Mapping[str, str]) -> str:
    python = ", Python" if operator.costly else ""
    name = operator.name
    for call, text in calls.items():  # a result of panes is called by a number
        name = name.replace(call, text)
    return f"{name} ({_queries(queries)}{python})"


def _count(query_index: QueryIndex, *kinds: str) -> int:
    return sum(entry.count for entry in query_index.entries.values() if entry.kind in kinds)


def _sharing(query_index: QueryIndex, kind: str) -> str:
    count = _count(query_index, kind)
    return f"{_queries(count)} {'shares' if count == 1 else 'share'}"


def _queries(count: int) -> str:
    """So many queries, in words.

    >>> _queries(1), _queries(2)
    ('1 query', '2 queries')
    """
    return f"{count} {'query' if count == 1 else 'queries'}"


def _plan(
    session: SparkSession, checked: CheckedNetwork, superbox: Superbox, directory: Path
) -> str:
    place = directory / file_name(superbox.name)
    if superbox.stateful:
        watermarks = WatermarkTracker(checked)
        executor = SparkExecutor(session)
        runner = kernel_runner(
            executor, checked, watermarks, superbox, place, buckets=2, progressing={}
        )
        assert isinstance(runner, StatefulRunner)
        return runner.explain()
    schemas = log_schemas(checked, superbox.sources)
    slots = Slots(place, dict.fromkeys(superbox.sources, 1), schemas)
    plan = Runner(session, checked, directory).compile(superbox, slots.files)
    return str(plan.data._jdf.queryExecution().executedPlan().toString())


def _described(checked: CheckedNetwork, superbox: Superbox) -> list[str]:
    lines = [
        f"superbox {superbox.name}",
        f"  reads   {', '.join(superbox.sources)}",
        f"  boxes   {' → '.join(superbox.boxes)}",
        f"  keeps   {', '.join(superbox.terminals)}",
    ]
    for name in superbox.boxes if superbox.tables else ():
        sql = " ".join(getattr(checked.network.boxes[name], "sql", "").split())
        lines.append(f"  runs    {PartBoxId.owner(name)}: {sql}")
    if superbox.stateful:
        kind = checked.network.boxes[superbox.stateful].kind
        lines.append(f"  state   of {superbox.stateful}, by its {kind} kernel in the tasks")
    return lines
