import { describe, expect, it } from "vitest";

import { numberOf, scalarOf, textShown } from "./typed";

/** What a control shows after each letter, and its value at the end. */
function typing(letters: string, parse: typeof scalarOf) {
  let text = "";
  let value: ReturnType<typeof scalarOf>;
  for (const letter of letters) {
    const typed = text + letter;
    value = parse(typed);
    text = textShown(typed, value, parse);
  }
  return { text, value };
}

describe("a number that is typed letter by letter", () => {
  it.each(["1.05", "10.00", "-0.5", ".25"])("%s stays as it is typed", (written) => {
    for (const parse of [scalarOf, numberOf]) expect(typing(written, parse)).toEqual({ text: written, value: Number(written) });
  });

  it("is a text if it is no number", () => {
    expect(typing("10 minutes", scalarOf)).toEqual({ text: "10 minutes", value: "10 minutes" });
    expect(scalarOf("")).toBeUndefined();
  });

  it("gives way to a value from elsewhere", () => {
    expect(textShown("1.0", 2, scalarOf)).toBe("2");
    expect(textShown("1.0", undefined, scalarOf)).toBe("");
  });
});
