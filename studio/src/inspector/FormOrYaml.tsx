export type Mode = "form" | "yaml";

/** Which of the two views of a declaration is shown. */
export function FormOrYaml({ mode, onChange }: { mode: Mode; onChange: (mode: Mode) => void }) {
  return (
    <div className="segmented" role="group" aria-label="View">
      {(["form", "yaml"] as const).map((each) => (
        <button key={each} type="button" aria-pressed={mode === each} onClick={() => onChange(each)} data-testid={`mode-${each}`}>
          {each === "form" ? "Form" : "YAML"}
        </button>
      ))}
    </div>
  );
}
