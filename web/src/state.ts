/* state.ts - what the address says: tab, expressions, range. Links of Prometheus and Grafana too. */
import { duration, parseDuration, parseTime } from "./format";

export const TABS = ["query", "queries", "fabric", "metrics"] as const;
export type Tab = (typeof TABS)[number];
export const VIEWS = ["graph", "table", "explain"] as const;
export type View = (typeof VIEWS)[number];

export interface State {
  tab: Tab;
  exprs: string[];
  view: View;
  range: number; /* ms */
  end: number | null; /* null: now */
  step: number | null; /* null: chosen */
  tenant: string; /* empty: what the key says, or the default */
}

export function read(search: string): State {
  const params = new URLSearchParams(search);
  const exprs: string[] = [];
  for (let i = 0; i < 20 && params.has(`g${i}.expr`); i++) exprs.push(params.get(`g${i}.expr`)!);
  const view = params.get("g0.tab") ?? "graph";
  const range = parseDuration(params.get("g0.range_input") ?? "1h");
  const end = params.get("g0.end_input") ?? params.get("g0.moment_input");
  const step = parseDuration(params.get("g0.step_input") ?? "");
  const tab = params.get("tab") as Tab;
  return {
    tab: TABS.includes(tab) ? tab : "query",
    exprs: exprs.length ? exprs : [""],
    view: view === "1" || view === "table" ? "table" : view === "explain" ? "explain" : "graph",
    range: range > 0 ? range : 36e5,
    end: end && !Number.isNaN(parseTime(end, true)) ? parseTime(end, true) : null,
    step: step > 0 ? step : null,
    tenant: params.get("tenant") ?? "",
  };
}

export function write(state: State): string {
  const params = new URLSearchParams();
  if (state.tab !== "query") params.set("tab", state.tab);
  state.exprs.forEach((expr, i) => params.set(`g${i}.expr`, expr));
  params.set("g0.tab", state.view);
  params.set("g0.range_input", duration(state.range));
  if (state.end !== null) params.set("g0.end_input", new Date(state.end).toISOString().slice(0, 19).replace("T", " "));
  if (state.step !== null) params.set("g0.step_input", String(state.step / 1000));
  if (state.tenant) params.set("tenant", state.tenant);
  return "/graph?" + params;
}

/* Points enough for a screen, on round steps. */
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400];
export function autoStep(range: number): number {
  const want = range / 1000 / 250;
  return (STEPS.find((step) => step >= want) ?? Math.ceil(want / 86400) * 86400) * 1000;
}
