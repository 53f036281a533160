import type { Declaration } from "../api/types";
import { declaredOutput, useDeployed } from "../store/deployed";

/** The QoS graphs that hold for an output now; null if it has none of its own. */
export function useQos(output: string): Declaration | null {
  return useDeployed((state) => {
    if (output in state.qosSet) return state.qosSet[output] ?? null;
    const qos = declaredOutput(state.network, output)?.qos;
    return qos && typeof qos === "object" && !Array.isArray(qos) ? qos : null;
  });
}
