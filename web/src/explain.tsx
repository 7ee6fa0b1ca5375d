/* explain.tsx - the plan while it runs: which leaves, which work items, on which worker, how far. */
import { useState } from "preact/hooks";
import type { PlanNode, Work } from "./api";
import { byteSlice, bytes, counted, micros, number, short } from "./format";
import type { Run } from "./run";

const WORKS_SHOWN = 100;

function Stages({ run }: { run: Run }) {
  const seconds = run.done?.stats;
  const now = run.running ? performance.now() - run.began : run.ended - run.began;
  return (
    <ol class="stages" aria-label="Stages">
      {["queued", "planning", "working", "answering"].map((name) => {
        const index = run.stages.map((s) => s.name).lastIndexOf(name), stage = run.stages[index], next = run.stages[index + 1];
        const took = seconds ? seconds[name + "_seconds"] * 1e6 : stage ? ((next?.t_ms ?? now) - stage.t_ms) * 1e3 : 0;
        const state = !stage ? "later" : run.running && !next ? "now" : "over";
        return <li key={name} class={state} aria-current={state === "now" ? "step" : undefined}>{name} {stage && <b>{micros(Math.max(0, Math.round(took)))}</b>}</li>;
      })}
    </ol>
  );
}

function sum(works: Work[], key: keyof Work): number {
  return works.reduce((total, work) => total + ((work[key] as number | undefined) ?? 0), 0);
}

function LeafWorks({ run, leaf, level }: { run: Run; leaf: number; level: number }) {
  const [shown, setShown] = useState(WORKS_SHOWN);
  const ids = run.plan!.works.filter((work) => work.leaf === leaf);
  return (
    <>
      {ids.slice(0, shown).map((planned) => {
        const work = run.works.get(planned.id);
        const times = work?.scan_us === undefined ? [] : [work.queued_us!, work.download_us!, work.scan_us, work.write_us!, work.fetch_us!];
        const whole = times.reduce((a, b) => a + b, 0);
        return (
          <tr key={planned.id} role="row" aria-level={level} class={"work " + (work?.state ?? "pending") + (work?.reason ? " again" : "")}>
            <td role="gridcell" class="indent">work {planned.id}{planned.shards > 1 && ` (${planned.shards} shards)`}</td>
            <td role="gridcell">{work?.state ?? "pending"}{work?.hedged && ", hedged"}{work && work.attempt > 1 && `, attempt ${work.attempt}`}{work?.reason && <span class="reason"> {short(work.reason)}</span>}</td>
            <td role="gridcell">{work?.worker ?? ""}</td>
            <td role="gridcell" class="num">{planned.segments} / {bytes(planned.bytes)}</td>
            <td role="gridcell" class="num">{work?.samples === undefined ? "" : number(work.samples)}</td>
            <td role="gridcell" class="num">{work?.artifact_bytes === undefined ? "" : bytes(work.artifact_bytes)}</td>
            <td role="gridcell" class="num">{work?.cache_hits === undefined ? "" : `${work.cache_hits} / ${work.cache_hits + work.cache_misses!}`}</td>
            <td role="gridcell" class="num" title={times.length ? `queued ${micros(times[0])}, download ${micros(times[1])}, scan ${micros(times[2])}, write ${micros(times[3])}, fetch ${micros(times[4])}` : undefined}>
              {times.length > 0 && micros(whole)}
            </td>
          </tr>
        );
      })}
      {ids.length > shown && (
        <tr role="row"><td role="gridcell" colSpan={8}><button type="button" onClick={() => setShown(shown + 1000)}>{ids.length - shown} more work items</button></td></tr>
      )}
    </>
  );
}

function NodeRow({ run, node, level, text }: { run: Run; node: PlanNode; level: number; text: string }) {
  const [open, setOpen] = useState(true);
  const inner = (node.children?.length ?? 0) > 0 || node.leaf !== undefined;
  const planned = node.leaf === undefined ? [] : run.plan!.works.filter((work) => work.leaf === node.leaf);
  const works = planned.map((work) => run.works.get(work.id)).filter((work): work is Work => !!work);
  const fetched = works.filter((work) => work.state === "fetched").length;
  const leaf = node.leaf === undefined ? null : run.plan!.plan.leaves[node.leaf];
  const group = node.by ? ` by (${node.by.join(", ")})` : node.without ? ` without (${node.without.join(", ")})` : "";
  return (
    <>
      <tr role="row" aria-level={level} aria-expanded={inner ? open : undefined} class="node">
        <td role="gridcell">
          <span class={"depth d" + Math.min(level, 12)} />
          {inner && <button type="button" class="fold" aria-label={open ? "Fold" : "Unfold"} onClick={() => setOpen(!open)}>{open ? "▾" : "▸"}</button>}
          <b>{node.node}</b> {leaf ? null : node.detail}{group}
          <code>{short(leaf ? leaf.text : byteSlice(text, ...node.pos), 200)}</code>
        </td>
        <td role="gridcell">{leaf && (planned.length ? <><progress max={planned.length} value={fetched} aria-label="Work items fetched" /> {fetched} of {planned.length}</> : "nothing to read")}</td>
        <td role="gridcell">{leaf && works.length > 0 && counted(new Set(works.map((w) => w.worker).filter(Boolean)).size, "worker")}</td>
        <td role="gridcell" class="num">{leaf && bytes(planned.reduce((total, work) => total + work.bytes, 0))}</td>
        <td role="gridcell" class="num">{leaf && fetched > 0 && number(sum(works, "samples"))}</td>
        <td role="gridcell" class="num">{leaf && fetched > 0 && bytes(sum(works, "artifact_bytes"))}</td>
        <td role="gridcell" class="num" />
        <td role="gridcell" class="num">{leaf && fetched > 0 && micros(sum(works, "scan_us"))}</td>
      </tr>
      {open && node.leaf !== undefined && <LeafWorks run={run} leaf={node.leaf} level={level + 1} />}
      {open && node.children?.map((child, i) => <NodeRow key={i} run={run} node={child} level={level + 1} text={text} />)}
    </>
  );
}

function Receipt({ run }: { run: Run }) {
  const stats = run.done?.stats, coverage = run.done?.coverage;
  if (!stats || !coverage) return null;
  return (
    <dl class="receipt" data-testid="receipt">
      <div><dt>Took</dt><dd>{micros(stats.total_seconds * 1e6)}</dd></div>
      <div><dt>Answer</dt><dd>{stats.series} series, {stats.points} points</dd></div>
      <div><dt>Samples read</dt><dd>{number(stats.samples)}</dd></div>
      <div><dt>Results of workers</dt><dd>{bytes(stats.artifact_bytes)}</dd></div>
      <div><dt>Downloaded by workers</dt><dd>{bytes(stats.download_bytes)}</dd></div>
      <div><dt>Done again</dt><dd>{stats.retries} ({stats.hedges} hedged, {stats.replans} re-plans)</dd></div>
      <div><dt>Memory of the API</dt><dd>{bytes(stats.peak_memory_bytes)}</dd></div>
      <div><dt>Stands on</dt><dd>{counted(coverage.segments, "segment")}, {counted(coverage.works, "work item")}, checksum <code>{coverage.checksum}</code></dd></div>
    </dl>
  );
}

export function Explain({ run }: { run: Run }) {
  const plan = run.plan;
  return (
    <section class="explain" data-testid="explain">
      <Stages run={run} />
      {plan && (
        <>
          <p>
            Query <code>{plan.query_id}</code>. Expected: {counted(plan.estimate.segments, "segment")}, {bytes(plan.estimate.bytes)}, about {number(plan.estimate.samples)} samples in range, {micros(Math.round(plan.estimate.seconds * 1e6))} of scanning.
            {run.plans > 1 && ` Planned ${run.plans} times: segments were replaced meanwhile.`}
          </p>
          <div class="scroll">
            <table role="treegrid" aria-label="Plan and work" data-testid="plan">
              <thead><tr role="row"><th scope="col">Plan</th><th scope="col">State</th><th scope="col">Worker</th><th scope="col">Segments</th><th scope="col">Samples</th><th scope="col">Result</th><th scope="col">Cache hits</th><th scope="col">Time</th></tr></thead>
              <tbody><NodeRow run={run} node={plan.plan.tree} level={1} text={run.ask.q} /></tbody>
            </table>
          </div>
        </>
      )}
      <Receipt run={run} />
    </section>
  );
}
