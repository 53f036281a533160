/** Keys that work while the canvas has the focus. */

import type { KeyboardEvent } from "react";

import { mayEdit } from "../store/session";
import { useUi } from "../store/ui";
import { nudgeSelected, removeSelected, selectedPorts } from "./actions";
import { selectedEdges, selectedNodes, selectOnly, useFlow } from "./flow";
import { toggleGroup, zoomInto, zoomOut } from "./groups";
import { openMoveMenu, openQuickMenu } from "./menu";
import { moveChoices } from "./moving";
import { panBy, zoomBy } from "./viewport";
import { cursorNode, forgetKept, keepCursor, walk, type Direction } from "./walk";

const ARROWS: Record<string, Direction> = {
  ArrowLeft: "left",
  ArrowRight: "right",
  ArrowUp: "up",
  ArrowDown: "down",
};
const NUDGE: Record<Direction, [number, number]> = { left: [-8, 0], right: [8, 0], up: [0, -8], down: [0, 8] };

const PAN: Record<Direction, [number, number]> = { left: [80, 0], right: [-80, 0], up: [0, 80], down: [0, -80] };

/** Where the quick menu opens without a mouse: at the selected node, else in the middle. */
export function menuPlace(): { x: number; y: number } {
  const id = selectedNodes()[0]?.id;
  const node = id ? document.querySelector(`.react-flow__node[data-id="${CSS.escape(id)}"]`) : null;
  const rect = (node ?? document.querySelector(".canvas"))?.getBoundingClientRect();
  if (!rect) return { x: 200, y: 200 };
  return node ? { x: rect.right + 16, y: rect.top } : { x: rect.left + rect.width / 2 - 160, y: rect.top + 80 };
}

function arrow(event: KeyboardEvent, direction: Direction): void {
  if (event.shiftKey || event.altKey) {
    if (mayEdit()) nudgeSelected(...NUDGE[direction]);
    return;
  }
  if (event.ctrlKey || event.metaKey) {
    panBy(...PAN[direction]);
    return;
  }
  walk(direction);
  const node = cursorNode();
  if (node) useUi.getState().ask({ kind: "center", node: node.id });
}

export function onCanvasKey(event: KeyboardEvent): void {
  const target = event.target as Element;
  if (target.closest("input, textarea, select, [contenteditable]")) return;
  const direction = ARROWS[event.key];
  const node = cursorNode();
  if (direction) arrow(event, direction);
  else if (event.key === "Delete" || event.key === "Backspace") removeSelected();
  else if (event.key === "Enter" && target.closest("button")) return;
  else if (event.key === "Enter" && node && "group" in node.data) zoomInto(node.id);
  else if (event.key === "Enter") {
    useUi.getState().openInspector("parameters");
    requestAnimationFrame(() => document.querySelector<HTMLElement>(".inspector input, .inspector [contenteditable]")?.focus());
  } else if (event.key === "Escape") {
    forgetKept();
    if (node?.parentId) selectOnly(new Set([node.parentId]), new Set());
    else if (node || selectedEdges().length) selectOnly(new Set(), new Set());
    else if (!zoomOut()) return;
  } else if (event.key === " " && !target.closest("button")) keepCursor();
  else if (event.key === "+" || event.key === "=") zoomBy("in");
  else if (event.key === "-") zoomBy("out");
  else if (event.key === "c" && !event.ctrlKey && !event.metaKey && mayEdit() && selectedPorts().length) openQuickMenu(menuPlace(), null, selectedPorts());
  else if (event.key === "m" && !event.ctrlKey && !event.metaKey && mayEdit() && moveChoices().length) openMoveMenu(menuPlace());
  else if (event.key === "o" && node && "group" in node.data) toggleGroup(node.id);
  else if (event.key === "a" && (event.ctrlKey || event.metaKey)) selectOnly(new Set(useFlow.getState().nodes.map((each) => each.id)), new Set());
  else return;
  event.preventDefault();
}
