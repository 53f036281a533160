"""The optimiser: boxes that commute change places, and no result changes [1 §3.1]."""

from auroral.optimizer.diagram import Diagram, Move, as_moved
from auroral.optimizer.estimates import ASSUMED_S, Estimate, Measured, assumed, weight
from auroral.optimizer.optimize import ORDERING, Optimised, Subnetworks, optimize
from auroral.optimizer.probes import Probe, ProbeLayer, probes
from auroral.optimizer.projection import unread_fields
from auroral.optimizer.rules import (
    COMMUTING,
    NOT_COMMUTING,
    SIFTING,
    CommutingPair,
    calls_functions,
)

__all__ = [
    "ASSUMED_S",
    "COMMUTING",
    "NOT_COMMUTING",
    "ORDERING",
    "SIFTING",
    "CommutingPair",
    "Diagram",
    "Estimate",
    "Measured",
    "Move",
    "Optimised",
    "Probe",
    "ProbeLayer",
    "Subnetworks",
    "as_moved",
    "assumed",
    "calls_functions",
    "optimize",
    "probes",
    "unread_fields",
    "weight",
]
