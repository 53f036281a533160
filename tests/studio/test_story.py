"""A person builds a network in the studio, feeds it, watches, asks and debugs it, on Spark."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.studio.serving import Served, serving
from tests.studio.studio_page import SLOW_MS, StudioPage

if TYPE_CHECKING:
    from tests.studio.conftest import OpenStudio

CSV = "machine,at,celsius\npress,1,99.5\nlathe,2,71.0\nmill,3,120.0\n"


@pytest.fixture
def spark_served(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path / "plant.yaml", tmp_path / "state") as found:
        yield found


@pytest.mark.spark
def test_a_person_builds_watches_asks_and_debugs_a_network(
    spark_served: Served, open_studio: OpenStudio, tmp_path: Path
) -> None:
    studio = open_studio(spark_served.page())
    begin_with_a_csv(studio, tmp_path)
    build_five_boxes(studio)
    undo_and_redo(studio)
    deploy_and_see_results(studio, spark_served)
    change_a_filter_live(studio, spark_served)
    drag_a_qos_point(studio, spark_served)
    ask(studio, spark_served)
    pause_and_step(studio, spark_served)
    break_on_a_condition(studio, spark_served)
    reload(studio, spark_served)


def begin_with_a_csv(studio: StudioPage, tmp_path: Path) -> None:
    """A file becomes a stream, and its rows flow."""
    file = tmp_path / "readings.csv"
    file.write_text(CSV, encoding="utf-8")
    expect(studio.find("welcome")).to_be_visible()
    studio.find("csv-file").set_input_files(file)
    studio.find("csv-add").click()
    expect(studio.node("readings")).to_be_visible()
    expect(studio.find("draft-count")).to_have_text("Deployed", timeout=SLOW_MS)
    expect(studio.rows("Tuples of readings")).to_have_count(3, timeout=SLOW_MS)


def build_five_boxes(studio: StudioPage) -> None:
    """By the palette, by wires, by `/`, by splicing, by dropping a wire on nothing."""
    page = studio.page
    studio.drag_from_palette("filter", -60, -160)
    expect(studio.node("filter")).to_be_visible()
    studio.rename("hot")
    studio.connect("readings", "hot")
    studio.select("hot")
    studio.write("where", "celsius > 90")
    studio.quick_add("map", "map")
    expect(studio.edge("hot", "map")).to_be_attached()
    studio.rename("words")
    studio.quick_add("output", "output")
    expect(studio.edge("words", "output")).to_be_attached()
    studio.rename("alerts")

    studio.splice_from_palette("filter", "hot", "words")
    expect(studio.edge("hot", "filter")).to_be_attached()
    expect(studio.edge("filter", "words")).to_be_attached()
    studio.rename("sane")
    studio.write("where", "celsius < 200")

    page.keyboard.press("Escape")
    port = studio.find("port-readings").bounding_box()
    assert port
    studio.draw_wire("readings", port["x"] + 60, port["y"] + 150)
    expect(page.get_by_role("searchbox", name="Filter", exact=True)).to_be_focused()
    page.keyboard.type("aggreg")
    page.keyboard.press("Enter")
    expect(studio.edge("readings", "aggregate")).to_be_attached()
    studio.rename("tens")

    studio.select("tens")
    studio.quick_add("map", "map")
    studio.rename("counts")
    studio.quick_add("output", "output")
    studio.rename("per_ten")
    studio.go_to("readings")  # what was added has moved the view
    studio.quick_add("connection", "connection point")
    studio.rename("recent")
    expect(studio.find("draft-count")).to_contain_text("+8")


def undo_and_redo(studio: StudioPage) -> None:
    studio.page.locator(".canvas").focus()
    for _ in range(2):
        studio.page.keyboard.press("ControlOrMeta+z")
    expect(studio.find("draft-count")).to_contain_text("+7")
    studio.page.keyboard.press("ControlOrMeta+Shift+Z")
    studio.find("redo").click()
    expect(studio.node("recent")).to_be_visible()


def deploy_and_see_results(studio: StudioPage, served: Served) -> None:
    told = studio.deploy()
    assert "hot" in told
    expect(studio.find("problems")).to_have_count(0)
    studio.open_bottom("results")
    studio.find("results-of").select_option("alerts")
    rows = [("press", 11, 95.0), ("saw", 12, 60.0), ("mill", 13, 250.0), ("drill", 14, 91.0)]
    served.send("readings", [{"machine": m, "at": at, "celsius": c} for m, at, c in rows])
    found = studio.rows("Rows of alerts, newest last")
    expect(found).to_have_count(2, timeout=SLOW_MS)
    expect(found.nth(0)).to_contain_text("press")
    expect(found.nth(1)).to_contain_text("drill")


def change_a_filter_live(studio: StudioPage, served: Served) -> None:
    """Another threshold holds for what comes after it is deployed."""
    studio.go_to("hot")
    studio.write("where", "celsius > 50")
    expect(studio.find("draft-count")).to_contain_text("~1")
    studio.deploy()
    served.send("readings", [{"machine": "saw", "at": 15, "celsius": 60.0}])
    found = studio.rows("Rows of alerts, newest last")
    expect(found.last).to_contain_text("saw", timeout=SLOW_MS)


def drag_a_qos_point(studio: StudioPage, served: Served) -> None:
    page = studio.page
    studio.go_to("alerts")
    studio.open_tab("qos")
    page.get_by_role("button", name="Latency graph").click()
    point = studio.find("qos-point-latency-1")
    before = point.get_attribute("aria-valuetext")
    box = point.bounding_box()
    assert box
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 30, y, steps=4)
    page.mouse.up()
    expect(point).not_to_have_attribute("aria-valuetext", str(before))
    studio.find("qos-apply").click()
    expect(studio.find("qos-apply")).to_be_disabled(timeout=SLOW_MS)
    studio.deploy()
    with served.client() as client:
        document = client.get("/network", headers={"Accept": "application/json"}).json()
    worth = document["outputs"]["alerts"]["qos"]["latency"][1]
    assert str(worth[0]) in str(point.get_attribute("aria-valuetext"))


def ask(studio: StudioPage, served: Served) -> None:
    """An ad hoc query gives history first, and then what comes."""
    page = studio.page
    studio.open_bottom("sql")
    studio.find("sql-editor").get_by_role("textbox").click()
    page.keyboard.insert_text("SELECT machine, celsius FROM recent WHERE celsius > 70")
    studio.find("sql-run").click()
    expect(studio.rows("Answer")).not_to_have_count(0, timeout=SLOW_MS)
    studio.find("sql-attach").click()
    attached = page.locator(".sql-answer").get_by_role("grid").locator("tbody tr")
    expect(attached).not_to_have_count(0, timeout=SLOW_MS)
    expect(attached.last).to_contain_text("drill")
    served.send("readings", [{"machine": "kiln", "at": 16, "celsius": 190.0}])
    expect(attached.last).to_contain_text("kiln", timeout=SLOW_MS)
    page.get_by_role("button", name=re.compile("^Detach")).click()
    expect(page.get_by_role("list", name="Attached queries")).to_have_count(0, timeout=SLOW_MS)


def pause_and_step(studio: StudioPage, served: Served) -> None:
    """While paused, a train or one tuple goes through the boxes, and each shows what it did."""
    page = studio.page
    studio.find("pause").click()
    expect(studio.find("pause")).to_have_attribute("aria-label", "Resume", timeout=SLOW_MS)
    studio.open_bottom("debug")
    rows = [("press", 21, 95.0), ("saw", 22, 20.0), ("mill", 23, 99.0)]
    served.send("readings", [{"machine": m, "at": at, "celsius": c} for m, at, c in rows])
    trace = studio.find("trace")
    studio.find("step-tuple").click()
    expect(trace.get_by_role("option", name="hot")).to_contain_text("1 → 1", timeout=SLOW_MS)
    studio.find("step-train").click()  # of whichever superbox is next
    expect(trace.get_by_role("option").first).to_contain_text("2 →", timeout=SLOW_MS)
    trace.focus()
    page.keyboard.press("ArrowRight")
    expect(trace.locator("[aria-selected=true]")).to_have_count(1)
    page.locator(".canvas").focus()
    page.keyboard.press("p")
    expect(studio.find("pause")).to_have_attribute("aria-label", "Pause", timeout=SLOW_MS)


def break_on_a_condition(studio: StudioPage, served: Served) -> None:
    page = studio.page
    studio.open_bottom("debug")
    page.get_by_label("Arc of the breakpoint").select_option("readings")
    page.get_by_label("Condition, SQL over the fields of the arc").fill("celsius > 180")
    page.get_by_role("button", name="Break", exact=True).click()
    expect(page.get_by_label("Breakpoint on readings is on")).to_be_checked(timeout=SLOW_MS)
    rows = [("press", 31, 95.0), ("kiln", 32, 181.0), ("mill", 33, 99.0)]
    served.send("readings", [{"machine": m, "at": at, "celsius": c} for m, at, c in rows])
    expect(studio.find("hit")).to_contain_text("kiln", timeout=SLOW_MS)
    studio.find("hit").get_by_role("button", name="Resume").click()
    expect(studio.find("hit")).to_have_count(0, timeout=SLOW_MS)
    page.get_by_role("button", name="Remove the breakpoint on readings").click()
    expect(page.get_by_label("Breakpoint on readings is on")).to_have_count(0, timeout=SLOW_MS)


def reload(studio: StudioPage, served: Served) -> None:
    """The network and the places of its boxes are still there."""
    before = away(studio)
    at = studio.node("hot").bounding_box()
    assert at
    studio.page.mouse.move(at["x"] + at["width"] / 2, at["y"] + 12)
    with studio.page.expect_response(re.compile("/api/v1/layout$"), timeout=SLOW_MS):
        studio.page.mouse.down()
        studio.page.mouse.move(at["x"] + at["width"] / 2 + 30, at["y"] + 72, steps=8)
        studio.page.mouse.up()
    moved = away(studio)
    assert moved[1] > before[1] + 40
    studio.page.reload()
    expect(studio.node("hot")).to_be_visible()
    expect(studio.find("draft-count")).to_have_text("Deployed")
    assert away(studio) == pytest.approx(moved, abs=2), "it stands where it was put"


def away(studio: StudioPage) -> tuple[float, float]:
    """How far hot stands from what it reads, when everything is seen at its full size."""
    studio.page.locator(".canvas").focus()
    studio.page.keyboard.press("f")
    studio.rest()
    hot, readings = (studio.node(name).bounding_box() for name in ("hot", "readings"))
    assert hot
    assert readings
    zoom = hot["width"] / 192
    return (hot["x"] - readings["x"]) / zoom, (hot["y"] - readings["y"]) / zoom
