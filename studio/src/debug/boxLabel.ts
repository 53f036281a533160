/** The name of a box of a trace for people: `eddy@S` is what all shared queries over S run in. */
export function boxLabel(box: string): string {
  return box.startsWith("eddy@") ? `queries over ${box.slice(5)}` : box;
}
