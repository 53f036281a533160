"""The OpenAPI document is true: whatever is sent, the answer is one that it describes."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from unittest import SkipTest

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.server.serving import PLANT, Site, site

CHECKS = (
    not_a_server_error,
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
EXAMPLES = 8
EXPECTED_503 = ("NO_SPARK", "TIMEOUT")


@pytest.fixture(scope="module")
def plant() -> Iterator[Site]:
    with site() as found:
        yield found


def document(found: Site) -> dict[str, Any]:
    return copy.deepcopy(found.get("/openapi.json", role="viewer"))


def test_every_operation_is_described(plant: Site) -> None:
    described = document(plant)
    assert described["openapi"].startswith("3.1")
    assert "HTTPValidationError" not in described["components"]["schemas"]
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            assert operation["description"], (method, path)
            assert {"401", "403", "422", "500"} <= operation["responses"].keys()
            if method in ("put", "post", "patch"):
                assert "requestBody" in operation, (method, path)


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_answers_are_as_described(plant: Site, mode: GenerationMode) -> None:
    described = schemathesis.openapi.from_dict(document(plant))
    operations = [
        result.ok() for result in described.get_all_operations() if isinstance(result, Ok)
    ]
    assert len(operations) > 40
    for operation in operations:
        try_out(plant, operation, mode)
        plant.ask("POST", "control/resume", json={})
    assert plant.ask("PUT", "network", json=PLANT).status_code == 200


def test_an_answer_that_is_not_described_is_found(plant: Site) -> None:
    untrue = document(plant)
    answers = untrue["paths"]["/healthz"]["get"]["responses"]
    answers["200"]["content"]["application/json"]["schema"] = {"type": "integer"}
    operation = schemathesis.openapi.from_dict(untrue)["/healthz"]["GET"]
    with pytest.raises(FailureGroup):
        try_out(plant, operation, GenerationMode.POSITIVE)


def try_out(found: Site, operation: Any, mode: GenerationMode) -> None:
    """Send requests of an operation, and look whether answers are as described."""
    tokens = {"Authorization": f"Bearer {found.tokens['editor']}"}

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def check(case: Any) -> None:
        answer = case.call(base_url=found.http.url, headers=tokens)
        if answer.status_code == 503:
            assert answer.json()["code"] in EXPECTED_503
            return
        case.validate_response(answer, checks=CHECKS)

    with suppress(
        SkipTest, Unsatisfiable
    ):  # nothing that does not fit can be made for some operations
        check()
