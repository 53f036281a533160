"""Mistakes in the studio are told where they are, and none of them breaks what runs."""

from __future__ import annotations

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
