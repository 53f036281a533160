"""The studio as a person uses it: gestures in one place, so that tests read as stories."""

from __future__ import annotations

from playwright.sync_api import ConsoleMessage, Locator, Page, expect

SLOW_MS = 60_000
"""For what waits for steps of Spark."""

_AT_REST = """() => new Promise((done) => {
    let before = "", frames = 0;
    const look = () => {
        const now = document.querySelector(".react-flow__viewport").style.transform;
        frames = now === before ? frames + 1 : 0;
        before = now;
        if (frames < 30) requestAnimationFrame(look); else done();
    };
    look();
})"""
"""Resolves when the canvas has not moved for thirty frames."""


class StudioPage:
    """A page that shows the studio."""

    def __init__(self, page: Page):
        self.page = page
        self.faults: list[str] = []
        page.set_default_timeout(10_000)
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("console", self._note)

    def _note(self, message: ConsoleMessage) -> None:
        # The browser notes answers such as 401 and 412, and lost connections, too; tests look
        # at their effects.
        noted = ("Failed to load resource", "WebSocket connection to")
        if message.type == "error" and not any(text in message.text for text in noted):
            self.faults.append(message.text)

    def find(self, testid: str) -> Locator:
        """What carries a test id."""
        return self.page.get_by_test_id(testid)

    def node(self, name: str) -> Locator:
        """The card of an entity."""
        return self.find(f"node-{name}")

    def edge(self, arc: str, target: str) -> Locator:
        """The line of an arc to a target."""
        return self.page.locator(f'.react-flow__edge[data-id="{arc}-{target}"]')

    def rest(self) -> None:
        """Wait until the canvas does not move any more."""
        self.page.evaluate(_AT_REST)

    # ── building ──

    def drag_from_palette(self, kind: str, x: int, y: int) -> None:
        """Drop a palette entry on a place of the canvas, from its middle."""
        box = self.page.locator(".canvas").bounding_box()
        assert box
        at = {"x": box["width"] / 2 + x, "y": box["height"] / 2 + y}
        self.find(f"palette-{kind}").drag_to(
            self.page.locator(".canvas"), target_position={"x": at["x"], "y": at["y"]}
        )

    def splice_from_palette(self, kind: str, arc: str, target: str) -> None:
        """Drop a palette entry on the middle of an arc."""
        x, y = self.middle_of(arc, target)
        canvas = self.page.locator(".canvas").bounding_box()
        assert canvas
        self.find(f"palette-{kind}").drag_to(
            self.page.locator(".canvas"),
            target_position={"x": x - canvas["x"], "y": y - canvas["y"]},
        )

    def middle_of(self, arc: str, target: str) -> tuple[float, float]:
        """Where on the screen the middle of an arc is, once the view has come to rest."""
        x, y = (
            self.edge(arc, target)
            .locator("path")
            .first.evaluate(
                """async path => {
                const frame = () => new Promise(done => requestAnimationFrame(done));
                const middle = () => {
                    const at = path.getPointAtLength(path.getTotalLength() / 2);
                    return at.matrixTransform(path.getScreenCTM());
                };
                let at = middle();
                for (let still = 0; still < 15; ) {
                    await frame();
                    const now = middle();
                    still = now.x === at.x && now.y === at.y ? still + 1 : 0;
                    at = now;
                }
                return [at.x, at.y];
            }"""
            )
        )
        return x, y

    def draw_wire(self, arc: str, x: float, y: float) -> None:
        """Drag from an output port to a place of the screen."""
        port = self.find(f"port-{arc}").bounding_box()
        assert port
        self.page.mouse.move(port["x"] + port["width"] / 2, port["y"] + port["height"] / 2)
        self.page.mouse.down()
        self.page.mouse.move(x - 20, y, steps=4)
        self.page.mouse.move(x, y, steps=4)
        self.page.mouse.up()

    def connect(self, arc: str, target: str, port: str = "in") -> None:
        """Drag from an output port to an input port."""
        handle = self.node(target).locator(f'.react-flow__handle[data-handleid="{port}"]')
        box = handle.bounding_box()
        assert box
        self.draw_wire(arc, box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        expect(self.edge(arc, target)).to_be_attached()

    def quick_add(self, words: str, kind: str) -> None:
        """Press `/` on the canvas, type, and take the first choice."""
        self.page.locator(".canvas").focus()
        self.page.keyboard.press("/")
        expect(self.find("search")).to_be_focused()
        self.page.keyboard.type(words)
        first = self.page.get_by_role("listbox", name="Found").get_by_role("option").first
        expect(first).to_contain_text(f"Add {kind}")
        self.page.keyboard.press("Enter")

    def rename(self, to: str) -> None:
        """Give what is selected another name."""
        self.find("name").fill(to)
        self.find("name").press("Enter")
        expect(self.find("name")).to_have_value(to)

    def write(self, field: str, text: str) -> None:
        """Replace the text of an editor in the form."""
        self.find(f"field-{field}").click()
        self.page.keyboard.press("ControlOrMeta+a")
        self.page.keyboard.insert_text(text)

    def select(self, name: str) -> None:
        """Click on a card."""
        self.node(name).click(position={"x": 40, "y": 12})
        expect(self.find("name")).to_have_value(name.removeprefix("output-"))

    def go_to(self, name: str) -> None:
        """Search for a name and go there."""
        self.page.locator(".canvas").focus()
        self.page.keyboard.press("/")
        expect(self.find("search")).to_be_focused()
        self.page.keyboard.type(name)
        self.page.keyboard.press("Enter")
        expect(self.find("name")).to_have_value(name)
        self.rest()

    def deploy(self) -> str:
        """Deploy the draft; gives what the dialog said."""
        self.find("deploy").click()
        confirm = self.find("deploy-confirm")
        expect(confirm).to_be_enabled(timeout=SLOW_MS)
        told = self.page.get_by_role("dialog").inner_text()
        confirm.click()
        expect(self.page.get_by_role("dialog")).to_have_count(0, timeout=SLOW_MS)
        expect(self.find("draft-count")).to_have_text("Deployed", timeout=SLOW_MS)
        return told

    # ── watching ──

    def open_bottom(self, tab: str) -> None:
        """Show one of the panels below the canvas."""
        self.page.get_by_role("region", name="Bottom panel").get_by_test_id(f"tab-{tab}").click()

    def open_tab(self, tab: str) -> None:
        """Show one of the inspector's tabs."""
        self.find("inspector").get_by_test_id(f"tab-{tab}").click()

    def rows(self, label: str) -> Locator:
        """The rows of a table, by its name."""
        return self.page.get_by_role("grid", name=label).locator("tbody tr")
