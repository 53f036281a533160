"""Mistakes in the studio are told where they are, and none of them breaks what runs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from playwright.sync_api import expect

if TYPE_CHECKING:
    from tests.studio.conftest import OpenStudio
    from tests.studio.serving import Served

NETWORK: dict[str, object] = {
    "network": "plant",
    "streams": {"readings": {"schema": {"machine": "string", "celsius": "double"}}},
    "boxes": {
        "hot": {"box": "filter", "input": "readings", "where": "celsius > 90"},
        "words": {"box": "map", "input": "hot", "keep": ["machine"]},
    },
    "outputs": {"alerts": {"from": "words"}},
}


def _deploy(served: Served, network: dict[str, object]) -> None:
    with served.client() as client:
        client.put("/network", json=network).raise_for_status()


def test_removing_a_box_that_others_read_is_told_at_the_reader(
    served: Served, open_studio: OpenStudio
) -> None:
    _deploy(served, NETWORK)
    studio = open_studio(served.page())
    studio.select("hot")
    studio.page.locator(".canvas").focus()
    studio.page.keyboard.press("Delete")
    expect(studio.node("hot")).to_have_count(0)
    expect(studio.node("words").get_by_label("problem", exact=True)).to_be_visible()
    studio.open_bottom("problems")
    expect(studio.find("problems")).to_contain_text("words")
    studio.find("deploy").click()
    expect(studio.page.get_by_role("dialog").get_by_role("alert")).to_be_visible()
    expect(studio.find("deploy-confirm")).to_be_disabled()


def test_an_unknown_field_is_told_as_it_is_typed(served: Served, open_studio: OpenStudio) -> None:
    _deploy(served, NETWORK)
    studio = open_studio(served.page())
    studio.select("hot")
    studio.write("where", "celcius > 90")
    expect(studio.find("inspector").get_by_text("celsius", exact=False).first).to_be_visible()
    expect(studio.node("hot").get_by_label("problem", exact=True)).to_be_visible()
    studio.write("where", "celsius > 95")
    expect(studio.node("hot").get_by_label("problem", exact=True)).to_have_count(0)


def test_two_people_who_edit_at_once_are_told(served: Served, open_studio: OpenStudio) -> None:
    _deploy(served, NETWORK)
    one, other = open_studio(served.page()), open_studio(served.page())
    for studio, limit in ((one, 91), (other, 92)):
        studio.select("hot")
        studio.write("where", f"celsius > {limit}")
        expect(studio.find("draft-count")).to_contain_text("~1")
    one.deploy()
    expect(other.find("outdated")).to_be_visible()
    other.find("deploy").click()
    other.find("deploy-confirm").click()
    expect(other.find("deploy-conflict")).to_be_visible()
    other.find("deploy-overwrite").click()
    expect(other.find("draft-count")).to_have_text("Deployed")
    expect(one.node("hot")).to_contain_text("celsius > 92")


def test_a_draft_survives_a_reload(served: Served, open_studio: OpenStudio) -> None:
    _deploy(served, NETWORK)
    studio = open_studio(served.page())
    studio.select("hot")
    studio.write("where", "celsius > 93")
    expect(studio.find("draft-count")).to_contain_text("~1")
    studio.page.reload()
    expect(studio.node("hot")).to_contain_text("celsius > 93")
    expect(studio.find("draft-count")).to_contain_text("~1")


def test_a_number_is_typed_letter_by_letter(served: Served, open_studio: OpenStudio) -> None:
    """`1.0` on the way to `1.05` stays what was typed."""
    _deploy(served, NETWORK)
    studio = open_studio(served.page())
    studio.select("readings")
    studio.page.keyboard.press("Escape")
    studio.page.locator(".canvas").press("Escape")
    for field in ("field-headroom", "field-memory"):  # a number, and a number or a text
        studio.find(field).press_sequentially("1.05")
        expect(studio.find(field)).to_have_value("1.05")


def test_yaml_and_form_stay_in_step(served: Served, open_studio: OpenStudio) -> None:
    _deploy(served, NETWORK)
    studio = open_studio(served.page())
    studio.select("hot")
    studio.find("mode-yaml").click()
    expect(studio.find("yaml")).to_contain_text("celsius > 90")
    studio.find("yaml").click()
    studio.page.keyboard.press("ControlOrMeta+a")
    studio.page.keyboard.insert_text("{box: filter, input: readings, where: celsius > 93}")
    studio.find("mode-form").click()
    expect(studio.find("field-where")).to_have_text("celsius > 93")
    studio.write("where", "celsius > 94")
    studio.find("mode-yaml").click()
    expect(studio.find("yaml")).to_contain_text("celsius > 94")


def test_yaml_completes_and_marks_where_it_is_broken(
    served: Served, open_studio: OpenStudio
) -> None:
    _deploy(served, NETWORK)
    studio = open_studio(served.page())
    studio.select("hot")
    studio.find("mode-yaml").click()
    studio.find("yaml").click()
    keyboard = studio.page.keyboard
    keyboard.press("ControlOrMeta+a")
    keyboard.insert_text("box: filter\ninput: readings\n")
    offered = studio.page.locator(".cm-tooltip-autocomplete")
    keyboard.type("whe")
    offered.get_by_role("option", name="where").first.click()
    keyboard.type("cels")
    offered.get_by_role("option", name="celsius").first.click()
    keyboard.type(" > 95")
    expect(studio.find("yaml")).to_contain_text("where: celsius > 95")
    expect(studio.find("draft-count")).to_contain_text("~1")
    keyboard.insert_text("\n  : [")
    expect(studio.find("inspector").locator(".cm-lintRange-error").first).to_be_visible()


def test_an_error_in_a_form_has_its_code_and_the_fix(
    served: Served, open_studio: OpenStudio
) -> None:
    _deploy(served, NETWORK)
    studio = open_studio(served.page())
    studio.select("hot")
    studio.write("where", "celcius > 90")
    told = studio.find("inspector").locator(".field-problem").first
    expect(told).to_contain_text("UNKNOWN_FIELD")
    expect(told).to_contain_text("celsius")


def test_why_a_deployment_was_refused_stays_at_the_box(
    served: Served, open_studio: OpenStudio
) -> None:
    late = {"on": "at", "delay": 5}
    stream: dict[str, object] = {"schema": {"at": "bigint", "celsius": "double"}, "progress": late}
    network: dict[str, object] = {
        "network": "plant",
        "streams": {"readings": stream},
        "outputs": {"all": {"from": "readings"}},
    }
    _deploy(served, network)
    studio = open_studio(served.page())
    studio.select("readings")
    studio.find("mode-yaml").click()
    studio.find("yaml").click()
    studio.page.keyboard.press("ControlOrMeta+a")
    studio.page.keyboard.insert_text(
        "{schema: {at: bigint, celsius: double}, progress: {on: at, delay: 5, below: route}}"
    )
    studio.find("deploy").click()
    expect(studio.page.get_by_role("dialog").get_by_role("alert")).to_contain_text("CANNOT_CHANGE")
    studio.page.keyboard.press("Escape")
    expect(studio.page.get_by_role("dialog")).to_have_count(0)
    problem = studio.node("readings").get_by_label("problem", exact=True)
    expect(problem).to_be_visible()
    expect(studio.find("inspector").get_by_role("alert").first).to_contain_text("CANNOT_CHANGE")
    studio.page.locator(".canvas").focus()
    studio.page.keyboard.press("ControlOrMeta+z")
    expect(problem).to_have_count(0)


def test_a_box_with_routes_shows_the_tuples_of_each_port(
    served: Served, open_studio: OpenStudio
) -> None:
    watch = {"box": "filter", "input": "readings", "routes": {"hot": "celsius > 90"}}
    outputs = {"alerts": {"from": "watch.hot"}, "others": {"from": "watch.rest"}}
    _deploy(served, {**NETWORK, "boxes": {"watch": watch}, "outputs": outputs})
    served.send("readings", [{"machine": "press", "celsius": c} for c in (95.0, 20.0, 30.0)])
    studio = open_studio(served.page())
    studio.select("watch")
    studio.open_bottom("tuples")
    expect(studio.rows("Tuples of watch.hot")).to_have_count(1)
    studio.find("tuples-port").select_option("watch.rest")
    expect(studio.rows("Tuples of watch.rest")).to_have_count(2)
    edit = studio.page.get_by_role("button", name="Edit and send")
    expect(edit).to_have_attribute("title", re.compile("Only streams"))
    studio.find("tuples-filter").fill("celsius > 25")
    studio.page.keyboard.press("Enter")
    expect(studio.rows("Tuples of watch.rest")).to_have_count(1)


def test_graphs_that_are_applied_hold_for_everybody(
    served: Served, open_studio: OpenStudio
) -> None:
    _deploy(served, NETWORK)
    one, other = open_studio(served.page()), open_studio(served.page())
    for studio in (one, other):
        studio.select("alerts")
        studio.open_tab("qos")
    one.page.get_by_role("button", name="Latency graph").click()
    one.find("qos-apply").click()
    expect(one.find("qos-apply")).to_have_attribute("title", re.compile("hold already"))
    # The outputs are of different worth now, so the network that runs declares the graphs.
    expect(other.find("qos-apply")).to_have_attribute("title", re.compile("hold already"))
    expect(other.page.get_by_role("button", name="Latency graph", exact=True)).to_have_count(0)
    one.page.reload()
    one.select("alerts")
    one.open_tab("qos")
    expect(one.find("qos-apply")).to_have_attribute("title", re.compile("hold already"))
