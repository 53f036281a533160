"""The calls of the REST interface, each against an engine in this process."""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
from pyarrow import ipc

from auroral.client import Client
from auroral.engine import Engine
from auroral.errors import RunError, UsageError
from auroral.network.network import Network
from auroral.server.network_file import NetworkFile
from auroral.server.tokens import Role
from auroral.server.wire_rows import ARROW
from tests.server.serving import PLANT, READINGS, Site, site


@pytest.fixture(scope="module")
def plant() -> Iterator[Site]:
    with site() as found:
        yield found


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Site]:
    """A server that a test may change, with its files."""
    file = tmp_path / "plant.yaml"
    file.write_text("# a comment\nnetwork: plant\n")
    with site(file=file, state=tmp_path / "state") as found:
        yield found


def test_the_server_says_what_it_is(plant: Site) -> None:
    found = plant.get("server", role="operator")
    assert found["network"] == "plant"
    assert found["role"] == "operator"
    assert found["limits"]["body_bytes"] == 64 << 20
    assert not found["durable"]


def test_a_network_is_read_as_json_and_as_yaml(plant: Site, tmp_path: Path) -> None:
    answer = plant.ask("GET", "network")
    assert Network.parse(answer.json()) == Network.parse(PLANT)
    text = plant.ask("GET", "network", headers={"Accept": "application/yaml"})
    (tmp_path / "n.yaml").write_text(text.text)
    assert Network.load(tmp_path / "n.yaml") == Network.parse(PLANT)
    assert text.headers["ETag"] == answer.headers["ETag"] == plant.service.version
    assert plant.get("picture")["network"] == answer.headers["ETag"]


@pytest.mark.parametrize(
    ("box", "code", "key"),
    [
        ({"box": "update", "sql": "VACUUM", "report": {"at": "at"}}, "BAD_STATEMENT", "sql"),
        ({"box": "update", "sql": "SELECT n FROM seen", "report": {"at": "at"}}, None, "sql"),
        (
            {"box": "update", "sql": "DELETE FROM so", "report": {"at": "at"}},
            "UNKNOWN_TABLE",
            "sql",
        ),
        (
            {"box": "latch", "by": ["machine"], "compute": {"n": "count(*)"}, "table": "so"},
            "UNKNOWN_TABLE",
            "table",
        ),
    ],
)
def test_a_mistake_of_a_network_that_is_deployed_is_told_with_its_place(
    fresh: Site, box: dict[str, Any], code: str | None, key: str
) -> None:
    changed = copy.deepcopy(PLANT)
    changed["boxes"]["wrong"] = {"input": "readings", **box}
    for query in ("", "?dry_run=true"):
        answer = fresh.ask("PUT", f"network{query}", json=changed)
        assert answer.status_code == 400, answer.text
        assert answer.json()["code"] == (code or "BAD_STATEMENT")
        assert answer.json()["path"] == ["boxes", "wrong", key]


def test_a_select_that_spark_refuses_is_a_mistake_of_who_asks(
    plant: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_given: Any, **_more: Any) -> pa.Table:
        raise RunError("BAD_SELECT", "there is no column nothing", where="sql")

    monkeypatch.setattr(Engine, "sql", refused)
    answer = plant.ask("POST", "sql", json={"query": "SELECT nothing FROM recent"})
    assert (answer.status_code, answer.json()["code"]) == (400, "BAD_SELECT")
    with (
        Client(plant.http.url, plant.tokens["viewer"]) as client,
        pytest.raises(RunError, match="BAD_SELECT"),
    ):
        client.sql("SELECT nothing FROM recent")


def test_deploying_changes_the_network_and_its_file(fresh: Site, tmp_path: Path) -> None:
    before = fresh.ask("GET", "network").headers["ETag"]
    changed = copy.deepcopy(PLANT)
    changed["boxes"]["cold"] = {"box": "filter", "input": "readings", "where": "celsius < 0"}
    changed["outputs"]["chills"] = {"from": "cold"}
    tried = fresh.ask("PUT", "network", params={"dry_run": "true"}, json=changed)
    assert tried.json()["added"] == ["boxes.cold", "outputs.chills"]
    assert fresh.ask("GET", "network").headers["ETag"] == before
    made = fresh.ask("PUT", "network", json=changed, headers={"If-Match": before})
    assert made.status_code == 200, made.text
    assert made.json() == tried.json()
    file = tmp_path / "plant.yaml"
    assert Network.load(file) == Network.parse(changed)
    assert file.with_name("plant.yaml.bak").read_text().startswith("# a comment")
    stale = fresh.ask("PUT", "network", json=PLANT, headers={"If-Match": before})
    assert stale.status_code == 412
    assert stale.json()["code"] == "CHANGED_MEANWHILE"
    back = fresh.ask("PUT", "network", json=PLANT, headers={"If-Match": made.headers["ETag"]})
    assert back.json()["removed"] == ["boxes.cold", "outputs.chills"]
    assert file.with_name("plant.yaml.bak").read_text().startswith("# a comment")
    noted = [json.loads(line) for line in (tmp_path / "state/audit.jsonl").open()]
    assert [(one["what"], one["result"]) for one in noted] == [
        ("deploy", "ok"),
        ("deploy", "CHANGED_MEANWHILE"),
        ("deploy", "ok"),
    ]
    assert (tmp_path / "state/audit.jsonl").stat().st_mode & 0o777 == 0o600


def with_cold(document: dict[str, Any]) -> dict[str, Any]:
    changed = copy.deepcopy(document)
    changed["boxes"]["cold"] = {"box": "filter", "input": "readings", "where": "celsius < 0"}
    return changed


def test_a_change_that_cannot_be_kept_is_not_made(fresh: Site, tmp_path: Path) -> None:
    version = fresh.service.version
    assert fresh.service.file is not None
    fresh.service.file.path = tmp_path / "nowhere" / "plant.yaml"
    for method, path, body in (
        ("PUT", "network", with_cold(PLANT)),
        ("POST", "modify", {"remove": ["hot"]}),
        ("POST", "queries", {"name": "q", "sql": "SELECT machine FROM readings"}),
        ("DELETE", "queries/mild", None),
    ):
        given: dict[str, Any] = {} if body is None else {"json": body}
        answer = fresh.ask(method, path, **given)
        assert (answer.status_code, answer.json()["code"]) == (400, "CANNOT_WRITE"), path
    assert fresh.service.version == version
    assert fresh.engine.list_entities()["queries"] == ["mild"]


def test_a_change_that_was_made_and_not_kept_is_told(
    fresh: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def full(*_: Any) -> None:
        raise UsageError("CANNOT_WRITE", "cannot write the file: No space left on device")

    monkeypatch.setattr("auroral.server.network_file.replace_file", full)
    answer = fresh.ask("PUT", "network", json=with_cold(PLANT))
    assert (answer.status_code, answer.json()["code"]) == (503, "NOT_KEPT")
    assert "the change is made" in answer.json()["detail"]
    assert "cold" in fresh.get("network")["boxes"]
    monkeypatch.undo()
    again = fresh.ask("PUT", "network", json=fresh.get("network"))
    assert again.status_code == 200
    assert "cold" in Network.load(tmp_path / "plant.yaml").boxes


def test_queries_and_the_rest_change_at_once(fresh: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("warm", "chilly"):
        wanted = {"name": name, "sql": "SELECT machine FROM readings WHERE celsius > 50"}
        assert fresh.ask("POST", "queries", json=wanted).status_code == 200
    assert fresh.ask("DELETE", "queries/mild").status_code == 200
    document = with_cold(fresh.get("network"))
    del document["queries"]["warm"]
    document["queries"]["mild"] = PLANT["queries"]["mild"]
    calls, modify = [], fresh.engine.modify

    def counted(**given: Any) -> Any:
        calls.append(given)
        return modify(**given)

    monkeypatch.setattr(fresh.engine, "modify", counted)
    tried = fresh.ask("PUT", "network", params={"dry_run": "true"}, json=document).json()
    made = fresh.ask("PUT", "network", json=document)
    assert made.json() == tried
    assert made.json()["removed"] == ["queries.warm"]
    assert len(calls) == 1
    assert set(fresh.engine.list_entities()["queries"]) == {"mild", "chilly"}
    assert fresh.get("network") == document


def test_an_empty_network_takes_a_starter_whatever_its_name(tmp_path: Path) -> None:
    with site({"network": "begun"}, file=tmp_path / "begun.yaml") as found:
        starter = found.get("starters")[0]["network"]
        made = found.ask("PUT", "network", json=starter)
        assert made.status_code == 200, made.text
        assert found.get("network") == {**starter, "network": "begun"}
        other = found.ask("PUT", "network", json={**starter, "network": "other"})
        assert other.json()["code"] == "CANNOT_CHANGE"


def test_queries_that_were_added_are_part_of_the_network(fresh: Site) -> None:
    wanted = {"name": "warm", "sql": "SELECT machine FROM readings WHERE celsius > 50"}
    assert fresh.ask("POST", "queries", json=wanted).json()["added"] == ["queries.warm"]
    document = fresh.get("network")
    assert document["queries"]["warm"] == wanted["sql"]
    assert fresh.ask("POST", "streams/readings", json=READINGS).status_code == 200
    fresh.engine.drain(10)
    # A network with the query keeps it and its results; one without it removes it.
    assert fresh.ask("PUT", "network", json=document).json()["removed"] == []
    assert len(fresh.get("outputs/warm")["rows"]) == 3
    assert fresh.ask("PUT", "network", json=PLANT).json()["removed"] == ["queries.warm"]
    assert fresh.ask("DELETE", "queries/warm").status_code == 404
    assert fresh.ask("DELETE", "queries/mild").json()["removed"] == ["queries.mild"]
    assert "queries" not in fresh.get("network") or not fresh.get("network")["queries"]
    # A query that the file declared comes back with it.
    assert fresh.ask("PUT", "network", json=PLANT).status_code == 200
    assert fresh.get("network")["queries"] == PLANT["queries"]
    assert "mild" in fresh.engine.list_entities()["queries"]


def test_parts_are_added_and_removed(fresh: Site) -> None:
    add = {"boxes": {"cool": {"box": "filter", "input": "readings", "where": "celsius < 9"}}}
    preview = fresh.ask("POST", "modify?dry_run=true", json={"add": add})
    assert preview.json()["added"] == ["boxes.cool"]
    assert "cool" not in fresh.get("network")["boxes"]
    assert fresh.ask("POST", "modify", json={"add": add}).json()["added"] == ["boxes.cool"]
    assert fresh.ask("POST", "modify", json={"remove": ["cool"]}).json()["removed"]
    refused = fresh.ask("POST", "modify", json={"remove": ["readings"]})
    assert refused.status_code == 400
    assert refused.headers["content-type"] == "application/problem+json"


BODIES = {
    "application/json": json.dumps(READINGS).encode(),
    "application/x-ndjson": b"".join(json.dumps(row).encode() + b"\n" for row in READINGS),
    "text/csv": b"at,machine,celsius\n1,press,99.5\n2,lathe,60\n13,mill,98\n",
}


def as_arrow(rows: list[dict[str, Any]]) -> bytes:
    sink, table = pa.BufferOutputStream(), pa.Table.from_pylist(rows)
    with ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


@pytest.mark.parametrize("media", [*BODIES, ARROW])
def test_rows_go_in_and_out_in_every_form(plant: Site, media: str) -> None:
    body = BODIES.get(media) or as_arrow(READINGS)
    # Marks have passed the rows of other tests, so only the filter tells.
    sent = plant.ask("POST", "streams/readings", content=body, headers={"Content-Type": media})
    assert sent.status_code == 200, sent.text
    assert (sent.json()["accepted"], sent.json()["dead"]) == (3, 0)
    plant.engine.drain(10)
    out = plant.ask("GET", "outputs/alerts", headers={"Accept": media})
    assert out.headers["content-type"].startswith(media)
    if media == ARROW:
        rows = [tuple(row.values()) for row in ipc.open_stream(out.content).read_all().to_pylist()]
    elif media == "text/csv":
        rows = [tuple(line.split(",")) for line in out.text.splitlines()[1:]]
    elif media == "application/json":
        rows = [tuple(row) for row in out.json()["rows"]]
    else:
        rows = [tuple(json.loads(line).values()) for line in out.text.splitlines()]
    assert [(row[0], float(row[2])) for row in rows] == [("press", 99.5), ("mill", 98.0)]
    assert plant.get("outputs/alerts")["rows"] == []


def test_rows_that_do_not_fit_are_counted(plant: Site) -> None:
    body = b'{"machine": "a", "at": "x"}\nnonsense\n{"machine": "b", "at": 20, "celsius": 1}\n'
    kind = {"Content-Type": "application/x-ndjson"}
    sent = plant.ask("POST", "streams/readings", content=body, headers=kind).json()
    assert (sent["accepted"], sent["dead"]) == (1, 2)


def test_one_row_is_taken_strictly(plant: Site) -> None:
    before = plant.engine.stats()["streams"]["readings"]["dead"]
    row = {"machine": "drill", "at": 30, "celsius": 1.0}
    for content, kind, status in (
        (json.dumps(row).encode(), "application/json", 200),
        (b'{"at": "x"}', "application/json", 400),
        (b"at\n1\n", "text/csv", 415),
    ):
        headers = {"Content-Type": kind}
        path = "streams/readings?strict=true"
        assert plant.ask("POST", path, content=content, headers=headers).status_code == status
    assert plant.engine.stats()["streams"]["readings"]["dead"] == before


def test_a_position_is_taken_once(plant: Site) -> None:
    row = [{"machine": "a", "at": 30, "celsius": 1.0}]
    first = plant.ask("POST", 'streams/readings?position={"n":1}', json=row).json()
    again = plant.ask("POST", 'streams/readings?position={"n":1}', json=row).json()
    assert (first["accepted"], again["accepted"], again["moment"]) == (1, 0, None)


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("POST", "streams/nope", [], 404, "UNKNOWN_STREAM"),
        ("POST", "streams/readings", "text", 422, "BAD_BODY"),
        ("POST", "streams/readings?position={", [], 422, "BAD_BODY"),
        ("POST", "streams/readings?strict=true", {"at": "x"}, 400, "BAD_ROW"),
        ("POST", "streams/readings?strict=true", [{"at": 1}], 422, "BAD_BODY"),
        ("POST", "streams/readings?strict=true&position=1", {"at": 1}, 422, "BAD_BODY"),
        ("GET", "outputs/nope", None, 404, "UNKNOWN_OUTPUT"),
        ("GET", "outputs/alerts?limit=-1", None, 422, "BAD_BODY"),
        ("GET", "entities/nope", None, 404, "UNKNOWN_ENTITY"),
        ("GET", "story/nope", None, 404, "UNKNOWN_ENTITY"),
        ("GET", "history/nope", None, 404, "UNKNOWN_ENTITY"),
        ("GET", "arcs/nope/sample", None, 404, "UNKNOWN_ENTITY"),
        ("GET", "arcs/hot/sample?where=nope+%3E+1", None, 400, "UNKNOWN_FIELD"),
        ("GET", "points/nope/rows", None, 404, "UNKNOWN_POINT"),
        ("GET", "tables/nope", None, 404, "UNKNOWN_TABLE"),
        ("GET", "nope", None, 404, "NOT_FOUND"),
        ("POST", "server", {}, 405, "METHOD_NOT_ALLOWED"),
        ("PUT", "outputs/nope/qos", {"latency": [[0, 1], [1, 0]]}, 404, "UNKNOWN_OUTPUT"),
        ("PUT", "outputs/alerts/qos", {"latency": [[0, 1]]}, 400, "BAD_QOS"),
        ("POST", "queries", {"name": "q"}, 422, "BAD_BODY"),
        ("POST", "queries", {"name": "q", "sql": "SELECT nope FROM readings"}, 400, None),
        ("POST", "control/step", {"kind": "train"}, 409, "NOT_PAUSED"),
        ("POST", "control/breakpoints", {"arc": "nope"}, 404, "UNKNOWN_ENTITY"),
        ("DELETE", "control/breakpoints/nope", None, 404, "UNKNOWN_BREAKPOINT"),
        ("POST", "attach", {"point": "nope", "query": "SELECT 1"}, 404, None),
        ("DELETE", "attach/nope", None, 404, "UNKNOWN_ATTACHMENT"),
        ("POST", "sql", {"query": "SELECT 1"}, 503, "NO_SPARK"),
        ("PUT", "network", {"network": "plant", "boxes": {"x": {}}}, 400, "MISSING_KEY"),
    ],
)
def test_mistakes_are_problems(
    plant: Site, method: str, path: str, body: Any, status: int, code: str | None
) -> None:
    given = {} if body is None else {"json": body}
    answer = plant.ask(method, path, **given)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    found = answer.json()
    assert found["status"] == status
    assert found["detail"]
    assert code is None or found["code"] == code


def test_a_kind_of_body_that_is_not_known_is_refused(plant: Site) -> None:
    for path in ("streams/readings", "check"):
        answer = plant.ask("POST", path, content=b"x", headers={"Content-Type": "image/png"})
        assert answer.status_code == 415
    answer = plant.ask("GET", "outputs/alerts", headers={"Accept": "image/png"})
    assert answer.status_code == 406


def test_converters_are_named_to_who_sends_another_kind(plant: Site) -> None:
    headers = {"Content-Type": "text/weird"}
    answer = plant.ask("POST", "streams/readings", content=b"a", headers=headers)
    assert answer.status_code == 415
    assert "application/xml" in answer.json()["detail"]


def test_whoever_watches_health_may_ask_by_head(plant: Site) -> None:
    asked: list[tuple[str, Role | None]] = [("/healthz", None), ("/readyz", "viewer")]
    for path, role in asked:
        answer = plant.asking.head(path, headers=bearer(plant, role))
        assert (answer.status_code, answer.content) == (200, b"")
    assert plant.asking.head("/readyz").status_code == 401


def bearer(plant: Site, role: Role | None) -> dict[str, str]:
    return {} if role is None else {"Authorization": f"Bearer {plant.tokens[role]}"}


def test_a_compressed_body_is_refused(plant: Site) -> None:
    before = plant.engine.stats()["streams"]["readings"]
    body = gzip.compress(BODIES["application/x-ndjson"])
    for path, kind in (("streams/readings", "application/x-ndjson"), ("sql", "application/json")):
        headers = {"Content-Type": kind, "Content-Encoding": "gzip"}
        answer = plant.ask("POST", path, content=body, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (415, "UNSUPPORTED_MEDIA")
        assert answer.headers["Accept-Encoding"] == "identity"
    assert plant.engine.stats()["streams"]["readings"]["dead"] == before["dead"]
    plain = plant.ask("POST", "check", json=PLANT, headers={"Content-Encoding": "identity"})
    assert plain.status_code == 200


def test_text_is_compressed_quickly_and_arrow_is_not(plant: Site) -> None:
    """Arrow's numbers hardly shrink, and the time to try is the engine's."""
    rows = [{"machine": "kiln", "at": 40, "celsius": float(n)} for n in range(300)]
    assert plant.ask("POST", "streams/readings", json=rows).status_code == 200
    plant.engine.drain(10)

    def answer(media: str) -> httpx.Response:
        accepted = {"Accept": media, "Accept-Encoding": "gzip"}
        return plant.ask("GET", "points/recent/rows?limit=300", headers=accepted)

    arrow = answer("application/vnd.apache.arrow.stream")
    assert pa.ipc.open_stream(arrow.content).read_all().num_rows == 300
    assert len(arrow.content) > 1024
    assert "Content-Encoding" not in arrow.headers
    for media in ("application/json", "application/x-ndjson", "text/csv"):
        text = answer(media)
        assert text.headers["Content-Encoding"] == "gzip"
        assert int(text.headers["Content-Length"]) < len(text.content) / 2


def test_looking(plant: Site) -> None:
    plant.ask("POST", "streams/readings", json=[{"machine": "saw", "at": 50, "celsius": 120.0}])
    plant.engine.drain(10)
    assert plant.get("entities?kind=boxes&limit=2") == {"boxes": ["count", "hot"]}
    assert plant.get("entities?kind=boxes&after=hot") == {"boxes": ["tens"]}
    assert plant.get("entities/hot")["kind"] == "box"
    assert plant.get("stats")["boxes"]["hot"]["in"] > 0
    assert plant.get("story/hot")["entries"] is not None
    sample = plant.get("arcs/hot/sample?limit=1&where=celsius+%3E+100")
    assert [field["name"] for field in sample["fields"][:2]] == ["_seq", "_at"]
    assert sample["rows"][0][2:] == ["saw", 50, 120.0]
    rows = plant.get("points/recent/rows?key=saw&since=50&until=50")
    assert [row[2:] for row in rows["rows"]] == [["saw", 50, 120.0]]
    assert ["saw", 1] in plant.get("tables/seen")["rows"]
    assert plant.get("schema")["title"] == "Auroral network"
    assert {"name": "abs", "kind": "scalar", "signature": "abs(a)"} in plant.get("functions")


def test_a_point_is_asked_and_detached(plant: Site) -> None:
    made = plant.ask("POST", "attach", json={"point": "recent", "query": "SELECT * FROM recent"})
    assert made.status_code == 201, made.text
    name = made.json()["name"]
    plant.engine.drain(10)
    assert plant.get(f"outputs/{name}")["fields"]
    assert plant.ask("DELETE", f"attach/{name}").status_code == 204
    again = plant.ask("POST", "replay", json={"point": "recent", "since": 0, "until": 60})
    assert again.status_code == 201, again.text
    plant.engine.drain(10)
    plant.get(f"outputs/{again.json()['name']}")


def test_pausing_and_stepping(plant: Site) -> None:
    paused = plant.ask("POST", "control/pause", json={"application": None}).json()
    assert paused["paused"]
    plant.ask("POST", "streams/readings", json=[{"machine": "saw", "at": 60, "celsius": 130.0}])
    assert plant.ask("POST", "control/drain", json={"timeout_s": 1}).status_code == 409
    step = plant.ask("POST", "control/step", json={"kind": "tuple"}).json()
    hot = next(entry for entry in step["trace"] if entry["box"] == "hot")
    assert hot["out"]["hot"]["rows"] == [{"machine": "saw", "at": 60, "celsius": 130.0}]
    assert (hot["step"], len(hot["moments"])) == (0, 2)
    wanted = {"arc": "hot", "condition": "at > 60", "enabled": False}
    off = plant.ask("POST", "control/breakpoints", json=wanted).json()["id"]
    assert [b["enabled"] for b in plant.get("control")["breakpoints"]] == [False]
    assert plant.ask("DELETE", f"control/breakpoints/{off}").status_code == 204
    made = plant.ask("POST", "control/breakpoints", json={"arc": "hot", "condition": "at > 60"})
    id = made.json()["id"]
    assert plant.ask("PATCH", f"control/breakpoints/{id}", json={"enabled": False}).status_code
    assert [b["enabled"] for b in plant.get("control")["breakpoints"]] == [False]
    assert plant.ask("DELETE", f"control/breakpoints/{id}").status_code == 204
    assert not plant.ask("POST", "control/resume", json={}).json()["paused"]


def test_layouts_are_kept_beside_the_file(fresh: Site, tmp_path: Path) -> None:
    assert fresh.get("layout") == {"positions": {}, "open": {}, "bookmarks": []}
    layout = {
        "positions": {"hot": [10.0, 20.5]},
        "open": {"alarms": True},
        "bookmarks": [
            {"name": "all", "x": 0.0, "y": 0.0, "zoom": 1.0},
            {"name": "near", "x": 5.0, "y": 0.0, "zoom": 2.0, "group": "alarms"},
        ],
    }
    assert fresh.ask("PUT", "layout", json=layout).status_code == 204
    assert fresh.get("layout") == layout
    assert json.loads((tmp_path / "plant.yaml.layout.json").read_text()) == layout
    assert fresh.ask("PUT", "layout", json={"positions": {"a": [1]}}).status_code == 422


def test_a_layout_that_cannot_be_read_is_not_overwritten(fresh: Site, tmp_path: Path) -> None:
    file = tmp_path / "plant.yaml.layout.json"
    file.write_text('{"positions": {"hot": [1, 2]')
    assert fresh.get("layout") == {"positions": {}, "open": {}, "bookmarks": []}
    refused = fresh.ask("PATCH", "layout", json={"positions": {"hot": [3, 4]}})
    assert (refused.status_code, refused.json()["code"]) == (400, "CANNOT_READ")
    assert file.read_text() == '{"positions": {"hot": [1, 2]'
    assert fresh.ask("PUT", "layout", json={"positions": {}}).status_code == 204


def test_the_file_of_a_person_stays_as_backup_over_restarts(tmp_path: Path) -> None:
    file = tmp_path / "plant.yaml"
    file.write_text("# a comment\nnetwork: plant\n")
    for document in ({"network": "plant"}, {"network": "plant", "streams": {}}):
        NetworkFile(file).write(document)
    assert file.with_name("plant.yaml.bak").read_text().startswith("# a comment")
    assert "streams" in file.read_text()


def test_the_version_of_a_deployment_is_its_own(
    fresh: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    deploy, versions = fresh.service.deploy, list[str]()

    def with_another_change(*given: Any, **more: Any) -> Any:
        made = deploy(*given, **more)
        versions.append(fresh.service.version)
        fresh.service.modify({"late": "SELECT machine FROM readings"}, [])
        return made

    monkeypatch.setattr(fresh.service, "deploy", with_another_change)
    changed = copy.deepcopy(PLANT)
    changed["outputs"]["all"] = {"from": "hot.rest"}
    made = fresh.ask("PUT", "network", json=changed)
    assert [made.headers["ETag"]] == versions
    assert fresh.ask("GET", "network").headers["ETag"] == fresh.service.version != versions[0]


def test_people_who_move_different_boxes_do_not_undo_each_other(fresh: Site) -> None:
    def change(**what: object) -> None:
        assert fresh.ask("PATCH", "layout", json=what).status_code == 204

    places = {"hot": [0.0, 0.0], "means": [9.0, 9.0]}
    change(placed=places, open={"alarms": True})
    change(placed=places, positions={"hot": [1.0, 2.0]})
    change(placed=places, positions={"tens": [3.0, 4.0]}, open={"alarms": None})
    positions = {"hot": [1.0, 2.0], "means": [9.0, 9.0], "tens": [3.0, 4.0]}
    assert fresh.get("layout") == {"positions": positions, "open": {}, "bookmarks": []}


def test_graphs_are_set_and_change_what_an_arc_can_bear(fresh: Site) -> None:
    assert fresh.get("picture")["arcs"]["readings"]["patience_s"] == 2
    graph = {"latency": [[0, 1], [1, 1], [3, 0]]}
    assert fresh.ask("PUT", "outputs/means/qos", json=graph).status_code == 204
    assert fresh.service.set_graphs["means"] is not None
    assert fresh.engine.describe("means")["quality"]["qos"]["latency"][1][0] == 1
    assert fresh.get("stats")["qos"]["means"]["qos"] == graph


def test_a_stream_is_inferred_from_csv(plant: Site) -> None:
    text = "id,when,ok,note\n1,2026-01-01 10:00:00,true,a\n2,2026-01-01 10:00:05,false,\n"
    kind = {"Content-Type": "text/csv"}
    found = plant.ask("POST", "infer?name=my file", content=text, headers=kind).json()
    schema = {"id": "bigint", "when": "timestamp", "ok": "boolean", "note": "string"}
    progress = {"on": "when", "delay": "10 seconds"}
    assert found == {
        "stream": "my_file",
        "declaration": {"schema": schema, "progress": progress},
        "rows": 2,
    }
    numbers = plant.ask("POST", "infer", content="n,n\n1,5\n2,3\n", headers=kind).json()
    assert numbers["declaration"] == {
        "schema": {"n": "bigint", "n_2": "bigint"},
        "progress": {"on": "n", "delay": 0},
    }
    for one in (found, numbers):
        network = {"network": "n", "streams": {one["stream"]: one["declaration"]}}
        assert plant.ask("POST", "check", json=network).json()["ok"]
    assert plant.ask("POST", "infer", content="", headers=kind).status_code == 400


def test_health_and_metrics(plant: Site) -> None:
    assert plant.get("/healthz", role=None)["status"] == "ok"
    assert plant.get("/readyz", role="viewer")["status"] == "ok"
    text = plant.ask("GET", "/metrics", role="viewer")
    assert text.status_code == 200
    assert "auroral_" in text.text


def test_a_failed_engine_is_told(tmp_path: Path) -> None:
    from auroral.errors import RunError

    with site() as found:
        found.get("picture")
        found.engine._loop.fail(RunError("DISK_FULL", "no space is left"))
        assert found.ask("GET", "/readyz").status_code == 503
        answer = found.ask("POST", "streams/readings", json=READINGS)
        assert (answer.status_code, answer.json()["code"]) == (503, "DISK_FULL")
        state = next(
            picture["state"]
            for picture in iter(lambda: found.get("picture"), None)
            if picture["state"] != "running"
        )
        assert state == "failed"
