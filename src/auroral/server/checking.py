"""`POST /check`: every mistake of a network from the wire, and the fields of what is sound."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from auroral.engine.topology.superboxes import require_executable
from auroral.errors import AuroralError, NetworkError, UsageError
from auroral.network.box import LATE_PORTS
from auroral.network.lenient import LenientCheck, check_leniently, read_leniently
from auroral.network.positions import DocumentPositions
from auroral.network.types import Schema
from auroral.progress.lowwater import LowWater
from auroral.progress.propagation import ArcProgress
from auroral.server.models import ArcInfo, CautionInfo, CheckReport, FieldInfo
from auroral.server.problems import problem_of
from auroral.server.service import EngineService


def check_document(
    service: EngineService, document: Mapping[str, Any], positions: DocumentPositions
) -> CheckReport:
    """Check a network as far as it can be checked; modules that are not allowed stay unimported."""
    found = read_leniently(document, positions, service.network.directory)
    refused, known = _not_allowed(service, found)
    found.network.imports = known and not refused
    check_leniently(found, service.engine.resolver)
    mistakes: list[AuroralError] = [*refused, *found.mistakes]
    if not mistakes and found.checked is not None:
        try:
            require_executable(found.checked.network)
        except AuroralError as error:
            mistakes.append(error)
    return CheckReport(
        ok=not mistakes,
        problems=[problem_of(mistake) for mistake in mistakes],
        cautions=[
            CautionInfo(code=one.code, message=one.message, where=one.where)
            for one in found.cautions
        ],
        arcs=_arcs(found),
        queries={name: _fields(schema) for name, schema in found.queries.items()},
    )


def _not_allowed(service: EngineService, found: LenientCheck) -> tuple[list[NetworkError], bool]:
    """What a network may not name, and whether it is known which functions it names."""
    outside = list(service.allowed.outside_mistakes(found.network))
    try:
        return [*outside, *service.allowed.function_mistakes(found.network)], True
    except (NetworkError, UsageError):
        return outside, False  # superboxes that cannot be resolved hide what their boxes name


def _arcs(found: LenientCheck) -> dict[str, ArcInfo]:
    progress = _progressing(found)
    return {
        name: ArcInfo(fields=_fields(arc.schema), progress=progress.get(arc.name, []))
        for name, arc in found.arcs.items()
    }


def _fields(schema: Schema) -> list[FieldInfo]:
    return [FieldInfo(name=field.name, type=str(field.type)) for field in schema]


def _progressing(found: LenientCheck) -> dict[str, list[str]]:
    """By arc, the fields that make progress there."""
    marks: dict[str, ArcProgress] = {
        name: {progress.on: LowWater() for progress in stream.progressing}
        for name, stream in found.network.streams.items()
    }
    if found.checked is not None:
        for box in found.checked.order:
            declared = found.checked.network.boxes[box]
            given = [marks.get(arc, {}) for arc in declared.sources()]
            passed = declared.progress(given, found.checked.schemas_of(box))
            for arc in found.checked.outputs_of(box):
                marks[arc.name] = {} if arc.port in LATE_PORTS else passed
    return {arc: list(fields) for arc, fields in marks.items()}
