"""The physical form of each box: the module called like its kind."""

from __future__ import annotations

from importlib import import_module

from auroral.network.box import Box, not_executable
from auroral.spark.plans.physical import Given, Physical


def physical_of(name: str, box: Box, given: Given) -> Physical:
    """Lower a stateful box."""
    if not (box.executable and box.stateful):
        raise not_executable(f"box {name}", box)
    made: Physical = import_module(f"{__name__}.{box.kind}").lower(box, given)
    return made
