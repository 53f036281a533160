import type { KeyboardEvent, ReactNode } from "react";

export type Tab<Name extends string> = { name: Name; label: ReactNode; reason?: string };
type Props<Name extends string> = {
  label: string;
  tabs: Tab<Name>[];
  current: Name;
  onChange: (name: Name) => void;
};

/** A row of tabs; arrow keys move between them. */
export function Tabs<Name extends string>({ label, tabs, current, onChange }: Props<Name>) {
  const move = (event: KeyboardEvent<HTMLDivElement>) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    const at = tabs.findIndex((tab) => tab.name === current);
    const next = tabs[(at + step + tabs.length) % tabs.length];
    if (!next) return;
    onChange(next.name);
    event.currentTarget.querySelector<HTMLElement>(`[data-tab="${next.name}"]`)?.focus();
  };
  return (
    <div className="tabs" role="tablist" aria-label={label} onKeyDown={move}>
      {tabs.map((tab) => (
        <button
          key={tab.name}
          type="button"
          role="tab"
          data-tab={tab.name}
          data-testid={`tab-${tab.name}`}
          aria-selected={tab.name === current}
          tabIndex={tab.name === current ? 0 : -1}
          onClick={() => onChange(tab.name)}
        >
          {tab.label}
        </button>
      ))}
    </div>
  );
}
