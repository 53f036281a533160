import type { CheckReport, Declaration } from "../api/types";
import { asObject } from "../draft/document";
import { useDeployed } from "../store/deployed";
import { useDraft } from "../store/draft";
import { isNumeric } from "../watch/rows";

const NONE: string[] = [];

function fieldsOf(report: CheckReport | null, from: string) {
  return report?.arcs[from]?.fields ?? report?.queries[from];
}

/** The fields with numbers of an output or view, in the draft or else as it runs. */
export function useNumericFields(output: string): string[] {
  const drafted = useDraft((state) => sourceOf(state.draft.outputs?.[output] ?? state.draft.views?.[output]));
  const running = useDeployed((state) => sourceOf(state.network?.outputs?.[output] ?? state.network?.views?.[output]));
  const draft = useDraft((state) => (drafted === null ? undefined : fieldsOf(state.report, drafted)));
  const deployed = useDeployed((state) => (running === null ? undefined : fieldsOf(state.check, running)));
  return (draft ?? deployed)?.filter((field) => isNumeric(field.type)).map((field) => field.name) ?? NONE;
}

function sourceOf(declared: unknown): string | null {
  const { from } = asObject("outputs", declared as Declaration);
  return typeof from === "string" ? from : null;
}
