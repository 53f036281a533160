"""Debugging: pause, step, breakpoints; queries over the past."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request

from auroral.engine import Engine
from auroral.server.access import RoleRoute, needs
from auroral.server.asking import audited, run, service_of
from auroral.server.models import (
    ApplicationChoice,
    AttachedQuery,
    BreakpointSwitch,
    DebugState,
    IdentifiedThing,
    NamedThing,
    NewBreakpoint,
    ReplayedStretch,
    StepOrder,
    StepReport,
)
from auroral.server.tracing import debug_state, trace_entries

router = APIRouter(route_class=RoleRoute)


def _engine(request: Request) -> Engine:
    return service_of(request).engine


@router.get("/control")
@needs("viewer")
async def control(request: Request) -> DebugState:
    """What is paused, which breakpoints there are, which was hit, the last trace."""
    return await run(request, lambda: debug_state(_engine(request).debug_state()))


@router.post("/control/pause")
@needs("operator")
async def pause(request: Request, choice: ApplicationChoice) -> DebugState:
    """Pause everything, or the boxes that serve only paused outputs."""
    engine, one = _engine(request), choice.application
    return await audited(request, "pause", lambda: debug_state(engine.pause(one)), application=one)


@router.post("/control/resume")
@needs("operator")
async def resume(request: Request, choice: ApplicationChoice) -> DebugState:
    """Go on after a pause or a breakpoint."""
    engine, one = _engine(request), choice.application
    return await audited(
        request, "resume", lambda: debug_state(engine.resume(one)), application=one
    )


@router.post("/control/step")
@needs("operator")
async def step(request: Request, order: StepOrder) -> StepReport:
    """While paused, run the next trains or the next tuples, and tell what they did."""
    engine = _engine(request)

    def go() -> StepReport:
        trace: list[dict[str, Any]] = engine.step(order.kind, order.application, order.count)
        return StepReport(trace=trace_entries(trace), state=debug_state(engine.debug_state()))

    return await audited(request, "step", go, kind=order.kind, count=order.count)


@router.post("/control/breakpoints", status_code=201)
@needs("operator")
async def set_breakpoint(request: Request, wanted: NewBreakpoint) -> IdentifiedThing:
    """Pause before a tuple of an arc that satisfies a condition."""
    engine = _engine(request)
    found = await audited(
        request,
        "set breakpoint",
        lambda: engine.set_breakpoint(wanted.arc, wanted.condition, enabled=wanted.enabled),
        arc=wanted.arc,
        condition=wanted.condition,
        enabled=wanted.enabled,
    )
    return IdentifiedThing(id=found)


@router.patch("/control/breakpoints/{id}", status_code=204)
@needs("operator")
async def switch_breakpoint(request: Request, id: str, switch: BreakpointSwitch) -> None:
    """Let a breakpoint stop the engine, or not."""
    engine = _engine(request)
    await audited(
        request,
        "switch breakpoint",
        lambda: engine.enable_breakpoint(id, switch.enabled),
        id=id,
        enabled=switch.enabled,
    )


@router.delete("/control/breakpoints/{id}", status_code=204)
@needs("operator")
async def remove_breakpoint(request: Request, id: str) -> None:
    """Forget a breakpoint."""
    engine = _engine(request)
    await audited(request, "remove breakpoint", lambda: engine.remove_breakpoint(id), id=id)


@router.post("/attach", status_code=201)
@needs("operator")
async def attach(request: Request, wanted: AttachedQuery) -> NamedThing:
    """Attach a query to a connection point or view: what it keeps, then what flows."""
    engine = _engine(request)
    name = await audited(
        request,
        "attach",
        lambda: engine.attach(wanted.point, wanted.query, name=wanted.name, since=wanted.since),
        point=wanted.point,
        query=wanted.query,
    )
    return NamedThing(name=name)


@router.delete("/attach/{name}", status_code=204)
@needs("operator")
async def detach(request: Request, name: str) -> None:
    """End an attached query; what nobody has taken of its results is dropped."""
    engine = _engine(request)
    await audited(request, "detach", lambda: engine.detach(name), name=name)


@router.post("/replay", status_code=201)
@needs("operator")
async def replay(request: Request, wanted: ReplayedStretch) -> NamedThing:
    """Let a stretch of kept history flow again into a branch of its own."""
    engine = _engine(request)
    name = await audited(
        request,
        "replay",
        lambda: engine.replay(wanted.point, wanted.since, wanted.until, wanted.query or None),
        point=wanted.point,
    )
    return NamedThing(name=name)
