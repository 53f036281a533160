"""Ways to begin: a starter, a CSV from anywhere on the page, a file of another network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from playwright.sync_api import expect

from tests.studio.serving import Served
from tests.studio.studio_page import SLOW_MS, StudioPage

if TYPE_CHECKING:
    from tests.studio.conftest import OpenStudio

CSV = "machine,at,celsius\npress,1,99.5\nlathe,2,71.0\nmill,3,120.0\n"
_DROP = """([name, text]) => {
    const data = new DataTransfer();
    data.items.add(new File([text], name, { type: "text/csv" }));
    const at = document.querySelector(".top-bar");
    for (const kind of ["dragenter", "dragover", "drop"])
        at.dispatchEvent(
            new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true }),
        );
}"""


def _drop(studio: StudioPage, text: str) -> None:
    """Drop a file on the top bar: anywhere will do."""
    studio.page.evaluate(_DROP, ["readings.csv", text])
    expect(studio.find("csv-dialog")).to_be_visible()


def test_a_starter_runs_at_once(served: Served, open_studio: OpenStudio) -> None:
    studio = open_studio(served.page())
    studio.find("starter-plant").click()
    expect(studio.find("draft-count")).to_have_text("Deployed")
    expect(studio.rows("Tuples of readings").first).to_be_visible(timeout=SLOW_MS)
    assert "scorching" in served.file.read_text(encoding="utf-8")


def test_a_csv_becomes_a_stream_and_later_more_of_its_rows(
    served: Served, open_studio: OpenStudio
) -> None:
    studio = open_studio(served.page())
    expect(studio.find("welcome")).to_be_visible()
    _drop(studio, CSV)
    expect(studio.find("csv-name")).to_have_value("readings")
    expect(studio.find("csv-type-celsius")).to_have_value("double")
    expect(studio.find("csv-progress")).to_have_value("at")
    studio.find("csv-name").fill("machines")
    studio.find("csv-type-at").fill("int")
    studio.find("csv-add").click()
    expect(studio.find("message")).to_have_text("3 rows sent to machines.Close")
    expect(studio.find("draft-count")).to_have_text("Deployed")
    expect(studio.rows("Tuples of machines")).to_have_count(3)
    with served.client() as client:
        assert client.get("/network").json()["streams"]["machines"]["schema"]["at"] == "int"

    _drop(studio, "machine,at,celsius\nsaw,4,50.0\nsaw,soon,1.0\n")
    studio.find("csv-send-machines").click()
    expect(studio.find("message")).to_contain_text("1 row sent to machines; 1 row did not fit")
    expect(studio.rows("Tuples of machines")).to_have_count(4)


def test_a_csv_does_not_run_what_is_not_to_run_yet(served: Served, open_studio: OpenStudio) -> None:
    network = {"network": "plant", "streams": {"s": {"schema": {"a": "int"}}}}
    with served.client() as client:
        client.put("/network", json={**network, "outputs": {"o": {"from": "s"}}}).raise_for_status()
    studio = open_studio(served.page())
    studio.select("s")
    studio.rename("numbers")
    _drop(studio, CSV)
    studio.find("csv-add").click()
    expect(studio.find("message")).to_contain_text("Deploy it")
    expect(studio.node("readings")).to_be_visible()
    with served.client() as client:
        assert list(client.get("/network").json()["streams"]) == ["s"]


def test_what_was_exported_is_imported_and_keeps_the_name(
    served: Served, open_studio: OpenStudio, tmp_path: Path
) -> None:
    with served.client() as client:
        network = {"network": "plant", "streams": {"s": {"schema": {"a": "int"}}}}
        client.put("/network", json={**network, "outputs": {"o": {"from": "s"}}}).raise_for_status()
    studio = open_studio(served.page())
    expect(studio.node("s")).to_be_visible()
    studio.find("file-menu").click()
    with studio.page.expect_download() as download:
        studio.find("export").click()
    file = tmp_path / "other.yaml"
    text = Path(download.value.path()).read_text(encoding="utf-8")
    file.write_text(text.replace("plant", "factory").replace("o:", "results:"), encoding="utf-8")
    studio.find("file-menu").click()
    studio.find("import").click()
    studio.find("import-file").set_input_files(file)
    expect(studio.page.get_by_role("dialog")).to_contain_text("keeps the name")
    studio.find("import-confirm").click()
    studio.deploy()
    with served.client() as client:
        found = client.get("/network").json()
    assert (found["network"], list(found["outputs"])) == ("plant", ["results"])


def test_a_question_about_an_arc_that_nothing_keeps_leads_to_a_connection_point(
    served: Served, open_studio: OpenStudio
) -> None:
    with served.client() as client:
        network = {"network": "plant", "streams": {"s": {"schema": {"a": "int"}}}}
        client.put("/network", json={**network, "outputs": {"o": {"from": "s"}}}).raise_for_status()
    studio = open_studio(served.page())
    expect(studio.node("s")).to_be_visible()
    studio.open_bottom("sql")
    studio.page.get_by_role("textbox", name="SQL", exact=True).fill("SELECT * FROM s")
    studio.find("sql-run").click()
    studio.find("sql-keep").click()
    expect(studio.node("recent_s")).to_be_visible()
    expect(studio.edge("s", "recent_s")).to_be_attached()
