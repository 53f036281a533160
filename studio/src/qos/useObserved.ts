import { useEffect, useMemo, useState } from "react";

import { api, ProblemError } from "../api/client";
import type { Json } from "../api/types";
import { useSample } from "../store/live";
import { NOTHING, observedOf, type Observed } from "./observed";

const EVERY_MS = 5000;

/** What was observed of a running output: delays of the last minutes, values of the latest tuples. */
export function useObserved(output: string, field: string): Observed {
  const [description, setDescription] = useState<{ [key: string]: Json } | null>(null);
  useEffect(() => {
    let wanted = true;
    const look = async () => {
      try {
        const found = await api.describe(output);
        if (wanted) setDescription(found);
      } catch (error) {
        // An output that is only in the draft has not been observed.
        if (!(error instanceof ProblemError)) throw error;
      }
    };
    void look();
    const timer = setInterval(() => void look(), EVERY_MS);
    return () => {
      wanted = false;
      clearInterval(timer);
    };
  }, [output]);
  const sample = useSample(field && description ? output : null, 500, null);
  return useMemo(() => {
    if (!description) return NOTHING;
    const column = sample?.table.fields.findIndex((one) => one.name === field) ?? -1;
    const values = column < 0 ? [] : (sample?.table.rows ?? []).map((row) => row[column]);
    return observedOf(
      description,
      values.filter((value): value is number => typeof value === "number"),
    );
  }, [description, sample, field]);
}
