"""The connection to the server: lost, refused, and never to anybody else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Response, Route, expect

from tests.studio.serving import Served, ServerHere
from tests.studio.test_mistakes import NETWORK

if TYPE_CHECKING:
    from tests.studio.conftest import OpenStudio


@pytest.fixture
def here(tmp_path: Path) -> Iterator[ServerHere]:
    """A server without Spark, with a network."""
    found = ServerHere(tmp_path / "plant.yaml")
    try:
        with found.served.client() as client:
            client.put("/network", json=NETWORK).raise_for_status()
        yield found
    finally:
        found.close()


def test_a_server_that_comes_back_is_followed_and_told_what_it_missed(
    here: ServerHere, open_studio: OpenStudio
) -> None:
    studio = open_studio(here.served.page())
    expect(studio.find("status")).to_contain_text("running")
    studio.select("hot")
    expect(studio.find("field-where")).to_be_visible()
    here.stop()
    expect(studio.find("status")).to_contain_text("reconnecting")
    studio.write("where", "celsus > 91")
    studio.page.locator(".canvas").focus()
    studio.page.keyboard.press("Shift+ArrowRight")
    with studio.page.expect_response(lambda answer: _keeps(answer) and answer.ok, timeout=40_000):
        here.begin()
    expect(studio.find("status")).to_contain_text("running")
    expect(studio.node("hot").get_by_label("problem", exact=True)).to_be_visible()
    with here.served.client() as client:
        assert client.get("/layout").json()["positions"].keys() >= {"hot", "readings"}


def _keeps(answer: Response) -> bool:
    return answer.request.method == "PATCH" and answer.url.endswith("/layout")


def test_an_expired_token_is_asked_for_and_the_draft_stays(
    here: ServerHere, open_studio: OpenStudio
) -> None:
    studio = open_studio(here.served.page())
    studio.select("hot")
    studio.write("where", "celsius > 93")
    expect(studio.find("draft-count")).to_contain_text("~1")
    here.change_tokens()
    expect(studio.find("token")).to_be_visible(timeout=30_000)
    expect(studio.page.get_by_text("Your draft is kept")).to_be_visible()
    studio.find("token").fill(here.served.tokens["editor"])
    studio.page.keyboard.press("Enter")
    expect(studio.find("draft-count")).to_contain_text("~1")
    expect(studio.find("status")).to_contain_text("running")
    studio.find("undo").click()
    expect(studio.find("draft-count")).to_have_text("Deployed")


def test_a_panel_that_could_not_be_loaded_is_loaded_again(
    served: Served, open_studio: OpenStudio
) -> None:
    studio = open_studio(served.page())
    expect(studio.find("welcome")).to_be_visible()
    lost: list[str] = []

    def lose_twice(route: Route) -> None:
        lost.append(route.request.url)
        if len(lost) <= 2:
            route.abort()
        else:
            route.continue_()

    studio.page.route("**/LogPanel*.js", lose_twice)
    studio.open_bottom("log")
    expect(studio.page.get_by_role("region", name="Log")).to_be_visible()
    assert len(lost) > 1
    studio.faults.clear()  # the page says what it could not load


def test_no_request_leaves_the_server(served: Served, open_studio: OpenStudio) -> None:
    studio = open_studio("about:blank")
    asked: list[str] = []
    studio.page.context.on("request", lambda request: asked.append(request.url))
    studio.page.on("websocket", lambda socket: asked.append(socket.url))
    studio.page.goto(served.page())
    studio.find("starter-plant").click()
    expect(studio.find("draft-count")).to_have_text("Deployed")
    studio.select("hot")
    for tab in ("schema", "statistics", "story"):
        studio.open_tab(tab)
    for tab in ("results", "sql", "problems", "story", "log", "debug"):
        studio.open_bottom(tab)
    own = served.url.partition("://")[2]
    assert any(url.startswith("ws") for url in asked)
    elsewhere = [url for url in asked if url.partition("://")[2].partition("/")[0] != own]
    assert not [url for url in elsewhere if not url.startswith(("data:", "blob:"))]
