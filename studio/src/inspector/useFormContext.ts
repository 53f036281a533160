import { useMemo } from "react";

import type { Json } from "../api/types";
import { nodeId } from "../canvas/graph";
import { useModel } from "../canvas/model";
import type { Ref } from "../draft/document";
import { setKey, setTop, type Path } from "../draft/edits";
import { useDraft } from "../store/draft";
import { useEditReason, useSession } from "../store/session";
import { expressionWords, readableFields, sqlWords, type FormContext } from "./form/context";

const NONE: never[] = [];

/** What the form of a declaration, or of the engine's options, knows and changes. */
export function useFormContext(ref: Ref | "engine"): FormContext {
  const draft = useDraft((state) => state.draft);
  const report = useDraft((state) => state.report);
  const edit = useDraft((state) => state.edit);
  const schema = useSession((state) => state.schema);
  const functions = useSession((state) => state.functions);
  const readOnly = useEditReason() !== null;
  const id = ref === "engine" ? "" : nodeId(ref.section, ref.name);
  const problems = useModel((state) => state.problems.get(id)) ?? NONE;
  const section = ref === "engine" ? "engine" : ref.section;
  const name = ref === "engine" ? "" : ref.name;
  return useMemo(() => {
    const at = section === "engine" ? null : ({ section, name } as Ref);
    const fields = at ? readableFields(draft, report, at) : [];
    const queries = section === "outputs" ? Object.keys(draft.queries ?? {}) : [];
    const tables = Object.keys(draft.tables ?? {});
    const own = Object.keys(report?.arcs ?? {}).length ? Object.keys(report?.arcs ?? {}) : [...Object.keys(draft.streams ?? {}), ...Object.keys(draft.boxes ?? {})];
    const arcs = [...own, ...Object.keys(draft.connection_points ?? {}), ...queries, ...(section === "boxes" ? tables : [])].filter((arc) => arc !== name && !arc.startsWith(`${name}.`));
    return {
      root: schema,
      section,
      fields,
      arcs: [...new Set(arcs)],
      tables,
      expressionWords: expressionWords(fields, functions),
      sqlWords: sqlWords(draft, report, functions, fields),
      problems,
      readOnly,
      set: (path: Path, value: Json | undefined) =>
        edit((document) => (at ? setKey(document, at, path, value) : setTop(document, ["engine", ...path], value)), { merge: `${section} ${name} ${path.join(".")}` }),
    };
  }, [draft, report, edit, schema, functions, readOnly, problems, section, name]);
}
