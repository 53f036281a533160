"""What a network may say but hardly means, told when it starts."""

from __future__ import annotations

import copy
import logging
import math
from collections.abc import Collection, Mapping
from contextlib import suppress

from auroral.errors import AuroralError, Caution
from auroral.network.check import CheckedNetwork
from auroral.network.network import Network
from auroral.scheduling.costs import BoxCost
from auroral.scheduling.flow import FlowModel, FlowOutput
from auroral.scheduling.flow_models import DEFAULT_CALL_S, flow_model, longest_path_s

_LOG = logging.getLogger("auroral")
_MOST_QUERIES_WARNED_OF = 1_000
"""Of more queries the start does not ask whether their windows can close; `net.check()` does."""


def log_cautions(network: Network) -> None:
    """Log what is allowed but hardly meant; of very many queries, what boxes alone show."""
    if len(network.queries) > _MOST_QUERIES_WARNED_OF:
        network = copy.copy(network)
        network.queries = {}
    with suppress(AuroralError):  # only Spark's analyzer may know some expression's type
        for caution in CheckedNetwork(network, {}, ()).warnings:
            _LOG.warning(caution)


def infeasible_outputs(model: FlowModel, measured: Collection[str]) -> list[Caution]:
    """Outputs whose good zone ends before a single tuple can have come to them [1 §4.1].

    Where some box on the path was not `measured`, only that is known which a call takes anyway.
    """
    found = []
    for name, output in model.outputs.items():
        latency = output.qos.curves.get("latency") if output.qos is not None else None
        writer = model.writers.get(output.arc)
        if latency is None or writer is None or not math.isfinite(latency.good_until):
            continue
        if all(box in measured for box in model.upstream([writer])):
            seconds = longest_path_s(model, output.arc)
            told = f"its longest path alone takes {seconds:.3g} s as measured"
        else:
            seconds = DEFAULT_CALL_S
            told = f"a single call of Spark takes about {seconds:g} s"
        if seconds > latency.good_until:
            message = (
                f"the good zone of its latency graph ends at {latency.good_until:g} s, but {told}:"
                " it will not be reached"
            )
            found.append(Caution("INFEASIBLE_QOS", message, f"output {name}"))
    return found


def log_infeasible(
    checked: CheckedNetwork, costs: Mapping[str, BoxCost], outputs: Mapping[str, FlowOutput]
) -> None:
    """Log outputs whose graphs ask for more than was measured in earlier runs."""
    for caution in infeasible_outputs(flow_model(checked, costs, outputs), costs):
        _LOG.warning(caution)
