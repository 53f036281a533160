/** The cards of the canvas. Figures come from the live picture by themselves. */

import { Handle, Position, type Node, type NodeProps } from "@xyflow/react";
import { memo, type CSSProperties, type ReactNode } from "react";

import { Boundary } from "../components/Boundary";
import { Icon, isIcon, type IconName } from "../components/Icon";
import { BoxFiguresRow } from "../watch/BoxFiguresRow";
import { OutputGauge } from "../watch/OutputGauge";
import { PointFigures } from "../watch/PointFigures";
import { QueryFigures } from "../watch/QueryFigures";
import { useMovedAway } from "../watch/moves";
import { useUi } from "../store/ui";
import { useFlow, type EntityData, type GroupData } from "./flow";
import type { NodeInfo } from "./graph";
import { GroupFigures } from "./GroupFigures";
import { InstanceFigures } from "./InstanceFigures";
import { useInside } from "./inside";
import { toggleGroup, zoomInto } from "./groups";
import { useModel } from "./model";
import { Ports } from "./Ports";
import { labelRoom } from "./scene";

type EntityProps = NodeProps<Node<EntityData>>;
type GroupProps = NodeProps<Node<GroupData>>;

const KIND_ICONS: Record<string, IconName> = {
  stream: "stream",
  table: "table",
  view: "view",
  query: "query",
  output: "output",
  point: "point",
  dedup: "bsort",
  number: "bsort",
  connection_point: "point",
};

export function iconOf(info: Pick<NodeInfo, "kind" | "box">): IconName {
  return isIcon(info.box) ? info.box : (KIND_ICONS[info.box] ?? KIND_ICONS[info.kind] ?? "group");
}

/** The content of a card leaves room for the labels of its ports. */
function roomForLabels(info: NodeInfo): CSSProperties | undefined {
  const { left, right } = labelRoom(info);
  return left || right ? ({ "--left": `${left}px`, "--right": `${right}px` } as CSSProperties) : undefined;
}

/** The outline of every card: selection, draft and problems. */
function Card({ info, selected, className, children }: { info: NodeInfo; selected: boolean; className: string; children: ReactNode }) {
  const change = useModel((state) => state.changes.get(info.id));
  const problems = useModel((state) => state.problems.get(info.id));
  const twin = useModel((state) => info.kind === "output" && state.graph.nodes.has(info.name));
  const state = `${selected ? "selected" : ""} ${change ? "draft" : ""} ${problems ? "invalid" : ""}`;
  return (
    <div
      className={`card ${className} ${state}`}
      data-testid={twin ? `node-output-${info.name}` : `node-${info.name}`}
      aria-label={`${info.box || info.kind} ${info.name}${problems ? `, ${problems.length} problems` : ""}${change ? ", not deployed" : ""}`}
      role="group"
      style={roomForLabels(info)}
    >
      <Ports info={info} />
      {children}
      {problems && (
        <span className="card-problem" role="img" aria-label="problem" title={problems.map((one) => `${one.code}: ${one.detail}`).join("\n")}>
          !
        </span>
      )}
    </div>
  );
}

function Head({ info }: { info: NodeInfo }) {
  return (
    <div className="card-head">
      <span className="card-kind" title={info.box || info.kind}>
        <Icon name={iconOf(info)} />
        <span className="card-word">{(info.box || info.kind).replace("_", " ")}</span>
      </span>
      <span className="card-name" title={info.name}>
        {info.name}
      </span>
    </div>
  );
}

function Telling({ info }: { info: NodeInfo }) {
  return (
    <div className="card-telling" title={info.telling}>
      {info.telling}
    </div>
  );
}

function Figures({ info }: { info: NodeInfo }) {
  if (info.kind === "query") return <QueryFigures name={info.name} />;
  return (
    <>
      <BoxFiguresRow name={info.name} />
      <InstanceFigures info={info} />
    </>
  );
}

const BoxNode = memo(function BoxNode({ data: { info }, selected }: EntityProps) {
  const moved = useMovedAway(info.name);
  return (
    <Card info={info} selected={selected} className={`box kind-${info.kind} ${moved ? "moved" : ""}`}>
      <Head info={info} />
      {moved ? (
        <div className="card-telling card-moved" title={moved}>
          ↤ {moved}
        </div>
      ) : (
        <Telling info={info} />
      )}
      <Boundary label="figures" quiet>
        <Figures info={info} />
      </Boundary>
    </Card>
  );
});

const StreamNode = memo(function StreamNode({ data: { info }, selected }: EntityProps) {
  return (
    <Card info={info} selected={selected} className={`pill kind-${info.kind}`}>
      <Head info={info} />
      <Telling info={info} />
    </Card>
  );
});

const OutputNode = memo(function OutputNode({ data: { info }, selected }: EntityProps) {
  return (
    <Card info={info} selected={selected} className="pill kind-output">
      <Head info={info} />
      <Boundary label="gauge" quiet>
        <OutputGauge name={info.name} />
      </Boundary>
    </Card>
  );
});

const PointNode = memo(function PointNode({ data: { info }, selected }: EntityProps) {
  return (
    <Card info={info} selected={selected} className="point">
      <span className="point-dot" aria-hidden="true" />
      <span className="point-text">
        <span className="card-name">{info.name}</span>
        <span className="card-telling" title={info.telling}>
          {info.telling}
        </span>
        <Boundary label="figures" quiet>
          <PointFigures name={info.name} />
        </Boundary>
      </span>
    </Card>
  );
});

/** An end outside of the group that is shown alone; a double click leads to it. */
const StubNode = memo(function StubNode({ data: { info }, selected }: EntityProps) {
  const leave = () => {
    zoomInto("");
    useUi.getState().ask({ kind: "center", node: info.id });
  };
  return (
    <div className={`card stub ${selected ? "selected" : ""}`} data-testid={`stub-${info.name}`} role="group" aria-label={`${info.box || info.kind} ${info.name}, outside of this group`} title="outside of this group" onDoubleClick={leave}>
      <Ports info={info} />
      <Icon name={iconOf(info)} />
      <span className="card-name">{info.name}</span>
    </div>
  );
});

/** Open, close, and the state of what is inside. */
const GroupNode = memo(function GroupNode({ id, data: { group }, selected }: GroupProps) {
  const sums = useInside(id);
  return (
    <div
      className={`card box group-card ${selected ? "selected" : ""} ${sums.drafts ? "draft" : ""} ${sums.problems.length ? "invalid" : ""}`}
      data-testid={`node-${group.name}`}
      role="group"
      aria-label={`closed group ${group.title}${sums.problems.length ? `, ${sums.problems.length} problems` : ""}${sums.drafts ? `, ${sums.drafts} not deployed` : ""}`}
      onDoubleClick={() => zoomInto(id)}
    >
      <Handle id="in" type="target" position={Position.Left} className="port implied" isConnectable={false} />
      <Handle id="out" type="source" position={Position.Right} className="port implied" isConnectable={false} />
      <div className="card-head">
        <span className="card-kind">
          <Icon name="group" />
          <span className="card-word">{group.declared ? "group" : "application"}</span>
        </span>
        <span className="card-name" title={group.title}>
          {group.name}
        </span>
        <button type="button" className="card-button nodrag" aria-label={`Open ${group.title}`} title="Open" onClick={() => toggleGroup(id)}>
          <Icon name="fit" />
        </button>
      </div>
      <div className="card-telling">
        {group.members} inside
        {sums.drafts > 0 && `, ${sums.drafts} in draft`}
        {sums.breakpoints > 0 && (
          <span className="group-breakpoints">
            {" "}
            ● {sums.breakpoints}
            <span className="hidden-text"> breakpoints</span>
          </span>
        )}
      </div>
      <GroupFigures id={id} />
      {sums.problems.length > 0 && (
        <span className="card-problem" role="img" aria-label={`${sums.problems.length} problems`} title={sums.problems.join("\n")}>
          {sums.problems.length}
        </span>
      )}
    </div>
  );
});

const FrameNode = memo(function FrameNode({ id, data: { group }, selected }: GroupProps) {
  const target = useFlow((state) => state.target === id);
  return (
    <div className={`frame ${selected || target ? "selected" : ""}`} data-testid={`node-${group.name}`} role="group" aria-label={`group ${group.title}`}>
      <div className="frame-title" onDoubleClick={() => zoomInto(id)}>
        <Icon name="group" />
        <span className="card-name" title={group.title}>
          {group.name}
        </span>
        <button type="button" className="card-button nodrag" aria-label={`Close ${group.title}`} title="Close" onClick={() => toggleGroup(id)}>
          <Icon name="close" />
        </button>
      </div>
    </div>
  );
});

export const nodeTypes = {
  box: BoxNode,
  stream: StreamNode,
  sink: OutputNode,
  point: PointNode,
  stub: StubNode,
  closed: GroupNode,
  frame: FrameNode,
};
