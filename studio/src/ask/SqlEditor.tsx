import { autocompletion, closeBrackets, closeBracketsKeymap, completeFromList, completionKeymap, ifNotIn } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { sql, StandardSQL, type SQLNamespace } from "@codemirror/lang-sql";
import { bracketMatching, HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { Compartment, EditorState, Prec } from "@codemirror/state";
import { EditorView, keymap, placeholder } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "react";

import type { SqlFunction } from "../store/session";

type Props = {
  label: string;
  value: string;
  /** Names with their fields, for completion. */
  schema: Record<string, string[]>;
  functions: SqlFunction[];
  onChange: (value: string) => void;
  /** Control+Enter. */
  onRun: () => void;
};

const THEME = EditorView.theme({
  "&": { height: "100%", backgroundColor: "var(--surface)", color: "var(--text)", fontSize: "12px" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "-2px" },
  ".cm-content": { fontFamily: "var(--mono)", caretColor: "var(--text)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-placeholder": { color: "var(--muted)" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--accent-soft)" },
  ".cm-tooltip": { backgroundColor: "var(--surface)", color: "var(--text)", border: "1px solid var(--line)" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--accent-text)" },
});

/** Weight and slant instead of colour, which means state. */
const HIGHLIGHT = HighlightStyle.define([
  { tag: tags.keyword, fontWeight: "600" },
  { tag: [tags.string, tags.number], color: "var(--accent)" },
  { tag: tags.comment, color: "var(--muted)", fontStyle: "italic" },
]);

const language = (schema: SQLNamespace, functions: SqlFunction[]) => [
  sql({ dialect: StandardSQL, schema, upperCaseKeywords: true }),
  StandardSQL.language.data.of({
    autocomplete: ifNotIn(["String", "LineComment", "BlockComment"], completeFromList(functions.map(({ name, signature }) => ({ label: name, detail: signature, apply: `${name}(`, type: "function" })))),
  }),
];

/** A SQL editor that completes names and fields. */
export function SqlEditor({ label, value, schema, functions, onChange, onRun }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const known = useRef(new Compartment());
  const calls = useRef({ onChange, onRun });
  useEffect(() => {
    calls.current = { onChange, onRun };
  });
  const start = useRef(value);

  useEffect(() => {
    if (!box.current) return;
    const run = () => {
      calls.current.onRun();
      return true;
    };
    const made = new EditorView({
      parent: box.current,
      state: EditorState.create({
        doc: start.current,
        extensions: [
          Prec.highest(keymap.of([{ key: "Mod-Enter", run }])),
          history(),
          bracketMatching(),
          closeBrackets(),
          autocompletion(),
          known.current.of(language({}, [])),
          syntaxHighlighting(HIGHLIGHT),
          keymap.of([...closeBracketsKeymap, ...completionKeymap, ...historyKeymap, ...defaultKeymap]),
          placeholder("SELECT … FROM a connection point, a view or a table"),
          EditorView.lineWrapping,
          EditorView.contentAttributes.of({ "aria-label": label }),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) calls.current.onChange(update.state.doc.toString());
          }),
          THEME,
        ],
      }),
    });
    view.current = made;
    return () => {
      view.current = null;
      made.destroy();
    };
  }, [label]);

  useEffect(() => {
    view.current?.dispatch({ effects: known.current.reconfigure(language(schema, functions)) });
  }, [schema, functions]);

  useEffect(() => {
    const now = view.current;
    if (now && now.state.doc.toString() !== value)
      now.dispatch({ changes: { from: 0, to: now.state.doc.length, insert: value } });
  }, [value]);

  return <div className="sql-editor" ref={box} data-testid="sql-editor" />;
}
