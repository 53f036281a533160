import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap, type Completion, type CompletionContext } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { sql, StandardSQL } from "@codemirror/lang-sql";
import { yaml } from "@codemirror/lang-yaml";
import { bracketMatching, defaultHighlightStyle, HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { linter, type Diagnostic } from "@codemirror/lint";
import { Compartment, EditorState, type Extension } from "@codemirror/state";
import { EditorView, keymap, placeholder as placeholderText } from "@codemirror/view";
import { useEffect, useRef } from "react";

export type CodeEditorProps = {
  label: string;
  value: string;
  onChange: (value: string) => void;
  language: "expression" | "sql" | "yaml";
  completions?: Completion[];
  diagnostics?: Diagnostic[];
  readOnly?: boolean;
  placeholder?: string;
  testId?: string;
  /** Enter in an editor of one line. */
  onEnter?: () => void;
};

const THEME = EditorView.theme({
  "&": { backgroundColor: "var(--surface)", color: "var(--text)", fontSize: "12px" },
  "&.cm-focused": { outline: "none" },
  ".cm-content": { fontFamily: "var(--mono)", caretColor: "var(--text)", padding: "5px 0" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-placeholder": { color: "var(--muted)" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--accent-soft) !important" },
  ".cm-tooltip": { backgroundColor: "var(--surface)", color: "var(--text)", border: "1px solid var(--line)" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--accent-text)" },
  ".cm-completionDetail": { color: "var(--muted)", fontStyle: "normal" },
  "li[aria-selected] .cm-completionDetail": { color: "inherit" },
});

/** Colour means state: code is told apart by weight and shade, and only what is no code has a colour. */
const SHADES: Record<string, { color: string; fontWeight?: string }> = {
  "#708": { color: "var(--text)", fontWeight: "600" },
  "#00f": { color: "var(--muted)" },
  "#00c": { color: "var(--muted)" },
  "#940": { color: "var(--muted)" },
  "#f00": { color: "var(--bad)" },
};

/** The default highlighting in shades that have enough contrast in both themes. */
const LOOK = HighlightStyle.define(
  defaultHighlightStyle.specs.map((spec) => {
    const colour: unknown = spec.color;
    return typeof colour === "string" ? { ...spec, ...(SHADES[colour] ?? { color: "var(--text)" }) } : spec;
  }),
);

/** Newlines become spaces in an editor of one line. */
const ONE_LINE = EditorState.transactionFilter.of((change) => {
  if (!change.docChanged || change.newDoc.lines === 1) return change;
  const text = change.newDoc.toString().replace(/\s*\n\s*/g, " ");
  return [{ changes: { from: 0, to: change.startState.doc.length, insert: text }, selection: { anchor: Math.min(change.newSelection.main.head, text.length) } }];
});

/**
 * The source stays the same while options change: another one would close the list under the pointer.
 * In YAML a line ends with a word that is complete: it is not offered again, so that Enter begins the next line.
 */
function complete(options: () => Completion[], lines: boolean) {
  return (context: CompletionContext) => {
    const word = context.matchBefore(/[\w.#]+/);
    if (!word && !context.explicit) return null;
    const found = options();
    const isWhole = (text: string) => lines && found.some((each) => each.label === text);
    const offered = word && isWhole(word.text) ? found.filter((each) => each.label !== word.text) : found;
    return { from: word?.from ?? context.pos, options: offered, validFor: (text: string) => /^[\w.#]*$/.test(text) && !isWhole(text) };
  };
}

const fresh = (diagnostics: Diagnostic[], readOnly: boolean, placeholder = ""): Extension[] => [
  placeholder ? placeholderText(placeholder) : [],
  linter((view) => diagnostics.filter((each) => each.to <= view.state.doc.length), { delay: 0 }),
  EditorState.readOnly.of(readOnly),
];

const NONE: never[] = [];

/** A small code editor: an expression of one line, SQL or YAML. */
export function CodeEditorView({ label, value, onChange, language, completions = NONE, diagnostics = NONE, readOnly = false, placeholder, testId, onEnter }: CodeEditorProps) {
  const box = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const changing = useRef(new Compartment());
  const latest = useRef({ value, onChange, onEnter, completions });
  useEffect(() => {
    latest.current = { value, onChange, onEnter, completions };
  });

  useEffect(() => {
    if (!box.current) return;
    const one = language === "expression";
    const enter = () => {
      latest.current.onEnter?.();
      // A new line of an editor of one line would become a space.
      return one || Boolean(latest.current.onEnter);
    };
    const made = new EditorView({
      parent: box.current,
      state: EditorState.create({
        doc: latest.current.value,
        extensions: [
          one ? ONE_LINE : [],
          history(),
          bracketMatching(),
          closeBrackets(),
          language === "yaml" ? yaml() : sql({ dialect: StandardSQL }),
          syntaxHighlighting(LOOK),
          keymap.of([{ key: "Enter", run: enter }, ...closeBracketsKeymap, ...completionKeymap, ...historyKeymap, ...defaultKeymap]),
          autocompletion({ override: [complete(() => latest.current.completions, language === "yaml")], icons: false }),
          changing.current.of(fresh([], true)),
          EditorView.lineWrapping,
          EditorView.contentAttributes.of({ "aria-label": label, ...(testId ? { "data-testid": testId } : {}) }),
          EditorView.updateListener.of((update) => {
            const text = update.state.doc.toString();
            if (update.docChanged && text !== latest.current.value) latest.current.onChange(text);
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
  }, [language, label, testId]);

  useEffect(() => {
    const editor = view.current;
    if (editor && editor.state.doc.toString() !== value)
      editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: value } });
  }, [value]);

  useEffect(() => {
    view.current?.dispatch({ effects: changing.current.reconfigure(fresh(diagnostics, readOnly, placeholder)) });
  }, [diagnostics, readOnly, placeholder, language, label]);

  return <div ref={box} className={`code-editor ${language} ${readOnly ? "read-only" : ""}`} />;
}
