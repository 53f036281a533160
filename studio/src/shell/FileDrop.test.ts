import { beforeEach, expect, it } from "vitest";

import { useUi } from "../store/ui";
import { offerFile } from "./FileDrop";

const file = (name: string, text: string) => ({ name, text: () => Promise.resolve(text) }) as File;

beforeEach(() => useUi.setState({ csv: null, imported: null, message: null }));

it("offers rows as a stream, and a network as an import", async () => {
  await offerFile(file("rows.2026.csv", "a,b\n1,2"));
  expect(useUi.getState()).toMatchObject({ csv: { name: "rows.2026", text: "a,b\n1,2" }, imported: null });
  useUi.setState({ csv: null });
  for (const name of ["plant.yaml", "plant.YML", "plant.json"]) {
    await offerFile(file(name, "network: plant"));
    expect(useUi.getState()).toMatchObject({ csv: null, imported: "network: plant" });
    useUi.setState({ imported: null });
  }
});

it("says that an empty file is empty", async () => {
  await offerFile(file("plant.yaml", " \n"));
  expect(useUi.getState()).toMatchObject({ imported: null, message: "plant.yaml is empty." });
});
