"""Pausing one application, bookmarks, completion of fields, replay of kept history."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from playwright.sync_api import expect

if TYPE_CHECKING:
    from tests.studio.conftest import OpenStudio
    from tests.studio.serving import Served
    from tests.studio.studio_page import StudioPage

STREAM = {
    "schema": {"machine": "string", "at": "bigint", "celsius": "double"},
    "progress": {"on": "at", "delay": 5},
}
NETWORK: dict[str, object] = {
    "network": "plant",
    "streams": {"readings": STREAM, "tests": STREAM},
    "boxes": {
        "hot": {"box": "filter", "input": "readings", "where": "celsius > 90"},
        "other": {"box": "map", "input": "tests", "keep": ["machine", "at"]},
    },
    "connection_points": {"recent": {"on": "readings", "keep": "1 hours"}},
    "outputs": {"alerts": {"from": "hot"}, "rest": {"from": "other"}},
}
ROWS: list[dict[str, object]] = [
    {"machine": "press", "at": 1, "celsius": 99.5},
    {"machine": "mill", "at": 2, "celsius": 120.0},
]


def _open(served: Served, open_studio: OpenStudio) -> StudioPage:
    with served.client() as client:
        client.put("/network", json=NETWORK).raise_for_status()
    studio = open_studio(served.page())
    expect(studio.node("hot")).to_be_visible(timeout=30_000)
    studio.rest()
    return studio


def _passed(served: Served, box: str) -> int:
    """How many tuples a box has emitted."""
    with served.client() as client:
        return int(client.get("/picture").json()["arcs"][box]["tuples"])


def _wait_for(served: Served, box: str) -> None:
    end = time.monotonic() + 20
    while _passed(served, box) < len(ROWS):
        assert time.monotonic() < end, f"{box} runs"


def test_one_application_is_paused_while_the_other_runs(
    served: Served, open_studio: OpenStudio
) -> None:
    studio = _open(served, open_studio)
    studio.page.get_by_label("Application to pause and step").select_option("alerts")
    studio.find("pause").click()
    expect(studio.find("paused-banner")).to_contain_text("Paused: alerts")
    expect(studio.find("status")).to_contain_text("alerts paused")
    expect(studio.find("status")).to_contain_text("running")
    for stream in ("readings", "tests"):
        served.send(stream, ROWS)
    _wait_for(served, "other")
    assert _passed(served, "hot") == 0
    studio.find("pause").click()
    expect(studio.find("paused-banner")).to_have_count(0)
    _wait_for(served, "hot")


def test_a_bookmark_leads_back_also_after_a_reload(served: Served, open_studio: OpenStudio) -> None:
    studio = _open(served, open_studio)
    view = studio.page.locator(".react-flow__viewport")
    side = studio.page.get_by_role("complementary", name="Palette and outline")
    side.get_by_test_id("tab-bookmarks").click()
    studio.page.locator(".canvas").focus()
    studio.page.keyboard.press("+")
    studio.rest()
    kept = view.evaluate("view => view.style.transform")
    side.get_by_label("Name of the bookmark").fill("near")
    with studio.page.expect_response(re.compile("/api/v1/layout$")):
        side.get_by_role("button", name="Keep").click()
    studio.page.reload()
    expect(studio.node("hot")).to_be_visible(timeout=30_000)
    studio.rest()
    side.get_by_test_id("tab-bookmarks").click()
    assert view.evaluate("view => view.style.transform") != kept
    side.get_by_role("button", name="near", exact=True).click()
    studio.rest()
    assert view.evaluate("view => view.style.transform") == kept


def test_expressions_complete_the_fields_of_their_input(
    served: Served, open_studio: OpenStudio
) -> None:
    studio = _open(served, open_studio)
    studio.select("hot")
    studio.write("where", "")
    studio.page.keyboard.type("cel")
    offered = studio.page.locator(".cm-tooltip-autocomplete")
    offered.get_by_role("option", name="celsius").click()
    studio.page.keyboard.type(" > 95")
    expect(studio.find("field-where")).to_have_text("celsius > 95")
    expect(studio.find("draft-count")).to_contain_text("~1")


def test_history_is_replayed_through_a_query(served: Served, open_studio: OpenStudio) -> None:
    studio = _open(served, open_studio)
    served.send("readings", ROWS)
    studio.open_bottom("tuples")
    studio.go_to("recent")
    browse = studio.page.get_by_role("button", name="Browse")
    while not studio.rows("Rows of recent").count():
        browse.click()
    studio.page.get_by_role("button", name="Replay …").click()
    studio.page.get_by_label("Query of the branch").fill(
        "SELECT machine FROM recent WHERE celsius > 100"
    )
    studio.page.get_by_role("button", name="Replay", exact=True).click()
    expect(studio.find("results-of")).to_be_visible()
    found = studio.page.get_by_role("region", name="Results").get_by_role("grid")
    expect(found.locator("tbody tr")).to_have_text(["mill"])
