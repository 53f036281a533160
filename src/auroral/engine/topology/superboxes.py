"""Which superboxes a network runs as, and what it cannot run."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping
from pathlib import Path

from auroral.boxes.eddy import Eddy
from auroral.engine.ingest.tables import require_readable
from auroral.engine.lifecycle.standalone import ActiveStandalone
from auroral.engine.points.kept_arc import kept_arcs
from auroral.engine.tables.live import require_usable_tables
from auroral.errors import NetworkError, UsageError
from auroral.ids import ArcId, PartBoxId
from auroral.io.open import sinks_to_come
from auroral.network.check import CheckedNetwork
from auroral.network.environment import resolved
from auroral.network.network import Network
from auroral.scheduling.flow import FlowOutput
from auroral.scheduling.flow_models import declared_outputs
from auroral.scheduling.fusion import Fusion
from auroral.scheduling.superboxes import Superbox, superboxes
from auroral.spark.plans.lowering import not_executable


def require_executable(
    network: Network, bound: Iterable[str] = (), tables: Container[str] = ()
) -> None:
    """Refuse what can be declared but not run yet, by name.

    `bound` outputs have other sinks, and the rows of `tables` are given.
    """
    for name in network.tables:
        if name not in tables:
            require_readable(network, name)
    require_usable_tables(network)
    for name, box in network.boxes.items():
        if not box.executable:
            raise not_executable(network.place("boxes", name), box)
    for name, format in sinks_to_come(network).items():
        if name not in bound:
            raise UsageError(
                "UNKNOWN_FORMAT",
                f"this version checks {format} sinks but does not write to them yet",
                where=network.place("outputs", name, "sink"),
                hint="give the output another sink",
            )


def output_arcs(checked: CheckedNetwork, bound: Iterable[str] = ()) -> dict[str, str]:
    """Outputs and the arcs they deliver; any arc with a sink of its own is an output too."""
    arcs = {name: output.from_ for name, output in checked.network.outputs.items()}
    own = {name: running_arc(checked, name) for name in bound if name not in arcs}
    return arcs | {name: arc for name, arc in own.items() if arc in checked.arcs}


def running_arc(checked: CheckedNetwork, arc: str) -> str:
    """What an arc is called in the network that runs: late tuples are those of a sort."""
    found = ArcId.parse(arc)
    part = str(ArcId(str(PartBoxId(found.producer, "sorted")), found.port))
    return part if arc not in checked.arcs and part in checked.arcs else arc


def all_superboxes(
    checked: CheckedNetwork,
    outputs: Mapping[str, str],
    standalone: ActiveStandalone,
    demanded: Collection[str] = (),
    apart: Collection[str] = (),
    fusion: Fusion | None = None,
) -> tuple[Superbox, ...]:
    """Fused boxes, and one empty superbox per stream that feeds none: its log moves on too.

    Arcs whose history is kept, and those of `demanded` views, are written to logs, as those of
    outputs are. A box with state runs with the boxes before it all the same, unless it is `apart`.

    The boxes of queries that failed are left out, of what would be fused without that: what
    others read, and where they are, stays as it was.
    """
    eddies = [name for name, box in checked.network.boxes.items() if isinstance(box, Eddy)]
    kept = [one.arc for one in kept_arcs(checked.network, demanded).values()]
    beside = {*kept} - {*outputs.values()}
    wanted = [*outputs.values(), *kept, *eddies]
    fused = superboxes(checked, wanted, fusion, beside=beside, apart=apart)
    left = {box for box in checked.network.boxes if standalone.owner(box) not in standalone.failed}
    fused = tuple(superbox.having(left) for superbox in fused)
    read = {source for superbox in fused for source in superbox.sources}
    alone = [name for name in checked.network.streams if name not in read]
    return (*fused, *(Superbox(name, (name,), (), ()) for name in alone))


def running_superboxes(checked: CheckedNetwork) -> tuple[Superbox, ...]:
    """The superboxes that a network is started as, while nobody has attached a query."""
    found = all_superboxes(checked, output_arcs(checked), ActiveStandalone({}, {}))
    return tuple(superbox for superbox in found if superbox.boxes)


def running_outputs(checked: CheckedNetwork) -> dict[str, FlowOutput]:
    """The outputs that a network declares, and its views that keep something and have graphs."""
    views, kept = checked.network.views, kept_arcs(checked.network)
    with_graphs = {name: view.qos for name, view in views.items() if view.qos and name in kept}
    found = {name: FlowOutput(name, kept[name].arc, qos) for name, qos in with_graphs.items()}
    return declared_outputs(checked) | found


def declared_jars(network: Network) -> list[Path]:
    """The jars that the network names; relative paths are below the network file."""
    names = enumerate(network.engine.jars)
    root = network.directory or Path()
    return [
        root / resolved(name, lambda i=i: network.place("engine", "jars", i)) for i, name in names
    ]


def require_jars(network: Network) -> None:
    """Refuse a network that names jars which are not there."""
    for number, path in enumerate(declared_jars(network)):
        if not path.is_file():
            raise NetworkError(
                "NO_JAR",
                f"there is no such jar: {path}",
                where=network.place("engine", "jars", number),
                hint="give paths of files; relative ones are below the network file",
            )
