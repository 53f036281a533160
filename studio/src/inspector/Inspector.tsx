import { Suspense } from "react";

import type { Declaration } from "../api/types";
import { removeSelected } from "../canvas/actions";
import { Boundary } from "../components/Boundary";
import { Button } from "../components/Button";
import { onDemand } from "../components/onDemand";
import { Tabs, type Tab } from "../components/Tabs";
import { asObject, declared, refOf, type Ref } from "../draft/document";
import { setKey } from "../draft/edits";
import { useDraft } from "../store/draft";
import { useEditReason } from "../store/session";
import { useUi, type InspectorTab, type Selection } from "../store/ui";
import { ArcSummary } from "../watch/ArcSummary";
import { StoryTab } from "../watch/StoryTab";
import { NameField } from "./NameField";
import { NetworkForm } from "./NetworkForm";
import { ParametersTab } from "./ParametersTab";
import { SchemaTab } from "./SchemaTab";

const QosTab = onDemand(() => import("../qos/QosTab").then((module) => module.QosTab));
const StatisticsTab = onDemand(() => import("../watch/StatisticsTab").then((module) => module.StatisticsTab));

const LABELS: Record<InspectorTab, string> = { parameters: "Parameters", schema: "Schema", statistics: "Statistics", qos: "QoS", story: "Story" };

/** The tabs that have something to say about what is selected. */
function tabsOf({ kind }: Selection): InspectorTab[] {
  switch (kind) {
    case "arc":
      return ["schema", "statistics", "story"];
    case "output":
      return ["parameters", "schema", "qos", "statistics", "story"];
    case "view":
      return ["parameters", "qos", "statistics", "story"];
    case "group":
      return ["parameters"];
    case "table":
      return ["parameters", "schema"];
    default:
      return ["parameters", "schema", "statistics", "story"];
  }
}

function Qos({ target }: { target: Ref }) {
  const qos = useDraft((state) => asObject(target.section, declared(state.draft, target)).qos);
  const edit = useDraft((state) => state.edit);
  const value = qos && typeof qos === "object" && !Array.isArray(qos) ? (qos as Declaration) : null;
  return (
    <QosTab
      output={target.name}
      value={value}
      onChange={(to, merge) => edit((document) => setKey(document, target, ["qos"], (to as Parameters<typeof setKey>[3]) ?? undefined), merge ? { merge: `qos ${target.section} ${target.name} ${merge}` } : {})}
    />
  );
}

function Content({ tab, selected, target }: { tab: InspectorTab; selected: Selection; target: Ref | null }) {
  if (tab === "schema") return <SchemaTab selected={selected} target={target} />;
  if (tab === "statistics") return <StatisticsTab name={selected.name} kind={selected.kind} />;
  if (tab === "story") return <StoryTab name={selected.name} />;
  if (tab === "qos" && target) return <Qos target={target} />;
  return target ? <ParametersTab target={target} /> : null;
}

function Selected({ selected }: { selected: Selection }) {
  const { inspectorTab, openInspector } = useUi();
  const reason = useEditReason();
  const target = refOf(selected);
  const names = tabsOf(selected);
  const tab = names.includes(inspectorTab) ? inspectorTab : (names[0] ?? "schema");
  const tabs: Tab<InspectorTab>[] = names.map((name) => ({ name, label: LABELS[name] }));
  const there = useDraft((state) => target === null || declared(state.draft, target) !== undefined);
  if (!there && selected.kind === "group")
    return (
      <div className="panel-body">
        <p className="muted">The network is large and declares no groups: this one holds what leads to the output {selected.name}. Double-click it, or press Enter, to go into it.</p>
      </div>
    );
  if (!there) return <p className="muted panel-body">{selected.name} is not in the draft.</p>;
  return (
    <>
      <div className="inspector-head">
        <span className="inspector-kind">{selected.kind}</span>
        {target ? <NameField target={target} /> : <strong className="mono">{selected.name}</strong>}
        <Button look="quiet" icon="trash" aria-label="Remove" title="Remove (Delete)" reason={reason} onClick={removeSelected} />
      </div>
      {selected.kind === "arc" && <ArcSummary arc={selected.name} />}
      <Tabs label="Inspector" tabs={tabs} current={tab} onChange={openInspector} />
      <div className="panel-body" key={`${selected.kind} ${selected.name} ${tab}`} role="tabpanel" aria-label={LABELS[tab]}>
        <Boundary label={LABELS[tab].toLowerCase()}>
          <Suspense fallback={null}>
            <Content tab={tab} selected={selected} target={target} />
          </Suspense>
        </Boundary>
      </div>
    </>
  );
}

/** Right of the canvas: everything about what is selected. */
export function Inspector() {
  const { selected, inspectorOpen, toggle } = useUi();
  if (!inspectorOpen)
    return (
      <aside className="inspector closed">
        <Button look="quiet" icon="info" aria-label="Show the inspector" title="Show the inspector" onClick={() => toggle("inspectorOpen")} />
      </aside>
    );
  return (
    <aside className="inspector" aria-label="Inspector" data-testid="inspector">
      {selected ? (
        <Selected selected={selected} />
      ) : (
        <>
          <div className="inspector-head">
            <span className="inspector-kind">network</span>
          </div>
          <div className="panel-body">
            <NetworkForm />
          </div>
        </>
      )}
      <Button look="quiet" className="inspector-close" icon="close" aria-label="Hide the inspector" title="Hide the inspector" onClick={() => toggle("inspectorOpen")} />
    </aside>
  );
}
