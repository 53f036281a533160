import { Dialog } from "../components/Dialog";

const KEYS: [string, string][] = [
  ["/", "search, or add a box: into the selected arc, or behind the selected box"],
  ["Ctrl K", "search"],
  ["← → ↑ ↓", "walk along arcs"],
  ["Shift ← →", "move the selected box"],
  ["Space", "keep the box selected while you walk on"],
  ["+ −, Ctrl ← →", "zoom, move the view"],
  ["Enter", "open the inspector, or go into a group"],
  ["Escape", "select the group around, or nothing; then leave the group; in a panel: back to the canvas"],
  ["c", "connect: what can read the selected arc, or a port of the box"],
  ["m", "move the selected boxes into a group or out of it, or a new box into an arc"],
  ["Delete", "remove"],
  ["g", "group; a single group is opened or closed"],
  ["o", "open or close the group"],
  ["Ctrl A", "select everything"],
  ["b", "breakpoint on the selected arc"],
  ["p", "pause and resume"],
  [".", "step a train; arrow keys then walk along the boxes"],
  [",", "step one tuple"],
  ["f", "show everything"],
  ["Ctrl Z, Ctrl Shift Z", "undo, redo"],
  ["Ctrl C, Ctrl V", "copy, paste"],
  ["Ctrl S", "deploy"],
];

export function ShortcutsDialog({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Keyboard shortcuts" onClose={onClose}>
      <dl className="shortcuts dialog-body">
        {KEYS.map(([keys, meaning]) => (
          <div key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{meaning}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
