import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, it } from "vitest";

import type { ServerInfo } from "../api/types";
import { focus, useFocus } from "../canvas/focus";
import { useModel } from "../canvas/model";
import { useDraft } from "../store/draft";
import { useSession } from "../store/session";
import { useUi } from "../store/ui";
import { Bookmarks } from "./Bookmarks";

const group = (id: string) => ({ id, name: id, title: id, declared: true, members: 1 });

beforeEach(() => {
  useSession.setState({ server: { role: "editor" } as ServerInfo });
  useModel.setState({ grouping: { groups: new Map([["outer", group("outer")], ["inner", group("inner")]]), parent: new Map([["inner", "outer"]]) } });
  useFocus.setState({ path: [] });
  const bookmarks = [
    { name: "all", x: 0, y: 0, zoom: 1 },
    { name: "deep", x: 5, y: 6, zoom: 2, group: "inner" },
    { name: "gone", x: 1, y: 1, zoom: 1, group: "removed" },
  ];
  useDraft.setState({ layout: { positions: {}, open: {}, bookmarks } });
});
afterEach(cleanup);

it("returns to the place and to the group that was shown alone", () => {
  render(<Bookmarks />);
  fireEvent.click(screen.getByText("deep"));
  expect(useFocus.getState().path).toEqual(["outer", "inner"]);
  expect(useUi.getState().view).toMatchObject({ kind: "goto", x: 5, y: 6, zoom: 2 });
  fireEvent.click(screen.getByText("all"));
  expect(focus()).toBeNull();
  fireEvent.click(screen.getByText("gone"));
  expect(focus()).toBeNull();
});
