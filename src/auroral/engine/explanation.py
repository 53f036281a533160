"""How a network will run, in words and as Spark's plans."""

from __future__ import annotations

import tempfile
from pathlib import Path

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
    checked = network.check(spark_resolver(session))
    arcs = [output.from_ for output in network.outputs.values() if output.from_ in checked.arcs]
    later = checked.not_executable()
    lines = [f"network {network.name}"]
    for name, stream in network.streams.items():
        lines.append(f"  stream {name}: input log, {len(stream.schema_)} fields")
    if later:
        kinds = ", ".join(f"{name} ({box.kind})" for name, box in later.items())
        lines.append(f"  declared, not run by this version: {kinds}")
        return "\n".join(lines)
    fused = superboxes(checked, arcs)
    idle = set(network.boxes) - {box for superbox in fused for box in superbox.boxes}
    if idle:
        lines.append(f"  leading to no output, not run: {', '.join(sorted(idle))}")
    with tempfile.TemporaryDirectory() as directory:
        runner = Runner(session, checked, Path(directory))
        for superbox in fused:
            lines += ["", *_described(superbox), "  Spark plan:"]
            schemas = {
                source: arc_schema(checked.arcs[source].schema) for source in superbox.sources
            }
            counts = dict.fromkeys(superbox.sources, 1)
            slots = Slots(Path(directory) / superbox.name, counts, schemas)
            plan = runner.compile(superbox, slots.files)
            tree = plan.data._jdf.queryExecution().executedPlan().toString()
            lines += [f"    {line}" for line in str(tree).replace(directory, "…").splitlines()]
    return "\n".join(lines)


def _described(superbox: Superbox) -> list[str]:
    return [
        f"superbox {superbox.name}",
        f"  reads   {', '.join(superbox.sources)}",
        f"  boxes   {' → '.join(superbox.boxes)}",
        f"  keeps   {', '.join(superbox.terminals)}",
    ]
