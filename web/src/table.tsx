/* table.tsx - the answer as text: the last value of each series, and what it was in between. */
import { useState } from "preact/hooks";
import type { Value } from "./api";
import { number, time } from "./format";
import { Name } from "./name";
import type { Run, Series } from "./run";

const ROWS = 200;

export function text(value: Value): string {
  if (value === null) return "";
  if (typeof value === "object") return `count ${value.count}, sum ${value.sum}`;
  return String(value);
}

function spread(series: Series) {
  let low = Infinity, high = -Infinity, sum = 0, count = 0;
  for (const value of series.values) {
    if (value === null) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
    sum += value;
    count++;
  }
  return count ? { low: number(low), high: number(high), mean: number(sum / count), count } : { low: "", high: "", mean: "", count };
}

export function Table({ runs }: { runs: Run[] }) {
  const [shown, setShown] = useState(ROWS), [filter, setFilter] = useState("");
  const rows = runs.flatMap((run) => run.series.map((series) => ({ series, run })));
  const found = filter ? rows.filter(({ series }) => series.name.toLowerCase().includes(filter.toLowerCase())) : rows;
  return (
    <section class="table">
      <p class="row">
        <label>Filter <input value={filter} onInput={(e) => setFilter(e.currentTarget.value)} data-testid="table-filter" /></label>
        <span class="soft">{found.length === rows.length ? `${rows.length} series` : `${found.length} of ${rows.length} series`}</span>
      </p>
      <div class="scroll">
        <table data-testid="table">
          <thead>
            <tr><th scope="col">Series</th><th scope="col" class="num">Last value</th><th scope="col" class="num">At</th><th scope="col" class="num">Least</th><th scope="col" class="num">Most</th><th scope="col" class="num">Mean</th><th scope="col" class="num">Points</th></tr>
          </thead>
          <tbody>
            {found.slice(0, shown).map(({ series, run }) => {
              const of = spread(series);
              return (
                <tr key={series.expr + series.name}>
                  <th scope="row"><Name labels={series.labels} max={600} /></th>
                  <td class="num">{text(series.last)}</td>
                  <td class="num">{series.lastAt < 0 ? "" : time(run.ask.s + series.lastAt * run.ask.step)}</td>
                  <td class="num">{of.low}</td><td class="num">{of.high}</td><td class="num">{of.mean}</td><td class="num">{of.count + series.odd}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      {found.length > shown && <button type="button" onClick={() => setShown(shown + ROWS * 5)}>{found.length - shown} more rows</button>}
    </section>
  );
}
