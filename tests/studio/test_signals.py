"""How overloads, breakpoints and the optimiser look: figures are added to frames of the server."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import WebSocketRoute, expect

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
    "outputs": {"alerts": {"from": "words"}, "rest": {"from": "other"}},
}
BREAKPOINT = {"id": "b1", "arc": "readings", "condition": None, "enabled": True, "hits": 1}
HIT = {"breakpoint": "b1", "arc": "readings", "moment": 7, "tuple": {"celsius": 99.5}, "at_us": 0}
ROWS = [{"machine": name, "celsius": 99.5} for name in ("press", "lathe", "mill")]
TRACE = {
    "box": "hot",
    "superbox": "hot",
    "in": {"readings": {"rows": ROWS, "truncated": 0}},
    "out": {"hot": {"rows": ROWS[:1], "truncated": 0}},
    "held": None,
    "late": {},
    "seconds": 0.018,
}
OVERLOAD: dict[str, Any] = {
    "rate": 12_400.0,
    "utility": 0.41,
    "late": 42,
    "dead": 3,
    "shed": 12_300,
    "memory_bytes": 34_000_000,
    "arcs": {
        "readings": {
            "queued": 19_100,
            "oldest_s": 3.0,
            "pressed": {"hot": {"oldest_s": 3.0, "patience_s": 2.0}},
            "rate": 12_400.0,
        }
    },
    "boxes": {"other": {"superbox": "other", "halted": "the disk is full", "shed": 143}},
    "outputs": {"alerts": {"utility": 0.31, "shed": 12_300}},
    "drops": [
        {
            "arc": "readings",
            "superbox": "hot",
            "rate": 0.32,
            "interval": None,
            "outputs": ["alerts"],
            "since_us": 0,
            "dropped": 12_300,
        }
    ],
    "moves": [
        {
            "box": "words",
            "text": "passed before hot",
            "past": "hot",
            "place": "words",
            "target": "hot",
            "tactic": "passed",
            "side": "",
        }
    ],
    "debug": {"breakpoints": [BREAKPOINT], "hit": HIT, "trace": [TRACE]},
}


def patched(target: Any, patch: Any) -> Any:
    """`target` with a merge patch applied."""
    if not isinstance(patch, dict):
        return patch
    before = target if isinstance(target, dict) else {}
    return {**before, **{key: patched(before.get(key), value) for key, value in patch.items()}}


def open_overloaded(
    served: Served, open_studio: OpenStudio, width: int = 1440, **options: Any
) -> StudioPage:
    """A studio whose server says that it is overloaded, whatever it does."""
    with served.client() as client:
        client.put("/network", json=NETWORK).raise_for_status()
    studio = open_studio("about:blank", **options)
    studio.page.set_viewport_size({"width": width, "height": 768 if width < 1440 else 900})

    def between(page_side: WebSocketRoute) -> None:
        server = page_side.connect_to_server()

        def pass_on(message: str | bytes) -> None:
            frame = json.loads(message)
            for part in ("picture", "patch"):
                if part in frame:
                    frame[part] = patched(frame[part], OVERLOAD)
            page_side.send(json.dumps(frame))

        server.on_message(pass_on)

    studio.page.route_web_socket(re.compile("/api/v1/live"), between)
    studio.page.goto(served.page())
    expect(studio.node("hot")).to_be_visible(timeout=30_000)
    expect(studio.find("status")).to_contain_text("shed")
    return studio


_COVERED = """() => {
    const bar = document.querySelector(".top-bar").getBoundingClientRect();
    const parts = [...document.querySelectorAll(
        ".status-state, .status-count, .status-figure, .hit-chip, .top-bar .button, .draft-count"
    )].filter((part) => part.offsetWidth);
    const wrong = [];
    for (const part of parts) {
        const at = part.getBoundingClientRect();
        if (at.left < bar.left || at.right > bar.right || at.bottom > bar.bottom)
            wrong.push(`${part.className} leaves the bar`);
        if (part.matches(".status-count") && part.scrollWidth > part.clientWidth)
            wrong.push(`${part.innerText} is cut off`);
        for (const other of parts) {
            const its = other.getBoundingClientRect();
            if (other !== part && its.left < at.left && its.right > at.left + 0.5)
                wrong.push(`${other.className} covers ${part.className}`);
        }
    }
    return wrong;
}"""
"""What of the top bar is outside of it, cut off or covered."""


@pytest.mark.parametrize("width", [1024, 1181, 1280])
def test_no_signal_of_an_overload_is_cut_off(
    served: Served, open_studio: OpenStudio, width: int
) -> None:
    """Not even while a breakpoint has been hit and there is a draft."""
    studio = open_overloaded(served, open_studio, width)
    studio.quick_add("map", "map")
    expect(studio.find("draft-count")).to_contain_text("+1")
    expect(studio.page.locator(".hit-chip")).to_be_visible()
    expect(studio.page.locator(".status-count")).to_have_count(3)
    assert studio.page.evaluate(_COVERED) == []


def test_a_narrow_top_bar_says_the_rate_while_nothing_is_wrong(
    served: Served, open_studio: OpenStudio
) -> None:
    with served.client() as client:
        client.put("/network", json=NETWORK).raise_for_status()
    studio = open_studio(served.page())
    studio.page.set_viewport_size({"width": 1024, "height": 768})
    expect(studio.page.locator(".status-rate")).to_have_text("0/s")
    expect(studio.page.locator(".status-rate")).to_be_visible()
    chosen = studio.page.get_by_label("Application to pause and step")
    assert chosen.evaluate("it => it.offsetWidth") > 130, "its choice can be read"
    assert studio.page.evaluate(_COVERED) == []


def test_the_shedder_and_the_optimiser_are_drawn_where_they_work(
    served: Served, open_studio: OpenStudio
) -> None:
    studio = open_overloaded(served, open_studio)
    drop = studio.find("drop-readings-hot")
    expect(drop).to_have_text("32 %")
    expect(drop).to_have_attribute("title", re.compile("drops 32 % for alerts; 12300 so far"))
    expect(studio.find("drop-readings-other")).to_have_count(0)
    expect(studio.node("words")).to_have_class(re.compile(r"\bmoved\b"))
    expect(studio.node("words")).to_contain_text("passed before hot")
    studio.find("ghost-words").click()
    expect(studio.find("name")).to_have_value("words")
    expect(studio.page.get_by_role("tab", name="Story", selected=True).first).to_be_visible()


def test_what_is_wrong_is_seen_from_afar(served: Served, open_studio: OpenStudio) -> None:
    """At every zoom: gauges, what is halted, breakpoints, drop boxes, queues that press."""
    studio = open_overloaded(served, open_studio)
    studio.page.locator(".canvas").focus()
    for distance in ("", "mid", "far"):
        while not studio.page.locator(f".canvas.{distance}" if distance else ".canvas").count():
            studio.page.keyboard.press("-")
            studio.rest()
        expect(studio.node("alerts").locator(".ring")).to_be_visible()
        expect(studio.node("other").get_by_text("halted")).to_be_visible()
        expect(studio.find("drop-readings-hot")).to_be_visible()
        expect(studio.page.locator(".arc-break .dot")).to_be_visible()
        expect(studio.page.locator(".arc-queue")).to_contain_text("3.0 s")


def test_the_state_of_an_arc_can_be_read_without_a_mouse(
    served: Served, open_studio: OpenStudio
) -> None:
    studio = open_overloaded(served, open_studio)
    studio.select("readings")
    studio.page.locator(".canvas").focus()
    studio.page.keyboard.press("ArrowRight")
    told = studio.find("arc-summary")
    expect(told).to_contain_text("19.1 k tuples")
    expect(told).to_contain_text("3.0 s of 2.0 s: the oldest tuple for hot waits longer than")


def test_a_stop_leaves_room_for_the_tuples_of_the_step(
    served: Served, open_studio: OpenStudio
) -> None:
    """On a low page, too; the panel's edge gives more room by mouse and keyboard."""
    studio = open_overloaded(served, open_studio, 1024)
    studio.open_bottom("debug")
    expect(studio.find("hit")).to_contain_text("99.5")
    row = studio.rows("went in on readings").first
    expect(row).to_be_in_viewport(ratio=1)
    body = studio.page.locator(".bottom-body")
    before, grip = body.bounding_box(), studio.find("bottom-grip").bounding_box()
    assert before
    assert grip
    mouse = studio.page.mouse
    mouse.move(400, grip["y"] + 4)
    mouse.down()
    mouse.move(400, grip["y"] - 56, steps=3)
    mouse.up()
    expect(body).to_have_css("height", f"{before['height'] + 60:.0f}px")
    studio.find("bottom-grip").focus()
    studio.page.keyboard.press("ArrowUp")
    expect(body).to_have_css("height", f"{before['height'] + 84:.0f}px")
