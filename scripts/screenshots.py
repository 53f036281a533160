"""Pictures of the studio for the documents: docs/images/studio-*.png.

    .venv/bin/python scripts/screenshots.py [--into DIRECTORY] [SCENE ...]

Serves networks on Spark, drives the distribution's Chromium, and takes minutes. The studio must be
built.
"""

from __future__ import annotations

import argparse
import copy
import json
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import Page, expect, sync_playwright
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
LOOKS = {
    "": (1440, 900, "light"),
    "-dark": (1440, 900, "dark"),
    "-small": (1024, 768, "light"),
    "-small-dark": (1024, 768, "dark"),
}
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
LONG_S = 90.0

Document = dict[str, Any]


class Stage:
    """A server whose network the scenes change, and a browser that looks at it."""

    def __init__(self, url: str, token: str, browser: Any, images: Path):
        self.url, self.token, self._browser, self._images = url, token, browser, images
        headers = {"Authorization": f"Bearer {token}"}
        self.client = httpx.Client(base_url=f"{url}/api/v1", headers=headers, timeout=120)

    def deploy(self, network: Document) -> None:
        """Put a network in the place of the one that runs."""
        answer = self.client.put("/network", json={**network, "network": "factory"})
        assert answer.is_success, answer.text
        self.client.put("/layout", json={"positions": {}, "open": {}, "bookmarks": []})

    def until(self, holds: Callable[[Document], bool], seconds: float = LONG_S) -> None:
        """Wait for a picture, as the studio gets it."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if holds(self.client.get("/picture").json()):
                return
            time.sleep(0.5)
        sys.stderr.write("  waited in vain; the picture is taken as it is\n")

    def shoot(self, scene: str, act: Callable[[Page], None]) -> None:
        """Take the pictures of a scene, in each look."""
        for suffix, (width, height, scheme) in LOOKS.items():
            context = self._browser.new_context(
                viewport={"width": width, "height": height}, color_scheme=scheme
            )
            page = context.new_page()
            page.goto(f"{self.url}/#token={self.token}")
            act(page)
            path = self._images / f"studio-{scene}{suffix}.png"
            page.screenshot(path=path)
            context.close()
            sys.stderr.write(f"  {path}\n")


def gives(box: str) -> Callable[[Document], bool]:
    """Whether results of a box come."""
    return lambda picture: picture["boxes"].get(box, {}).get("out_rate", 0) > 0


def node(page: Page, name: str) -> Any:
    return page.get_by_test_id(f"node-{name}")


def settle(page: Page, *names: str) -> None:
    """Wait until cards are there with live figures, so that nothing moves any more."""
    for name in names:
        expect(node(page, name)).to_be_visible(timeout=30_000)
    expect(page.get_by_test_id("status")).to_contain_text("/s", timeout=30_000)
    fit(page)
    page.wait_for_timeout(2500)  # charts and gauges fill while frames come


def fit(page: Page) -> None:
    """Show the whole network, as large as panels leave room for."""
    page.locator(".canvas").focus()
    page.keyboard.press("f")
    page.wait_for_timeout(800)


def factory() -> Document:
    return dict(YAML(typ="safe").load(ROOT / "examples" / "factory.yaml"))


def five() -> Document:
    """The alerts of the factory, without the rest."""
    whole = factory()
    network = {"streams": {"readings": whole["streams"]["readings"]}, "boxes": {}}
    for name in ("watch", "hot", "tight", "alarm", "heat"):
        network["boxes"][name] = whole["boxes"][name]
    network["outputs"] = {name: whole["outputs"][name] for name in ("alerts", "means")}
    network["connection_points"] = whole["connection_points"]
    return network


def fifty() -> Document:
    """Ten lines of five boxes, in groups, at a rate that leaves time."""
    stream = copy.deepcopy(factory()["streams"]["readings"])
    stream["source"]["rows_per_second"] = 20
    network: Document = {"streams": {"readings": stream}, "boxes": {}, "groups": {}, "outputs": {}}
    for line in range(10):
        names = [f"{kind}{line}" for kind in ("own", "hot", "tens", "calm", "text")]
        own, hot, tens, calm, text = names
        network["boxes"] |= {
            own: {"box": "filter", "input": "readings", "where": f"hash(machine) % 10 = {line}"},
            hot: {"box": "filter", "input": own, "where": "celsius > 60"},
            tens: {
                "box": "aggregate",
                "input": hot,
                "order": {"on": "at", "by": ["machine"]},
                "window": {"size": "10 seconds"},
                "compute": {"mean": "avg(celsius)", "n": "count(*)"},
            },
            calm: {"box": "filter", "input": tens, "where": "n > 3"},
            text: {"box": "map", "input": calm, "keep": ["machine", "at"]},
        }
        network["groups"][f"line{line}"] = names
        network["outputs"][f"out{line}"] = {"from": text}
    return network


def scene_empty(stage: Stage) -> None:
    def act(page: Page) -> None:
        expect(page.get_by_test_id("welcome")).to_be_visible()
        expect(page.locator(".starter")).to_have_count(3)
        palette = page.get_by_test_id("palette-filter")  # closed on a narrow page
        expect(palette.or_(page.get_by_label("Show the palette"))).to_be_visible()

    stage.shoot("empty", act)


def scene_five(stage: Stage) -> None:
    stage.deploy(five())
    stage.until(gives("heat"))

    def act(page: Page) -> None:
        settle(page, "watch", "heat")
        node(page, "watch").click(position={"x": 40, "y": 12})
        page.wait_for_timeout(500)
        fit(page)

    stage.shoot("five", act)


def scene_factory(stage: Stage) -> None:
    stage.deploy(factory())
    stage.until(gives("quality"))

    def act(page: Page) -> None:
        settle(page, "watch", "quality")
        node(page, "means").click(position={"x": 40, "y": 12})
        page.get_by_test_id("inspector").get_by_test_id("tab-qos").click()
        page.get_by_role("region", name="Bottom panel").get_by_test_id("tab-results").click()
        page.get_by_test_id("results-of").select_option("means")
        page.keyboard.press("Escape")
        expect(page.get_by_role("grid").locator("tbody tr").first).to_be_visible(timeout=30_000)
        page.wait_for_timeout(6000)
        fit(page)

    stage.shoot("factory", act)


def scene_step(stage: Stage) -> None:
    """Paused, after one tuple that is hot has gone through `watch` and `hot` to the alerts."""
    stage.deploy(five())
    stage.until(gives("hot"))
    wanted = {"arc": "readings", "condition": "celsius > 97"}
    made = stage.client.post("/control/breakpoints", json=wanted).raise_for_status().json()
    stage.until(lambda picture: picture["debug"]["hit"] is not None)
    order = {"kind": "tuple", "application": "alerts"}
    stage.client.post("/control/step", json=order).raise_for_status()

    def act(page: Page) -> None:
        settle(page, "watch")
        page.get_by_role("region", name="Bottom panel").get_by_test_id("tab-debug").click()
        expect(page.get_by_test_id("trace")).to_be_visible(timeout=60_000)
        page.get_by_test_id("trace").get_by_role("option", name="watch").click()
        page.wait_for_timeout(500)
        fit(page)

    stage.shoot("step", act)
    stage.client.delete(f"/control/breakpoints/{made['id']}").raise_for_status()
    stage.client.post("/control/resume", json={"application": None}).raise_for_status()


def scene_overload(stage: Stage) -> None:
    network = factory()
    network["streams"]["readings"]["source"]["rows_per_second"] = 150_000
    network["engine"] = {"shedding": "random"}  # the query has no graphs that would allow it
    stage.deploy(network)
    stage.until(lambda picture: bool(picture["drops"]))
    stage.shoot("overload", lambda page: settle(page, "watch", "quality"))


def scene_fifty(stage: Stage) -> None:
    stage.deploy(fifty())

    def act(page: Page) -> None:
        settle(page, "line0", "line9")

    stage.shoot("fifty", act)


SCENES: dict[str, Callable[[Stage], None]] = {
    "empty": scene_empty,
    "five": scene_five,
    "factory": scene_factory,
    "step": scene_step,
    "overload": scene_overload,
    "fifty": scene_fifty,
}


@contextmanager
def serving(directory: Path) -> Iterator[tuple[str, str]]:
    """`auroral serve` on an empty network; gives its address and the editor's token."""
    state = directory / "state"
    command = [sys.executable, "-m", "auroral", "serve", str(directory / "factory.yaml")]
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--state", str(state), "--port", "0"],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    try:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        found = next((m for line in lines if (m := re.match(r"studio: (.*)/#token=", line))), None)
        assert found, (directory / "log").read_text(encoding="utf-8")
        tokens = json.loads((state / "tokens.json").read_text(encoding="utf-8"))
        yield found[1], tokens["editor"]
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate()


def main(wanted: list[str], images: Path) -> None:
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    assert path, "there is no Chromium; scripts/browser.sh installs it"
    images.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as made, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        with serving(Path(made)) as (url, token):
            stage = Stage(url, token, browser, images)
            for name in wanted or list(SCENES):
                sys.stderr.write(f"{name}\n")
                SCENES[name](stage)
        browser.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Take pictures of the studio.")
    parser.add_argument("--into", type=Path, default=IMAGES)
    parser.add_argument("scenes", nargs="*", metavar="SCENE")
    asked = parser.parse_args()
    main(asked.scenes, asked.into)
