import type { Declaration } from "../api/types";
import { useLive } from "../store/live";

/** The QoS graphs that hold for a running output, whoever set them; null if it has none of its own. */
export function useQos(output: string): Declaration | null {
  return useLive((state) => state.picture?.outputs[output]?.qos ?? null);
}
