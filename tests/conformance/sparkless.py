"""An engine without Spark: kernels and tasks as they are, expressions by the reference."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from auroral.engine import Engine
from auroral.engine.runtime.in_process import InProcessExecutor
from auroral.network.network import Network
from tests.conftest import require_sound

__all__ = ["InProcessExecutor", "make_engine"]


@contextmanager
def make_engine(network: Network, *, bind: Any = (), **options: Any) -> Iterator[Engine]:
    """As the fixture of that name; an engine that crashed is dropped as it stands."""
    given = {"background": False, "executor": InProcessExecutor(), **options}
    engine = Engine(network, **given)
    for output, sink in bind:
        engine.bind_sink(output, sink)
    engine.start()
    try:
        yield engine
        if engine._loop.failure is None and not given["background"]:
            require_sound(engine._store)
    except Exception:
        engine.shutdown()
        raise
    except BaseException:
        engine._started = False
        engine._loop._stopping.set()
        engine._context.tables.close()
        engine._store.close()
        raise
    engine.shutdown()
