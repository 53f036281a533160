"""WebSockets: the live picture of a canvas, and followers of outputs.

A client gets a frame when it takes one: nothing waits for it but the newest. One that takes none
for a while is disconnected.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Annotated, Any

import anyio
from pydantic import Field, ValidationError
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from auroral.engine.inspect.followers import Follower
from auroral.errors import AuroralError
from auroral.server.access import open_socket, unexpected
from auroral.server.log_ring import LogRing
from auroral.server.models import Name, WireModel
from auroral.server.offload import EngineCalls
from auroral.server.problems import RequestError, bad_body, problem_of, problem_response
from auroral.server.sampler import PictureSampler, PictureState
from auroral.server.service import EngineService
from auroral.server.wire_rows import (
    fields_of,
    json_bytes,
    json_value,
    row_objects,
    table_document,
)

MOST_SAMPLES = 16
MOST_STORIES = 16
_STORY_TICKS = 4
_STORY_ENTRIES = 1000
_MESSAGE_ROWS = 1000
_FOLLOW_S = 0.5
_TOO_SLOW, _GOING_AWAY, _ENDED = 1013, 1001, 1000


class SampleOrder(WireModel):
    """The latest tuples of one arc."""

    arc: Name
    limit: Annotated[int, Field(ge=1, le=1000)] = 100
    where: Annotated[str, Field(max_length=10_000)] | None = None


class Subscription(WireModel):
    """What a client wants to see; the newest replaces the earlier."""

    picture: bool = False
    samples: list[SampleOrder] = Field([], max_length=MOST_SAMPLES)
    stories: list[Name] = Field([], max_length=MOST_STORIES)


class SocketSession:
    """One WebSocket: what it sends waits at most so long for the client."""

    def __init__(self, socket: WebSocket, patience_s: float):
        self.socket = socket
        self._patience_s = patience_s

    async def send(self, text: str) -> None:
        """Send a frame; a client that does not take it is given up."""
        try:
            await asyncio.wait_for(self.socket.send_text(text), self._patience_s)
        except TimeoutError:
            raise WebSocketDisconnect(_TOO_SLOW, "the client reads too slowly") from None

    async def serve(self, *parts: Callable[[], Awaitable[None]]) -> None:
        """Run until one part ends, which is when the client goes or something fails."""
        ended: list[Exception] = []

        async def run(part: Callable[[], Awaitable[None]]) -> None:
            try:
                await part()
            except Exception as error:
                ended.append(error)
            group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            for part in parts:
                group.start_soon(run, part)
        if ended:
            raise ended[0]

    async def until_gone(self) -> None:
        """Wait until the client goes; what it says does not matter."""
        while True:
            await self.hear()

    async def hear(self) -> str:
        """What the client says next."""
        try:
            return await self.socket.receive_text()
        except KeyError:  # bytes
            raise bad_body("expected a message as text, found bytes") from None


class LiveSession(SocketSession):
    """Sends pictures, samples, stories and log lines to one client."""

    def __init__(
        self, socket: WebSocket, service: EngineService, sampler: PictureSampler, logs: LogRing
    ):
        super().__init__(socket, service.settings.limits.slow_socket_s)
        self._engine = service.engine
        self._sampler = sampler
        self._logs = logs
        self._calls: EngineCalls = socket.app.state.looks
        self._wanted = Subscription()
        self._base: PictureState | None = None
        self._sent: dict[str, str] = {}
        """The last frame about each thing: what has not changed is not sent again."""
        self._log_at = 0

    async def run(self) -> None:
        """Serve the client until it goes."""
        self._sampler.watch()
        try:
            await self.serve(self._listen, self._show)
        finally:
            self._sampler.leave()

    async def _listen(self) -> None:
        while True:
            text = await self.hear()
            try:
                wanted = Subscription.model_validate_json(text)
            except ValidationError as error:
                first = error.errors()[0]
                where = ".".join(map(str, first["loc"]))
                await self.send(_error_frame(bad_body(f"{where}: {first['msg']}")))
                continue
            if not wanted.picture:
                self._base = None
            self._wanted, self._sent = wanted, {}

    async def _show(self) -> None:
        tick, seq = 0, 0
        while True:
            state = await self._sampler.after(seq)
            seq = state.seq
            if self._wanted.picture:
                await self.send(state.frame(self._base))
                self._base = state
            for order in self._wanted.samples:
                await self._changed(f"sample {order}", await self._sample(order))
            if tick % _STORY_TICKS == 0:
                for name in self._wanted.stories:
                    await self._changed(f"story {name}", await self._story(name))
            await self._log()
            tick += 1

    async def _changed(self, about: str, frame: str) -> None:
        if self._sent.get(about) != frame:
            await self.send(frame)
            self._sent[about] = frame

    async def _sample(self, order: SampleOrder) -> str:
        # A client may want several samples of one arc: the frame says which one this is.
        frame = {"type": "sample", **order.model_dump()}

        def look() -> str:
            table = self._engine.sample(order.arc, order.limit, order.where)
            return _frame({**frame, "table": table_document(table, order.limit)})

        try:
            return await self._calls.run(look)
        except AuroralError as error:
            problem = problem_of(error).model_dump(exclude_none=True)
            nothing: dict[str, Any] = {"fields": [], "rows": []}
            return _frame({**frame, "table": nothing, "error": problem})

    async def _story(self, name: str) -> str:
        def look() -> str:
            entries = json_value(self._engine.story(name)[-_STORY_ENTRIES:])
            return _frame({"type": "story", "name": name, "entries": entries})

        try:
            return await self._calls.run(look)
        except AuroralError as error:
            return _error_frame(error)

    async def _log(self) -> None:
        self._log_at, entries = self._logs.after(self._log_at)
        if entries:
            await self.send(_frame({"type": "log", "entries": entries}))


class FollowSession(SocketSession):
    """Sends what an output gives, without taking it."""

    def __init__(self, socket: WebSocket, service: EngineService, output: str):
        super().__init__(socket, service.settings.limits.slow_socket_s)
        self._followers: EngineCalls = socket.app.state.followers
        self._follow: Callable[[], Follower] = lambda: service.engine.follow(output)
        self._lock = threading.Lock()
        self._follower: Follower | None = None
        self._gone = False

    async def run(self) -> None:
        """Serve the client until it goes."""
        try:
            follower = await self._followers.run(self._begin)
            # Nothing yet: tells the client that what comes from now on is sent.
            await self.send(_frame({"rows": [], "dropped": 0}))
            await self.serve(self.until_gone, partial(self._show, follower))
        finally:
            self._end()

    def _begin(self) -> Follower:
        """Follow the output; a session that has ended meanwhile follows nothing."""
        follower = self._follow()
        with self._lock:
            self._follower = follower
            gone = self._gone
        if gone:
            follower.close()
        return follower

    def _end(self) -> None:
        with self._lock:
            self._gone, follower = True, self._follower
        if follower is not None:
            follower.close()

    async def _show(self, follower: Follower) -> None:
        told = 0
        while True:
            frames, told = await self._followers.run(_next_frames, follower, told)
            for frame in frames:
                await self.send(frame)
            if follower.closed and not frames:
                await _close(self.socket, _ENDED, "the output is no more")
                return


def _next_frames(follower: Follower, told: int) -> tuple[list[str], int]:
    """What has come and was dropped since, as frames; and how many are told as dropped then."""
    table, dropped = follower.next(_FOLLOW_S), follower.dropped
    if table is None and dropped == told:
        return [], told
    rows = [] if table is None else row_objects(table)
    fields = {} if table is None else {"fields": fields_of(table.schema)}
    frames = []
    for at in range(0, max(len(rows), 1), _MESSAGE_ROWS):
        part = rows[at : at + _MESSAGE_ROWS]
        frames.append(_frame({**fields, "rows": part, "dropped": dropped - told}))
        told = dropped
    return frames, told


def _frame(content: dict[str, Any]) -> str:
    return json_bytes(content).decode()


def _error_frame(error: AuroralError) -> str:
    return _frame({"type": "error", "problem": problem_of(error).model_dump(exclude_none=True)})


async def serve_socket(socket: WebSocket, begin: Callable[[], LiveSession | FollowSession]) -> None:
    """Open a WebSocket for a viewer and serve it; failures are told as problems."""
    try:
        await open_socket(socket, "viewer")
    except RequestError as error:
        try:
            await socket.send_denial_response(problem_response(error))
        except RuntimeError:  # a server that cannot deny by an answer
            await socket.close(1008, error.code)
        return
    try:
        await begin().run()
    except WebSocketDisconnect as gone:
        await _close(socket, gone.code if gone.code == _TOO_SLOW else _GOING_AWAY, gone.reason)
    except AuroralError as error:
        await _say(socket, error)
        await _close(socket, _GOING_AWAY, error.code)
    except Exception as error:
        await _say(socket, unexpected(socket, error))
        await _close(socket, 1011, "INTERNAL")


async def _say(socket: WebSocket, error: AuroralError) -> None:
    with suppress(Exception):
        await asyncio.wait_for(socket.send_text(_error_frame(error)), 1.0)


async def _close(socket: WebSocket, code: int, reason: str) -> None:
    if socket.application_state is WebSocketState.CONNECTED:
        with suppress(Exception):
            await asyncio.wait_for(socket.close(code, reason[:100]), 1.0)
