/** Which arcs a SQL text reads: enough for drawing and renaming; the server's check is the judge. */

type Token = { text: string; start: number; kind: "word" | "quoted" | "other" };

const TOKEN = /'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|`[^`]*`|[A-Za-z_][A-Za-z0-9_]*|\[[^\]]*\]|\S/g;

function tokens(sql: string): Token[] {
  const found: Token[] = [];
  for (const match of sql.matchAll(TOKEN)) {
    const text = match[0];
    if (text.startsWith("--")) continue;
    const kind = text.startsWith("`") ? "quoted" : /^[A-Za-z_]/.test(text) ? "word" : "other";
    found.push({ text, start: match.index, kind });
  }
  return found;
}

const ENDS = new Set(["WHERE", "GROUP", "HAVING", "ORDER", "SELECT", "LIMIT", "UNION", "SET", "VALUES", "ON", "WINDOW"]);
const STARTS = new Set(["FROM", "JOIN", "INTO", "UPDATE"]);

type Source = { name: string; start: number; end: number; quoted: boolean };

/** Names in table position, with where they stand. */
export function sourcesOf(sql: string): Source[] {
  const all = tokens(sql);
  const found: Source[] = [];
  let inside = false;
  let expected = false;
  for (let at = 0; at < all.length; at += 1) {
    const token = all[at] as Token;
    const upper = token.kind === "word" ? token.text.toUpperCase() : "";
    if (STARTS.has(upper)) {
      inside = true;
      expected = true;
    } else if (ENDS.has(upper)) {
      inside = false;
      expected = false;
    } else if (inside && token.text === ",") expected = true;
    else if (expected && token.kind !== "other") {
      expected = false;
      if (token.kind === "quoted") {
        found.push({ name: token.text.slice(1, -1), start: token.start, end: token.start + token.text.length, quoted: true });
        continue;
      }
      let name = token.text;
      let end = token.start + name.length;
      const [dot, port] = [all[at + 1], all[at + 2]];
      if (dot?.text === "." && port?.kind === "word") {
        name += `.${port.text}`;
        end = port.start + port.text.length;
        at += 2;
      }
      found.push({ name, start: token.start, end, quoted: false });
    } else if (token.text !== "(") expected = false;
  }
  return found;
}

/** `sql` with `from` renamed: in table position, and where it qualifies a field. */
export function renameSource(sql: string, from: string, to: string): string {
  const all = tokens(sql);
  const isSource = sourcesOf(sql).some((source) => source.name === from || source.name.startsWith(`${from}.`) || source.name.startsWith(`${from}/`));
  if (!isSource) return sql;
  const starts = new Set(sourcesOf(sql).map((source) => source.start));
  let made = "";
  let last = 0;
  all.forEach((token, at) => {
    const before = all[at - 1]?.text;
    const bare = token.kind === "quoted" ? token.text.slice(1, -1) : token.text;
    const owner = bare.split(/[./]/)[0];
    const named = token.kind !== "other" && owner === from && before !== ".";
    if (!named || !(starts.has(token.start) || all[at + 1]?.text === ".")) return;
    const text = to + bare.slice(from.length);
    made += sql.slice(last, token.start) + (token.kind === "quoted" ? `\`${text}\`` : text);
    last = token.start + token.text.length;
  });
  return made + sql.slice(last);
}
