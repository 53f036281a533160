import { freeName } from "../draft/document";
import { put } from "../draft/edits";
import { useDraft } from "../store/draft";
import { useSession } from "../store/session";
import { useUi } from "../store/ui";

/** Put a connection point on an arc of the draft, to be deployed. */
export function keepArc(arc: string): void {
  const { draft, edit } = useDraft.getState();
  const name = freeName(draft, "connection_points", `recent_${arc}`);
  const starter = useSession.getState().palette.find((entry) => entry.section === "connection_points")?.starter ?? {};
  edit((document) => put(document, { section: "connection_points", name }, { ...starter, on: arc }));
  const { select, ask, tell } = useUi.getState();
  select({ kind: "point", name });
  ask({ kind: "center", node: name });
  tell(`The connection point ${name} is in your draft. Deploy it, then ask ${name}.`, "ok");
}
