"""Text and controls can be seen by day and at night: contrast by computed styles (WCAG 2.2 AA)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.studio.serving import Served
from tests.studio.test_signals import open_overloaded

if TYPE_CHECKING:
    from tests.studio.conftest import OpenStudio

_WEAK = """() => {
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const rgba = (colour) => {
        canvas.clearRect(0, 0, 1, 1);
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
        const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
        return [r, g, b, a / 255];
    };
    const over = (top, below) =>
        [0, 1, 2].map((at) => top[at] * top[3] + below[at] * (1 - top[3])).concat(1);
    const behind = (element) => {
        const layers = [];
        for (let at = element; at; at = at.parentElement)
            layers.push(rgba(getComputedStyle(at).backgroundColor));
        return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255, 1]);
    };
    // How much of an element is left by its own opacity and that of what it is in.
    const strength = (element) => {
        let share = 1;
        for (let at = element; at; at = at.parentElement)
            share *= Number(getComputedStyle(at).opacity);
        return share;
    };
    const light = (colour) => {
        const [r, g, b] = colour.slice(0, 3).map((part) => {
            const share = part / 255;
            return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const contrast = (one, other) => {
        const [dark, bright] = [light(one), light(other)].sort((a, b) => a - b);
        return (bright + 0.05) / (dark + 0.05);
    };
    const seen = (element) =>
        element.checkVisibility({ opacityProperty: true, visibilityProperty: true }) &&
        !element.closest(":disabled, .hidden-text");
    const name = (element) =>
        `${element.tagName.toLowerCase()}.${element.getAttribute("class")?.replaceAll(" ", ".")}`;
    const CONTROLS = "input:not([type=checkbox], [type=file]), select, textarea, .code-editor";
    const weak = [];
    for (const element of document.querySelectorAll("body *")) {
        const drawn = element instanceof SVGTextElement;
        if (!(element instanceof HTMLElement || drawn) || !seen(element)) continue;
        const style = getComputedStyle(element);
        const texts = [...element.childNodes].filter((node) => node.nodeType === 3);
        const said = texts.map((node) => node.data.trim()).join("").slice(0, 20);
        if (said) {
            const ground = behind(element);
            const colour = rgba(drawn ? style.fill : style.color);
            colour[3] *= strength(element);
            const found = contrast(over(colour, ground), ground);
            if (found < 4.5) weak.push(`text ${name(element)} ${said} ${found}`);
        }
        if (element.matches(CONTROLS) && element.offsetWidth > 4) {
            const ground = behind(element.parentElement);
            const found = contrast(over(rgba(style.borderBottomColor), ground), ground);
            if (found < 3) weak.push(`border ${name(element)} ${found.toFixed(2)}`);
        }
    }
    return [...new Set(weak)];
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_borders_of_controls_have_contrast(
    served: Served, open_studio: OpenStudio, scheme: str
) -> None:
    studio = open_studio(served.page(), color_scheme=scheme)
    expect(studio.find("welcome")).to_be_visible()
    weak = set(studio.page.evaluate(_WEAK))
    studio.find("starter-plant").click()
    expect(studio.find("draft-count")).to_have_text("Deployed")
    studio.select("hot")
    expect(studio.find("field-input").or_(studio.find("mode-form")).first).to_be_visible()
    for tab in ("tuples", "sql", "debug", "log"):
        studio.open_bottom(tab)
        expect(studio.page.locator(".bottom-body > *").first).to_be_visible()
        weak |= set(studio.page.evaluate(_WEAK))
    studio.select("alerts")
    studio.open_tab("qos")
    expect(studio.find("qos-apply")).to_be_visible()
    weak |= set(studio.page.evaluate(_WEAK))
    assert not sorted(weak)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_is_wrong_has_contrast(served: Served, open_studio: OpenStudio, scheme: str) -> None:
    """Overload, a stop at a breakpoint, what the optimiser moved, problems of a draft."""
    studio = open_overloaded(served, open_studio, color_scheme=scheme)
    studio.select("hot")
    studio.write("where", "celsus > 90")
    expect(studio.node("hot").get_by_label("problem", exact=True)).to_be_visible()
    weak = set(studio.page.evaluate(_WEAK))
    for tab in ("problems", "debug"):
        studio.open_bottom(tab)
        expect(studio.page.locator(".bottom-body > *").first).to_be_visible()
        weak |= set(studio.page.evaluate(_WEAK))
    assert not sorted(weak)
