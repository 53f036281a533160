import { Background, ReactFlow, ReactFlowProvider, SelectionMode, useReactFlow, useStore, type FinalConnectionState, type IsValidConnection } from "@xyflow/react";
import { useCallback, useEffect, useRef, useState, type DragEvent } from "react";

import { mayEdit, useEditReason, useSession } from "../store/session";
import { useUi } from "../store/ui";
import { addEntry, connectTo, edgeOf, isLoose, keepPositions, spliceEntry, spliceNode, type Point } from "./actions";
import { edgeTypes } from "./ArcEdge";
import { Breadcrumbs } from "./Breadcrumbs";
import { startConnecting, stopConnecting, useConnecting } from "./connecting";
import { CanvasControls } from "./CanvasControls";
import { FailedBanner } from "./FailedBanner";
import { useFlow, type FlowEdge, type FlowNode } from "./flow";
import { openQuickMenu } from "./menu";
import { useModel } from "./model";
import { nodeTypes } from "./nodes";
import { QuickMenu } from "./QuickMenu";
import { zoomInto } from "./groups";
import { frameUnder } from "./membership";
import { DRAGGED_KIND } from "../palette/dragging";
import { onCanvasKey } from "./keys";
import { Overview } from "./Overview";
import { PausedBanner } from "./PausedBanner";
import { frameAt } from "./scene";
import { useRefit, useViewRequests } from "./useView";
import { chooseView, tellFlow } from "./viewport";

const DELETE_KEYS = null;
const MULTI_KEYS = ["Shift", "Meta", "Control"];
const OPTIONS = { hideAttribution: true };

/** The edge of an arc at a place of the screen. */
function edgeAt(x: number, y: number): string | null {
  for (const element of document.elementsFromPoint(x, y)) {
    const id = element.closest(".react-flow__edge")?.getAttribute("data-id");
    if (id) return id;
  }
  return null;
}

const screenPoint = (event: MouseEvent | TouchEvent): Point => {
  const at = "changedTouches" in event ? event.changedTouches[0] : event;
  return { x: at?.clientX ?? 0, y: at?.clientY ?? 0 };
};

/** What could not be read is not drawn: from afar cards show name and one figure, from far away the name. */
function Distance() {
  const detail = useStore((state) => (state.transform[2] < 0.36 ? "far" : state.transform[2] < 0.68 ? "mid" : ""));
  useEffect(() => {
    const canvas = document.querySelector(".canvas");
    canvas?.classList.toggle("far", detail === "far");
    canvas?.classList.toggle("mid", detail === "mid");
  }, [detail]);
  return null;
}

function Flow() {
  const { nodes, edges, changeNodes, changeEdges } = useFlow();
  const placed = useModel((state) => state.placed);
  const reason = useEditReason();
  const flow = useReactFlow<FlowNode, FlowEdge>();
  const [started, setStarted] = useState(false);
  const first = useRef(true);
  useViewRequests(started);
  useRefit(started);
  useEffect(() => {
    tellFlow(flow);
    return () => tellFlow(null);
  }, [flow]);

  useEffect(() => {
    if (!placed || !nodes.length || !first.current) return;
    first.current = false;
    requestAnimationFrame(() => {
      void flow.fitView({ padding: 0.06, maxZoom: 1 }).then(() => performance.mark("auroral-first-view"));
      setStarted(true);
    });
  }, [placed, nodes.length, flow]);

  const isValid: IsValidConnection<FlowEdge> = useCallback(
    (connection) => useConnecting.getState().fits.get(connection.target)?.has(connection.targetHandle ?? "") ?? false,
    [],
  );
  const onConnectEnd = useCallback(
    (event: MouseEvent | TouchEvent, state: FinalConnectionState) => {
      const { arc } = useConnecting.getState();
      stopConnecting();
      if (!arc || state.isValid || state.toNode) return;
      const at = screenPoint(event);
      openQuickMenu(at, flow.screenToFlowPosition(at), [{ id: "out", label: "", arc }]);
    },
    [flow],
  );
  const onDragOver = useCallback((event: DragEvent) => {
    if (!event.dataTransfer.types.includes(DRAGGED_KIND)) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = "copy";
    const target = edgeAt(event.clientX, event.clientY);
    if (target !== useFlow.getState().target) useFlow.setState({ target });
  }, []);
  const onDrop = useCallback(
    (event: DragEvent) => {
      const kind = event.dataTransfer.getData(DRAGGED_KIND);
      const entry = useSession.getState().palette.find((each) => `${each.section}/${each.kind}` === kind);
      useFlow.setState({ target: null });
      if (!entry || !mayEdit()) return;
      event.preventDefault();
      const { x, y } = flow.screenToFlowPosition({ x: event.clientX, y: event.clientY });
      const at = { x: Math.round(x - 112), y: Math.round(y - 40) };
      const edge = edgeOf(edgeAt(event.clientX, event.clientY) ?? "");
      if (edge && entry.section === "boxes" && entry.inputs === "one") spliceEntry(entry, edge, at);
      else addEntry(entry, { at });
    },
    [flow],
  );

  return (
    <ReactFlow<FlowNode, FlowEdge>
      nodes={nodes}
      edges={edges}
      nodeTypes={nodeTypes}
      edgeTypes={edgeTypes}
      onNodesChange={changeNodes}
      onEdgesChange={changeEdges}
      onConnectStart={(_, { nodeId, handleId }) => {
        const info = useModel.getState().graph.nodes.get(nodeId ?? "");
        const arc = info?.outputs.find((port) => port.id === handleId)?.arc;
        if (arc) startConnecting(arc);
      }}
      onConnect={({ source, sourceHandle, target, targetHandle }) => {
        const arc = useModel.getState().graph.nodes.get(source)?.outputs.find((port) => port.id === sourceHandle)?.arc;
        if (arc) connectTo(arc, target, targetHandle ?? "in");
      }}
      onConnectEnd={onConnectEnd}
      isValidConnection={isValid}
      onMoveStart={(event) => event && chooseView()}
      onNodeDrag={(event, node) => {
        const { x, y } = screenPoint(event);
        const frame = frameUnder(node);
        const target = (isLoose(node.id) && edgeAt(x, y)) || (frame && frame !== node.parentId ? frame : null);
        if (target !== useFlow.getState().target) useFlow.setState({ target });
      }}
      onNodeDragStop={(_, node, moved) => {
        const { target } = useFlow.getState();
        useFlow.setState({ target: null });
        keepPositions(moved);
        const edge = target ? edgeOf(target) : null;
        if (edge && isLoose(node.id)) spliceNode(node.id, edge);
      }}
      onDragOver={onDragOver}
      onDrop={onDrop}
      onDoubleClick={(event) => {
        if (!(event.target as Element).classList.contains("react-flow__pane")) return;
        const at = flow.screenToFlowPosition({ x: event.clientX, y: event.clientY });
        const frame = frameAt(useModel.getState().scene, at.x, at.y);
        if (frame) zoomInto(frame);
        else if (mayEdit()) openQuickMenu({ x: event.clientX, y: event.clientY }, at, []);
      }}
      nodesConnectable={reason === null}
      nodesDraggable={reason === null}
      nodesFocusable={false}
      edgesFocusable={false}
      disableKeyboardA11y
      deleteKeyCode={DELETE_KEYS}
      multiSelectionKeyCode={MULTI_KEYS}
      selectionMode={SelectionMode.Partial}
      onlyRenderVisibleElements
      zoomOnDoubleClick={false}
      elevateNodesOnSelect={false}
      zIndexMode="manual"
      minZoom={0.1}
      maxZoom={2}
      proOptions={OPTIONS}
    >
      <Distance />
      <Background gap={24} size={1} />
      <Overview />
      <PausedBanner />
      <FailedBanner />
      <CanvasControls />
      <Breadcrumbs />
    </ReactFlow>
  );
}

/** The canvas: one stop of the tab key, inside it the arrow keys walk along arcs. */
export function Canvas() {
  const said = useUi((state) => (state.selected ? `${state.selected.kind} ${state.selected.name}` : "nothing selected"));
  return (
    <ReactFlowProvider>
      <section className="canvas" tabIndex={0} aria-label="Canvas: arrow keys walk along arcs, Enter opens the inspector, slash adds a box" onKeyDown={onCanvasKey} data-testid="canvas">
        <Flow />
        <div className="hidden-text" role="status" aria-live="polite">
          {said}
        </div>
        <QuickMenu />
      </section>
    </ReactFlowProvider>
  );
}
