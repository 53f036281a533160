import { describe, expect, it } from "vitest";

import type { Picture } from "../api/types";
import { completePicture } from "./complete";

describe("completePicture", () => {
  it("puts null where a patch could not carry it", () => {
    const sparse = { outputs: { alerts: { out: 3 } }, debug: { paused: true } } as unknown as Picture;
    const found = completePicture(sparse);
    expect(found.outputs.alerts).toMatchObject({ out: 3, latency_s: null, failed: null });
    expect(found.utility).toBeNull();
    expect(found.debug).toEqual({ paused: true, hit: null });
    expect(found.arcs).toEqual({});
  });

  it("keeps the identity of what lacks nothing", () => {
    const once = completePicture({ arcs: { a: { rate: 1 } }, debug: {} } as unknown as Picture);
    const again = completePicture(once);
    expect(again.arcs).toBe(once.arcs);
    expect(again.debug).toBe(once.debug);
  });
});
