"""Groups on the canvas: boxes join and leave them, and one can be shown alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playwright.sync_api import expect

if TYPE_CHECKING:
    from tests.studio.conftest import OpenStudio
    from tests.studio.serving import Served
    from tests.studio.studio_page import StudioPage

NETWORK: dict[str, object] = {
    "network": "plant",
    "streams": {"readings": {"schema": {"machine": "string", "celsius": "double"}}},
    "boxes": {
        "hot": {"box": "filter", "input": "readings", "where": "celsius > 90"},
        "words": {"box": "map", "input": "hot", "keep": ["machine"]},
        "other": {"box": "map", "input": "readings", "keep": ["machine"]},
    },
    "groups": {"heat": ["hot", "words"]},
    "outputs": {"alerts": {"from": "words"}, "rest": {"from": "other"}},
}


def _open(served: Served, open_studio: OpenStudio) -> StudioPage:
    with served.client() as client:
        client.put("/network", json=NETWORK).raise_for_status()
    studio = open_studio(served.page())
    expect(studio.node("heat")).to_be_visible(timeout=30_000)
    studio.rest()
    return studio


def _drag(studio: StudioPage, name: str, to: tuple[float, float]) -> None:
    box = studio.node(name).bounding_box()
    assert box
    mouse = studio.page.mouse
    mouse.move(box["x"] + box["width"] / 2, box["y"] + 8)
    mouse.down()
    mouse.move(to[0], to[1] - 20, steps=6)
    mouse.move(*to, steps=3)
    mouse.up()


def test_a_box_joins_a_group_in_its_frame_and_leaves_it_again(
    served: Served, open_studio: OpenStudio
) -> None:
    studio = _open(served, open_studio)
    frame = studio.node("heat").bounding_box()
    start = studio.node("other").bounding_box()
    assert frame
    assert start
    middle = (frame["x"] + frame["width"] / 2, frame["y"] + frame["height"] / 2)
    _drag(studio, "other", middle)
    expect(studio.find("draft-count")).to_contain_text("~1")
    studio.rest()
    studio.page.locator(".canvas").focus()
    studio.page.keyboard.press("Escape")
    grown = studio.node("heat").bounding_box()
    assert grown
    _drag(studio, "other", (middle[0], grown["y"] + grown["height"] + 90))
    expect(studio.find("draft-count")).to_have_text("Deployed")


def test_a_double_click_on_a_frame_shows_the_group_alone(
    served: Served, open_studio: OpenStudio
) -> None:
    studio = _open(served, open_studio)
    frame = studio.node("heat").bounding_box()
    assert frame
    studio.page.mouse.dblclick(frame["x"] + 8, frame["y"] + frame["height"] - 8)
    expect(studio.find("stub-readings")).to_be_visible()
    expect(studio.find("stub-alerts")).to_be_visible()
    expect(studio.node("other")).to_have_count(0)
    studio.page.get_by_role("navigation", name="Groups").get_by_text("plant").click()
    expect(studio.node("other")).to_be_visible()
    expect(studio.find("stub-readings")).to_have_count(0)
