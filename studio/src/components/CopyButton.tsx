import { useEffect, useState } from "react";

import { Button } from "./Button";
import { copyText } from "./copyText";

const SHOWN_MS = 2000;

type Props = {
  label: string;
  /** What is copied; null: there is nothing, and `reason` says why. */
  text: string | null;
  reason: string;
};

/** Copies a text and says for a moment whether that went well. */
export function CopyButton({ label, text, reason }: Props) {
  const [said, setSaid] = useState<{ word: string } | null>(null);
  useEffect(() => {
    if (!said) return;
    const timer = setTimeout(() => setSaid(null), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [said]);
  const copy = async () => {
    if (text === null) return;
    setSaid({ word: (await copyText(text)) ? "Copied" : "Not allowed" });
  };
  return (
    <Button reason={text === null ? reason : null} onClick={() => void copy()}>
      <span aria-live="polite" style={{ minWidth: `${label.length}ch` }}>
        {said?.word ?? label}
      </span>
    </Button>
  );
}
