"""Long lists come in pages, and nothing is left out that an answer does not mark."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pyarrow as pa
import pytest

from auroral.client import Client, api
from auroral.client.transport import Transport
from auroral.errors import RunError, UsageError
from auroral.network.types import Schema
from auroral.server.paging import HistoryCursor, rows_after, rows_before, wanted_rows
from auroral.server.problems import RequestError
from auroral.server.settings import ServerLimits
from auroral.server.taking import TakenPages
from auroral.server.wire_rows import ARROW, CSV, JSON, NDJSON, encoded
from tests.server.serving import PLANT, Site, site

MACHINES = [f"m{number:02}" for number in range(25)]
DOCUMENT: dict[str, Any] = {
    **PLANT,
    "queries": {f"q{number}": "SELECT machine FROM readings" for number in range(25)},
}


@pytest.fixture(scope="module")
def plant() -> Iterator[Site]:
    with site(DOCUMENT, limits=ServerLimits(answer_rows=10)) as found:
        rows = [{"machine": name, "at": 1, "celsius": 98.0} for name in MACHINES]
        assert found.ask("POST", "streams/readings", json=rows).status_code == 200
        found.engine.drain(20)
        yield found


@pytest.fixture
def client(plant: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    monkeypatch.setattr(api, "_PAGE", 10)
    with Client(plant.http.url, plant.tokens["editor"]) as found:
        yield found


@pytest.mark.parametrize("media", [JSON, NDJSON, CSV, ARROW])
@pytest.mark.parametrize("path", ["tables/seen", "points/recent/rows?limit=10", "matches"])
def test_every_form_says_that_rows_were_left_out(plant: Site, path: str, media: str) -> None:
    answer = plant.ask("GET", path, headers={"Accept": media})
    assert answer.headers["X-Truncated"] == "true"
    last = answer
    for _ in range(2):
        last = plant.ask("GET", last.links["next"]["url"], headers={"Accept": media})
    assert last.status_code == 200
    assert "X-Truncated" not in last.headers
    assert "next" not in last.links


@pytest.mark.parametrize("media", [JSON, NDJSON, CSV, ARROW])
def test_every_form_says_that_more_may_be_taken(media: str) -> None:
    with site(limits=ServerLimits(answer_rows=2)) as found:
        for at in range(5):
            found.engine.enqueue("readings", [{"machine": "m", "at": at, "celsius": 98.0}])
            found.engine.drain(20)
        numbered = {"reader": "r", "turn": 0}
        asked = [{}, numbered, numbered, {"limit": 1000}]
        answers = [
            found.ask("GET", "outputs/alerts", headers={"Accept": media}, params=given)
            for given in asked
        ]
        marks = [answer.headers.get("X-Truncated") for answer in answers]
        assert marks == ["true", "true", "true", None]
        assert answers[1].content == answers[2].content
        assert not found.engine.dequeue("alerts").num_rows


def test_a_story_has_its_latest_entries(plant: Site) -> None:
    for why in ("first", "second"):
        plant.engine._context.decisions.note(["hot"], "moved", why)
    whole = plant.ask("GET", "story/hot")
    assert "X-Truncated" not in whole.headers
    entries = whole.json()["entries"]
    assert len(entries) > 1
    latest = plant.ask("GET", "story/hot", params={"limit": 1})
    assert latest.headers["X-Truncated"] == "true"
    assert latest.json()["entries"] == entries[-1:]


def test_pages_make_the_whole(plant: Site, client: Client) -> None:
    engine = plant.engine
    for limit in (1, 9, 10, 11, 24, 25, 26):
        at_once = engine.point_rows("recent", limit=limit)
        assert client.point_rows("recent", limit=limit) == at_once
        assert at_once.num_rows == min(limit, 25)
    assert client.table("seen") == engine.table("seen")
    assert client.table("seen").num_rows == 25
    found = client.matches().to_pylist()
    assert found == sorted(engine.matches().to_pylist(), key=lambda row: row["query"])
    assert client.list_entities() == {k: sorted(v) for k, v in engine.list_entities().items()}


def test_history_ends_below_a_moment(plant: Site, client: Client) -> None:
    moments = plant.engine.point_rows("recent")["_seq"].to_pylist()
    for before in (0, moments[0], moments[12], moments[-1] + 5):
        wanted = [moment for moment in moments if moment < before]
        assert plant.engine.point_rows("recent", before=before)["_seq"].to_pylist() == wanted
        assert client.point_rows("recent", before=before)["_seq"].to_pylist() == wanted
    assert client.point_rows("recent", key="m03", before=moments[-1])["machine"].to_pylist() == [
        "m03"
    ]
    for text in ("x", "1.x", "-1", "1.2.3", "٣"):
        assert plant.ask("GET", "points/recent/rows", params={"before": text}).status_code == 422


def test_names_say_that_there_are_more(plant: Site) -> None:
    answer = plant.ask("GET", "entities?kind=queries&limit=20")
    assert answer.headers["X-Truncated"] == "true"
    rest = plant.ask("GET", answer.links["next"]["url"])
    assert "X-Truncated" not in rest.headers
    assert len(answer.json()["queries"]) + len(rest.json()["queries"]) == 25
    assert plant.ask("GET", "entities?limit=20").headers["X-Truncated"] == "true"


def test_a_select_with_too_many_rows_is_marked_and_an_error_of_the_client(
    plant: Site, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        plant.engine, "sql", lambda *_, **__: pa.table({"n": range(11), "N": range(11)})
    )
    for media in (JSON, NDJSON, CSV, ARROW):
        answer = plant.ask("POST", "sql", json={"query": "s"}, headers={"Accept": media})
        assert answer.headers["X-Truncated"] == "true"
        assert "Link" not in answer.headers
    assert len(plant.ask("POST", "sql", json={"query": "s", "limit": 3}).json()["rows"]) == 3
    for limit in (None, 11, 200_000, 2_000_000):
        with pytest.raises(RunError, match=r"TRUNCATED.*LIMIT"):
            client.sql("s", limit)
    for limit in (0, 1, 10):
        found = client.sql("s", limit)
        assert (found.num_rows, found.column_names) == (limit, ["n", "N"])
    monkeypatch.setattr(plant.engine, "sql", lambda *_, **__: pa.table({"n": range(10)}))
    for limit in (None, 10, 11, 200_000):
        assert client.sql("s", limit).num_rows == 10


@pytest.mark.parametrize("after", ["x", "[]", '["a", "b"]', "7", "[7]", "[{}]"])
def test_keys_that_are_none_are_refused(plant: Site, after: str) -> None:
    answer = plant.ask("GET", "tables/seen", params={"after": after})
    assert (answer.status_code, answer.json()["code"]) == (422, "BAD_BODY")


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("bigint", [3, -(2**60), 2**60, 0, None]),
        ("double", [1.5, float("inf"), -2.0, float("-inf")]),
        ("string", ["b", "", "ä", "a/&=?", None]),
        ("timestamp", ["2026-01-01T00:00:00.000001Z", "1999-01-01T00:00:00Z"]),
        ("date", ["2026-01-02", "1969-12-31"]),
        ("binary", [b"\xff", b"", b"a"]),
        ("decimal(10,2)", ["1.50", "-7.00", "1.49"]),
        ("boolean", [True, False]),
    ],
)
def test_keys_of_every_type_are_pages(kind: str, values: list[Any]) -> None:
    key = Schema.parse({"k": kind, "n": "int"})
    column, wrong = au_column(key, values)
    assert not wrong
    numbers = pa.array([2, 1] * len(values), pa.int32())
    both = pa.concat_arrays([column, column]).take(
        pa.array([i // 2 + (i % 2) * len(values) for i in range(2 * len(values))])
    )
    table = pa.table({"k": both, "n": numbers, "other": range(2 * len(values))})
    pages, after = [], None
    while True:
        page = rows_after(table, key, after, 1)
        pages.append(page.table)
        if not page.truncated:
            break
        after = page.following["after"]
    assert pa.concat_tables(pages) == table.sort_by([("k", "ascending"), ("n", "ascending")])


def au_column(key: Schema, values: list[Any]) -> Any:
    from auroral.io.values import ColumnReader

    return ColumnReader(key.field("k").type).read(values)


def test_a_row_that_is_gone_is_still_a_place() -> None:
    table, key = pa.table({"k": [1, 3, 5]}), Schema.parse("k bigint")
    assert rows_after(table, key, "[2]", 10).table["k"].to_pylist() == [3, 5]
    assert rows_after(table, key, "[5]", 10).table.num_rows == 0
    counted = rows_after(table, Schema(()), None, 2)
    assert counted.following == {"after": "[2]"}
    assert rows_after(table, Schema(()), "[2]", 2).table["k"].to_pylist() == [5]
    with pytest.raises(Exception, match="a number of rows"):
        rows_after(table, Schema(()), "[-1]", 2)


@pytest.mark.parametrize("limit", range(1, 9))
def test_pages_of_history_may_part_a_moment(limit: int) -> None:
    moments = [1, 1, 2, 5, 5, 5, 5]
    table = pa.table({"_seq": moments, "n": range(7)})
    pages: list[int] = []
    cursor: HistoryCursor | None = None
    while True:
        below = 99 if cursor is None else cursor.moment
        there = table.filter(pa.array([moment <= below for moment in moments]))
        wanted = wanted_rows(cursor, limit)
        page = rows_before(there.slice(max(there.num_rows - wanted, 0)), cursor, limit)
        pages = [*page.table["n"].to_pylist(), *pages]
        assert 1 <= page.table.num_rows <= limit
        if not page.truncated:
            break
        cursor = HistoryCursor.parse(page.following["before"])
    assert pages == list(range(7))


def test_a_client_cannot_ask_for_ever_more_rows_of_a_moment(
    plant: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = plant.ask("GET", "points/recent/rows?before=17.999999999999999999")
    assert (found.status_code, found.json()["code"]) == (422, "BAD_BODY")
    monkeypatch.setattr("auroral.server.paging.MOST_GIVEN", 2)
    table = pa.table({"_seq": [5] * 5})
    page = rows_before(table, HistoryCursor(5, 1), 1)
    assert (page.truncated, dict(page.following)) == (True, {"before": "5.2"})
    page = rows_before(table, HistoryCursor(5, 2), 1)
    assert (page.truncated, dict(page.following)) == (True, {})


def test_fields_of_one_name_all_come() -> None:
    table = pa.table([[1], [2], [3]], ["n", "n", "n_2"])
    assert json.loads(encoded(table, NDJSON)) == {"n": 1, "n_3": 2, "n_2": 3}
    assert json.loads(encoded(table, JSON))["rows"] == [[1, 2, 3]]


def test_the_client_keeps_fields_of_one_name() -> None:
    body = encoded(pa.table([[1], [2]], ["n", "n"]), JSON)
    answer = httpx.Response(200, content=body, headers={"Content-Type": JSON})
    with Client("http://there", "t", transport=httpx.MockTransport(lambda _: answer)) as client:
        found = client.sql("SELECT n, n FROM t")
    assert found.column_names == ["n", "n"]
    assert [column.to_pylist() for column in found.columns] == [[1], [2]]


# ── results that were taken and did not arrive ──


def feeding(found: Site, *rows: int) -> None:
    """Hot readings, taken by `alerts`."""
    given = [{"machine": str(row), "at": 2, "celsius": 99.0} for row in rows]
    assert found.ask("POST", "streams/readings", json=given).status_code == 200
    found.engine.drain(20)


def machines(table: Any) -> list[str]:
    return [row[0] for row in table["rows"]]


def test_a_turn_gives_the_same_rows_until_the_next(plant: Site) -> None:
    plant.engine.dequeue("alerts")
    feeding(plant, 1, 2)
    first = plant.get("outputs/alerts?reader=a&turn=0")
    assert machines(first) == ["1", "2"]
    feeding(plant, 3)
    assert plant.get("outputs/alerts?reader=a&turn=0") == first
    arrow = plant.ask("GET", "outputs/alerts?reader=a&turn=0", headers={"Accept": ARROW})
    assert arrow.status_code == 200
    assert machines(plant.get("outputs/alerts?reader=a&turn=1")) == ["3"]
    late = plant.ask("GET", "outputs/alerts?reader=a&turn=0")
    assert (late.status_code, late.json()["code"]) == (409, "OUTDATED_TURN")
    assert machines(plant.get("outputs/alerts?reader=b&turn=0")) == []
    assert plant.ask("GET", "outputs/alerts?reader=b").status_code == 422


def test_turns_of_readers_are_apart_and_bounded() -> None:
    taken, calls = TakenPages(2), iter(range(100))

    def dequeue() -> pa.Table:
        return pa.table({"n": [next(calls)]})

    def take(reader: str, turn: int) -> int:
        return int(taken.take("o", reader, turn, dequeue)["n"][0].as_py())

    assert [take("a", 0), take("b", 0), take("a", 0), take("b", 0)] == [0, 1, 0, 1]
    take("c", 0)  # `a` asked longest ago
    assert [take("b", 0), take("c", 0), take("a", 0)] == [1, 2, 3]
    with pytest.raises(ZeroDivisionError):
        taken.take("o", "a", 1, lambda: pa.table({"n": [1 // 0]}))
    assert take("a", 1) == 4  # what failed has taken nothing


def test_pages_are_bounded_by_bytes_and_age() -> None:
    now = [0.0]
    taken = TakenPages(most_bytes=3 * 8 * 1000 + 500, clock=lambda: now[0])

    def take(reader: str, turn: int = 0, rows: int = 1000) -> int:
        return len(taken.take("o", reader, turn, lambda: pa.table({"n": range(rows)})))

    assert [take(reader, 0) for reader in "abc"] == [1000, 1000, 1000]
    assert [take(reader, 0, rows=1) for reader in "abc"] == [1000, 1000, 1000]  # all are kept
    assert take("d") == 1000
    with pytest.raises(RequestError, match="OUTDATED_TURN"):  # its rows are not taken twice
        take("a")
    assert take("a", 1, rows=1) == 1
    assert [take("b", 0, rows=1), take("d", 0, rows=1)] == [1000, 1000]
    assert take("e", 0, rows=9000) == 9000
    assert take("e", 0, rows=1) == 9000  # the newest is kept, however large it is
    now[0] = 601
    take("f", rows=1)
    with pytest.raises(RequestError, match="OUTDATED_TURN"):
        take("e")


def test_readers_whose_calls_are_under_way_are_not_forgotten() -> None:
    taken, begun, hold = TakenPages(most_readers=1), threading.Event(), threading.Event()

    def slow() -> pa.Table:
        begun.set()
        assert hold.wait(20)
        return pa.table({"n": [1]})

    def missing() -> pa.Table:
        raise UsageError("UNKNOWN_OUTPUT", "there is no such output")

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(taken.take, "o", "a", 0, slow)
        assert begun.wait(20)
        taken.take("o", "b", 0, lambda: pa.table({"n": [2]}))
        hold.set()
        assert first.result(20)["n"].to_pylist() == [1]
    with pytest.raises(UsageError):
        taken.take("nope", "c", 0, missing)
    # What does not exist has pushed nobody out.
    assert taken.take("o", "a", 0, missing)["n"].to_pylist() == [1]


def test_a_repeated_request_waits_for_the_one_under_way() -> None:
    taken, begun, hold = TakenPages(), threading.Event(), threading.Event()

    def slow() -> pa.Table:
        begun.set()
        assert hold.wait(20)
        return pa.table({"n": [1]})

    def never() -> pa.Table:
        raise AssertionError("it was taken already")

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(taken.take, "o", "a", 0, slow)
        assert begun.wait(20)
        again = pool.submit(taken.take, "o", "a", 0, never)
        hold.set()
        assert first.result(20) is again.result(20)


@pytest.mark.parametrize("arrives", [True, False])
def test_an_answer_that_is_lost_loses_no_rows(
    plant: Site, client: Client, monkeypatch: pytest.MonkeyPatch, arrives: bool
) -> None:
    """The second of three pages fails, after or before the server has taken its rows."""
    plant.engine.dequeue("alerts")
    for part in range(0, 25, 5):
        feeding(plant, *range(part, part + 5))
    request, asked = Transport.request, []

    def failing(self: Any, method: str, path: str, **given: Any) -> Any:
        asked.append(path)
        if len(asked) != 2:
            return request(self, method, path, **given)
        if arrives:
            request(self, method, path, **given)
        raise RunError("TIMEOUT", "a broken cable")

    monkeypatch.setattr(Transport, "request", failing)
    with pytest.raises(RunError, match="TIMEOUT"):
        client.dequeue("alerts")
    assert client.dequeue("alerts", 0).num_rows == 0
    first = client.dequeue("alerts", 3)
    assert first.num_rows == 10  # pages stay together
    found = pa.concat_tables([first, client.dequeue("alerts")])["machine"].to_pylist()
    assert found == [str(number) for number in range(25)]
    with pytest.raises(UsageError, match="UNKNOWN_OUTPUT"):
        client.dequeue("nope")
