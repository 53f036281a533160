import { expect, it } from "vitest";

import type { NetworkDocument } from "../api/types";
import { moveInto } from "./members";

const network: NetworkDocument = { network: "n", boxes: { a: { box: "map" }, b: { box: "map" } }, groups: { one: ["a"], two: { members: ["b"], description: "second" } } };

it("lets a box join a group and leave the one that it was in", () => {
  expect(moveInto(network, ["a"], "two").groups).toEqual({ two: { members: ["b", "a"], description: "second" } });
  expect(moveInto(network, ["a"], null).groups).toEqual({ two: { members: ["b"], description: "second" } });
});

it("takes the section away with the last group, and keeps what does not change", () => {
  expect(moveInto({ network: "n", groups: { one: ["a"] } }, ["a"], null)).toEqual({ network: "n" });
  expect(moveInto(network, ["b"], "two").groups?.one).toBe(network.groups?.one);
  expect(moveInto({ network: "n" }, ["a"], null)).toEqual({ network: "n" });
});
