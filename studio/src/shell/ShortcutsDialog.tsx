import { Dialog } from "../components/Dialog";

const KEYS: [string, string][] = [
  ["/", "search and add"],
  ["Ctrl K", "search"],
  ["← → ↑ ↓", "walk along arcs"],
  ["Shift ← →", "move the selected box"],
  ["Enter", "open the inspector, or go into a group"],
  ["Escape", "select the group around, or nothing"],
  ["c", "connect: what can read the selected arc"],
  ["Delete", "remove"],
  ["g", "group, or open and close the group"],
  ["b", "breakpoint on the selected arc"],
  ["p", "pause and resume"],
  [".", "step a train"],
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
