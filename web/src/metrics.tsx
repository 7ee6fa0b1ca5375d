/* metrics.tsx - which metrics there are, and of each its labels and how many series they make. */
import { useEffect, useState } from "preact/hooks";
import { data } from "./api";
import { short, time, type Labels } from "./format";

const NAMES_SHOWN = 300, SERIES_MAX = 10000;

interface Detail {
  name: string;
  series: number;
  labels: { label: string; values: number; most: string }[];
}

async function look(name: string, end: number): Promise<Detail> {
  const match = `{__name__=${JSON.stringify(name)}}`;
  const params = new URLSearchParams({ "match[]": match, start: String(end - 86400), end: String(end), limit: String(SERIES_MAX) });
  const list = await data<Labels[]>("/api/v1/series?" + params), values = new Map<string, Map<string, number>>();
  for (const labels of list)
    for (const [label, value] of Object.entries(labels)) {
      if (label === "__name__") continue;
      const of = values.get(label) ?? new Map<string, number>();
      of.set(value, (of.get(value) ?? 0) + 1);
      values.set(label, of);
    }
  return {
    name,
    series: list.length,
    labels: [...values].map(([label, of]) => ({ label, values: of.size, most: [...of].sort((a, b) => b[1] - a[1])[0][0] })).sort((a, b) => b.values - a.values),
  };
}

export function MetricsTab({ ask, until }: { ask: (expr: string) => void; until: number | null }) {
  const [end] = useState((until ?? Date.now()) / 1000);
  const [names, setNames] = useState<string[] | null>(null), [filter, setFilter] = useState("");
  const [error, setError] = useState<string | null>(null), [detail, setDetail] = useState<Detail | null>(null);
  const fail = (problem: Error) => setError(problem.message);
  useEffect(() => {
    data<string[]>(`/api/v1/label/__name__/values?start=${end - 86400}&end=${end}`).then(setNames, fail);
  }, []);
  const found = names?.filter((name) => name.toLowerCase().includes(filter.toLowerCase())) ?? [];
  return (
    <section class="metrics" data-testid="metrics">
      <h2>Metrics of the day until {until === null ? "now" : time(until)}</h2>
      {error && <div class="error" role="alert">{error}</div>}
      <p class="row">
        <label>Filter <input value={filter} onInput={(e) => setFilter(e.currentTarget.value)} /></label>
        <span role="status">{names ? `${found.length} of ${names.length} metrics` : error ? "" : "Loading…"}</span>
      </p>
      <div class="columns">
        <ul class="names">
          {found.slice(0, NAMES_SHOWN).map((name) => <li key={name}><button type="button" aria-pressed={detail?.name === name} onClick={() => void look(name, end).then(setDetail, fail)}>{name}</button></li>)}
          {found.length > NAMES_SHOWN && <li>{found.length - NAMES_SHOWN} more: filter to see them.</li>}
        </ul>
        {detail && (
          <div>
            <h3>{detail.name}</h3>
            <p>{detail.series >= SERIES_MAX ? `${SERIES_MAX} series or more` : `${detail.series} series`} in that day. <button type="button" onClick={() => ask(detail.name)}>Query it</button></p>
            <table>
              <thead><tr><th scope="col">Label</th><th scope="col">Values</th><th scope="col">Most series have</th></tr></thead>
              <tbody>{detail.labels.map((label) => <tr key={label.label}><th scope="row">{label.label}</th><td class="num">{label.values}</td><td>{short(label.most, 100)}</td></tr>)}</tbody>
            </table>
          </div>
        )}
      </div>
    </section>
  );
}
