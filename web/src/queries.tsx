/* queries.tsx - what runs now, with a button to end it, and what ran lately. */
import { useRef, useState } from "preact/hooks";
import { request } from "./api";
import { clock, duration, micros, number, short, time } from "./format";
import type { State } from "./state";
import { useWatch } from "./watch";

const KEPT = 256;

interface Asked {
  query_id: string;
  tenant: string;
  query: string;
  kind: string;
  start_ms: number;
  end_ms: number;
  step_ms: number;
}
interface Running extends Asked {
  state: string;
  age_seconds: number;
  work_done: number;
  work_total: number;
  segments: number;
}
type Stage = "queued" | "planning" | "working" | "answering";
interface Finished extends Asked {
  outcome: string;
  error?: string;
  ended_ms: number;
  seconds: Record<Stage | "total", number>;
  segments: number;
  works: number;
  samples: number;
  points: number;
}
type ListEvent = { type: "queries"; data: Running[] } | { type: "finished"; data: Finished[] };

/* Expressions that can be asked again: lists of series and labels cannot. */
const EXPRESSIONS = ["events", "query", "query_range", "explain"];

function range(query: Asked): string {
  if (Math.abs(query.end_ms) > 8e15) return "all times";
  return query.end_ms === query.start_ms ? "at " + time(query.end_ms) : `${duration(query.end_ms - query.start_ms)} until ${time(query.end_ms)}`;
}

function Text({ query, ask }: { query: Asked; ask: (changes: Partial<State>) => void }) {
  const again = () => ask({ exprs: [query.query], end: query.end_ms, range: Math.max(1000, query.end_ms - query.start_ms) || 36e5, step: query.step_ms || null });
  return (
    <th scope="row">
      {EXPRESSIONS.includes(query.kind) ? <button type="button" class="link" title="Open in Query" onClick={again}><code>{short(query.query)}</code></button> : <code>{short(query.query)}</code>}
      <small>{query.kind} · {range(query)}{query.tenant !== "default" && ` · tenant ${query.tenant}`} · {query.query_id}</small>
    </th>
  );
}

export const STAGES: Stage[] = ["queued", "planning", "working", "answering"];
/* Where its time went. */
export function StageBar({ seconds, most }: { seconds: Record<string, number>; most: number }) {
  const title = STAGES.map((stage) => `${stage} ${micros(seconds[stage] * 1e6)}`).join(", ");
  return (
    <span class="bar" role="img" aria-label={title} title={title}>
      {STAGES.map((stage) => <span key={stage} class={"part " + stage} style={{ width: (most > 0 ? (seconds[stage] / most) * 100 : 0) + "%" }} />)}
    </span>
  );
}

export function QueriesTab({ ask }: { ask: (changes: Partial<State>) => void }) {
  const [running, setRunning] = useState<Running[] | null>(null), [finished, setFinished] = useState<Finished[]>([]);
  const [ending, setEnding] = useState<string[]>([]), [filter, setFilter] = useState(""), [lists, setLists] = useState(false), [failed, setFailed] = useState(false);
  const known = useRef(new Set<string>());
  const error = useWatch<ListEvent>(`/api/v1/queries?watch=1&limit=${KEPT}`, (event) => {
    if (event.type === "queries") return setRunning(event.data);
    /* A stream that came back tells of some again. */
    const fresh = event.data.filter((query) => !known.current.has(query.query_id));
    fresh.forEach((query) => known.current.add(query.query_id));
    setFinished((old) => [...fresh, ...old].slice(0, KEPT));
  });
  const end = (id: string) => {
    setEnding([...ending, id]);
    void request("/api/v1/queries/" + encodeURIComponent(id), { method: "DELETE" });
  };
  const shown = finished.filter((query) => (lists || EXPRESSIONS.includes(query.kind)) && (!failed || query.outcome !== "ok") && query.query.toLowerCase().includes(filter.toLowerCase()));
  const most = Math.max(0, ...shown.map((query) => query.seconds.total));
  return (
    <div data-testid="queries">
      {error && <div class="error" role="alert">{error}</div>}
      <section>
        <h2>Running queries {running && <span class="count">{running.length}</span>}</h2>
        {running && !running.length && <p class="empty">Nothing runs now. Queries of anybody appear here while they run.</p>}
        {running && running.length > 0 && (
          <div class="scroll">
            <table data-testid="running">
              <thead><tr><th scope="col">Query</th><th scope="col">State</th><th scope="col">Work items</th><th scope="col" class="num">Segments</th><th scope="col" class="num">Age</th><th scope="col"><span class="unseen">Cancel</span></th></tr></thead>
              <tbody>
                {running.map((query) => (
                  <tr key={query.query_id}>
                    <Text query={query} ask={ask} />
                    <td><span class={"state " + query.state}>{query.state}</span></td>
                    <td class="nowrap">{query.work_total > 0 && <><progress max={query.work_total} value={query.work_done} aria-label="Work items done" /> {query.work_done} of {query.work_total}</>}</td>
                    <td class="num">{query.segments || ""}</td>
                    <td class="num">{query.age_seconds.toFixed(1)} s</td>
                    <td class="num"><button type="button" disabled={ending.includes(query.query_id)} onClick={() => end(query.query_id)}>Cancel</button></td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </section>
      <section>
        <div class="row">
          <h2>Finished <span class="count">{shown.length}</span></h2>
          <span class="spread" />
          <label>Filter <input value={filter} data-testid="finished-filter" onInput={(e) => setFilter(e.currentTarget.value)} /></label>
          <label class="check"><input type="checkbox" data-testid="finished-failed" checked={failed} onChange={(e) => setFailed(e.currentTarget.checked)} /> failed only</label>
          <label class="check"><input type="checkbox" data-testid="finished-lists" checked={lists} onChange={(e) => setLists(e.currentTarget.checked)} /> lists of series and labels too</label>
        </div>
        <ul class="keys" aria-label="Colours of stages">{STAGES.map((stage) => <li key={stage}><span class={"swatch " + stage} /> {stage}</li>)}</ul>
        {!shown.length && <p class="empty">{finished.length ? "None fits the filter." : "None yet since the API started."}</p>}
        {shown.length > 0 && (
          <div class="scroll">
            <table data-testid="finished">
              <thead><tr><th scope="col">Query</th><th scope="col">Outcome</th><th scope="col" class="wide">Time, by stage</th><th scope="col" class="num">Took</th><th scope="col" class="num">Samples</th><th scope="col" class="num">Segments</th><th scope="col" class="num">Points</th><th scope="col" class="num">Ended</th></tr></thead>
              <tbody>
                {shown.map((query) => (
                  <tr key={query.query_id}>
                    <Text query={query} ask={ask} />
                    <td><span class={"state " + (query.outcome === "ok" ? "ok" : "failed")}>{query.outcome}</span>{query.error && <small>{short(query.error, 160)}</small>}</td>
                    <td><StageBar seconds={query.seconds} most={most} /></td>
                    <td class="num">{micros(query.seconds.total * 1e6)}</td>
                    <td class="num">{number(query.samples)}</td>
                    <td class="num">{query.segments}</td>
                    <td class="num">{number(query.points)}</td>
                    <td class="num" title={time(query.ended_ms)}>{clock(query.ended_ms)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </section>
    </div>
  );
}
