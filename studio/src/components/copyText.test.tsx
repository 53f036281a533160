import { act, cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { CopyButton } from "./CopyButton";

const clipboard = (found: unknown) => Object.defineProperty(navigator, "clipboard", { value: found, configurable: true });
const press = async () => {
  fireEvent.click(screen.getByRole("button"));
  await act(async () => vi.advanceTimersByTimeAsync(0));
};

beforeEach(() => {
  vi.useFakeTimers();
  document.execCommand = vi.fn(() => true);
});
afterEach(() => {
  cleanup();
  vi.useRealTimers();
});

it("copies by the clipboard and says so for a moment", async () => {
  const writeText = vi.fn(() => Promise.resolve());
  clipboard({ writeText });
  render(<CopyButton label="Copy JSON" text="{}" reason="" />);
  await press();
  expect(writeText).toHaveBeenCalledWith("{}");
  expect(screen.getByText("Copied")).toBeTruthy();
  await act(async () => vi.advanceTimersByTimeAsync(2000));
  expect(screen.getByText("Copy JSON")).toBeTruthy();
});

it("copies where there is no clipboard, as over plain HTTP", async () => {
  clipboard(undefined);
  let copied = "";
  document.execCommand = vi.fn(() => {
    copied = document.querySelector("textarea")?.value ?? "";
    return true;
  });
  render(<CopyButton label="Copy JSON" text='{"a":1}' reason="" />);
  await press();
  expect(copied).toBe('{"a":1}');
  expect(document.querySelector("textarea")).toBeNull();
  expect(screen.getByText("Copied")).toBeTruthy();
});

it("says so if the browser does not let it", async () => {
  clipboard({ writeText: () => Promise.reject(new Error("denied")) });
  document.execCommand = vi.fn(() => false);
  render(<CopyButton label="Copy JSON" text="{}" reason="" />);
  await press();
  expect(screen.getByText("Not allowed")).toBeTruthy();
});
