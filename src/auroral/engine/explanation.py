"""How a network will run, in words and as Spark's plans."""

from __future__ import annotations

import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

from auroral.engine.assembly import running, stateful_runner
from auroral.engine.plane import ProgressPlane
from auroral.network.check import CheckedNetwork
from auroral.network.network import Network
from auroral.scheduling.superboxes import Superbox, superboxes
from auroral.spark.analysis import spark_resolver
from auroral.spark.plan import arc_schema
from auroral.spark.runner import Runner
from auroral.spark.session import start_session, step_session
from auroral.spark.slots import Slots


def explained(network: Network, master: str = "local[*]") -> str:
    """Superboxes, materialised arcs and the Spark plan of each superbox."""
    session = step_session(start_session(master))
    resolver = spark_resolver(session)
    checked = running(network, resolver).check(resolver)
    outputs = checked.network.outputs.values()
    arcs = [output.from_ for output in outputs if output.from_ in checked.arcs]
    later = checked.not_executable()
    lines = [f"network {network.name}"]
    for name, stream in network.streams.items():
        lines.append(f"  stream {name}: input log, {len(stream.schema_)} fields")
    for name, sql in network.queries.items():
        boxes = [box for box in checked.order if box.startswith(f"{name}#")]
        lines.append(f"  query {name}: {' '.join(sql.split())}")
        lines.append(f"    runs as {' → '.join(boxes)}")
    if later:
        kinds = ", ".join(f"{name} ({box.kind})" for name, box in later.items())
        lines.append(f"  declared, not run by this version: {kinds}")
        return "\n".join(lines)
    fused = superboxes(checked, arcs)
    idle = set(checked.network.boxes) - {box for superbox in fused for box in superbox.boxes}
    if idle:
        lines.append(f"  leading to no output, not run: {', '.join(sorted(idle))}")
    with tempfile.TemporaryDirectory() as directory:
        for superbox in fused:
            lines += ["", *_described(checked, superbox), "  Spark plan:"]
            tree = _plan(session, checked, superbox, Path(directory))
            lines += [f"    {line}" for line in tree.replace(directory, "…").splitlines()]
    return "\n".join(lines)


def _plan(
    session: SparkSession, checked: CheckedNetwork, superbox: Superbox, directory: Path
) -> str:
    place = directory / superbox.name
    if superbox.stateful:
        plane = ProgressPlane(checked)
        runner = stateful_runner(
            session, checked, plane, superbox, place, buckets=2, progressing={}
        )
        return runner.explain()
    streams = checked.network.streams
    schemas = {s: arc_schema(checked.arcs[s].schema, s not in streams) for s in superbox.sources}
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
    if superbox.stateful:
        kind = checked.network.boxes[superbox.stateful].kind
        lines.append(f"  state   of {superbox.stateful}, by its {kind} kernel in the tasks")
    return lines
