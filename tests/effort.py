"""How much work a call is: not the time it takes, which depends on who else works."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def operations(call: Callable[[], object]) -> int:
    """The operations of Python that a call makes in this project, loops step by step.

    >>> operations(lambda: None)
    0
    """
    made = 0

    def trace(frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal made
        if "auroral" not in frame.f_globals.get("__name__", ""):
            return None
        frame.f_trace_opcodes = True
        made += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return made
