/* metrics.tsx - which metrics there are, what is stored of them and for how long, and of each its labels and
 * how many series they make. */
import { useEffect, useState } from "preact/hooks";
import { data } from "./api";
import { bytes, counted, duration, number, short, time, type Labels } from "./format";

const NAMES_SHOWN = 300, SERIES_MAX = 10000, VALUES_SHOWN = 8;

interface LabelDetail {
  label: string;
  values: number;
  top: [string, number][]; /* values and their series, the most first */
}
interface Detail {
  name: string;
  series: number;
  labels: LabelDetail[];
}

function describe(name: string, list: Labels[]): Detail {
  const values = new Map<string, Map<string, number>>();
  for (const labels of list)
    for (const [label, value] of Object.entries(labels)) {
      if (label === "__name__") continue;
      const of = values.get(label) ?? new Map<string, number>();
      of.set(value, (of.get(value) ?? 0) + 1);
      values.set(label, of);
    }
  const labels = [...values].map(([label, of]) => ({ label, values: of.size, top: [...of].sort((a, b) => b[1] - a[1]).slice(0, VALUES_SHOWN) }));
  return { name, series: list.length, labels: labels.sort((a, b) => b.values - a.values) };
}

async function look(name: string, end: number): Promise<Detail> {
  const match = `{__name__=${JSON.stringify(name)}}`;
  const params = new URLSearchParams({ "match[]": match, start: String(end - 86400), end: String(end), limit: String(SERIES_MAX) });
  return describe(name, await data<Labels[]>("/api/v1/series?" + params));
}

/* What GET /api/v1/storage says: the store's listing, without a look into its files. */
interface Storage {
  segments: number;
  bytes: number;
  min_ms: number | null;
  max_ms: number | null;
  days: { date: string; segments: number; bytes: number }[];
}
/* What GET /api/v1/storage/metrics says, of the same day as the names. */
interface Stored {
  name: string;
  samples: number;
  bytes: number;
}

function StoredTiles({ storage }: { storage: Storage }) {
  const most = Math.max(1, ...storage.days.map((day) => day.bytes)), days = storage.days.slice(-60);
  return (
    <section data-testid="storage">
      <h2>Stored</h2>
      <dl class="tiles">
        <div><dt>Bytes</dt><dd>{bytes(storage.bytes)}</dd></div>
        <div><dt>Segments</dt><dd>{number(storage.segments)}</dd></div>
        <div><dt>Oldest sample</dt><dd>{storage.min_ms === null ? "none" : time(storage.min_ms)}</dd></div>
        <div><dt>Newest sample</dt><dd>{storage.max_ms === null ? "none" : time(storage.max_ms)}</dd></div>
        <div><dt>Kept</dt><dd>{storage.min_ms === null || storage.max_ms === null ? "nothing" : duration(Math.round((storage.max_ms - storage.min_ms) / 36e5) * 36e5 || storage.max_ms - storage.min_ms)}</dd></div>
      </dl>
      {days.length > 2 && (
        <ul class="days" aria-label="Bytes by day">
          {days.map((day) => <li key={day.date} title={`${day.date}: ${bytes(day.bytes)} in ${counted(day.segments, "segment")}`}><span style={{ height: Math.max(2, (day.bytes / most) * 100) + "%" }} /><span class="unseen">{day.date}: {bytes(day.bytes)}</span></li>)}
        </ul>
      )}
      {days.length > 2 && <div class="ends" aria-hidden="true"><span>{days[0].date}</span><span>{days.at(-1)!.date}</span></div>}
    </section>
  );
}

function LabelRow({ label, series, ask, name }: { label: LabelDetail; series: number; ask: (expr: string) => void; name: string }) {
  return (
    <tr>
      <th scope="row"><button type="button" class="link" title="Count series by this label" onClick={() => ask(`count by (${label.label}) (${name})`)}>{short(label.label, 100)}</button></th>
      <td class="num">{label.values}</td>
      <td>
        <ul class="values">
          {label.top.map(([value, count]) => <li key={value} title={counted(count, "series")}><span class="bar short"><span class="part w-scan" style={{ width: (count / series) * 100 + "%" }} /></span> <bdi>{short(value, 100)}</bdi></li>)}
          {label.values > label.top.length && <li class="soft">{label.values - label.top.length} more</li>}
        </ul>
      </td>
    </tr>
  );
}

function One({ detail, stored, ask }: { detail: Detail; stored: Stored[]; ask: (expr: string) => void }) {
  const of = stored.find((metric) => metric.name === detail.name), counter = /_(total|count|sum|bucket)$/.test(detail.name);
  return (
    <div data-testid="metric">
      <h3>{detail.name}</h3>
      <p class="row">
        <button type="button" class="primary" onClick={() => ask(detail.name)}>Query it</button>
        {counter && <button type="button" onClick={() => ask(`rate(${detail.name}[5m])`)}>Its rate</button>}
        <button type="button" onClick={() => ask(`count(${detail.name})`)}>Its series over time</button>
      </p>
      <dl class="tiles">
        <div><dt>Series in that day</dt><dd>{detail.series >= SERIES_MAX ? `${number(SERIES_MAX)} or more` : number(detail.series)}</dd></div>
        <div><dt>Labels</dt><dd>{detail.labels.length}</dd></div>
        {of && <div><dt>Samples of that day's segments</dt><dd>{number(of.samples)}</dd></div>}
        {of && <div><dt>Bytes stored for them</dt><dd>about {bytes(of.bytes)}</dd></div>}
      </dl>
      <div class="scroll">
        <table>
          <thead><tr><th scope="col">Label</th><th scope="col" class="num">Values</th><th scope="col">Most series have</th></tr></thead>
          <tbody>{detail.labels.map((label) => <LabelRow key={label.label} label={label} series={detail.series} ask={ask} name={detail.name} />)}</tbody>
        </table>
      </div>
    </div>
  );
}

export function MetricsTab({ ask, until }: { ask: (expr: string) => void; until: number | null }) {
  const [end] = useState((until ?? Date.now()) / 1000);
  const [names, setNames] = useState<string[] | null>(null), [storage, setStorage] = useState<Storage | null>(null), [stored, setStored] = useState<Stored[]>([]), [filter, setFilter] = useState("");
  const [error, setError] = useState<string | null>(null), [detail, setDetail] = useState<Detail | null>(null), [chosen, setChosen] = useState("");
  const fail = (problem: Error) => setError(problem.message);
  useEffect(() => {
    const day = `start=${end - 86400}&end=${end}`;
    data<string[]>("/api/v1/label/__name__/values?scan=0&" + day).then(setNames, fail);
    data<Storage>("/api/v1/storage").then(setStorage, fail);
    data<Stored[]>("/api/v1/storage/metrics?" + day).then(setStored, fail);
  }, []);
  const choose = (name: string) => {
    setChosen(name);
    setError(null);
    look(name, end).then(setDetail, fail);
  };
  const found = names?.filter((name) => name.toLowerCase().includes(filter.toLowerCase())) ?? [];
  const sizes = new Map(stored.map((metric) => [metric.name, metric.bytes])), most = Math.max(1, ...sizes.values());
  return (
    <div class="metrics" data-testid="metrics">
      {error && <div class="error" role="alert">{error}</div>}
      {storage && <StoredTiles storage={storage} />}
      <section>
        <div class="row">
          <h2>Metrics of the day until {until === null ? "now" : time(until)} {names && <span class="count">{found.length === names.length ? names.length : `${found.length} of ${names.length}`}</span>}</h2>
          <span class="spread" />
          <label>Filter <input value={filter} data-testid="metrics-filter" onInput={(e) => setFilter(e.currentTarget.value)} /></label>
        </div>
        {!names && !error && <p class="empty">Looking…</p>}
        {names && !names.length && <p class="empty">No metric has samples in that day. Import some with <code>promfabric import</code>, or look at another time.</p>}
        <div class="columns">
          <ul class="names">
            {found.slice(0, NAMES_SHOWN).map((name) => (
              <li key={name}>
                <button type="button" aria-pressed={chosen === name} onClick={() => choose(name)}>
                  <span>{name}</span>
                  {sizes.has(name) && (
                    <span class="size" title="Bytes stored, about">
                      <small>{bytes(sizes.get(name)!)}</small>
                      <span class="bar short" aria-hidden="true"><span class="part w-scan" style={{ width: (sizes.get(name)! / most) * 100 + "%" }} /></span>
                    </span>
                  )}
                </button>
              </li>
            ))}
            {found.length > NAMES_SHOWN && <li class="soft">{found.length - NAMES_SHOWN} more: filter to see them.</li>}
          </ul>
          {detail ? <One detail={detail} stored={stored} ask={ask} /> : names && names.length > 0 && <p class="empty">Choose a metric to see its labels and how many series they make.</p>}
        </div>
      </section>
    </div>
  );
}
