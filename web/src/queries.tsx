/* queries.tsx - what runs now, and a button to end it. */
import { useState } from "preact/hooks";
import { data, request } from "./api";
import { duration, short, time } from "./format";
import { usePoll } from "./poll";

interface Query {
  query_id: string;
  tenant: string;
  query: string;
  kind: string;
  state: string;
  start_ms: number;
  end_ms: number;
  step_ms: number;
  age_seconds: number;
  work_done: number;
}

export function QueriesTab() {
  const { value, error } = usePoll((signal) => data<Query[]>("/api/v1/queries", { signal }));
  const [ending, setEnding] = useState<string[]>([]);
  const end = (id: string) => {
    setEnding([...ending, id]);
    void request("/api/v1/queries/" + encodeURIComponent(id), { method: "DELETE" });
  };
  return (
    <section data-testid="queries">
      <h2>Running queries</h2>
      {error && <div class="error" role="alert">{error}</div>}
      {value && !value.length && <p>Nothing runs now.</p>}
      {value && value.length > 0 && (
        <div class="scroll">
          <table>
            <thead><tr><th scope="col">Query</th><th scope="col">State</th><th scope="col">Age</th><th scope="col">Work done</th><th scope="col">Range</th><th scope="col">Tenant</th><th scope="col">Kind</th><th scope="col" /></tr></thead>
            <tbody>
              {value.map((query) => (
                <tr key={query.query_id}>
                  <th scope="row"><code>{short(query.query)}</code><br /><small>{query.query_id}</small></th>
                  <td>{query.state}</td>
                  <td class="num">{query.age_seconds.toFixed(1)} s</td>
                  <td class="num">{query.work_done}</td>
                  <td>{Math.abs(query.end_ms) > 8e15 ? "all times" : `${duration(query.end_ms - query.start_ms)} until ${time(query.end_ms)}`}</td>
                  <td>{query.tenant}</td>
                  <td>{query.kind}</td>
                  <td><button type="button" disabled={ending.includes(query.query_id)} onClick={() => end(query.query_id)}>Cancel</button></td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}
