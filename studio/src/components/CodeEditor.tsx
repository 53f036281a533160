import type { Completion } from "@codemirror/autocomplete";
import { Suspense } from "react";

import type { CodeEditorProps } from "./CodeEditorView";
import { onDemand } from "./onDemand";

export type { Completion };

// The editor is large, and the first view of the canvas does not need it.
const View = onDemand(() => import("./CodeEditorView").then((module) => module.CodeEditorView));

/** A small code editor: an expression of one line, SQL or YAML. */
export function CodeEditor(props: CodeEditorProps) {
  return (
    <Suspense fallback={<div className={`code-editor ${props.language}`} aria-busy="true" />}>
      <View {...props} />
    </Suspense>
  );
}
