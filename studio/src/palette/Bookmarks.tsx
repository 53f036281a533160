import { useState } from "react";

import { useFocus } from "../canvas/focus";
import { showAlone } from "../canvas/groups";
import { useModel } from "../canvas/model";
import { placesOf } from "../canvas/scene";
import { viewport } from "../canvas/viewport";
import { Button } from "../components/Button";
import { useDraft } from "../store/draft";
import { isShared } from "../store/savedLayout";
import { useEditReason } from "../store/session";
import { useUi } from "../store/ui";
import type { Layout } from "../api/types";

type Bookmark = Layout["bookmarks"][number];
const SIZE = { width: 192, height: 96 };

/** What is seen at a bookmark, as small rectangles. */
function Thumbnail({ mark }: { mark: Bookmark }) {
  const nodes = useModel((state) => state.scene.nodes);
  const places = placesOf(nodes);
  const scale = (mark.zoom * SIZE.width) / 1000;
  return (
    <svg className="thumbnail" viewBox={`0 0 ${SIZE.width} ${SIZE.height}`} aria-hidden="true">
      {nodes.map((node) => {
        const at = places.get(node.id) ?? node;
        return <rect key={node.id} className={node.open ? "open" : ""} x={(at.x + mark.x / mark.zoom) * scale} y={(at.y + mark.y / mark.zoom) * scale} width={node.width * scale} height={node.height * scale} rx="1" />;
      })}
    </svg>
  );
}

/** Show what the canvas showed: the place, and the group that was shown alone if it is still there. */
function openBookmark({ x, y, zoom, group }: Bookmark): void {
  showAlone(group ?? null);
  useUi.getState().ask({ kind: "goto", x, y, zoom });
}

/** Places on the canvas to return to; kept in the layout. */
export function Bookmarks() {
  const bookmarks = useDraft((state) => state.layout.bookmarks);
  const setLayout = useDraft((state) => state.setLayout);
  const group = useFocus((state) => state.path.at(-1) ?? null);
  const groups = useModel((state) => state.grouping.groups);
  const saved = useDraft((state) => state.savedLayout);
  const viewing = useEditReason() !== null;
  const [name, setName] = useState("");
  const add = () => {
    const at = viewport();
    if (!at) return;
    const title = name.trim() || `place ${bookmarks.length + 1}`;
    setLayout({ bookmarks: [...bookmarks.filter((mark) => mark.name !== title), { name: title, ...at, ...(group === null ? {} : { group }) }] });
    setName("");
  };
  return (
    <>
      <form
        className="bookmark-add"
        onSubmit={(event) => {
          event.preventDefault();
          add();
        }}
      >
        <input type="text" aria-label="Name of the bookmark" placeholder="Name" value={name} onChange={(event) => setName(event.target.value)} />
        <Button type="submit" icon="bookmark">
          Keep
        </Button>
      </form>
      {!bookmarks.length && <p className="muted side-note">A bookmark keeps what the canvas shows now.</p>}
      {viewing && <p className="muted side-note">Your bookmarks stay in this browser; those of editors are shared.</p>}
      <ul className="outline-list">
        {bookmarks.map((mark) => (
          <li key={mark.name} className="bookmark">
            <button type="button" onClick={() => openBookmark(mark)}>
              {(mark.group ?? null) === group && <Thumbnail mark={mark} />}
              {mark.name}
              {mark.group && <span className="muted"> in {groups.get(mark.group)?.title ?? mark.group}</span>}
            </button>
            <Button look="quiet" icon="trash" aria-label={`Remove ${mark.name}`} reason={viewing && isShared(mark, saved) ? "Shared: removing it needs an editor's token." : null} onClick={() => setLayout({ bookmarks: bookmarks.filter((each) => each !== mark) })} />
          </li>
        ))}
      </ul>
    </>
  );
}
