"""Who may open the studio, what a viewer may do there, and how it looks to each."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.studio.serving import Served, serving_here

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.studio.conftest import OpenStudio

BORDER = """\
network: border
streams:
  reports: {schema: {sid: int, time: bigint, pos: int}, progress: {on: time, delay: 5}}
boxes:
  across: {box: filter, input: reports, where: pos >= 30}
outputs:
  alerts: {from: across}
"""


@pytest.fixture
def border(tmp_path: Path) -> Iterator[Served]:
    file = tmp_path / "border.yaml"
    file.write_text(BORDER, encoding="utf-8")
    with serving_here(file) as found:
        yield found


def test_a_wrong_token_is_told_and_the_right_one_opens(
    border: Served, open_studio: OpenStudio
) -> None:
    studio = open_studio(f"{border.url}/#token=guessed")
    expect(studio.page.get_by_text("does not know this token")).to_be_visible()
    assert "guessed" not in studio.page.url, "the token stays out of the address bar"
    studio.find("token").fill("another guess")
    studio.page.keyboard.press("Enter")
    expect(studio.page.get_by_text("does not know this token")).to_be_visible()
    studio.find("token").fill(border.tokens["editor"])
    studio.page.keyboard.press("Enter")
    expect(studio.node("across")).to_be_visible()


def test_a_viewer_sees_everything_and_changes_nothing(
    border: Served, open_studio: OpenStudio
) -> None:
    studio = open_studio(border.page("viewer"))
    studio.select("across")
    expect(studio.find("name")).to_be_disabled()
    expect(studio.find("palette-filter")).to_be_disabled()
    expect(studio.find("deploy")).to_have_attribute("title", re.compile("viewer"))
    expect(studio.find("pause")).to_have_attribute("title", re.compile("operator"))
    studio.page.locator(".canvas").focus()
    studio.page.keyboard.press("Delete")
    expect(studio.node("across")).to_be_visible()
    expect(studio.find("draft-count")).to_have_text("Deployed")


def test_light_and_dark_by_the_system_and_by_hand(border: Served, open_studio: OpenStudio) -> None:
    dark = open_studio(border.page(), color_scheme="dark")
    light = open_studio(border.page(), color_scheme="light")
    shade = "() => getComputedStyle(document.querySelector('.top-bar')).backgroundColor"
    for studio in (dark, light):
        expect(studio.node("across")).to_be_visible()
    at_night, by_day = dark.page.evaluate(shade), light.page.evaluate(shade)
    assert at_night != by_day
    light.find("theme").click()
    light.find("theme").click()
    expect(light.find("theme")).to_have_attribute("aria-label", "Theme: dark")
    assert light.page.evaluate(shade) == at_night


def test_a_keyboard_is_enough(border: Served, open_studio: OpenStudio) -> None:
    """Reach the canvas by Tab, walk, add behind a box, connect, remove, undo, deploy."""
    studio = open_studio(border.page())
    page = studio.page
    canvas = page.locator(".canvas")
    expect(studio.node("across")).to_be_visible()
    on_canvas = "() => document.activeElement?.closest('.canvas') !== null"
    for _ in range(80):
        page.keyboard.press("Tab")
        if page.evaluate(on_canvas):
            break
    assert page.evaluate(on_canvas), "Tab reaches the canvas"
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowRight")
    expect(studio.find("name")).to_have_value("reports")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(studio.find("name")).to_have_value("across")

    page.keyboard.press("Enter")
    expect(studio.find("inspector").locator(":focus")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(canvas).to_be_focused()

    page.keyboard.press("/")
    expect(studio.find("search")).to_be_focused()
    page.keyboard.type("map")
    found = page.get_by_role("listbox", name="Found").get_by_role("option")
    expect(found.first).to_contain_text("Add map")
    page.keyboard.press("Enter")
    expect(studio.edge("across", "map")).to_be_attached()
    expect(studio.find("name")).to_have_value("map")
    expect(canvas).to_be_focused()

    page.keyboard.press("c")
    expect(studio.find("quick-search")).to_be_focused()
    page.keyboard.press("Escape")
    expect(canvas).to_be_focused()
    page.keyboard.press("c")
    page.keyboard.type("union")
    page.keyboard.press("Enter")
    expect(studio.edge("map", "union")).to_be_attached()
    expect(canvas).to_be_focused()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    expect(studio.find("name")).to_have_value("map")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("c")  # the arc from across
    page.keyboard.type("to union")
    page.keyboard.press("Enter")
    expect(studio.edge("across", "union")).to_be_attached()

    page.keyboard.press("ControlOrMeta+z")
    expect(studio.edge("across", "union")).to_have_count(0)
    page.keyboard.press("ControlOrMeta+z")
    expect(studio.node("union")).to_have_count(0)
    page.keyboard.press("ArrowRight")
    expect(studio.find("name")).to_have_value("map")
    page.keyboard.press("Delete")
    expect(studio.node("map")).to_have_count(0)
    page.keyboard.press("ControlOrMeta+z")
    expect(studio.node("map")).to_be_visible()
    page.keyboard.press("ControlOrMeta+s")
    expect(studio.find("deploy-confirm")).to_be_focused()
    page.keyboard.press("Enter")
    expect(studio.find("draft-count")).to_have_text("Deployed")
    assert "map" in border.file.read_text(encoding="utf-8")
