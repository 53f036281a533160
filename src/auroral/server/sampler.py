"""One sampler for all clients: it asks the engine twice a second while somebody looks."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from auroral.errors import AuroralError
from auroral.network.network import Network
from auroral.server.delta import merge_patch
from auroral.server.history import STEP_S, PictureHistory
from auroral.server.offload import EngineCalls
from auroral.server.picture import EngineSample, RateMeter, counted, picture_of
from auroral.server.problems import RequestError
from auroral.server.service import EngineService
from auroral.server.topology import Wiring, wiring_of
from auroral.server.tracing import NOTHING, debug_state
from auroral.server.wire_rows import json_bytes

LOOK_S = 0.5
log = logging.getLogger("auroral.server")


@dataclass
class PictureState:
    """A picture, and its patches to clients that have an earlier one."""

    seq: int
    picture: Mapping[str, Any]
    _patches: dict[int, str] = field(default_factory=dict)

    def frame(self, base: PictureState | None) -> str:
        """The frame that brings a client up to date; all clients with one base share it."""
        key = 0 if base is None else base.seq
        if key not in self._patches:
            content: dict[str, Any] = {"whole": True, "picture": self.picture}
            if base is not None:
                patch = merge_patch(base.picture, self.picture)
                content = {"whole": False, "patch": patch}
            made = {"type": "picture", "seq": self.seq, **content}
            self._patches[key] = json_bytes(made).decode()
        return self._patches[key]


class PictureSampler:
    """Takes pictures, keeps their history, and wakes who waits for the next."""

    def __init__(self, service: EngineService):
        self._service = service
        self._calls = EngineCalls(1, None, name="sampler")
        self._taking: asyncio.Task[PictureState] | None = None
        self.history = PictureHistory()
        self.latest: PictureState | None = None
        self._meter = RateMeter(time.monotonic())
        self._stats: Mapping[str, Any] | None = None
        self._noted = ""
        """The last failure of the engine that was logged."""
        self._wiring: tuple[Network, int, Wiring] | None = None
        self._news = asyncio.Condition()
        self._look = asyncio.Event()
        self._watchers = 0

    async def run(self) -> None:
        """Take pictures until cancelled: often while somebody looks, else for the history."""
        while True:
            try:
                await self.take()
            except Exception:
                log.exception("the picture could not be taken")
            pause_s = LOOK_S if self._watchers else STEP_S
            if not self._watchers:
                self._look.clear()
            with suppress(TimeoutError):
                if self._watchers:
                    await asyncio.sleep(pause_s)
                else:
                    await asyncio.wait_for(self._look.wait(), pause_s)

    async def take(self) -> PictureState:
        """Take a picture, or wait for the one that is being taken, but not for long."""
        taking = self._taking
        if taking is None or taking.done():
            taking = self._taking = asyncio.create_task(self._calls.run(self._take))
            taking.add_done_callback(_forget)
        timeout_s = self._service.settings.limits.request_s
        try:
            state = await asyncio.wait_for(asyncio.shield(taking), timeout_s)
        except TimeoutError:
            raise RequestError(
                503, "TIMEOUT", f"the engine did not say within {timeout_s:g} s how it is"
            ) from None
        async with self._news:
            self._news.notify_all()
        return state

    async def current(self) -> PictureState:
        """The latest picture; one is taken if it is old."""
        age_us = time.time_ns() // 1000 - self.latest.picture["at_us"] if self.latest else None
        if self.latest is None or age_us is None or age_us > 2 * LOOK_S * 1e6:
            return await self.take()
        return self.latest

    async def after(self, seq: int) -> PictureState:
        """The latest picture, once there is a later one than `seq`."""
        async with self._news:
            await self._news.wait_for(lambda: self.latest is not None and self.latest.seq > seq)
        assert self.latest is not None
        return self.latest

    def watch(self) -> None:
        """Somebody looks: pictures come twice a second."""
        self._watchers += 1
        self._look.set()

    def leave(self) -> None:
        """Somebody looks no more."""
        self._watchers -= 1

    def close(self, wait_s: float) -> bool:
        """Take no more pictures; wait a while for the one that is being taken."""
        if self._taking is not None:
            self._taking.cancel()
        return self._calls.close(wait_s)

    # ── in the sampler's thread ──

    def _take(self) -> PictureState:
        sample = self._sample()
        self._meter = self._meter.next(sample.at_s, counted(sample.stats))
        picture = picture_of(
            sample,
            self._meter,
            self._wired(),
            lambda name: self.history.recent("outputs", name, "utility"),
        )
        self.history.add(sample.at_us / 1e6, picture)
        seq = 1 if self.latest is None else self.latest.seq + 1
        self.latest = PictureState(seq, picture)
        return self.latest

    def _sample(self) -> EngineSample:
        engine, failure = self._service.engine, None
        debug: Mapping[str, Any] = NOTHING
        try:
            self._stats = engine.stats()
            debug = debug_state(engine.debug_state()).model_dump(by_alias=True)
        except AuroralError as error:
            failure = str(error)
            if failure != self._noted:
                log.error("the engine does not answer: %s", failure, exc_info=error.__cause__)
            self._noted = failure
            if self._stats is None:
                raise
        return EngineSample(
            time.time_ns() // 1000,
            time.monotonic(),
            self._stats,
            debug,
            self._service.version_or_last(),
            failure,
        )

    def _wired(self) -> Wiring:
        network, version = self._service.network, self._service.qos_version
        known = self._wiring
        if known is None or known[0] is not network or known[1] != version:
            known = (network, version, wiring_of(network, self._service.set_graphs))
            self._wiring = known
        return known[2]


def _forget(taking: asyncio.Task[PictureState]) -> None:
    """Take the error of a picture that nobody waits for any more."""
    if not taking.cancelled():
        taking.exception()
