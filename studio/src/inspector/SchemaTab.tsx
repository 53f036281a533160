import type { ArcInfo } from "../api/types";
import { nodeId } from "../canvas/graph";
import { useModel } from "../canvas/model";
import { ownerOf } from "../draft/arcs";
import { asObject, declared, type Ref } from "../draft/document";
import { useDraft } from "../store/draft";
import type { Selection } from "../store/ui";
import { readArcs } from "./form/context";

function Fields({ title, info }: { title: string; info: ArcInfo | undefined }) {
  return (
    <section className="schema-arc">
      <h3 className="mono">{title}</h3>
      {info ? (
        <dl>
          {info.fields.map((field) => (
            <div key={field.name}>
              <dt className="mono">{field.name}</dt>
              <dd className="mono muted">
                {field.type}
                {info.progress.includes(field.name) && <span className="progress-mark"> progresses</span>}
              </dd>
            </div>
          ))}
        </dl>
      ) : (
        <p className="muted">Its fields are not known while there are problems before it.</p>
      )}
    </section>
  );
}

/** Fields of what goes in and what comes out. */
export function SchemaTab({ selected, target }: { selected: Selection; target: Ref | null }) {
  const report = useDraft((state) => state.report);
  const draft = useDraft((state) => state.draft);
  const graph = useModel((state) => state.graph);
  if (selected.kind === "arc") return <Fields title={selected.name} info={report?.arcs[selected.name]} />;
  const node = target ? graph.nodes.get(nodeId(target.section, target.name)) : undefined;
  const read = target ? readArcs(target, asObject(target.section, declared(draft, target))) : [];
  const query = selected.kind === "query" ? report?.queries[selected.name] : undefined;
  const ports = (node?.outputs ?? []).filter((port) => ownerOf(port.arc) === selected.name && selected.kind !== "query");
  return (
    <>
      {read.length > 0 && <h3 className="side-heading">In</h3>}
      {read.map(({ arc }, index) => (
        <Fields key={`${arc} ${index}`} title={arc || "not connected"} info={report?.arcs[arc]} />
      ))}
      {(ports.length > 0 || query) && <h3 className="side-heading">Out</h3>}
      {ports.map((port) => (
        <Fields key={port.arc} title={port.arc} info={report?.arcs[port.arc]} />
      ))}
      {query && <Fields title={selected.name} info={{ fields: query, progress: [] }} />}
    </>
  );
}
