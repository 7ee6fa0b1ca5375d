/* format.ts - numbers, times and label sets as people read them. Everything here is text. */

export type Labels = Record<string, string>;

export function seriesName(labels: Labels): string {
  const { __name__: name = "", ...others } = labels;
  const pairs = Object.entries(others).map(([key, value]) => key + "=" + JSON.stringify(value));
  return pairs.length || !name ? name + "{" + pairs.join(", ") + "}" : name;
}

/* A megabyte of label value is no text for a row. */
export function short(text: string, max = 300): string {
  return text.length > max ? text.slice(0, max) + "… (" + text.length + " characters)" : text;
}

const UNITS = ["", "k", "M", "G", "T", "P"];
export function number(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e18)) return value.toExponential(3);
  const power = size < 1000 ? 0 : Math.min(5, Math.floor(Math.log10(size) / 3));
  const scaled = value / 1000 ** power;
  return parseFloat(scaled.toPrecision(power ? 4 : 6)) + UNITS[power];
}

export function bytes(value: number): string {
  if (value < 1024) return value + " B";
  const power = Math.min(4, Math.floor(Math.log2(value) / 10));
  return (value / 1024 ** power).toPrecision(3) + " " + ["", "KiB", "MiB", "GiB", "TiB"][power];
}

export function micros(us: number): string {
  if (us < 1000) return Math.round(us) + " µs";
  if (us < 1e6) return (us / 1e3).toPrecision(3) + " ms";
  return (us / 1e6).toPrecision(3) + " s";
}

const DURATION = /^(\d+(?:\.\d+)?)(ms|s|m|h|d|w|y)/;
const MS: Record<string, number> = { ms: 1, s: 1e3, m: 6e4, h: 36e5, d: 864e5, w: 6048e5, y: 31536e6 };
/* Milliseconds of "1h30m" or of seconds; NaN if it is neither. */
export function parseDuration(text: string): number {
  let rest = text.trim(), sum = 0;
  if (/^\d+(\.\d+)?$/.test(rest)) return parseFloat(rest) * 1000;
  if (!rest) return NaN;
  while (rest) {
    const found = DURATION.exec(rest);
    if (!found) return NaN;
    sum += parseFloat(found[1]) * MS[found[2]];
    rest = rest.slice(found[0].length);
  }
  return sum;
}
export function duration(ms: number): string {
  let rest = Math.round(ms), text = "";
  for (const unit of ["w", "d", "h", "m", "s", "ms"]) {
    const count = Math.floor(rest / MS[unit]);
    if (count) text += count + unit;
    rest -= count * MS[unit];
  }
  return text || "0s";
}

/* 24-hour clock, in the zone chosen: "local", "utc" or a name like Europe/Berlin. */
const ZONE = "promfabric.zone";
let chosen = readZone();
function readZone(): string {
  const name = localStorage.getItem(ZONE) ?? "local";
  return name === "local" || name === "utc" || zones().includes(name) ? name : "local";
}
export function zones(): string[] {
  return (Intl as unknown as { supportedValuesOf?: (key: string) => string[] }).supportedValuesOf?.("timeZone") ?? [];
}
export function zone(): string {
  return chosen;
}
/* The zone as the browser knows it. */
export function zoneName(): string {
  return chosen === "utc" ? "Etc/UTC" : chosen === "local" ? Intl.DateTimeFormat().resolvedOptions().timeZone : chosen;
}
let parts: Intl.DateTimeFormat | null = null;
export function setZone(value: string) {
  localStorage.setItem(ZONE, value);
  chosen = readZone();
  parts = null;
}
function formatter(): Intl.DateTimeFormat {
  return (parts ??= new Intl.DateTimeFormat("en-CA", { timeZone: zoneName(), hourCycle: "h23", year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit" }));
}
export function time(ms: number): string {
  if (!(Math.abs(ms) < 8.64e15)) return "?";
  const of: Record<string, string> = {};
  for (const { type, value } of formatter().formatToParts(ms)) of[type] = value;
  return `${of.year}-${of.month}-${of.day} ${of.hour}:${of.minute}:${of.second}` + (chosen === "utc" ? "Z" : "");
}
/* Without the day, where a row says it already. */
export function clock(ms: number): string {
  return time(ms).slice(11);
}
/* What time() writes and what Prometheus's links have (UTC without a zone); NaN if it is neither. */
export function parseTime(text: string, utc = false): number {
  const found = /^(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d(?::\d\d)?(?:\.\d+)?)(Z?)$/.exec(text.trim());
  if (!found) return /^\d+(\.\d+)?$/.test(text.trim()) ? parseFloat(text) * 1000 : NaN;
  const there = Date.parse(found[1] + "T" + found[2] + "Z");
  if (found[3] || utc || chosen === "utc" || Number.isNaN(there)) return there;
  /* How far the zone is from UTC depends on the time: from a first guess to the right one. */
  const ahead = (ms: number) => Date.parse(time(ms).replace(" ", "T") + "Z") - Math.floor(ms / 1000) * 1000;
  const guess = there - ahead(there);
  return there - ahead(guess);
}

/* Positions of the API are bytes of UTF-8. */
export function byteSlice(text: string, start: number, end: number): string {
  return new TextDecoder().decode(new TextEncoder().encode(text).slice(start, end));
}

export function counted(count: number, noun: string): string {
  return count + " " + noun + (count === 1 || noun.endsWith("s") ? "" : "s");
}
