/* fabric.tsx - who does the work: workers with their slots, load, heartbeat and caches, and the nodes that
 * take samples in. */
import { useRef, useState } from "preact/hooks";
import { bytes, counted, micros } from "./format";
import { IngestNode, IngestNodes } from "./ingest";
import { PAST, Spark } from "./spark";
import { useWatch } from "./watch";

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
  cache_bytes?: number;
  cache_segments?: number;
  disk_bytes?: number;
  disk_bytes_max?: number;
}
export interface Scaling {
  work: { queued: number; running: number; inflight: number; oldest_age_seconds: number };
  workers: { alive: number; accepting: number; draining: number };
}
type FabricEvent = { type: "workers"; data: Worker[] } | { type: "scaling"; data: Scaling } | { type: "ingest"; data: IngestNode[] };

const SLOTS_DRAWN = 32;
/* One square per slot. */
function Slots({ worker }: { worker: Worker }) {
  const busy = Math.min(worker.slots, worker.accepted);
  return (
    <div class="slots">
      <span class="squares" aria-hidden="true">{Array.from({ length: Math.min(worker.slots, SLOTS_DRAWN) }, (_, i) => <i key={i} class={i < busy ? "busy" : ""} />)}</span>
      {busy} of {counted(worker.slots, "slot")}
    </div>
  );
}

function stateOf(worker: Worker): { text: string; kind: string } {
  if (worker.state !== "alive") return { text: worker.dials_failed ? `${worker.state}, ${counted(worker.dials_failed, "dial")} failed` : worker.state, kind: "failed" };
  if (worker.draining) return { text: "drains", kind: "queued" };
  return worker.accepting ? { text: "alive", kind: "ok" } : { text: "takes no work", kind: "queued" };
}

function WorkerCard({ worker, past }: { worker: Worker; past: number[] }) {
  const state = stateOf(worker);
  return (
    <li class={"card" + (worker.available ? "" : " away")} data-testid="worker">
      <div class="row">
        <h3>{worker.worker_id || "not met yet"}</h3>
        <span class="spread" />
        <span class={"state " + state.kind}>{state.text}</span>
      </div>
      <small>{worker.address}</small>
      <div class="row"><Slots worker={worker} /><span class="spread" /><Spark values={past} most={Math.max(worker.slots, ...past)} label="Work items at the worker in the last minute" /></div>
      <dl class="figures">
        <div><dt>Sent</dt><dd>{worker.assigned}</dd></div>
        <div><dt>Accepted</dt><dd>{worker.accepted}</dd></div>
        <div><dt>Ready</dt><dd>{worker.ready}</dd></div>
        <div><dt>Queue</dt><dd>{worker.queue_depth}</dd></div>
        <div><dt>Heard</dt><dd>{worker.silent_ms < 0 ? "never" : worker.silent_ms < 10000 ? worker.silent_ms + " ms ago" : Math.round(worker.silent_ms / 1000) + " s ago"}</dd></div>
        <div><dt>Round trip</dt><dd>{worker.rtt_ms < 0 ? "–" : worker.rtt_ms < 1 ? "under 1 ms" : worker.rtt_ms + " ms"}</dd></div>
      </dl>
      {worker.disk_bytes_max !== undefined && worker.disk_bytes_max > 0 && (
        <div class="disk">
          <meter min={0} max={worker.disk_bytes_max} value={Math.min(worker.disk_bytes!, worker.disk_bytes_max)} aria-label="Disk in use" />
          <span>{bytes(worker.disk_bytes!)} of {bytes(worker.disk_bytes_max)} disk, {counted(worker.cache_segments!, "segment")} at hand{worker.cache_bytes! > 0 && ` (${bytes(worker.cache_bytes!)})`}</span>
        </div>
      )}
    </li>
  );
}

export function FabricTab() {
  const [workers, setWorkers] = useState<Worker[] | null>(null), [scaling, setScaling] = useState<Scaling | null>(null), [nodes, setNodes] = useState<IngestNode[] | null>(null);
  const past = useRef(new Map<string, number[]>());
  const error = useWatch<FabricEvent>("/api/v1/workers?watch=1", (event) => {
    if (event.type === "scaling") return setScaling(event.data);
    if (event.type === "ingest") return setNodes(event.data);
    if (event.type !== "workers") return;
    for (const worker of event.data) past.current.set(worker.address, [...(past.current.get(worker.address) ?? []), worker.accepted].slice(-PAST));
    setWorkers(event.data);
  });
  return (
    <div data-testid="fabric">
      {error && <div class="error" role="alert">{error}</div>}
      {scaling && (
        <dl class="tiles">
          <div><dt>Workers alive</dt><dd>{scaling.workers.alive}</dd></div>
          <div><dt>Accepting work</dt><dd>{scaling.workers.accepting}</dd></div>
          <div><dt>Draining</dt><dd>{scaling.workers.draining}</dd></div>
          <div><dt>Work items queued</dt><dd>{scaling.work.queued}</dd></div>
          <div><dt>Running</dt><dd>{scaling.work.running}</dd></div>
          <div><dt>Oldest item</dt><dd>{scaling.work.oldest_age_seconds > 0 ? micros(scaling.work.oldest_age_seconds * 1e6) : "none"}</dd></div>
        </dl>
      )}
      <section>
        <h2>Workers {workers && <span class="count">{workers.length}</span>}</h2>
        {workers && !workers.length && <p class="empty">This API knows of no workers. Start one with <code>promfabric worker</code>, and name it with <code>--worker</code> or have it discovered.</p>}
        {workers && workers.length > 0 && <ul class="cards">{workers.map((worker) => <WorkerCard key={worker.address} worker={worker} past={past.current.get(worker.address) ?? []} />)}</ul>}
      </section>
      {nodes && <IngestNodes nodes={nodes} />}
    </div>
  );
}
