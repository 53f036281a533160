"""SELECTs over what is kept: few at a time, no longer than somebody waits for them."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from typing import Any, TypeVar

import pyarrow as pa
from starlette.requests import Request

from auroral.engine import Engine
from auroral.server.offload import EngineCalls
from auroral.server.problems import RequestError
from auroral.server.settings import ServerLimits

T = TypeVar("T")


class Selects:
    """Runs SELECTs in threads of their own; a call beyond those is told to come again."""

    def __init__(self, engine: Engine, limits: ServerLimits):
        self._engine = engine
        self._calls = EngineCalls(
            limits.selects, limits.request_s, name="select", refuse_when_busy=True
        )
        self._running: set[str] = set()

    def prepare(self, query: str, limit: int) -> PreparedSelect:
        """A SELECT that is to run, of which so many rows are wanted."""
        return PreparedSelect(self, query, limit)

    def rows(self, query: str, limit: int, job: str) -> pa.Table:
        """At most one row more than are wanted, which then says that there are more."""
        return self._engine.sql(query, limit + 1, job=job)

    async def run(self, request: Request, answer: Callable[[], T], job: str) -> T:
        """What a SELECT gives; it ends when nobody waits for it any more."""
        self._running.add(job)
        asked = asyncio.ensure_future(self._calls.run(answer))
        gone = asyncio.ensure_future(_disconnected(request))
        try:
            await asyncio.wait((asked, gone), return_when=asyncio.FIRST_COMPLETED)
            if not asked.done():
                raise RequestError(503, "TIMEOUT", "who asked is gone")
            return asked.result()
        finally:
            self._running.discard(job)
            gone.cancel()
            if not asked.done() or _goes_on(asked):
                asked.cancel()
                await asyncio.to_thread(self._engine.cancel_sql, job)

    def cancel_all(self) -> None:
        """End all that run."""
        for job in list(self._running):
            self._engine.cancel_sql(job)

    def close(self, wait_s: float) -> bool:
        """Wait a while for those that run."""
        return self._calls.close(wait_s)


class PreparedSelect:
    """One SELECT, and the name under which Spark runs it."""

    def __init__(self, selects: Selects, query: str, limit: int):
        self._selects = selects
        self._query = query
        self._limit = limit
        self._job = f"auroral select {uuid.uuid4().hex}"

    def rows(self) -> pa.Table:
        """What it gives."""
        return self._selects.rows(self._query, self._limit, self._job)

    async def run(self, request: Request, answer: Callable[[], T]) -> T:
        """Make an answer of its rows."""
        return await self._selects.run(request, answer, self._job)


async def _disconnected(request: Request) -> None:
    """Wait until the client is gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _goes_on(asked: asyncio.Future[Any]) -> bool:
    """Whether nobody waits for a call any more that has not ended."""
    if asked.cancelled():
        return True
    error = asked.exception()
    return isinstance(error, RequestError) and error.code == "TIMEOUT"
