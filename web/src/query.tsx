/* query.tsx - the Query tab: expressions, range, and their graph, table and explain. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { JSX } from "preact";
import type { Editor } from "./editor";
import type { GraphProps } from "./graph";
import { duration, number, parseDuration, parseTime, short, time } from "./format";
import { Explain } from "./explain";
import { start, type Run } from "./run";
import { autoStep, VIEWS, type State, type View } from "./state";
import { Table, text } from "./table";
import { save } from "./save";

const HISTORY = "promfabric.history", HISTORY_MAX = 50, EXPRS_MAX = 20;

function pastQueries(): string[] {
  try {
    const list = JSON.parse(localStorage.getItem(HISTORY) ?? "[]");
    return Array.isArray(list) ? list.filter((item) => typeof item === "string") : [];
  } catch {
    return [];
  }
}
function remember(expr: string) {
  const list = [expr, ...pastQueries().filter((old) => old !== expr)].slice(0, HISTORY_MAX);
  localStorage.setItem(HISTORY, JSON.stringify(list));
}

interface ExprProps {
  expr: string;
  index: number;
  error: string | null;
  run: () => void;
  cancel: () => boolean;
  changed: (text: string) => void;
  remove: (() => void) | null;
  range: () => { start: number; end: number };
}

/* The editor comes a moment after the page; until then, and should it not come, a plain field. Once it is
 * there the text is its own, and told; expressions from elsewhere come with a new editor. */
function Expr(props: ExprProps) {
  const host = useRef<HTMLDivElement>(null), editor = useRef<Editor | null>(null), past = useRef(-1);
  const latest = useRef(props);
  const [ready, setReady] = useState(false);
  latest.current = props;
  useEffect(() => {
    let gone = false;
    void import("./editor").then(({ create }) => {
      if (gone || !host.current) return;
      editor.current = create(host.current, latest.current.expr, `Expression ${props.index + 1}`, {
        run: () => latest.current.run(),
        cancel: () => latest.current.cancel(),
        changed: (value) => latest.current.changed(value),
        range: () => latest.current.range(),
        recall: (back) => {
          const list = pastQueries();
          past.current = Math.max(0, Math.min(list.length - 1, past.current + (back ? 1 : -1)));
          return list[past.current] ?? null;
        },
      });
      setReady(true);
      if (props.index === 0) editor.current.focus();
    });
    return () => {
      gone = true;
      editor.current?.destroy();
      editor.current = null;
    };
  }, []);
  useEffect(() => editor.current?.mark(props.error), [props.error, ready]);
  return (
    <div class="expr">
      <div ref={host} class="editor" data-testid={"editor-" + props.index} hidden={!ready} />
      {!ready && <input class="editor plain" value={props.expr} aria-label={`Expression ${props.index + 1}`} onInput={(e) => props.changed(e.currentTarget.value)} onKeyDown={(e) => e.key === "Enter" && props.run()} />}
      {props.remove && <button type="button" onClick={props.remove} aria-label={`Remove expression ${props.index + 1}`}>✕</button>}
    </div>
  );
}

/* The graph comes after the shell, as the editor does. */
function LazyGraph(props: GraphProps) {
  const [Graph, setGraph] = useState<((props: GraphProps) => JSX.Element) | null>(null);
  useEffect(() => void import("./graph").then((loaded) => setGraph(() => loaded.Graph)), []);
  return Graph ? <Graph {...props} /> : <div class="graph"><div class="plot" /></div>;
}

interface RangeProps {
  state: State;
  change: (change: Partial<State>) => void;
}
function RangeControls({ state, change }: RangeProps) {
  const shift = (part: number) => change({ end: (state.end ?? Date.now()) + state.range * part });
  return (
    <div class="range" role="group" aria-label="Time range">
      <button type="button" onClick={() => shift(-0.5)} aria-label="Earlier">◀</button>
      <label>Range <input class="narrow" list="ranges" value={duration(state.range)} data-testid="range" onChange={(e) => { const ms = parseDuration(e.currentTarget.value); if (ms > 0) change({ range: ms }); else e.currentTarget.value = duration(state.range); }} /></label>
      <datalist id="ranges">{["5m", "15m", "1h", "3h", "6h", "12h", "1d", "2d", "1w", "4w"].map((r) => <option key={r} value={r} />)}</datalist>
      <label>Until <input value={state.end === null ? "now" : time(state.end)} data-testid="until" onChange={(e) => { const value = e.currentTarget.value.trim(), ms = parseTime(value); if (value === "now" || value === "") change({ end: null }); else if (!Number.isNaN(ms)) change({ end: ms }); else e.currentTarget.value = state.end === null ? "now" : time(state.end); }} /></label>
      <button type="button" onClick={() => shift(0.5)} aria-label="Later">▶</button>
      <button type="button" onClick={() => change({ end: null })}>Now</button>
      <label>Step <input class="narrow" value={state.step === null ? "" : duration(state.step)} placeholder={"auto " + duration(autoStep(state.range))} data-testid="step" onChange={(e) => { const ms = parseDuration(e.currentTarget.value); change({ step: ms > 0 ? ms : null }); }} /></label>
    </div>
  );
}

function said(runs: Run[]): string {
  if (!runs.length) return "";
  const running = runs.filter((run) => run.running).length;
  const series = runs.reduce((sum, run) => sum + run.series.length, 0), points = runs.reduce((sum, run) => sum + run.points, 0);
  if (running) return `Running: ${series} series so far.`;
  if (runs.some((run) => run.error)) return "";
  const took = Math.max(...runs.map((run) => run.ended - run.began));
  return series ? `${series} series, ${number(points)} points in ${Math.round(took)} ms.` : "No series match this query in this range.";
}

function exportCsv(runs: Run[]): string {
  const quote = (value: string) => '"' + value.replaceAll('"', '""') + '"';
  const lines = ["series,time,value"];
  for (const run of runs)
    for (const series of run.series)
      series.values.forEach((value, k) => value !== null && lines.push(`${quote(series.name)},${new Date(run.ask.s + k * run.ask.step).toISOString()},${value}`));
  return lines.join("\r\n");
}
function exportJson(runs: Run[]): string {
  return JSON.stringify(runs.map((run) => ({ query: run.ask.q, start_ms: run.ask.s, step_ms: run.ask.step, series: run.series.map(({ labels, values, last }) => ({ labels, values, last: text(last) })) })));
}

export function QueryTab({ state, change, dark }: { state: State; change: (change: Partial<State>, push?: boolean) => void; dark: boolean }) {
  const [runs, setRuns] = useState<Run[]>([]); /* shown: the old ones until the new ones have something */
  const [version, setVersion] = useState(0), [hidden, setHidden] = useState<Set<string>>(new Set());
  const current = useRef<Run[]>([]), drafts = useRef(state.exprs), due = useRef(0), cost = useRef(0);
  drafts.current = state.exprs;

  /* Not more often than the page can draw. */
  const refresh = (shown: Run[]) => {
    if (due.current) return;
    due.current = window.setTimeout(() => {
      due.current = 0;
      const begun = performance.now();
      if (current.current === shown && (shown.some((run) => run.series.length || run.error || run.plan) || shown.every((run) => !run.running))) setRuns(shown);
      setVersion((v) => v + 1);
      requestAnimationFrame(() => (cost.current = performance.now() - begun));
    }, Math.min(2000, Math.max(60, cost.current * 5)));
  };
  const cancel = () => {
    const busy = current.current.filter((run) => run.running);
    busy.forEach((run) => run.abort.abort());
    return busy.length > 0;
  };
  const go = (changes: Partial<State> = {}) => {
    const next = { ...state, exprs: drafts.current, ...changes };
    cancel();
    change({ ...changes, exprs: drafts.current }, true);
    const step = next.step ?? autoStep(next.range), end = Math.floor((next.end ?? Date.now()) / step) * step;
    const list: Run[] = [];
    current.current = list;
    next.exprs.forEach((expr, index) => {
      if (!expr.trim()) return;
      remember(expr);
      list.push(start({ q: expr, s: Math.ceil((end - next.range) / step) * step, e: end, step }, index, () => refresh(list)));
    });
    setHidden(new Set());
    if (!list.length) setRuns([]);
    else refresh(list);
  };
  useEffect(() => {
    if (state.exprs.some((expr) => expr.trim())) go();
    const escape = (e: KeyboardEvent) => e.key === "Escape" && !e.defaultPrevented && cancel();
    window.addEventListener("keydown", escape);
    return () => {
      window.removeEventListener("keydown", escape);
      cancel();
    };
  }, []);

  /* Clocks go on between events. */
  const running = current.current.some((run) => run.running);
  useEffect(() => {
    if (!running) return;
    const timer = window.setInterval(() => setVersion((v) => v + 1), 250);
    return () => clearInterval(timer);
  }, [running]);

  const edit = (index: number, value: string) => {
    drafts.current = drafts.current.map((old, i) => (i === index ? value : old));
    change({ exprs: drafts.current });
  };
  const failed = current.current.filter((run) => run.error);
  const notes = runs.flatMap((run) => [...(run.done?.warnings ?? []), ...(run.done?.infos ?? [])]);
  const views: Record<View, string> = { graph: "Graph", table: "Table", explain: "Explain" };
  return (
    <div class="query">
      {state.exprs.map((expr, i) => (
        <Expr key={i + "/" + state.exprs.length} expr={expr} index={i} run={() => go()} cancel={cancel} range={() => ({ start: (state.end ?? Date.now()) - Math.max(state.range, 36e5), end: state.end ?? Date.now() })} changed={(value) => edit(i, value)}
          error={current.current.find((run) => run.expr === i && run.ask.q === expr)?.error?.message ?? null}
          remove={state.exprs.length > 1 ? () => change({ exprs: state.exprs.filter((_, k) => k !== i) }, true) : null} />
      ))}
      <div class="row controls">
        <button type="button" class="primary" data-testid="run" onClick={() => (running ? cancel() : go())}>{running ? "Cancel (Esc)" : "Run"}</button>
        {state.exprs.length < EXPRS_MAX && <button type="button" onClick={() => change({ exprs: [...state.exprs, ""] }, true)}>Add expression</button>}
        <RangeControls state={state} change={(changes) => go(changes)} />
      </div>
      <p class="status" role="status" aria-live="polite" data-testid="status">{said(current.current)}</p>
      {failed.map((run) => (
        <div key={run.expr} class="error" role="alert" data-testid="error">
          <b>{run.error!.code || "error"}</b> {short(run.error!.message, 2000)}
          {run.error!.code !== "canceled" && run.error!.code === "cut" && <button type="button" onClick={() => go()}>Run again</button>}
        </div>
      ))}
      {notes.map((note, i) => <p key={i} class="note">{note}</p>)}
      {runs.length > 0 && (
        <>
          <div class="row views" role="tablist" aria-label="Views">
            {VIEWS.map((view) => <button key={view} type="button" role="tab" id={"view-" + view} aria-selected={state.view === view} aria-controls="view" data-testid={"view-" + view} onClick={() => change({ view }, true)}>{views[view]}</button>)}
            <span class="spread" />
            <button type="button" onClick={() => save("query.csv", "text/csv", exportCsv(runs))}>CSV</button>
            <button type="button" onClick={() => save("query.json", "application/json", exportJson(runs))}>JSON</button>
            {state.view === "graph" && <button type="button" onClick={() => window.document.querySelector<HTMLCanvasElement>(".plot canvas")?.toBlob((blob) => blob && save("graph.png", "image/png", blob))}>PNG</button>}
          </div>
          <div id="view" role="tabpanel" aria-labelledby={"view-" + state.view}>
            {state.view === "graph" && <LazyGraph runs={runs} version={version} dark={dark} hidden={hidden} zoom={(from, to) => go({ range: Math.max(1000, Math.round((to - from) / 1000) * 1000), end: Math.round(to / 1000) * 1000 })}
              toggle={(name, only) => setHidden(only ? new Set(runs.flatMap((run) => run.series.map((s) => s.name)).filter((n) => n !== name)) : new Set(hidden.has(name) ? [...hidden].filter((n) => n !== name) : [...hidden, name]))} />}
            {state.view === "table" && <Table runs={runs} />}
            {state.view === "explain" && runs.map((run) => <Explain key={run.expr + "/" + run.began} run={run} />)}
          </div>
        </>
      )}
    </div>
  );
}
