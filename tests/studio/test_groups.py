"""Groups on the canvas: boxes join and leave them, and one can be shown alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
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


_HEIGHTS = """() => {
    const heights = (selector) => [...document.querySelectorAll(selector)]
        .map((part) => Number(getComputedStyle(part).zIndex) || 0);
    return {
        frames: heights(".react-flow__node-frame"),
        arcs: heights(".react-flow__edges svg"),
        cards: heights(".react-flow__node:not(.react-flow__node-frame)"),
    };
}"""


def test_arcs_are_above_frames_and_below_cards_whatever_is_selected(
    served: Served, open_studio: OpenStudio
) -> None:
    nested = {**NETWORK, "groups": {"heat": ["hot", "inner"], "inner": ["words", "other"]}}
    with served.client() as client:
        client.put("/network", json=nested).raise_for_status()
    studio = open_studio(served.page())
    expect(studio.node("words")).to_be_visible(timeout=30_000)
    studio.select("words")
    heights = studio.page.evaluate(_HEIGHTS)
    assert len(heights["frames"]) == 2
    assert max(heights["frames"]) < min(heights["arcs"])
    assert max(heights["arcs"]) < min(heights["cards"])


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


def _is_in(studio: StudioPage, name: str, group: str) -> bool:
    inner, frame = studio.node(name).bounding_box(), studio.node(group).bounding_box()
    assert inner
    assert frame
    return (
        frame["x"] < inner["x"] < frame["x"] + frame["width"]
        and frame["y"] < inner["y"] < frame["y"] + frame["height"]
    )


def test_a_box_that_is_added_behind_another_is_in_its_group(
    served: Served, open_studio: OpenStudio
) -> None:
    studio = _open(served, open_studio)
    studio.select("words")
    studio.quick_add("map", "map")
    expect(studio.edge("words", "map")).to_be_attached()
    studio.rest()
    assert _is_in(studio, "map", "heat")
    studio.page.keyboard.press("ControlOrMeta+s")
    expect(studio.find("deploy-confirm")).to_be_enabled()
    studio.page.keyboard.press("Enter")
    expect(studio.find("draft-count")).to_have_text("Deployed")
    with served.client() as client:
        network = client.get("/network", headers={"Accept": "application/json"}).json()
    assert network["groups"]["heat"] == ["hot", "words", "map"]


@pytest.mark.parametrize("joining", [True, False])
def test_a_box_changes_its_group_by_the_keyboard(
    served: Served, open_studio: OpenStudio, *, joining: bool
) -> None:
    studio = _open(served, open_studio)
    box, told = ("other", "into heat") if joining else ("words", "out of heat")
    assert _is_in(studio, box, "heat") is not joining
    studio.go_to(box)
    studio.page.keyboard.press("m")
    offered = studio.page.get_by_role("listbox", name="Choices").get_by_role("option")
    expect(offered.first).to_contain_text(told)
    studio.page.keyboard.press("Enter")
    expect(studio.find("draft-count")).to_contain_text("~1")
    studio.page.keyboard.press("f")
    studio.rest()
    assert _is_in(studio, box, "heat") is joining
    studio.page.keyboard.press("ControlOrMeta+z")
    expect(studio.find("draft-count")).to_have_text("Deployed")


def test_a_new_box_goes_into_an_arc_by_the_keyboard(
    served: Served, open_studio: OpenStudio
) -> None:
    studio = _open(served, open_studio)
    studio.drag_from_palette("filter", -40, 200)
    expect(studio.find("name")).to_have_value("filter")
    studio.page.keyboard.press("Escape")  # from the inspector, if it has the focus
    studio.page.locator(".canvas").focus()
    studio.page.keyboard.press("m")
    studio.page.keyboard.type("between readings and other")
    studio.page.keyboard.press("Enter")
    expect(studio.edge("readings", "filter")).to_be_attached()
    expect(studio.edge("filter", "other")).to_be_attached()
