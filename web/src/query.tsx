/* query.tsx - the Query tab: expressions, range, and their graph, table and explain. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { JSX } from "preact";
import type { Editor } from "./editor";
import type { GraphProps } from "./graph";
import { counted, duration, micros, number, parseDuration, parseTime, short, time } from "./format";
import { Explain } from "./explain";
import { say } from "./live";
import { start, steps, type Run } from "./run";
import { autoStep, VIEWS, type State, type View } from "./state";
import { Table, text } from "./table";
import { Tabs } from "./tabs";
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
  many: boolean; /* expressions, so that each has a letter */
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
    });
    return () => {
      gone = true;
      editor.current?.destroy();
      editor.current = null;
    };
  }, []);
  useEffect(() => editor.current?.mark(props.error), [props.error, ready]);
  useEffect(() => {
    if (ready && (props.index === 0 || !props.expr)) editor.current?.focus(); /* it is shown now */
  }, [ready]);
  return (
    <div class="expr">
      {props.many && <span class="letter" aria-hidden="true">{String.fromCharCode(65 + props.index)}</span>}
      <div ref={host} class="editor" data-testid={"editor-" + props.index} hidden={!ready} />
      {!ready && <input class="editor plain" value={props.expr} aria-label={`Expression ${props.index + 1}`} onInput={(e) => props.changed(e.currentTarget.value)} onKeyDown={(e) => e.key === "Enter" && props.run()} />}
      {props.remove && <button type="button" class="quiet" onClick={props.remove} title="Remove" aria-label={`Remove expression ${props.index + 1}`}>✕</button>}
    </div>
  );
}

/* The graph comes after the shell, as the editor does. */
function LazyGraph(props: GraphProps) {
  const [Graph, setGraph] = useState<((props: GraphProps) => JSX.Element) | null>(null);
  useEffect(() => void import("./graph").then((loaded) => setGraph(() => loaded.Graph)), []);
  return Graph ? <Graph {...props} /> : <div class="graph"><div class="plot" /></div>;
}

const RANGES = ["5m", "15m", "1h", "3h", "6h", "12h", "1d", "2d", "1w", "4w"];

interface RangeProps {
  state: State;
  change: (change: Partial<State>) => void;
}
/* A field whose text counts when it is left or Enter is pressed; what it cannot mean is taken back. */
function Field({ label, inside, value, placeholder, list, testid, take }: { label: string; inside?: boolean; value: string; placeholder?: string; list?: string; testid: string; take: (text: string) => boolean }) {
  const input = <input class={list || placeholder ? "narrow" : "moment"} aria-label={inside ? label : undefined} list={list} value={value} placeholder={placeholder} data-testid={testid} onChange={(e) => { if (!take(e.currentTarget.value.trim())) e.currentTarget.value = value; }} />;
  return inside ? input : <label class="lone">{label} {input}</label>; /* inside of a group the label stands before the first button */
}
function RangeControls({ state, change }: RangeProps) {
  const shift = (part: number) => change({ end: (state.end ?? Date.now()) + state.range * part });
  const nearest = (wider: boolean) => {
    const all = RANGES.map(parseDuration);
    return (wider ? all.find((ms) => ms > state.range) : all.reverse().find((ms) => ms < state.range)) ?? (wider ? state.range * 2 : Math.max(1000, Math.round(state.range / 2)));
  };
  return (
    <div class="range" role="group" aria-label="Time range">
      <span class="group">
        <span class="what" aria-hidden="true">Range</span>
        <button type="button" onClick={() => change({ range: nearest(false) })} title="Shorter range" aria-label="Shorter range">−</button>
        <Field label="Range" inside list="ranges" value={duration(state.range)} testid="range" take={(text) => { const ms = parseDuration(text); if (ms > 0) change({ range: ms }); return ms > 0; }} />
        <button type="button" onClick={() => change({ range: nearest(true) })} title="Longer range" aria-label="Longer range">+</button>
      </span>
      <datalist id="ranges">{RANGES.map((r) => <option key={r} value={r} />)}</datalist>
      <span class="group">
        <span class="what" aria-hidden="true">Until</span>
        <button type="button" onClick={() => shift(-0.5)} title="Earlier" aria-label="Earlier">‹</button>
        <Field label="Until" inside value={state.end === null ? "now" : time(state.end)} testid="until" take={(text) => { const ms = parseTime(text), now = text === "now" || text === ""; if (now || !Number.isNaN(ms)) change({ end: now ? null : ms }); return now || !Number.isNaN(ms); }} />
        <button type="button" onClick={() => shift(0.5)} title="Later" aria-label="Later">›</button>
        <button type="button" onClick={() => change({ end: null })} disabled={state.end === null}>Now</button>
      </span>
      <Field label="Step" value={state.step === null ? "" : duration(state.step)} placeholder={"auto " + duration(autoStep(state.range))} testid="step" take={(text) => { const ms = parseDuration(text); change({ step: ms > 0 ? ms : null }); return true; }} />
    </div>
  );
}

/* How it stands, in a line. */
function said(runs: Run[]): string {
  if (!runs.length) return "";
  const series = runs.reduce((sum, run) => sum + run.series.length, 0), points = runs.reduce((sum, run) => sum + run.points, 0);
  if (runs.some((run) => run.running)) {
    const works = runs.reduce((sum, run) => sum + (run.plan?.works.length ?? 0), 0);
    const done = runs.reduce((sum, run) => sum + [...run.works.values()].filter((work) => work.state === "fetched").length, 0);
    return series ? `Running: ${series} series so far.` : works ? `Running: ${done} of ${counted(works, "work item")} done.` : "Running.";
  }
  if (runs.some((run) => run.error)) return "";
  const took = Math.max(...runs.map((run) => run.ended - run.began));
  return series ? `${series} series, ${number(points)} points in ${micros(took * 1000)}.` : "No series match this query in this range.";
}

/* Told once per run: at its beginning, and how it ended. */
function announce(runs: Run[]) {
  if (!runs.length) return;
  if (runs.some((run) => run.running)) say("Running.");
  else say(runs.some((run) => run.error) ? "The query failed." : said(runs));
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

/* On a page without a query: how to begin. */
function Welcome({ use }: { use: (expr: string) => void }) {
  const past = pastQueries().slice(0, 6), examples = ["up", "sum by (job) (rate(http_requests_total[5m]))", "histogram_quantile(0.9, sum by (le) (rate(http_request_duration_seconds_bucket[5m])))"];
  return (
    <section class="welcome">
      <h2>{past.length ? "Lately" : "Try one of these"}</h2>
      <ul>{(past.length ? past : examples).map((expr) => <li key={expr}><button type="button" class="link" onClick={() => use(expr)}><code>{short(expr, 200)}</code></button></li>)}</ul>
      <p class="note"><kbd>Enter</kbd> runs, <kbd>Shift</kbd>+<kbd>Enter</kbd> makes a new line, <kbd>Esc</kbd> cancels, <kbd>Ctrl</kbd>+<kbd>↑</kbd> brings back what was asked before. Metrics lists what is there to ask for.</p>
    </section>
  );
}

const VIEW_NAMES: Record<View, string> = { graph: "Graph", table: "Table", explain: "Explain" };

export function QueryTab({ state, change, dark }: { state: State; change: (change: Partial<State>, push?: boolean) => void; dark: boolean }) {
  const [runs, setRuns] = useState<Run[]>([]); /* shown: the old ones until the new ones have something */
  const [version, setVersion] = useState(0), [hidden, setHidden] = useState<Set<string>>(new Set()), [editors, setEditors] = useState(0);
  const current = useRef<Run[]>([]), drafts = useRef(state.exprs), due = useRef(0), cost = useRef(0), shot = useRef<GraphProps["shot"]>({ take: null });
  drafts.current = state.exprs;

  /* Not more often than the page can draw. What is shown is what runs by then: a query may have taken another one's place
     while it waited. */
  const refresh = () => {
    if (due.current) return;
    due.current = window.setTimeout(() => {
      due.current = 0;
      const begun = performance.now(), shown = current.current;
      if (shown.some((run) => run.series.length || run.error) || shown.every((run) => !run.running)) setRuns(shown);
      announce(shown);
      setVersion((v) => v + 1);
      requestAnimationFrame(() => (cost.current = performance.now() - begun));
    }, Math.min(2000, Math.max(30, cost.current * 5)));
  };
  const cancel = () => {
    const busy = current.current.filter((run) => run.running);
    busy.forEach((run) => run.abort.abort());
    return busy.length > 0;
  };
  const go = (changes: Partial<State> = {}) => {
    const next = { ...state, exprs: drafts.current, ...changes };
    cancel();
    change({ ...changes, exprs: next.exprs }, true);
    const step = next.step ?? autoStep(next.range), end = Math.floor((next.end ?? Date.now()) / step) * step;
    const list: Run[] = [];
    current.current = list;
    next.exprs.forEach((expr, index) => {
      if (!expr.trim()) return;
      remember(expr);
      list.push(start({ q: expr, s: Math.ceil((end - next.range) / step) * step, e: end, step }, index, refresh));
    });
    setHidden(new Set());
    setVersion((v) => v + 1); /* the button says it at once */
    if (!list.length) setRuns([]);
    else refresh();
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
  const use = (expr: string) => {
    drafts.current = [expr];
    setEditors((n) => n + 1); /* with the text in it */
    go({ exprs: [expr] });
  };
  const failed = current.current.filter((run) => run.error);
  const drawnRuns = runs.length ? runs : current.current, explained = current.current.length ? current.current : runs;
  const notes = [...new Set(runs.flatMap((run) => [...(run.done?.warnings ?? []), ...(run.done?.infos ?? [])]))];
  const zoom = (from: number, to: number) => go({ range: Math.max(1000, Math.round((to - from) / 1000) * 1000), end: Math.round(to / 1000) * 1000 });
  const widen = () => go({ range: state.range * 2, end: state.end === null ? null : state.end + state.range / 2 });
  const toggle = (name: string, only: boolean) => setHidden(only ? new Set(runs.flatMap((run) => run.series.map((s) => s.name)).filter((n) => n !== name)) : new Set(hidden.has(name) ? [...hidden].filter((n) => n !== name) : [...hidden, name]));
  /* A query that has ended since the last picture was drawn: it is not yet known to have nothing to show. */
  const awaited = running || (current.current.length > 0 && runs !== current.current);
  const drawn = drawnRuns.reduce((sum, run) => sum + (run.series.length ? steps(run.ask) : 0), 0);
  return (
    <div class="query">
      <section class="ask">
        {state.exprs.map((expr, i) => (
          <Expr key={i + "/" + state.exprs.length + "/" + editors} expr={expr} index={i} many={state.exprs.length > 1} run={() => go()} cancel={cancel} range={() => ({ start: (state.end ?? Date.now()) - Math.max(state.range, 36e5), end: state.end ?? Date.now() })} changed={(value) => edit(i, value)}
            error={current.current.find((run) => run.expr === i && run.ask.q === expr)?.error?.message ?? null}
            remove={state.exprs.length > 1 ? () => change({ exprs: state.exprs.filter((_, k) => k !== i) }, true) : null} />
        ))}
        <div class="row controls">
          <button type="button" class={running ? "primary run stop" : "primary run"} data-testid="run" onClick={() => (running ? cancel() : go())}>{running ? "Cancel (Esc)" : "Run"}</button>
          <RangeControls state={state} change={(changes) => go(changes)} />
          <span class="spread" />
          {state.exprs.length < EXPRS_MAX && <button type="button" class="quiet" data-testid="add" onClick={() => change({ exprs: [...state.exprs, ""] }, true)}>+ Add expression</button>}
        </div>
      </section>
      {failed.map((run) => (
        <div key={run.expr} class="error" role="alert" data-testid="error">
          <b>{run.error!.code || "error"}</b> {short(run.error!.message, 2000)}
          {run.error!.code === "cut" && <button type="button" data-testid="again" onClick={() => go()}>Run again</button>}
        </div>
      ))}
      {drawnRuns.length === 0 && <Welcome use={use} />}
      {drawnRuns.length > 0 && (
        <>
          <div class="row views">
            <Tabs label="Views" kind="view" names={VIEW_NAMES} order={VIEWS} chosen={state.view} panel="view" choose={(view) => change({ view }, true)} />
            <span class={"status" + (running ? " busy" : "")} data-testid="status">{said(current.current)}</span>
            <span class="spread" />
            <span class="saves">
              <button type="button" class="quiet" disabled={!drawn} onClick={() => save("query.csv", "text/csv", exportCsv(drawnRuns))}>CSV</button>
              <button type="button" class="quiet" disabled={!drawn} onClick={() => save("query.json", "application/json", exportJson(drawnRuns))}>JSON</button>
              {state.view === "graph" && <button type="button" class="quiet" disabled={!drawn} onClick={() => shot.current.take?.()?.toBlob((blob) => blob && save("graph.png", "image/png", blob))}>PNG</button>}
            </span>
          </div>
          {notes.map((note) => <p key={note} class="note">{note}</p>)}
          <div id="view" role="tabpanel" aria-labelledby={"view-" + state.view}>
            {state.view === "graph" && !drawn && !awaited && !failed.length && <p class="empty">No series match this query in this range. Is the time right, and the name? Metrics lists what there is.</p>}
            {state.view === "graph" && (drawn > 0 || awaited) && <LazyGraph runs={drawnRuns} version={version} dark={dark} hidden={hidden} zoom={zoom} widen={widen} toggle={toggle} shot={shot.current} />}
            {state.view === "table" && <Table runs={drawnRuns} />}
            {state.view === "explain" && explained.map((run) => <Explain key={run.expr + "/" + run.began} run={run} />)}
          </div>
        </>
      )}
    </div>
  );
}
