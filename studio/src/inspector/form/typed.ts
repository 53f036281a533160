import { useState } from "react";

import type { Json } from "../../api/types";
import { same } from "../../draft/diff";

type Parse = (text: string) => Json | undefined;

const NUMBER = /^-?(\d+\.?\d*|\.\d+)$/;

/** A number if it is one, else the text; `1.` is 1. */
export const scalarOf: Parse = (text) => (text === "" ? undefined : NUMBER.test(text.trim()) ? Number(text) : text);

/** A number, or nothing. */
export const numberOf: Parse = (text) => (text.trim() === "" || !Number.isFinite(Number(text)) ? undefined : Number(text));

/** What a control shows: what is typed while it means the value, so that `1.0` can become `1.05`; else the value. */
export function textShown(typed: string | null, value: Json | undefined, parse: Parse): string {
  if (typed !== null && same(parse(typed) ?? null, value ?? null)) return typed;
  return value === undefined || value === null ? "" : String(value);
}

/** The text of a control whose value is parsed from it. */
export function useTyped(value: Json | undefined, parse: Parse, set: (value: Json | undefined) => void) {
  const [typed, setTyped] = useState<string | null>(null);
  const change = (text: string) => {
    setTyped(text);
    set(parse(text));
  };
  return { text: textShown(typed, value, parse), change, leave: () => setTyped(null) };
}
