"""The client has the Engine's methods, and raises its errors."""

from __future__ import annotations

import datetime as dt
import inspect
import re
import socket
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pandas as pd
import pyarrow as pa
import pytest

import auroral as au
from auroral.client import Client, api, rows
from auroral.client.transport import Transport
from auroral.engine import Engine
from auroral.errors import AuroralError, NetworkError, RunError, StateError, UsageError
from tests.server.feeding import Served, hot_network, served

ELSEWHERE = {
    "start": "`auroral serve` starts the engine",
    "shutdown": "the server ends the engine; `close` ends the client",
    "check": "`typecheck` checks a network on the server",
    "finish": "whoever serves a network decides that its input ends",
    "read_stream": "a Spark stream lives in the engine's process",
    "bind_source": "a source lives in the engine's process; `modify` adds declared ones",
    "unbind_source": "as bind_source",
    "bind_sink": "a sink lives in the engine's process; `modify` adds declared ones",
    "unbind_sink": "as bind_sink",
    "idle": "whether files have ended matters to who runs them",
    "ended": "as finish",
    "wait": "waits for something that happens in the engine's process; `follow` waits for results",
    "receive": "`enqueue` says how many fit, `stats` counts dead letters",
    "cancel_sql": "the server ends a SELECT for which nobody waits any more",
    "backlog": "for feeds in the engine's process; `stats` has the queues",
    "resolver": "tells types with the engine's Spark; `typecheck` does so on the server",
    "recent_steps_s": "`stats` has their median",
    "dead_letters": "a file of the server's machine",
}
"""The public parts of Engine that Client does not have, and why."""


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served(plant()) as found:
        yield found


@pytest.fixture
def client(server: Served) -> Iterator[Client]:
    with server.client() as client:
        yield client
        client.drain()
        for output in ("hot", "all"):
            client.dequeue(output)


def plant() -> au.Network:
    network = hot_network()
    network.output("all", network.stream("readings", schema=TYPES).filter("true"))
    document = network.document()
    document["queries"] = {
        "near": "SELECT sid FROM reports WHERE pos < 0",
        "cheap": "SELECT n, at, price FROM readings WHERE price < 9",
    }
    document["connection_points"] = {
        "recent": {"on": "reports", "keep": {"rows": 100}, "key": "sid"},
        "whole": {"on": "readings", "keep": "all"},
    }
    return au.Network.parse(document)


TYPES = (
    "n bigint, at timestamp, day date, price decimal(10,2), data binary, tags array<string>,"
    " x double"
)
READING = {
    "n": 2**60,
    "at": dt.datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=dt.UTC),
    "day": dt.date(2026, 1, 2),
    "price": Decimal("1.50"),
    "data": b"\x00\xff",
    "tags": ["a", None],
    "x": float("inf"),
}
REPORT = {"sid": 1, "pos": 31.0, "name": "a"}


def test_every_public_method_of_the_engine_is_there() -> None:
    public = {name for name, _ in inspect.getmembers(Engine) if not name.startswith("_")}
    missing = public - set(dir(Client)) - ELSEWHERE.keys()
    assert not missing, f"Client lacks {sorted(missing)}"
    assert not ELSEWHERE.keys() & set(dir(Client))
    assert ELSEWHERE.keys() <= public


def public_methods(kind: type) -> dict[str, inspect.Signature]:
    found = inspect.getmembers(kind, inspect.isfunction)
    return {name: inspect.signature(one) for name, one in found if not name.startswith("_")}


DIFFERENT = {
    ("modify", "expected"): "the client may say which version of the network it has seen",
    ("sql", "job"): "the server names SELECTs, and ends those for which nobody waits any more",
}
"""Parameters that only one of the two has, and why; docs/how-to/client.md lists them."""


def test_methods_take_what_those_of_the_engine_take() -> None:
    engine, client = public_methods(Engine), public_methods(Client)
    both = engine.keys() & client.keys()
    assert len(both) >= 30
    odd: set[tuple[str, str]] = set()
    for name in sorted(both):
        theirs, ours = engine[name].parameters, client[name].parameters
        odd |= {(name, one) for one in theirs.keys() ^ ours.keys()}
        shared = [one for one in theirs if one in ours]
        assert shared == [one for one in ours if one in theirs], name
        for one in shared:
            assert ours[one].kind == theirs[one].kind, (name, one)
            assert ours[one].default == theirs[one].default, (name, one)
    assert odd == DIFFERENT.keys()


def test_differences_from_the_engine_are_documented() -> None:
    page = (Path(__file__).parents[2] / "docs/how-to/client.md").read_text(encoding="utf-8")
    _, _, told = page.partition("## What is different")
    for name in [*ELSEWHERE, *public_methods(Client).keys() - public_methods(Engine).keys()]:
        assert f"`{name}`" in told, name
    for method, parameter in DIFFERENT:
        assert f"`{method}(…, {parameter}=)`" in told, (method, parameter)


class SparkFrame:
    """What a Spark DataFrame is to the client."""

    __module__ = "pyspark.sql.classic.dataframe"
    columns = ("sid", "pos", "name")

    def toArrow(self) -> pa.Table:  # noqa: N802
        return pa.Table.from_pylist([REPORT])


@pytest.mark.parametrize(
    "given",
    [
        REPORT,
        [REPORT],
        [(1, 31.0, "a")],
        (row for row in [REPORT]),
        pa.table({"sid": [1], "pos": [31.0], "name": ["a"]}),
        pa.record_batch({"sid": [1], "pos": [31.0], "name": ["a"]}),
        pd.DataFrame([REPORT]),
        SparkFrame(),
    ],
    ids=["dict", "dicts", "tuples", "generator", "table", "batch", "pandas", "spark"],
)
def test_rows_of_every_kind_are_taken(client: Client, given: Any) -> None:
    assert client.enqueue("reports", given) == 1
    client.drain(20)
    assert client.dequeue("hot").to_pylist() == [REPORT]


def test_values_of_every_type_come_back(client: Client) -> None:
    for batch in ([READING], [READING, {"n": "x"}]):  # as Arrow; as JSON, because one is bad
        assert client.enqueue("readings", batch) == 1
        client.drain(20)
        found = client.dequeue("all")
        assert found.to_pylist() == [READING]
        assert found.schema == pa.schema([(f.name, f.type.arrow()) for f in au.Schema.parse(TYPES)])


def test_bad_rows_are_dead_letters(client: Client) -> None:
    before = client.stats()["streams"]["reports"]["dead"]
    assert client.enqueue("reports", [REPORT, {"sid": "x"}, {"nonsense": 1}]) == 1
    assert client.stats()["streams"]["reports"]["dead"] == before + 2


def test_a_bad_row_made_by_hand_is_refused(server: Served, client: Client) -> None:
    before = client.stats()["streams"]["reports"]["dead"]
    told = []
    for either in (server.engine, client):
        with pytest.raises(UsageError, match="BAD_ROW") as refused:
            either.send("reports", {"sid": "x"})
        told.append((str(refused.value), refused.value.where))
        with pytest.raises(UsageError, match="BAD_CALL"):
            either.send("reports", [1, 2])  # type: ignore[arg-type]
    assert told[0] == told[1]
    assert client.stats()["streams"]["reports"]["dead"] == before
    assert isinstance(client.send("readings", READING)["moment"], int)
    client.drain(20)
    assert client.dequeue("all").to_pylist() == [READING]


def test_results_say_which_share_of_their_input_was_dropped(server: Served, client: Client) -> None:
    assert client.dequeue("hot", 0, shed=True).column_names == ["sid", "pos", "name", "_shed"]
    server.engine.enqueue("reports", [REPORT] * 3)
    server.engine.drain()
    assert client.dequeue("hot", 1).num_rows
    server.engine.enqueue("reports", [REPORT])
    server.engine.drain()
    found = client.dequeue("hot", shed=True)
    assert found.to_pylist()[-1] == {**REPORT, "_shed": 0.0}
    assert found.schema == server.engine.dequeue("hot", 0, shed=True).schema
    client.enqueue("reports", [REPORT])
    client.drain(20)
    assert client.dequeue("hot").to_pylist() == [REPORT]


def test_large_batches_go_in_parts(client: Client, monkeypatch: Any) -> None:
    monkeypatch.setattr(api, "parts_of", lambda table: rows.parts_of(table, 1000))
    table = pa.table({"sid": range(1000), "pos": [31.0] * 1000, "name": ["x"] * 1000})
    assert client.enqueue("reports", table) == 1000
    client.drain(20)
    first = client.dequeue("hot", 10)
    assert first.num_rows >= 10  # what one step made stays together
    monkeypatch.setattr(api, "_PAGE", 100)
    rest = client.dequeue("hot")
    found = [*first.column("sid").to_pylist(), *rest.column("sid").to_pylist()]
    assert found == list(range(1000))


def test_a_position_makes_an_interrupted_batch_count_once(
    server: Served, client: Client, monkeypatch: Any
) -> None:
    monkeypatch.setattr(api, "parts_of", lambda table: rows.parts_of(table, 1000))
    table = pa.table({"sid": range(500), "pos": [31.0] * 500, "name": ["x"] * 500})
    sent: list[int] = []
    request = Transport.json

    def failing(self: Any, method: str, path: str, **given: Any) -> Any:
        if path == "streams/reports":
            sent.append(1)
            if len(sent) == 4:
                raise RunError("UNREACHABLE", "a broken cable")
        return request(self, method, path, **given)

    monkeypatch.setattr(Transport, "json", failing)
    with pytest.raises(RunError, match="UNREACHABLE"):
        client.enqueue("reports", table, position="file-7")
    parts = len(rows.parts_of(table, 1000))
    assert client.position("reports") == {"batch": "file-7", "part": 2, "of": parts}
    client.enqueue("reports", table, position="file-7")
    assert len(sent) == parts + 1
    assert client.enqueue("reports", table, position="file-7") == 0
    assert client.position("reports") == "file-7"
    client.drain(20)
    assert client.dequeue("hot").column("sid").to_pylist() == list(range(500))


def test_the_network_changes_and_is_previewed(client: Client) -> None:
    assert client.preview_change(add={"cold": au.Output(**{"from": "reports"})})["added"] == [
        "outputs.cold"
    ]
    version = client.version()
    report = client.modify(add={"cold": {"from": "reports"}, "far": "SELECT sid FROM reports"})
    assert set(report["added"]) == {"outputs.cold", "queries.far"}
    assert "cold" in client.list_entities()["outputs"]
    assert client.matches("far").to_pylist()[0]["matches"] == 0
    network = client.network
    assert "cold" in network.outputs
    with pytest.raises(AuroralError, match="CHANGED_MEANWHILE"):
        client.modify(network=network, expected=version)
    client.modify(remove=["cold", "far"])
    assert "cold" not in client.list_entities()["outputs"]
    assert client.preview_change(network=network)["added"]


def test_results_from_before_a_change_are_taken_with_their_fields() -> None:
    with served() as server, server.client() as client:
        client.enqueue("reports", [REPORT])
        client.drain(20)
        client.modify(
            remove=["filter_1"],
            add={"filter_1": {"box": "map", "input": "reports", "keep": ["sid"]}},
        )
        client.enqueue("reports", [REPORT])
        client.drain(20)
        assert client.dequeue("hot").to_pylist() == [REPORT]
        assert client.dequeue("hot").to_pylist() == [{"sid": 1}]


def test_arcs_are_typed(client: Client) -> None:
    assert client.typecheck()["reports"] == "sid int, pos double, name string"
    wrong = client.network.document()
    wrong["boxes"]["filter_1"]["where"] = "speed > 1"
    with pytest.raises(NetworkError, match=r"UNKNOWN_FIELD.*filter_1.*speed.*pos") as told:
        client.typecheck(au.Network.parse(wrong))
    assert told.value.code == "UNKNOWN_FIELD"


def test_an_output_is_followed(server: Served, client: Client) -> None:
    with client.follow("hot") as follower:
        client.enqueue("reports", [REPORT, {"sid": 2, "pos": 1.0}])
        client.drain(20)
        found = follower.next(20)
        assert found is not None
        assert found.to_pylist() == [REPORT]
        assert found.schema.field("sid").type == pa.int32()
        assert follower.next(0.05) is None
        assert follower.dropped == 0
    assert client.dequeue("hot").num_rows == 1
    with pytest.raises(UsageError, match="UNKNOWN_OUTPUT"):
        client.follow("cold")


def test_following_ends_with_the_query(client: Client) -> None:
    attached = client.attach("whole", "SELECT n FROM whole")
    with client.follow(attached) as follower:
        client.detach(attached)
        client.enqueue("readings", [READING])
        client.drain(20)

        def read_on() -> None:
            while follower.next(20) is not None:
                pass  # what the history had

        with pytest.raises(RunError, match="the output is no more"):
            read_on()


def test_results_of_every_kind_are_followed_with_their_types(
    server: Served, client: Client
) -> None:
    attached = client.attach("whole", "SELECT n, at, day, price, x FROM whole")
    for name in ("all", "cheap", attached):
        with client.follow(name) as ours, server.engine.follow(name) as theirs:
            client.enqueue("readings", [READING])
            client.drain(20)
            found, wanted = ours.next(20), theirs.next(20)
            assert found is not None
            assert wanted is not None
            assert found.schema == wanted.schema, name
            assert found.to_pylist() == wanted.to_pylist()
            assert ours.output == theirs.output
    client.detach(attached)


def test_traces_are_those_of_the_engine(server: Served, client: Client) -> None:
    client.pause()
    client.enqueue("readings", [READING] * 101)
    client.enqueue("reports", [REPORT])
    trace = client.step("train", count=3)
    assert trace == server.engine.debug_state()["trace"]
    assert client.debug_state() == server.engine.debug_state()
    assert {entry["step"] for entry in trace} >= {0, 1}
    whole = next(entry for entry in trace if entry["box"] == "filter_2")
    assert whole["out"]["filter_2"][0] == READING
    assert whole["truncated"]["filter_2"] == 1
    assert client.resume() == server.engine.debug_state()
    client.drain(20)
    id = client.set_breakpoint("all", "n > 1")
    client.enqueue("readings", [READING])
    with pytest.raises(UsageError, match="PAUSED"):
        client.drain(20)
    state = client.debug_state()
    assert state["hit"]["tuple"] == READING
    assert state == server.engine.debug_state()
    client.remove_breakpoint(id)
    client.step("train", count=9)
    client.enqueue("readings", [{"n": 1, "tags": []}])
    trace = client.step("train", count=2)
    outs = [entry["out"] for entry in trace if entry["box"] == "filter_2"]
    assert [row["tags"] for row in outs[0]["filter_2"]] == [[]]
    assert trace == server.engine.debug_state()["trace"]
    client.resume()


def test_a_breakpoint_that_is_off_is_never_on(server: Served, client: Client) -> None:
    armed: list[bool] = []
    engine = server.engine
    set_breakpoint = engine.set_breakpoint

    def setting(*given: Any, **more: Any) -> str:
        armed.append(more.get("enabled", True))
        return set_breakpoint(*given, **more)

    engine.set_breakpoint = setting  # type: ignore[method-assign]
    try:
        client.remove_breakpoint(client.set_breakpoint("reports", enabled=False))
        client.remove_breakpoint(client.set_breakpoint("reports"))
    finally:
        del engine.set_breakpoint
    assert armed == [False, True]


def test_what_runs_can_be_stopped_and_looked_at(client: Client) -> None:
    assert client.pause()["paused"] is True
    moment = client.send("reports", REPORT)["moment"]
    assert isinstance(moment, int)
    trace = client.step("tuple")
    assert "filter_1" in {entry["box"] for entry in client.step("tuple") or trace}
    id = client.set_breakpoint("reports", "sid = 7", enabled=False)
    assert client.debug_state()["breakpoints"][0]["enabled"] is False
    client.enable_breakpoint(id)
    client.remove_breakpoint(id)
    assert client.resume()["paused"] is False
    client.drain(20)
    assert client.sample("reports").column("sid").to_pylist()[-1] == 1
    assert client.point_rows("recent", key=1, limit=1).num_rows == 1
    assert client.describe("hot")["kind"] == "output"
    assert isinstance(client.story("filter_1"), list)
    client.set_qos("hot", au.QoS(latency=[(0, 1), (1, 0)]))
    client.set_qos("hot", None)


def test_history_is_attached_and_replayed(client: Client) -> None:
    client.enqueue("reports", [REPORT])
    client.drain(20)
    name = client.attach("recent", "SELECT sid FROM recent WHERE sid = 1")
    client.drain(20)
    assert client.dequeue(name).num_rows >= 1
    client.detach(name)
    again = client.replay("recent", into="SELECT sid FROM recent")
    client.drain(20)
    assert client.dequeue(again).num_rows >= 1
    with pytest.raises(UsageError, match="BAD_CALL"):
        client.attach("recent", lambda arc: arc)


def test_the_guide_to_debugging_holds_for_a_client() -> None:
    page = (Path(__file__).parents[2] / "docs/how-to/debug.md").read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    begin, end = "engine = au.Engine(net).start()\n", "engine.shutdown()\n"
    declared, found, used = code.partition(begin)
    assert found
    assert used.endswith(end)
    used = used.removesuffix(end)
    said: list[str] = []
    given: dict[str, Any] = {"print": lambda one: said.append(str(one))}
    exec(declared, given)
    with served(given["net"]) as server, server.client() as client:
        exec(used, {**given, "engine": client})
    assert said == re.findall(r"print\(.*\)  # (.*)", used)


@pytest.mark.parametrize(
    ("call", "kind", "code"),
    [
        (lambda c: c.enqueue("report", [REPORT]), UsageError, "UNKNOWN_STREAM"),
        (lambda c: c.dequeue("cold"), UsageError, "UNKNOWN_OUTPUT"),
        (lambda c: c.describe("nobody"), UsageError, "UNKNOWN_ENTITY"),
        (lambda c: c.modify(add={"b": {"box": "filter", "input": "x"}}), NetworkError, None),
        (lambda c: c.enqueue("reports", pa.table({"x": [1]})), UsageError, "BAD_BATCH"),
        (lambda c: c.enqueue("reports", 17), UsageError, "BAD_BATCH"),
        (lambda c: c.step("turn"), UsageError, "BAD_CALL"),
        (lambda c: c.sql("SELECT * FROM reports"), UsageError, "NO_SPARK"),
    ],
)
def test_errors_are_those_of_the_engine(client: Client, call: Any, kind: Any, code: Any) -> None:
    with pytest.raises(kind) as told:
        call(client)
    assert type(told.value) is kind
    assert code in (None, told.value.code)
    assert told.value.message


def test_a_hint_and_a_place_come_along(client: Client) -> None:
    with pytest.raises(UsageError) as told:
        client.describe("reprts")
    assert told.value.hint == "did you mean reports?"


def test_roles_are_those_of_the_token(server: Served) -> None:
    with server.client("viewer") as viewer:
        assert viewer.server()["role"] == "viewer"
        with pytest.raises(UsageError, match="FORBIDDEN"):
            viewer.enqueue("reports", [REPORT])
    with Client(server.url, "wrong") as stranger, pytest.raises(UsageError, match="UNAUTHORIZED"):
        stranger.stats()


def test_who_does_not_answer_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with (
            Client(url, "t0ken-of-nobody") as client,
            pytest.raises(RunError, match="UNREACHABLE") as e,
        ):
            client.stats()
    assert "t0ken" not in str(e.value)
    with pytest.raises(UsageError, match="BAD_CALL"):
        Client("127.0.0.1:8640", "token")
    with pytest.raises(UsageError, match="BAD_CALL"):
        Client(url, "")


@pytest.mark.parametrize(
    ("status", "body", "kind", "code"),
    [
        (
            503,
            {"type": "urn:auroral:error:StateError", "code": "LOCKED", "detail": "x"},
            StateError,
            "LOCKED",
        ),
        (503, {"code": "SPARK_FAILED", "detail": "x"}, RunError, "SPARK_FAILED"),
        (502, "<html>", RunError, "BAD_ANSWER"),
        (418, {"code": "ODD", "detail": "x"}, UsageError, "ODD"),
    ],
)
def test_problems_become_errors(status: int, body: Any, kind: Any, code: str) -> None:
    def answer(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(
            status, **({"text": body} if isinstance(body, str) else {"json": body})
        )

    transport = httpx.MockTransport(answer)
    with Client("http://there", "t", transport=transport) as client, pytest.raises(kind) as told:
        client.stats()
    assert (type(told.value), told.value.code) == (kind, code)


def test_a_call_does_not_wait_for_ever() -> None:
    def answer(_request: httpx.Request) -> httpx.Response:
        raise httpx.ReadTimeout("slow")

    transport = httpx.MockTransport(answer)
    with Client("http://there", "t", transport=transport) as client:
        with pytest.raises(RunError, match=r"TIMEOUT.*60 s"):
            client.stats()
        with pytest.raises(RunError, match="TIMEOUT"):
            client.drain(0.1)
