/** Names of arcs. No other module takes them apart. */

/** The stream, box, query or point that feeds an arc; for a box in an instance, the instance. */
export function ownerOf(arc: string): string {
  const cut = arc.search(/[./]/);
  return cut < 0 ? arc : arc.slice(0, cut);
}

/** What an arc's name says after its owner, such as `.rest` or `/across.rest`. */
export const suffixOf = (arc: string): string => arc.slice(ownerOf(arc).length);

/** The port of an arc: "" for the plain one. */
export function portOf(arc: string): string {
  const cut = arc.lastIndexOf(".");
  return cut < 0 ? "" : arc.slice(cut + 1);
}

export const arcOf = (owner: string, port: string): string => (port ? `${owner}.${port}` : owner);
