/* graph.tsx - the graph: series of all queries over one time axis, drawn while they come. */
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { number, short, time, zone } from "./format";
import { steps, type Run, type Series } from "./run";

/* More lines than this say nothing, and cost seconds; the page tells what is not drawn. */
const DRAWN_MAX = 5000;
const LEGEND_STEP = 100;

const COLORS = 16;
/* Colours that differ in lightness too, and patterns beside them for whoever cannot tell colours. */
export function color(index: number, dark: boolean): string {
  const at = index % COLORS;
  return `hsl(${(at * 137.5 + 210) % 360} ${at % 2 ? 60 : 75}% ${dark ? 55 + (at % 3) * 9 : 34 + (at % 3) * 9}%)`;
}
const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3]];
function dash(index: number): number[] {
  return DASHES[Math.floor(index / COLORS) % DASHES.length];
}

export interface GraphProps {
  runs: Run[];
  version: number;
  dark: boolean;
  zoom: (from: number, to: number) => void;
  hidden: Set<string>;
  toggle: (name: string, only: boolean) => void;
}

/* The times of all runs: they were asked together, so they are the same. */
function timesOf(run: Run): number[] {
  const times = new Array<number>(steps(run.ask));
  for (let i = 0; i < times.length; i++) times[i] = (run.ask.s + i * run.ask.step) / 1000;
  return times;
}

function options(props: GraphProps, list: Series[], width: number, hover: (index: number | null, at: number | null) => void): uPlot.Options {
  const style = getComputedStyle(window.document.documentElement);
  const ink = style.getPropertyValue("--ink-soft").trim(), line = style.getPropertyValue("--line").trim();
  const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 }, font: "12px system-ui, sans-serif" };
  return {
    width,
    height: Math.max(240, Math.min(420, Math.round(window.innerHeight * 0.42))),
    legend: { show: false },
    focus: { alpha: 1 },
    tzDate: (ts) => (zone() === "utc" ? uPlot.tzDate(new Date(ts * 1e3), "Etc/UTC") : new Date(ts * 1e3)),
    cursor: { points: { one: true }, focus: { prox: 30 }, drag: { x: true, y: false, setScale: false } },
    axes: [
      { ...axis, values: [[86400, "{YYYY}-{MM}-{DD}", null, null, null, null, null, null, 1], [3600, "{HH}:{mm}", "\n{MM}-{DD}", null, null, null, null, null, 1], [60, "{HH}:{mm}", "\n{MM}-{DD}", null, null, null, null, null, 1], [1, "{HH}:{mm}:{ss}", "\n{MM}-{DD}", null, null, null, null, null, 1]] as uPlot.Axis.Values },
      { ...axis, size: 64, values: (_u, ticks) => ticks.map(number) },
    ],
    series: [{}, ...list.map((series, i) => ({ label: String(i), stroke: color(i, props.dark), dash: dash(i), width: 1.5, show: !props.hidden.has(series.name), spanGaps: false, points: { show: single(series) } }))],
    hooks: {
      setSelect: [(u) => u.select.width > 4 && props.zoom(u.posToVal(u.select.left, "x") * 1000, u.posToVal(u.select.left + u.select.width, "x") * 1000)],
      setCursor: [(u) => hover(u.cursor.idx == null ? null : (focused.get(u) ?? null), u.cursor.idx ?? null)],
      setSeries: [(u, index) => void focused.set(u, index == null ? null : index - 1)],
    },
  };
}
const focused = new WeakMap<uPlot, number | null>();

/* A value without neighbours is a dot, or nobody would see it. */
function single(series: Series): boolean {
  let count = 0;
  for (const value of series.values) if (value !== null && ++count > 2) return false;
  return count > 0;
}

type Hovered = { index: number; at: number } | null;

/* What is under the mouse, in a component of its own: a move must not touch thousands of series. */
function Tip({ hook, list, run, dark }: { hook: { show: (hovered: Hovered) => void }; list: Series[]; run: Run; dark: boolean }) {
  const [tip, setTip] = useState<Hovered>(null);
  hook.show = setTip;
  const series = tip && list[tip.index];
  if (!tip || !series) return <p class="tip" aria-hidden="true">Move over the graph for values; drag to zoom.</p>;
  const value = series.values[tip.at];
  return (
    <p class="tip" aria-hidden="true">
      <b>{time(run.ask.s + tip.at * run.ask.step)}</b> <span class="swatch" style={{ background: color(tip.index, dark) }} /> {short(series.name, 160)} <b>{value === null ? "no value" : number(value)}</b>
    </p>
  );
}

export function Graph(props: GraphProps) {
  const box = useRef<HTMLDivElement>(null), plot = useRef<uPlot | null>(null), shape = useRef("");
  const tip = useRef<{ show: (hovered: Hovered) => void }>({ show: () => {} });
  const [shown, setShown] = useState(LEGEND_STEP);
  const all = props.runs.flatMap((run) => run.series), list = all.slice(0, DRAWN_MAX);
  const key = [list.length, props.runs.map((r) => r.began).join(), props.dark, zone(), [...props.hidden].join("\u0000")].join("|");

  useEffect(() => {
    if (!box.current || !props.runs.length) return;
    const data = [timesOf(props.runs[0]), ...list.map((series) => series.values)] as uPlot.AlignedData;
    const begun = performance.now();
    if (plot.current && shape.current === key) {
      plot.current.setData(data);
    } else {
      plot.current?.destroy();
      plot.current = new uPlot(options(props, list, box.current.clientWidth, (index, at) => tip.current.show(index === null || at === null ? null : { index, at })), data, box.current);
      shape.current = key;
    }
    box.current.dataset.series = String(list.length);
    box.current.dataset.drawMs = (performance.now() - begun).toFixed(1);
  }, [key, props.version]);

  useEffect(() => {
    if (!box.current) return;
    const watch = new ResizeObserver(() => {
      if (plot.current && box.current && plot.current.width !== box.current.clientWidth)
        plot.current.setSize({ width: box.current.clientWidth, height: plot.current.height });
    });
    watch.observe(box.current);
    return () => {
      watch.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, []);

  const odd = list.reduce((sum, series) => sum + series.odd, 0), histograms = list.some((series) => series.histograms);
  return (
    <div class="graph">
      <div ref={box} class="plot" role="img" aria-label="Graph of the query; the Table view has its values as text" data-testid="plot" />
      <Tip hook={tip.current} list={list} run={props.runs[0]} dark={props.dark} />
      {all.length > list.length && <p class="note">{list.length} of {all.length} series are drawn; the table has all of them.</p>}
      {odd > 0 && <p class="note">{odd} values are NaN or infinite and not drawn.</p>}
      {histograms && <p class="note">Native histograms are drawn as their number of observations.</p>}
      <ul class="legend" aria-label="Series">
        {list.slice(0, shown).map((series, i) => (
          <li key={series.expr + series.name}>
            <button type="button" class={props.hidden.has(series.name) ? "off" : ""} aria-pressed={!props.hidden.has(series.name)} title="Click: show or hide; with Ctrl: only this one" onClick={(e) => props.toggle(series.name, e.ctrlKey || e.metaKey)}>
              <svg width="26" height="8" aria-hidden="true"><line x1="0" y1="4" x2="26" y2="4" stroke={color(i, props.dark)} stroke-width="3" stroke-dasharray={dash(i).join(" ") || "none"} /></svg>
              <span>{short(series.name)}</span>
            </button>
          </li>
        ))}
      </ul>
      {list.length > shown && <button type="button" onClick={() => setShown(shown + LEGEND_STEP * 5)}>{list.length - shown} more series</button>}
    </div>
  );
}
