/** The network that runs, with the fields of its arcs; loaded again whenever its version changes. */

import { create } from "zustand";

import { api } from "../api/client";
import type { CheckReport, Declaration, NetworkDocument } from "../api/types";
import { liveStore } from "./live";

type DeployedState = {
  network: NetworkDocument | null;
  check: CheckReport | null;
};

export const useDeployed = create<DeployedState>()(() => ({ network: null, check: null }));

let version: string | null = null;

async function load(wanted: string): Promise<void> {
  version = wanted;
  try {
    const { network } = await api.network();
    if (version === wanted) useDeployed.setState({ network });
    const check = await api.check(network);
    if (version === wanted) useDeployed.setState({ check });
  } catch {
    if (version === wanted) version = null; // the next picture tries again
  }
}

liveStore.subscribe((state) => {
  const wanted = state.picture?.network;
  if (wanted !== undefined && wanted !== version) void load(wanted);
});

/** The declaration of an output in the network that runs. */
export function declaredOutput(network: NetworkDocument | null, output: string): Declaration | null {
  const found = network?.outputs?.[output];
  return found && typeof found === "object" && !Array.isArray(found) ? found : null;
}
