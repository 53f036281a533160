/** The groups that the person has gone into, outermost first; the last is shown alone. */

import { create } from "zustand";

export const useFocus = create<{ path: string[] }>()(() => ({ path: [] }));

export const focus = (): string | null => useFocus.getState().path.at(-1) ?? null;
