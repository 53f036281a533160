import { useMemo } from "react";

import { CodeEditor } from "../components/CodeEditor";
import { expressionWords } from "../inspector/form/context";
import { useDeployed } from "../store/deployed";
import { useSession } from "../store/session";

type Props = { arc: string; label: string; placeholder: string; value: string; onChange: (value: string) => void; onEnter: () => void; testId: string };

/** A SQL condition over the tuples of an arc that runs; it completes fields and functions. */
export function ConditionEditor({ arc, ...rest }: Props) {
  const fields = useDeployed((state) => state.check?.arcs[arc]?.fields);
  const functions = useSession((state) => state.functions);
  const words = useMemo(() => expressionWords(fields ?? [], functions), [fields, functions]);
  return <CodeEditor language="expression" completions={words} {...rest} />;
}
