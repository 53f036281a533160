import { useId, type ReactNode } from "react";

type Props = {
  label: string;
  /** What is wrong with the value, shown under it. */
  problem?: string | null;
  hint?: string;
  children: (id: string, describedBy: string | undefined) => ReactNode;
};

/** A labelled control; `children` gets the id of the label's target and of the description. */
export function Field({ label, problem, hint, children }: Props) {
  const id = useId();
  const note = problem ?? hint;
  return (
    <div className={`field ${problem ? "invalid" : ""}`}>
      <label htmlFor={id}>{label}</label>
      {children(id, note ? `${id}-note` : undefined)}
      {note && (
        <div id={`${id}-note`} className={problem ? "field-problem" : "field-hint"}>
          {note}
        </div>
      )}
    </div>
  );
}
