"""One browser for all tests of the studio; each test has a profile of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.studio.serving import Served, browsing, serving_here
from tests.studio.studio_page import StudioPage

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    OpenStudio = Callable[..., StudioPage]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with browsing() as found:
        yield found


@pytest.fixture
def open_studio(browser: Browser) -> Iterator[OpenStudio]:
    """Studios for the length of a test; errors that a page reports fail it."""
    opened: list[StudioPage] = []

    def open_one(address: str, **options: Any) -> StudioPage:
        context = browser.new_context(viewport={"width": 1440, "height": 900}, **options)
        studio = StudioPage(context.new_page())
        opened.append(studio)
        studio.page.goto(address)
        return studio

    yield open_one
    faults = [fault for studio in opened for fault in studio.faults]
    for studio in opened:
        studio.page.context.close()
    assert not faults


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A server without Spark, on an empty network."""
    with serving_here(tmp_path / "plant.yaml") as found:
        yield found
