"""The network: read it, check another one, change it, keep its layout."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Header
from starlette.requests import Request
from starlette.responses import Response

from auroral.catalog import without_secrets
from auroral.network.json_schema import network_schema
from auroral.network.yaml_text import yaml_text
from auroral.server.access import RoleRoute, needs
from auroral.server.asking import (
    accepted,
    audited,
    audited_change,
    json_response,
    run,
    sees_secrets,
    service_of,
)
from auroral.server.bodies import YAML, media_type, parse_json, read_network, small_body
from auroral.server.checking import check_document
from auroral.server.models import (
    AnyObject,
    ChangeReport,
    CheckReport,
    LayoutChange,
    ModifyRequest,
    NewQuery,
    StudioLayout,
)
from auroral.server.service import MadeChange
from auroral.server.wire_rows import JSON

router = APIRouter(route_class=RoleRoute)
_QOS_BYTES = 64 << 10
NETWORK_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "a network, as its file has it",
        "content": {
            JSON: {"schema": {"type": "object", "required": ["network"]}},
            YAML: {"schema": {"type": "string"}},
        },
    }
}


@router.get(
    "/network",
    response_model=AnyObject,
    responses={200: {"content": {YAML: {"schema": {"type": "string"}}}}},
)
@needs("viewer")
async def get_network(request: Request) -> Response:
    """The declared network, as its file has it; `ETag` is its version.

    Only an editor gets what sources, sinks and stores say of how they are reached.
    """
    media = accepted(request, (JSON, YAML))
    service = service_of(request)
    document, version = await run(request, service.declared)
    if not sees_secrets(request):
        document = without_secrets(document)
    headers = {"ETag": version, "Cache-Control": "no-cache"}
    if media == YAML:
        return Response(yaml_text(document), headers=headers, media_type=YAML)
    return json_response(document, headers=headers)


@router.put("/network", response_model=ChangeReport, openapi_extra=NETWORK_BODY)
@needs("editor")
async def put_network(
    request: Request,
    dry_run: bool = False,
    if_match: Annotated[str | None, Header()] = None,
) -> Response:
    """Deploy a network; with `dry_run` only tell what would change."""
    body, media, service = await request.body(), media_type(request), service_of(request)

    def deploy() -> MadeChange:
        document, positions = read_network(body, media)
        return service.deploy(document, positions, match=if_match, dry_run=dry_run)

    if dry_run:
        return json_response(_report((await run(request, deploy)).report))
    made = await audited_change(request, "deploy", deploy)
    return json_response(_report(made.report), headers={"ETag": made.after})


@router.post("/check", response_model=CheckReport, openapi_extra=NETWORK_BODY)
@needs("viewer")
async def check(request: Request) -> Response:
    """Every mistake of a network that can be found, and the types of all that could be typed."""
    media, service = media_type(request), service_of(request)
    body = await small_body(request, service.settings.limits.check_bytes)

    def answer() -> CheckReport:
        document, positions = read_network(body, media)
        return check_document(service, document, positions)

    report = await run(request, answer)
    return json_response(report.model_dump(exclude_none=True))


@router.post("/modify")
@needs("editor")
async def modify(request: Request, change: ModifyRequest, dry_run: bool = False) -> ChangeReport:
    """Add and remove parts of the network, as `Engine.modify` does; or tell what that would do."""
    service = service_of(request)
    if dry_run:
        preview = service.preview_modify
        return ChangeReport(
            **_report(await run(request, lambda: preview(change.add, change.remove)))
        )
    made = await audited_change(
        request,
        "modify",
        lambda: service.modify(change.add, change.remove),
        added=list(change.add),
        removed=change.remove,
    )
    return ChangeReport(**_report(made.report))


@router.post("/queries")
@needs("editor")
async def add_query(request: Request, query: NewQuery) -> ChangeReport:
    """Register a continuous query."""
    service = service_of(request)
    made = await audited_change(
        request, "add query", lambda: service.modify({query.name: query.sql}, []), name=query.name
    )
    return ChangeReport(**_report(made.report))


@router.delete("/queries/{query}")
@needs("editor")
async def remove_query(request: Request, query: str) -> ChangeReport:
    """Remove a continuous query, or one member of a family."""
    service = service_of(request)
    made = await audited_change(
        request, "remove query", lambda: service.remove_query(query), name=query
    )
    return ChangeReport(**_report(made.report))


@router.get("/layout", response_model_exclude_none=True)
@needs("viewer")
async def get_layout(request: Request) -> StudioLayout:
    """Where people put things on the canvas."""
    return await run(request, service_of(request).layout)


@router.put("/layout", status_code=204)
@needs("editor")
async def put_layout(request: Request, layout: Annotated[StudioLayout, Body()]) -> None:
    """Keep where people put things on the canvas."""
    service = service_of(request)
    await audited(request, "save layout", lambda: service.save_layout(layout))


@router.patch("/layout", status_code=204)
@needs("editor")
async def patch_layout(request: Request, change: Annotated[LayoutChange, Body()]) -> None:
    """Keep what has changed of where things are on the canvas; the rest stays as it is."""
    service = service_of(request)
    await audited(request, "save layout", lambda: service.change_layout(change))


@router.get("/schema", response_model=AnyObject)
@needs("viewer")
async def schema(request: Request) -> Response:
    """The JSON Schema of network files."""
    return json_response(await run(request, network_schema))


@router.put(
    "/outputs/{output}/qos",
    status_code=204,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {JSON: {"schema": {"type": ["object", "null"]}}},
        }
    },
)
@needs("operator")
async def set_qos(request: Request, output: str) -> None:
    """Judge an output by other graphs from now on; null: by the default."""
    qos = parse_json(await small_body(request, _QOS_BYTES) or b"null")
    service = service_of(request)
    await audited(request, "set qos", lambda: service.set_qos(output, qos), output=output, qos=qos)


def _report(report: dict[str, list[str]]) -> dict[str, list[str]]:
    """Every list of a report, also those that an engine leaves out."""
    return {name: list(report.get(name, [])) for name in ChangeReport.model_fields}
