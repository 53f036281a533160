"""The OpenAPI document is true: whatever is sent, the answer is one that it describes."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
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

CHECKS = [
    not_a_server_error,
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
]
EXAMPLES = 20
EXPECTED_503 = ("NO_SPARK", "TIMEOUT")
NEEDS_SPARK = {("POST", "/sql")}
TAKES_NOTHING = {("GET", "/healthz")}
"""Operations for which nothing that does not fit can be made."""


@dataclass(frozen=True)
class Sound:
    """A request that an operation must be able to fulfil."""

    method: str
    path: str
    names: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    media: str = "application/json"
    gives: str = ""
    """What later requests call the id that it gives."""


ROW = {"machine": "press", "at": 1, "celsius": 99.5}
HISTORY = {"point": "recent", "query": "SELECT machine FROM recent"}
SOUND = (
    *(
        Sound("GET", path)
        for path in (
            *("/network", "/layout", "/schema", "/palette", "/functions", "/starters", "/picture"),
            *("/server", "/entities", "/stats", "/control", "/results", "/matches"),
            *("/healthz", "/openapi.json", "/readyz", "/metrics"),
        )
    ),
    Sound("PUT", "/network", body=PLANT),
    Sound("POST", "/check", body=PLANT),
    Sound("POST", "/modify", body={"add": {"all": {"from": "hot"}}, "remove": []}),
    Sound("POST", "/queries", body={"name": "warm", "sql": "SELECT at FROM readings WHERE at > 1"}),
    Sound("DELETE", "/queries/{query}", {"query": "warm"}),
    Sound("PUT", "/layout", body={"positions": {"hot": [1, 2]}, "open": {}, "bookmarks": []}),
    Sound("PATCH", "/layout", body={"positions": {"hot": None}}),
    Sound("PUT", "/outputs/{output}/qos", {"output": "alerts"}, body={"latency": [[0, 1], [9, 0]]}),
    Sound("POST", "/infer", query={"name": "parts"}, body="id,at\n1,2\n", media="text/csv"),
    Sound("POST", "/streams/{stream}", {"stream": "readings"}, body=[ROW]),
    Sound("GET", "/streams/{stream}/position", {"stream": "readings"}),
    Sound("POST", "/control/drain", body={"timeout_s": 20}),
    Sound("GET", "/outputs/{output}", {"output": "alerts"}, {"limit": 10}),
    Sound("GET", "/arcs/{arc}/sample", {"arc": "hot"}, {"limit": 10}),
    Sound("GET", "/points/{point}/rows", {"point": "recent"}, {"limit": 10}),
    Sound("GET", "/tables/{table}", {"table": "seen"}, {"limit": 10}),
    Sound("GET", "/history/{name}", {"name": "hot"}),
    Sound("GET", "/entities/{name}", {"name": "hot"}),
    Sound("GET", "/story/{name}", {"name": "hot"}),
    Sound("POST", "/attach", body={**HISTORY, "name": "seen_again"}),
    Sound("DELETE", "/attach/{name}", {"name": "seen_again"}),
    Sound("POST", "/replay", body=HISTORY),
    Sound("POST", "/control/pause", body={}),
    Sound("POST", "/control/step", body={"kind": "train"}),
    Sound("POST", "/control/resume", body={}),
    Sound("POST", "/control/breakpoints", body={"arc": "hot"}, gives="breakpoint"),
    Sound("PATCH", "/control/breakpoints/{id}", {"id": "breakpoint"}, body={"enabled": False}),
    Sound("DELETE", "/control/breakpoints/{id}", {"id": "breakpoint"}),
)
"""One for each operation, in an order in which they build on each other."""


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
    untried = set()
    for operation in operations:
        if not try_out(plant, operation, mode):
            untried.add((operation.method.upper(), operation.path.removeprefix("/api/v1")))
        plant.ask("POST", "control/resume", json={})
    assert untried == (set() if mode is GenerationMode.POSITIVE else TAKES_NOTHING)
    assert plant.ask("PUT", "network", json=PLANT).status_code == 200


def test_every_operation_succeeds_as_described(plant: Site) -> None:
    described = schemathesis.openapi.from_dict(document(plant))
    operations = {
        (operation.method.upper(), operation.path.removeprefix("/api/v1")): operation
        for operation in (r.ok() for r in described.get_all_operations() if isinstance(r, Ok))
    }
    assert operations.keys() == {(one.method, one.path) for one in SOUND} | NEEDS_SPARK
    headers = {"Authorization": f"Bearer {plant.tokens['editor']}"}
    made: dict[str, Any] = {}
    for one in SOUND:
        operation = operations[one.method, one.path]
        given = {key: made.get(value, value) for key, value in one.names.items()}
        media = {} if one.body is None else {"media_type": one.media, "body": one.body}
        case = operation.Case(path_parameters=given, query=dict(one.query), **media)
        answer = case.call(base_url=plant.http.url, headers=headers)
        assert answer.status_code in (200, 201, 204), (one, answer.text)
        case.validate_response(answer, checks=CHECKS)
        if one.gives:
            made[one.gives] = answer.json()["id"]
    assert plant.ask("PUT", "network", json=PLANT).status_code == 200


def test_a_method_that_there_is_not_is_refused_as_described(plant: Site) -> None:
    for path, operations in document(plant)["paths"].items():
        names = dict.fromkeys(("query", "output", "stream", "arc", "point", "table"), "x")
        where = path.format(name="x", id="x", **names)
        for method in {"get", "put", "post", "patch", "delete"} - operations.keys():
            answer = plant.ask(method.upper(), where)
            assert answer.status_code == 405, (method, path)
            assert answer.json()["code"] == "METHOD_NOT_ALLOWED"
            assert operations.keys() <= {
                m.strip().lower() for m in answer.headers["allow"].split(",")
            }


def test_an_answer_that_is_not_described_is_found(plant: Site) -> None:
    untrue = document(plant)
    answers = untrue["paths"]["/healthz"]["get"]["responses"]
    answers["200"]["content"]["application/json"]["schema"] = {"type": "integer"}
    operation = schemathesis.openapi.from_dict(untrue)["/healthz"]["GET"]
    with pytest.raises(FailureGroup):
        try_out(plant, operation, GenerationMode.POSITIVE)


def try_out(found: Site, operation: Any, mode: GenerationMode) -> bool:
    """Send requests of an operation, and look whether answers are as described.

    False if no request could be made.
    """
    tried = []
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
        tried.append(case)
        answer = case.call(base_url=found.http.url, headers=tokens)
        if answer.status_code == 503:
            assert answer.json()["code"] in EXPECTED_503
            return
        case.validate_response(answer, checks=CHECKS)

    with suppress(SkipTest, Unsatisfiable):
        check()
    return bool(tried)
