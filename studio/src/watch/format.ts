/** Figures as short text that does not jump: at most three digits, one unit. */

import type { Json } from "../api/types";

export const NONE = "–";
const PREFIXES: [number, string][] = [
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
];

/** Three digits: 1.23 → "1.2", 12.34 → "12.3", 123.4 → "123". */
function digits(value: number): string {
  const size = Math.abs(value);
  return size >= 99.95 || Number.isInteger(value) ? String(Math.round(value)) : value.toFixed(1);
}

/** A number with a prefix: "312", "12.4 k", "1.3 M". */
export function count(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return NONE;
  const size = Math.abs(value);
  for (const [unit, prefix] of PREFIXES)
    if (size >= unit * 0.99995) return `${(value / unit).toFixed(size / unit >= 99.95 ? 0 : 1)} ${prefix}`;
  return digits(value);
}

/** Tuples per second: "0/s", "3.2/s", "12.4 k/s". */
export function rate(value: number | null | undefined): string {
  if (value !== null && value !== undefined && value > 0 && value < 0.05) return "<0.1/s";
  const text = count(value);
  return text === NONE ? NONE : `${text}/s`;
}

/** Seconds: "120 µs", "3.4 ms", "1.2 s", "2.5 min", "3.1 h", "2.0 d". */
export function duration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return NONE;
  const size = Math.abs(seconds);
  if (size === 0) return "0 s";
  if (size < 1e-6) return "<1 µs";
  if (size < 0.9995e-3) return `${digits(seconds * 1e6)} µs`;
  if (size < 0.9995) return `${digits(seconds * 1e3)} ms`;
  if (size < 99.95) return `${seconds.toFixed(1)} s`;
  if (size < 5970) return `${digits(seconds / 60)} min`;
  if (size < 171_000) return `${digits(seconds / 3600)} h`;
  return `${digits(seconds / 86_400)} d`;
}

/** A share as per cent, a ratio above one as a factor: "97 %", "0.3 %", "×3.2". */
export function share(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return NONE;
  if (value > 1.005) return `×${count(value)}`;
  const percent = value * 100;
  if (percent > 0 && percent < 0.1) return "<0.1 %";
  return percent > 0 && percent < 9.95 ? `${percent.toFixed(1)} %` : `${Math.round(percent)} %`;
}

/** A share as an axis needs it: "0.04 %" is not "<0.1 %". */
export function fineShare(value: number | null | undefined): string {
  return typeof value === "number" && value > 0 && value < 0.001 ? `${Number((value * 100).toPrecision(2))} %` : share(value);
}

/** Bytes: "512 B", "1.2 kB", "3.4 GB". */
export function bytes(value: number | null | undefined): string {
  const text = count(value);
  return text === NONE ? NONE : /[a-zA-Z]$/.test(text) ? `${text}B` : `${text} B`;
}

/** Utility within [0, 1]: "0.93"; never rounded up to 1. */
export function utility(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return NONE;
  return value >= 1 ? "1.00" : (Math.floor(value * 100) / 100).toFixed(2);
}

/** How long ago: "now", "12 s ago", "3 min ago". */
export function ago(seconds: number): string {
  if (seconds < 1.5) return "now";
  if (seconds < 99.5) return `${Math.round(seconds)} s ago`;
  if (seconds < 5970) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 171_000) return `${Math.round(seconds / 3600)} h ago`;
  return `${Math.round(seconds / 86_400)} d ago`;
}

/** The time of day: "14:03:09". */
export function timeOfDay(us: number): string {
  const at = new Date(us / 1000);
  return [at.getHours(), at.getMinutes(), at.getSeconds()]
    .map((part) => String(part).padStart(2, "0"))
    .join(":");
}

/** A value of a tuple, in one line, with all of its digits. */
export function exact(found: Json | undefined): string {
  if (found === null || found === undefined) return "null";
  return typeof found === "object" ? JSON.stringify(found) : String(found);
}

/** A number with about six digits, but never without those before the point. */
function rounded(number: number): number {
  const size = Math.abs(number);
  if (Number.isInteger(number) || !Number.isFinite(number)) return number;
  return size < 1e-4 ? Number(number.toPrecision(6)) : Number(number.toFixed(Math.max(1, 5 - Math.floor(Math.log10(size)))));
}

/** A value of a tuple, in one line, as it is read in a table. */
export function value(found: Json | undefined): string {
  return exact(typeof found === "number" ? rounded(found) : found);
}

/** Many values in one line: "ts ≥ 2026-01-01T08:00:00Z". */
export function marks(mark: Record<string, Json>): string {
  return Object.entries(mark)
    .map(([field, at]) => `${field} ≥ ${value(at)}`)
    .join(", ");
}

/** "1 tuple", "3 tuples". */
export function plural(number: number, one: string, many = `${one}s`): string {
  return `${number === 1 ? "1" : count(number)} ${number === 1 ? one : many}`;
}
