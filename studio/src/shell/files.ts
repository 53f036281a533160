/** The network as a file of the person's own machine. */

import { networkYaml } from "../draft/yaml";
import { useDraft } from "../store/draft";

export function downloadText(name: string, text: string, type: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}

export function downloadNetwork(): void {
  const { draft } = useDraft.getState();
  downloadText(`${draft.network}.yaml`, networkYaml(draft), "application/yaml");
}
