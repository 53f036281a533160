/** The question of the SQL panel; it stays while other panels are open. */

import { create } from "zustand";

import type { Table } from "../api/types";

type Asked = {
  text: string;
  /** The latest answer of a query that was run once. */
  table: Table | null;
  /** The query that `table` answers. */
  asked: string;
  seconds: number | null;
  /** An attached query whose rows are shown instead. */
  attached: string | null;
};

export const useSql = create<Asked>()(() => ({ text: "", table: null, asked: "", seconds: null, attached: null }));
