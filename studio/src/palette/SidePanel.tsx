import { Button } from "../components/Button";
import { Tabs } from "../components/Tabs";
import { useUi } from "../store/ui";
import { Bookmarks } from "./Bookmarks";
import { Outline } from "./Outline";
import { Palette } from "./Palette";

/** Left of the canvas: what can be added, what there is, and places to return to. */
export function SidePanel() {
  const { sideOpen, sideTab, openSide, toggle } = useUi();
  if (!sideOpen)
    return (
      <aside className="side-panel closed">
        <Button look="quiet" icon="chevron" aria-label="Show the palette" title="Show the palette" onClick={() => toggle("sideOpen")} />
      </aside>
    );
  return (
    <aside className="side-panel" aria-label="Palette and outline">
      <div className="panel-head">
        <Tabs
          label="Left panel"
          tabs={[
            { name: "palette", label: "Palette" },
            { name: "outline", label: "Outline" },
            { name: "bookmarks", label: "Bookmarks" },
          ]}
          current={sideTab}
          onChange={openSide}
        />
        <Button look="quiet" icon="close" aria-label="Hide this panel" title="Hide this panel" onClick={() => toggle("sideOpen")} />
      </div>
      <div className="panel-body">
        {sideTab === "palette" && <Palette />}
        {sideTab === "outline" && <Outline />}
        {sideTab === "bookmarks" && <Bookmarks />}
      </div>
    </aside>
  );
}
