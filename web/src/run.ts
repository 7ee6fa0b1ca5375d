/* run.ts - one query from ask to end: what has come of it so far, for graph, table and explain. */
import { ApiError, stream, type Ask, type Done, type Planned, type QueryEvent, type Value, type Work } from "./api";
import { seriesName, type Labels } from "./format";

export interface Series {
  labels: Labels;
  name: string;
  expr: number; /* which of the expressions */
  values: (number | null)[]; /* per step; what a graph can draw */
  last: Value;
  lastAt: number; /* its step */
  odd: number; /* values that no graph can draw: NaN, infinities */
  histograms: number;
}

export interface Run {
  ask: Ask;
  expr: number;
  began: number;
  stages: { name: string; t_ms: number }[];
  plan: Planned | null;
  plans: number;
  works: Map<number, Work>;
  series: Series[];
  points: number;
  done: Done | null;
  error: ApiError | null;
  running: boolean;
  ended: number;
  abort: AbortController;
}

export function steps(ask: Ask): number {
  return Math.floor((ask.e - ask.s) / ask.step) + 1;
}

function hearSeries(run: Run, first: number, list: Labels[]) {
  const count = steps(run.ask);
  list.forEach((labels, i) => {
    run.series[first + i] = {
      labels,
      name: seriesName(labels),
      expr: run.expr,
      values: new Array<number | null>(count).fill(null),
      last: null,
      lastAt: -1,
      odd: 0,
      histograms: 0,
    };
  });
}

/* A histogram is drawn as its number of observations. */
function drawn(series: Series, value: Value): number | null {
  if (typeof value === "number") return value;
  if (typeof value === "string") {
    series.odd++;
    return null;
  }
  if (value === null) return null;
  series.histograms++;
  const count = parseFloat(value.count);
  return Number.isFinite(count) ? count : null;
}

export function hear(run: Run, event: QueryEvent) {
  switch (event.type) {
    case "stage":
      run.stages.push(event.data);
      break;
    case "plan":
      run.plan = event.data;
      run.plans++;
      run.works = new Map();
      break;
    case "works":
      for (const work of event.data.changed) run.works.set(work.id, work);
      break;
    case "series":
      hearSeries(run, event.data.first, event.data.list);
      break;
    case "batch": {
      const from = Math.round((event.data.start - run.ask.s) / run.ask.step);
      for (const [id, ...values] of event.data.rows) {
        const series = run.series[id];
        values.forEach((value, k) => {
          if (value === null) return;
          series.values[from + k] = drawn(series, value);
          series.last = value;
          series.lastAt = from + k;
          run.points++;
        });
      }
      break;
    }
    case "error":
      run.error = new ApiError(event.data.message, 200, event.data.code);
      break;
    case "done":
      run.done = event.data;
      break;
  }
}

/* Run it; @changed is called after every event that came, and at the end. */
export function start(ask: Ask, expr: number, changed: (run: Run) => void): Run {
  const run: Run = {
    ask,
    expr,
    began: performance.now(),
    stages: [],
    plan: null,
    plans: 0,
    works: new Map(),
    series: [],
    points: 0,
    done: null,
    error: null,
    running: true,
    ended: 0,
    abort: new AbortController(),
  };
  stream(ask, run.abort.signal, (event) => {
    hear(run, event);
    changed(run);
  })
    .catch((error: unknown) => {
      if (run.abort.signal.aborted) run.error = new ApiError("The query was canceled.", 0, "canceled");
      else if (error instanceof ApiError) run.error = error;
      else run.error = new ApiError("The API cannot be reached: " + String((error as Error).message ?? error), 0, "cut");
    })
    .finally(() => {
      run.running = false;
      run.ended = performance.now();
      changed(run);
    });
  return run;
}
