/* ingest.tsx - the nodes that take samples in: which partitions each leads, what its heads hold, what waits. */
import { useRef } from "preact/hooks";
import { bytes, counted, number } from "./format";
import { PAST, Spark } from "./spark";

export interface IngestNode {
  address: string;
  state: string;
  error?: string;
  /* The rest only of a node that answers. */
  node?: string;
  partitions?: number;
  leads?: number[];
  leaderless?: number;
  log_bytes?: number;
  space_bytes?: number;
  requests_waiting?: number;
  time_ms?: number; /* when it said so, by its clock */
  samples_applied?: number;
  head_series?: number;
  head_memory_bytes?: number;
  head_file_bytes?: number;
  ranges_open?: number;
  ranges_closed?: number;
  reads_waiting?: number;
  store_away?: boolean;
}

/* Samples of the last minute, from one count to the next. */
class Rate {
  past: number[] = [];
  private count = -1;
  private at = 0;
  hear(count: number, now: number) {
    if (now <= this.at) return; /* told again */
    if (this.count >= 0 && count >= this.count) this.past = [...this.past, ((count - this.count) * 1000) / (now - this.at)].slice(-PAST);
    this.count = count;
    this.at = now;
  }
}

const SQUARES = 64;
/* One square per partition; full ones are led here. */
function Partitions({ node }: { node: IngestNode }) {
  const leads = new Set(node.leads), total = node.partitions ?? 0;
  return (
    <div class="led">
      <span class="squares" aria-hidden="true">{Array.from({ length: Math.min(total, SQUARES) }, (_, i) => <i key={i} class={leads.has(i) ? "busy" : ""} title={`partition ${i}`} />)}</span>
      <div>leads {leads.size} of {counted(total, "partition")}</div>
    </div>
  );
}

function NodeCard({ node, past }: { node: IngestNode; past: number[] }) {
  const kind = node.state === "alive" ? "ok" : node.state === "drains" ? "queued" : "failed";
  const rate = past.length ? past[past.length - 1]! : 0;
  return (
    <li class={"card" + (node.error ? " away" : "")} data-testid="ingest-node">
      <div class="row"><h3>{node.node ?? "does not answer"}</h3><span class="spread" /><span class={"state " + kind}>{node.state}</span></div>
      <small>{node.address}</small>
      {node.error && <p class="note">{node.error}</p>}
      {!node.error && (
        <>
          <div class="row"><Partitions node={node} /><span class="spread" /><Spark values={past} most={Math.max(...past, 1)} label="Samples applied in the last minute" /></div>
          <dl class="figures">
            <div><dt>Samples a second</dt><dd>{number(rate < 100 ? Math.round(rate * 10) / 10 : Math.round(rate))}</dd></div>
            <div><dt>Series in heads</dt><dd>{number(node.head_series!)}</dd></div>
            <div><dt>Memory of heads</dt><dd>{bytes(node.head_memory_bytes!)}</dd></div>
            <div><dt>Log</dt><dd>{bytes(node.log_bytes!)}</dd></div>
            <div><dt>Disk left</dt><dd>{bytes(node.space_bytes!)}</dd></div>
            <div><dt>Ranges to seal</dt><dd>{node.ranges_closed}</dd></div>
            <div><dt>Ranges open</dt><dd>{node.ranges_open}</dd></div>
            <div><dt>Writes waiting</dt><dd>{node.requests_waiting}</dd></div>
            <div><dt>Reads waiting</dt><dd>{node.reads_waiting}</dd></div>
          </dl>
          {node.store_away && <p class="note">The store does not take files; samples stay on this node until it does.</p>}
        </>
      )}
    </li>
  );
}

/* Partitions that no node says it leads, if all that matter have answered. */
function leaderless(nodes: IngestNode[]): number[] {
  const total = Math.max(0, ...nodes.map((node) => node.partitions ?? 0)), led = new Set(nodes.flatMap((node) => node.leads ?? []));
  return Array.from({ length: total }, (_, i) => i).filter((i) => !led.has(i));
}

export function IngestNodes({ nodes }: { nodes: IngestNode[] }) {
  const rates = useRef(new Map<string, Rate>()), missing = leaderless(nodes);
  for (const node of nodes) {
    const rate = rates.current.get(node.address) ?? new Rate();
    rates.current.set(node.address, rate);
    if (node.time_ms !== undefined) rate.hear(node.samples_applied!, node.time_ms);
  }
  return (
    <section data-testid="ingest">
      <h2>Ingest nodes <span class="count">{nodes.length}</span></h2>
      {missing.length > 0 && <p class="note" data-testid="leaderless">No node that answers leads {missing.length === 1 ? "partition" : "partitions"} {missing.slice(0, 16).join(", ")}{missing.length > 16 && " and more"}: samples for {missing.length === 1 ? "it" : "them"} wait.</p>}
      <ul class="cards">{nodes.map((node) => <NodeCard key={node.address} node={node} past={rates.current.get(node.address)!.past} />)}</ul>
    </section>
  );
}
