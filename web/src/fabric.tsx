/* fabric.tsx - the workers: state, load, heartbeat, and the work they hold. */
import { data, document } from "./api";
import { usePoll } from "./poll";

interface Worker {
  worker_id: string;
  address: string;
  state: string;
  accepting: boolean;
  draining: boolean;
  available: boolean;
  slots: number;
  queue_depth: number;
  assigned: number;
  accepted: number;
  ready: number;
  silent_ms: number;
  rtt_ms: number;
  dials_failed: number;
}
interface Scaling {
  work: { queued: number; running: number; inflight: number; oldest_age_seconds: number };
  workers: { alive: number; accepting: number; draining: number };
}

export function FabricTab() {
  const { value, error } = usePoll(async (signal) => ({
    workers: await data<Worker[]>("/api/v1/workers", { signal }),
    scaling: await document<Scaling>("/monitor/scaling", signal),
  }));
  return (
    <section data-testid="fabric">
      <h2>Workers</h2>
      {error && <div class="error" role="alert">{error}</div>}
      {value && (
        <>
          <dl class="receipt">
            <div><dt>Alive</dt><dd>{value.scaling.workers.alive}</dd></div>
            <div><dt>Accepting work</dt><dd>{value.scaling.workers.accepting}</dd></div>
            <div><dt>Draining</dt><dd>{value.scaling.workers.draining}</dd></div>
            <div><dt>Work items queued</dt><dd>{value.scaling.work.queued}</dd></div>
            <div><dt>Running</dt><dd>{value.scaling.work.running}</dd></div>
            <div><dt>Oldest</dt><dd>{value.scaling.work.oldest_age_seconds.toFixed(1)} s</dd></div>
          </dl>
          <div class="scroll">
            <table>
              <thead><tr><th scope="col">Worker</th><th scope="col">State</th><th scope="col">Load</th><th scope="col">Work: sent / running / ready</th><th scope="col">Queue</th><th scope="col">Heard</th><th scope="col">Round trip</th></tr></thead>
              <tbody>
                {value.workers.map((worker) => (
                  <tr key={worker.address} class={worker.available ? "" : "off"}>
                    <th scope="row">{worker.worker_id || "not met yet"}<br /><small>{worker.address}</small></th>
                    <td>{worker.state}{worker.draining ? ", drains" : worker.accepting ? "" : ", takes no work"}{worker.dials_failed > 0 && `, ${worker.dials_failed} dials failed`}</td>
                    <td><meter min={0} max={Math.max(1, worker.slots)} value={Math.min(worker.slots, worker.accepted)} aria-label="Slots in use" /> {Math.min(worker.slots, worker.accepted)} of {worker.slots}</td>
                    <td class="num">{worker.assigned} / {worker.accepted} / {worker.ready}</td>
                    <td class="num">{worker.queue_depth}</td>
                    <td class="num">{worker.silent_ms < 0 ? "never" : worker.silent_ms + " ms ago"}</td>
                    <td class="num">{worker.rtt_ms < 0 ? "" : worker.rtt_ms + " ms"}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </>
      )}
    </section>
  );
}
