/* explain.tsx - the plan while it runs: which leaves, which work items, on which worker, how far. */
import type { JSX } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import type { PlanNode, Work } from "./api";
import { byteSlice, bytes, counted, micros, number, short } from "./format";
import { STAGES } from "./queries";
import type { Run } from "./run";

const WORKS_SHOWN = 100;
const COLUMNS = 7;

/* The stages as one bar: how long each took, or takes. */
function Stages({ run }: { run: Run }) {
  const now = run.running ? performance.now() - run.began : run.ended - run.began;
  const took = (name: string) => {
    const index = run.stages.map((s) => s.name).lastIndexOf(name), stage = run.stages[index], next = run.stages[index + 1];
    const said = run.done?.stats?.[name + "_seconds"];
    return said !== undefined ? said * 1e6 : stage ? Math.max(0, (next?.t_ms ?? now) - stage.t_ms) * 1e3 : 0;
  };
  const times = STAGES.map(took), whole = Math.max(1, times.reduce((a, b) => a + b, 0)), current = run.stages.at(-1)?.name;
  return (
    <ol class="stages" aria-label="Stages">
      {STAGES.map((name, i) => {
        const begun = run.stages.some((stage) => stage.name === name), state = !begun ? "later" : run.running && current === name ? "now" : "over";
        return (
          <li key={name} class={state} style={{ flexGrow: 1 + (times[i] / whole) * 12 }} aria-current={state === "now" ? "step" : undefined}>
            <span class={"part " + name} />
            <span>{name} {begun && <b>{micros(times[i])}</b>}</span>
          </li>
        );
      })}
    </ol>
  );
}

const PARTS = ["queued", "download", "scan", "write", "fetch"] as const;
function partsOf(work: Work | undefined): number[] {
  return work?.scan_us === undefined ? [] : [work.queued_us!, work.download_us!, work.scan_us, work.write_us!, work.fetch_us!];
}
function total(parts: number[]): number {
  return parts.reduce((a, b) => a + b, 0);
}
/* What a work item's time went into, beside the longest of all. */
function WorkBar({ parts, most }: { parts: number[]; most: number }) {
  const title = parts.map((us, i) => `${PARTS[i]} ${micros(us)}`).join(", ");
  return (
    <span class="timed" title={title}>
      <span class="bar" role="img" aria-label={title}>{parts.map((us, i) => <span key={i} class={"part w-" + PARTS[i]} style={{ width: (most > 0 ? (us / most) * 100 : 0) + "%" }} />)}</span>
      <span class="took">{micros(total(parts))}</span>
    </span>
  );
}

/* What is the same for all rows of the plan. */
interface Plan {
  run: Run;
  order: Map<PlanNode, number>; /* place in done.nodes */
  workMost: number;
  nodeMost: number;
}

function sum(works: Work[], key: keyof Work): number {
  return works.reduce((all, work) => all + ((work[key] as number | undefined) ?? 0), 0);
}

function WorkRow({ plan, id, level }: { plan: Plan; id: number; level: number }) {
  const planned = plan.run.plan!.works[id], work = plan.run.works.get(id), parts = partsOf(work), state = work?.state ?? "pending";
  return (
    <tr role="row" aria-level={level} tabIndex={-1} class={"work" + (work?.reason ? " again" : "")}>
      <td role="gridcell"><span class={"depth d" + Math.min(level + 1, 12)} />work {id}{planned.shards > 1 && ` (${planned.shards} shards)`}</td>
      <td role="gridcell"><span class={"state " + state}>{state}</span>{work?.hedged && " hedged"}{work && work.attempt > 1 && ` attempt ${work.attempt}`}{work?.reason && <span class="reason">{short(work.reason)}</span>}</td>
      <td role="gridcell">{work?.worker ?? ""}</td>
      <td role="gridcell" class="num">{planned.segments} · {bytes(planned.bytes)}{work?.cache_hits ? <small>{work.cache_hits} cached</small> : null}</td>
      <td role="gridcell" class="num">{work?.samples === undefined ? "" : number(work.samples)}</td>
      <td role="gridcell" class="num">{work?.artifact_bytes === undefined ? "" : bytes(work.artifact_bytes)}</td>
      <td role="gridcell">{parts.length > 0 && <WorkBar parts={parts} most={plan.workMost} />}</td>
    </tr>
  );
}

function LeafWorks({ plan, leaf, level }: { plan: Plan; leaf: number; level: number }) {
  const [shown, setShown] = useState(WORKS_SHOWN);
  const ids = plan.run.plan!.works.filter((work) => work.leaf === leaf).map((work) => work.id);
  return (
    <>
      {ids.slice(0, shown).map((id) => <WorkRow key={id} plan={plan} id={id} level={level} />)}
      {ids.length > shown && <tr role="row" aria-level={level} tabIndex={-1}><td role="gridcell" colSpan={COLUMNS}><button type="button" onClick={() => setShown(shown + 1000)}>{ids.length - shown} more work items</button></td></tr>}
    </>
  );
}

/* What a node took of the answering stage by itself. */
function NodeTime({ plan, node }: { plan: Plan; node: PlanNode }) {
  const figures = plan.run.done?.nodes?.[plan.order.get(node)!];
  if (!figures?.blocks) return null;
  const title = `${micros(figures.self_us)} in the API by itself, ${counted(figures.series, "series")}`;
  return <span class="timed" title={title}><span class="bar" role="img" aria-label={title}><span class="part answering" style={{ width: (plan.nodeMost > 0 ? (figures.self_us / plan.nodeMost) * 100 : 0) + "%" }} /></span><span class="took">{micros(figures.self_us)}</span></span>;
}

function NodeRow({ plan, node, level }: { plan: Plan; node: PlanNode; level: number }) {
  const [open, setOpen] = useState(true);
  const run = plan.run, inner = (node.children?.length ?? 0) > 0 || node.leaf !== undefined;
  const planned = node.leaf === undefined ? [] : run.plan!.works.filter((work) => work.leaf === node.leaf);
  const works = planned.map((work) => run.works.get(work.id)).filter((work): work is Work => !!work);
  const fetched = works.filter((work) => work.state === "fetched").length;
  const leaf = node.leaf === undefined ? null : run.plan!.plan.leaves[node.leaf];
  const group = node.by ? ` by (${node.by.join(", ")})` : node.without ? ` without (${node.without.join(", ")})` : "";
  const figures = run.done?.nodes?.[plan.order.get(node)!];
  return (
    <>
      <tr role="row" aria-level={level} aria-expanded={inner ? open : undefined} tabIndex={level === 1 ? 0 : -1} class="node" data-fold={inner ? "1" : undefined} onClick={(e) => (e.target as Element).closest(".fold") && setOpen(!open)}>
        <td role="gridcell">
          <div class="tree">
            <span class={"depth d" + Math.min(level, 12)} />
            {inner ? <button type="button" class="fold" tabIndex={-1} aria-label={open ? "Fold" : "Unfold"}>{open ? "▾" : "▸"}</button> : <span class="fold" />}
            <div><b>{node.node}</b>{leaf || node.node === "number" ? null : " " + (node.detail ?? "")}{group} <code>{short(leaf ? leaf.text : byteSlice(run.ask.q, ...node.pos), 200)}</code></div>
          </div>
        </td>
        <td role="gridcell" class="nowrap">{leaf && (planned.length ? <><progress max={planned.length} value={fetched} aria-label="Work items fetched" /> {fetched} of {planned.length}</> : "nothing to read")}</td>
        <td role="gridcell" class="nowrap">{leaf && works.length > 0 && counted(new Set(works.map((w) => w.worker).filter(Boolean)).size, "worker")}</td>
        <td role="gridcell" class="num">{leaf && `${planned.reduce((all, work) => all + work.segments, 0)} · ${bytes(planned.reduce((all, work) => all + work.bytes, 0))}`}</td>
        <td role="gridcell" class="num">{leaf && fetched > 0 ? number(sum(works, "samples")) : figures?.blocks ? `${number(figures.series)} series` : ""}</td>
        <td role="gridcell" class="num">{leaf && fetched > 0 && bytes(sum(works, "artifact_bytes"))}</td>
        <td role="gridcell"><NodeTime plan={plan} node={node} /></td>
      </tr>
      {open && node.leaf !== undefined && <LeafWorks plan={plan} leaf={node.leaf} level={level + 1} />}
      {open && node.children?.map((child, i) => <NodeRow key={i} plan={plan} node={child} level={level + 1} />)}
    </>
  );
}

/* The tree's nodes in the order in which the API tells of them. */
function orderOf(tree: PlanNode): Map<PlanNode, number> {
  const order = new Map<PlanNode, number>();
  const visit = (node: PlanNode) => {
    order.set(node, order.size);
    node.children?.forEach(visit);
  };
  visit(tree);
  return order;
}

/* Arrows go from row to row and open or close, as in any tree. */
function onTreeKey(e: JSX.TargetedKeyboardEvent<HTMLTableElement>) {
  const row = (e.target as Element).closest<HTMLElement>("tr"), rows = [...e.currentTarget.querySelectorAll<HTMLElement>("tbody tr")];
  if (!row || e.target !== row) return;
  const at = rows.indexOf(row), expanded = row.getAttribute("aria-expanded"), fold = row.querySelector<HTMLElement>("button.fold");
  const level = (of: HTMLElement) => Number(of.getAttribute("aria-level"));
  let to: HTMLElement | undefined;
  if (e.key === "ArrowDown") to = rows[at + 1];
  else if (e.key === "ArrowUp") to = rows[at - 1];
  else if (e.key === "Home") to = rows[0];
  else if (e.key === "End") to = rows.at(-1);
  else if (e.key === "ArrowRight" && expanded === "false") fold!.click();
  else if (e.key === "ArrowRight" && expanded === "true") to = rows[at + 1];
  else if (e.key === "ArrowLeft" && expanded === "true") fold!.click();
  else if (e.key === "ArrowLeft") to = rows.slice(0, at).reverse().find((other) => level(other) < level(row));
  else if (e.key === "Enter") row.querySelector<HTMLElement>("button")?.click();
  else return;
  e.preventDefault();
  to?.focus();
}

function PlanTable({ run }: { run: Run }) {
  const tree = run.plan!.plan.tree, order = useMemo(() => orderOf(tree), [tree]);
  let workMost = 0;
  for (const work of run.works.values()) workMost = Math.max(workMost, total(partsOf(work)));
  const plan = { run, order, workMost, nodeMost: Math.max(0, ...(run.done?.nodes?.map((node) => node.self_us) ?? [])) };
  return (
    <div class="scroll">
      <table role="treegrid" aria-label="Plan and work" data-testid="plan" onKeyDown={onTreeKey}>
        <thead><tr role="row"><th scope="col">Plan</th><th scope="col">State</th><th scope="col">Worker</th><th scope="col" class="num">Segments</th><th scope="col" class="num">Samples</th><th scope="col" class="num">Result</th><th scope="col" class="wide">Time</th></tr></thead>
        <tbody><NodeRow plan={plan} node={tree} level={1} /></tbody>
      </table>
    </div>
  );
}

/* Who did how much of it. */
function ByWorker({ run }: { run: Run }) {
  const workers = new Map<string, Work[]>();
  for (const work of run.works.values()) if (work.worker) workers.set(work.worker, [...(workers.get(work.worker) ?? []), work]);
  if (!workers.size) return null;
  const most = Math.max(...[...workers.values()].map((works) => sum(works, "scan_us")));
  return (
    <ul class="lanes" aria-label="Work by worker" data-testid="lanes">
      {[...workers].sort().map(([worker, works]) => (
        <li key={worker}>
          <b>{worker}</b>
          <span class="dots" aria-hidden="true">{works.slice(0, 200).sort((a, b) => a.id - b.id).map((work) => <i key={work.id} class={work.state + (work.reason ? " again" : "")} title={`work ${work.id}: ${work.state}`} />)}</span>
          <span>{works.filter((work) => work.state === "fetched").length} of {counted(works.length, "work item")}</span>
          <span class="bar short" aria-hidden="true"><span class="part w-scan" style={{ width: (most > 0 ? (sum(works, "scan_us") / most) * 100 : 0) + "%" }} /></span>
          <span>{micros(sum(works, "scan_us"))} scanning, {number(sum(works, "samples"))} samples</span>
        </li>
      ))}
    </ul>
  );
}

function Receipt({ run }: { run: Run }) {
  const stats = run.done?.stats, coverage = run.done?.coverage;
  if (!stats || !coverage) return null;
  return (
    <dl class="tiles" data-testid="receipt">
      <div><dt>Took</dt><dd>{micros(stats.total_seconds * 1e6)}</dd></div>
      <div><dt>Answer</dt><dd>{number(stats.series)} series, {number(stats.points)} points</dd></div>
      <div><dt>Samples read</dt><dd>{number(stats.samples)}</dd></div>
      <div><dt>Results of workers</dt><dd>{bytes(stats.artifact_bytes)}</dd></div>
      <div><dt>Downloaded by workers</dt><dd>{bytes(stats.download_bytes)}</dd></div>
      <div><dt>Done again</dt><dd>{stats.retries} <small>{stats.hedges} hedged, {stats.replans} re-plans</small></dd></div>
      <div><dt>Memory of the API</dt><dd>{bytes(stats.peak_memory_bytes)}</dd></div>
      <div class="broad"><dt>Stands on</dt><dd>{counted(coverage.segments, "segment")}, {counted(coverage.works, "work item")}{coverage.heads > 0 && `, ${counted(coverage.heads, "head")}`} <small>checksum <code>{coverage.checksum}</code></small></dd></div>
    </dl>
  );
}

export function Explain({ run }: { run: Run }) {
  const plan = run.plan, top = useRef<HTMLElement>(null);
  return (
    <section class="explain" data-testid="explain" ref={top}>
      <Stages run={run} />
      {plan && (
        <>
          <p class="note">
            Query <code>{plan.query_id}</code>. Expected: {counted(plan.estimate.segments, "segment")}, {bytes(plan.estimate.bytes)}, about {number(plan.estimate.samples)} samples in range, {micros(plan.estimate.seconds * 1e6)} of scanning.
            {run.plans > 1 && ` Planned ${run.plans} times: segments were replaced meanwhile.`}
          </p>
          <ByWorker run={run} />
          <PlanTable run={run} />
          <ul class="keys" aria-label="Colours of times">
            {PARTS.map((part) => <li key={part}><span class={"swatch w-" + part} /> {part}</li>)}
            <li><span class="swatch answering" /> node in the API</li>
          </ul>
        </>
      )}
      <Receipt run={run} />
    </section>
  );
}
