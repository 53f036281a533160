"""Five hundred boxes: the first view comes soon, and a card follows the mouse."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from playwright.sync_api import Page, expect

from tests.studio.serving import Served, serving_here

if TYPE_CHECKING:
    from tests.studio.conftest import OpenStudio

APPLICATIONS = 50
FIRST_VIEW_S = 2.0
FRAMES_PER_S = 30.0
FIRST_VIEW_SLACK = 2.0
"""A machine that does other things, too, may take that many times as long.

Measured on two cores, alone and with nine other processes that compute: first view 1.1 s and
1.9 to 5.0 s, frames 60/s and 52/s to 58/s."""
SHOWN = 300
"""So many cards are drawn at most before groups close by themselves."""
LEGIBLE_PX = 80.0
"""A card that is as wide shows its name in letters of nine pixels or more."""
COUNT_FRAMES = """() => {
    window.frames_seen = 0;
    window.frames_since = performance.now();
    const seen = () => { window.frames_seen += 1; requestAnimationFrame(seen); };
    requestAnimationFrame(seen);
}"""
FRAMES = "() => window.frames_seen / (performance.now() - window.frames_since) * 1000"
FIRST_VIEW = "() => performance.getEntriesByName('auroral-first-view')[0]?.startTime ?? null"


def large() -> dict[str, Any]:
    """Applications of ten boxes each: two filters, seven maps in a row, a window."""
    boxes: dict[str, Any] = {}
    for app in range(APPLICATIONS):
        boxes[f"a{app}_0"] = {"box": "filter", "input": "readings", "where": f"celsius > {app}"}
        for at in range(1, 9):
            boxes[f"a{app}_{at}"] = {"box": "map", "input": f"a{app}_{at - 1}", "keep": "*"}
        boxes[f"a{app}_9"] = {
            "box": "aggregate",
            "input": f"a{app}_8",
            "order": {"on": "at"},
            "window": {"size": 10},
            "compute": {"mean": "avg(celsius)"},
        }
    schema = {"machine": "string", "at": "bigint", "celsius": "double"}
    progress = {"on": "at", "delay": 5}
    return {
        "network": "large",
        "streams": {"readings": {"schema": schema, "progress": progress}},
        "boxes": boxes,
        "outputs": {f"out{app}": {"from": f"a{app}_9"} for app in range(APPLICATIONS)},
    }


def dragging_rate(page: Page) -> float:
    """Frames per second while a card follows the mouse."""
    box = page.locator(".react-flow__node:not(.react-flow__node-frame)").first.bounding_box()
    assert box
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.evaluate(COUNT_FRAMES)
    for turn in range(120):
        page.mouse.move(x + turn, y + turn % 40)
    rate = float(page.evaluate(FRAMES))
    page.mouse.up()
    return rate


def first_view(served: Served, open_studio: OpenStudio) -> tuple[float, Page]:
    """How long it takes until everything is drawn that has to be laid out first."""
    with served.client() as client:
        client.put("/layout", json=open_applications(0)).raise_for_status()
    page = open_studio(served.page()).page
    expect(page.locator(".react-flow__node").first).to_be_visible(timeout=30_000)
    return page.wait_for_function(FIRST_VIEW).json_value() / 1000, page


def open_applications(amount: int) -> dict[str, Any]:
    """A layout in which so many applications are open."""
    open_ = {f"application:out{app}": True for app in range(amount)}
    return {"positions": {}, "open": open_, "bookmarks": []}


def test_five_hundred_boxes_are_shown_and_dragged_swiftly(
    tmp_path: Path, open_studio: OpenStudio
) -> None:
    with serving_here(tmp_path / "large.yaml") as served:
        with served.client() as client:
            client.put("/network", json=large()).raise_for_status()
        # The better of two: what else the machine does is not what is measured.
        once, page = first_view(served, open_studio)
        page.close()  # a page that is open keeps its layout
        again, page = first_view(served, open_studio)
        first_view_s = min(once, again)
        card = page.locator(".react-flow__node").last.bounding_box()
        assert card
        assert card["width"] > LEGIBLE_PX, "names of closed groups can be read in the first view"
        closed_rate = dragging_rate(page)
        page.close()
        with served.client() as client:
            client.put("/layout", json=open_applications(24)).raise_for_status()
        page = open_studio(served.page()).page
        page.wait_for_function(FIRST_VIEW)
        shown = page.locator(".react-flow__node:not(.react-flow__node-frame)").count()
        open_rate = dragging_rate(page)
    print(  # noqa: T201
        f"first view {first_view_s:.2f} s (target {FIRST_VIEW_S:.0f});"
        f" frames/s while dragging (target {FRAMES_PER_S:.0f}):"
        f" {closed_rate:.0f} with groups closed, {open_rate:.0f} with {shown} cards shown"
    )
    assert SHOWN * 0.8 < shown <= SHOWN
    assert first_view_s < FIRST_VIEW_S * FIRST_VIEW_SLACK
    assert closed_rate > FRAMES_PER_S
    assert open_rate > FRAMES_PER_S
