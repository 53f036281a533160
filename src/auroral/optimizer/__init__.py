"""The optimiser: boxes that commute change places, and no result changes [1 §3.1]."""

from auroral.optimizer.diagram import Diagram, Move, as_moved
from auroral.optimizer.estimates import Estimate, Measured, assumed, weight
from auroral.optimizer.optimize import ORDERING, Optimised, Subnetworks, optimize
from auroral.optimizer.projection import unread_fields
from auroral.optimizer.rules import (
    COMMUTING,
    NOT_COMMUTING,
    SIFTING,
    CommutingPair,
    calls_functions,
)

__all__ = [
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
    "Subnetworks",
    "as_moved",
    "assumed",
    "calls_functions",
    "optimize",
    "unread_fields",
    "weight",
]
