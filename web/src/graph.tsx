/* graph.tsx - the graph: series of all queries over one time axis, drawn while they come. */
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { number, short, time, zoneName, zone } from "./format";
import { Name } from "./name";
import { picture } from "./picture";
import { steps, type Run, type Series } from "./run";

/* More lines than this say nothing, and cost seconds; the page tells what is not drawn. */
const DRAWN_MAX = 5000;
const LEGEND_STEP = 100;
const PATTERNS = "promfabric.patterns";

const LIGHT = ["#2f5bd8", "#c8501e", "#15824f", "#8e3bb0", "#a97700", "#0b7f92", "#bf2f62", "#587317", "#6d4ce0", "#7d5236", "#35688a", "#63666d"];
const DARK = ["#86aaff", "#ff9a6c", "#5fd39a", "#d596f2", "#f0c252", "#57cfe0", "#ff7fa8", "#b7d65c", "#b3a1ff", "#d8a97c", "#8fc2e2", "#b6b9c0"];
export function color(index: number, dark: boolean): string {
  return (dark ? DARK : LIGHT)[index % LIGHT.length];
}
/* When colours are used up, or for whoever cannot tell them: patterns beside them. */
const DASHES = [[], [9, 4], [2, 3], [10, 3, 2, 3]];
function dash(index: number, patterns: boolean): number[] {
  return DASHES[(patterns ? index : Math.floor(index / LIGHT.length)) % DASHES.length];
}

export interface GraphProps {
  runs: Run[];
  version: number;
  dark: boolean;
  zoom: (from: number, to: number) => void;
  widen: () => void;
  hidden: Set<string>;
  toggle: (name: string, only: boolean) => void;
  shot: { take: (() => HTMLCanvasElement | null) | null }; /* filled in: the graph as a picture */
}

/* The times of all runs: they were asked together, so they are the same. */
function timesOf(run: Run): number[] {
  const times = new Array<number>(steps(run.ask));
  for (let i = 0; i < times.length; i++) times[i] = (run.ask.s + i * run.ask.step) / 1000;
  return times;
}

type Hovered = { index: number; at: number; left: number; top: number } | null;

const focused = new WeakMap<uPlot, number | null>();

/* A value without neighbours is a dot, or nobody would see it. */
function single(series: Series): boolean {
  let count = 0;
  for (const value of series.values) if (value !== null && ++count > 2) return false;
  return count > 0;
}

function timeAxis(): uPlot.Axis.Values {
  const day = "\n{YYYY}-{MM}-{DD}";
  return [
    [86400, "{MM}-{DD}", "\n{YYYY}", null, null, null, null, null, 1],
    [3600, "{HH}:{mm}", day, null, day, null, null, null, 1],
    [60, "{HH}:{mm}", day, null, day, null, null, null, 1],
    [1, "{HH}:{mm}:{ss}", day, null, day, null, null, null, 1],
  ] as uPlot.Axis.Values;
}

/* A range that leaves room above and below, with zero in it where that costs little. */
function valueRange(_u: uPlot, low: number | null, high: number | null): [number, number] {
  if (low === null || high === null) return [0, 1];
  if (low === high) return low === 0 ? [-1, 1] : [Math.min(0, low * 1.2), Math.max(0, low * 1.2)];
  const room = (high - low) * 0.06;
  const zero = low >= 0 && low < (high - low) * 0.6;
  return [zero ? 0 : low - room, high + room];
}

function options(props: GraphProps, list: Series[], width: number, patterns: boolean, hover: (hovered: Hovered) => void): uPlot.Options {
  const style = getComputedStyle(window.document.documentElement);
  const ink = style.getPropertyValue("--ink-soft").trim(), line = style.getPropertyValue("--grid").trim();
  const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
  const thin = list.length > 50 ? 1 : 1.6;
  return {
    width,
    height: Math.max(260, Math.min(460, Math.round(window.innerHeight * 0.46))),
    padding: [12, 16, 0, 4],
    legend: { show: false },
    focus: { alpha: 1 },
    tzDate: (ts) => (zone() === "local" ? new Date(ts * 1e3) : uPlot.tzDate(new Date(ts * 1e3), zoneName())),
    cursor: { points: { one: true, size: 8 }, focus: { prox: 1e6 }, drag: { x: true, y: false, setScale: false }, bind: { dblclick: () => () => (props.widen(), null) } },
    scales: { y: { range: valueRange } },
    axes: [
      { ...axis, size: 40, gap: 6, values: timeAxis() },
      { ...axis, size: (_u, values) => Math.max(44, 14 + 7 * Math.max(0, ...(values ?? []).map((text) => text.length))), gap: 6, values: (_u, ticks) => ticks.map(number) },
    ],
    series: [{}, ...list.map((series, i) => ({ label: String(i), stroke: color(i, props.dark), dash: dash(i, patterns), width: thin, show: !props.hidden.has(series.name), spanGaps: false, points: { show: single(series) } }))],
    hooks: {
      setSelect: [(u) => u.select.width > 4 && props.zoom(u.posToVal(u.select.left, "x") * 1000, u.posToVal(u.select.left + u.select.width, "x") * 1000)],
      setCursor: [(u) => {
        const index = focused.get(u) ?? null;
        hover(u.cursor.idx == null || index === null ? null : { index, at: u.cursor.idx, left: (u.cursor.left ?? 0) + u.over.offsetLeft, top: u.cursor.top ?? 0 });
      }],
      setSeries: [(u, index) => void focused.set(u, index == null ? null : index - 1)],
    },
  };
}

/* What is under the mouse, in a component of its own: a move must not touch thousands of series. */
function Tip({ hook, list, run, dark }: { hook: { show: (hovered: Hovered) => void }; list: Series[]; run: Run; dark: boolean }) {
  const [tip, setTip] = useState<Hovered>(null), box = useRef<HTMLDivElement>(null);
  hook.show = setTip;
  const series = tip && list[tip.index];
  if (!tip || !series) return null;
  const value = series.values[tip.at], room = box.current?.parentElement?.clientWidth ?? 1000;
  const side = tip.left > room / 2 ? { right: room - tip.left + 14 + "px", left: "auto" } : { left: tip.left + 14 + "px", right: "auto" };
  return (
    <div ref={box} class="tip" aria-hidden="true" style={{ ...side, top: Math.max(4, tip.top - 20) + "px" }}>
      <div><span class="swatch" style={{ background: color(tip.index, dark) }} /> <b>{value === null ? "no value" : number(value)}</b> <span class="soft">{time(run.ask.s + tip.at * run.ask.step)}</span></div>
      <Labels series={series} />
    </div>
  );
}

/* Labels as lines: name by name, as long as they are. */
function Labels({ series }: { series: Series }) {
  const { __name__: name, ...others } = series.labels, pairs = Object.entries(others);
  return (
    <>
      {name && <div><b>{short(name, 120)}</b></div>}
      <dl>{pairs.slice(0, 12).map(([key, value]) => <div key={key}><dt>{short(key, 60)}</dt><dd><bdi>{short(value, 120)}</bdi></dd></div>)}</dl>
      {pairs.length > 12 && <div class="soft">{pairs.length - 12} more labels</div>}
      {!name && !pairs.length && <div class="soft">no labels</div>}
    </>
  );
}

function Legend({ props, list, patterns }: { props: GraphProps; list: Series[]; patterns: boolean }) {
  const [shown, setShown] = useState(LEGEND_STEP);
  const many = props.runs.length > 1;
  return (
    <>
      <ul class="legend" aria-label="Series">
        {list.slice(0, shown).map((series, i) => (
          <li key={series.expr + series.name}>
            <button type="button" class={props.hidden.has(series.name) ? "off" : ""} aria-pressed={!props.hidden.has(series.name)} title="Click: show or hide; with Ctrl: only this one" onClick={(e) => props.toggle(series.name, e.ctrlKey || e.metaKey)}>
              <svg width="22" height="8" aria-hidden="true"><line x1="0" y1="4" x2="22" y2="4" stroke={color(i, props.dark)} stroke-width="3" stroke-dasharray={dash(i, patterns).join(" ") || "none"} /></svg>
              {many && <span class="letter">{String.fromCharCode(65 + series.expr)}</span>}
              <Name labels={series.labels} max={300} />
              <span class="last">{series.last === null ? "" : typeof series.last === "number" ? number(series.last) : typeof series.last === "string" ? series.last : `${series.last.count} observations`}</span>
            </button>
          </li>
        ))}
      </ul>
      {list.length > shown && <button type="button" onClick={() => setShown(shown + LEGEND_STEP * 5)}>{list.length - shown} more series</button>}
    </>
  );
}

export function Graph(props: GraphProps) {
  const box = useRef<HTMLDivElement>(null), plot = useRef<uPlot | null>(null), shape = useRef("");
  const tip = useRef<{ show: (hovered: Hovered) => void }>({ show: () => {} });
  const [patterns, setPatterns] = useState(localStorage.getItem(PATTERNS) === "1" || window.matchMedia("(prefers-contrast: more)").matches);
  const all = props.runs.flatMap((run) => run.series), list = all.slice(0, DRAWN_MAX);
  const key = [list.length, props.runs.map((r) => r.began).join(), props.dark, patterns, zone(), [...props.hidden].join("\u0000")].join("|");

  useEffect(() => {
    if (!box.current || !props.runs.length) return;
    const data = [timesOf(props.runs[0]), ...list.map((series) => series.values)] as uPlot.AlignedData;
    const begun = performance.now();
    if (plot.current && shape.current === key) {
      plot.current.setData(data);
    } else {
      plot.current?.destroy();
      tip.current.show(null);
      plot.current = new uPlot(options(props, list, box.current.clientWidth, patterns, (hovered) => tip.current.show(hovered)), data, box.current);
      shape.current = key;
    }
    props.shot.take = () => {
      const shown = list.flatMap((series, i) => (props.hidden.has(series.name) ? [] : [{ series, i }]));
      return plot.current && picture({ canvas: plot.current.ctx.canvas, runs: props.runs, series: shown.map((one) => one.series), color: (index) => color(shown[index].i, props.dark) });
    };
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
    <section class="graph">
      <div class="canvas">
        <div ref={box} class="plot" role="img" aria-label="Graph of the query; the Table view has its values as text" data-testid="plot" />
        {!all.length && <p class="empty over">Nothing to draw.</p>}
        <Tip hook={tip.current} list={list} run={props.runs[0]} dark={props.dark} />
      </div>
      <div class="row under">
        <span class="note">Drag to zoom, double-click to see twice as much.</span>
        <span class="spread" />
        <label class="check"><input type="checkbox" checked={patterns} data-testid="patterns" onChange={(e) => { localStorage.setItem(PATTERNS, e.currentTarget.checked ? "1" : ""); setPatterns(e.currentTarget.checked); }} /> patterns</label>
      </div>
      {all.length > list.length && <p class="warn">{list.length} of {all.length} series are drawn; the table has all of them.</p>}
      {odd > 0 && <p class="note">{odd} values are NaN or infinite and not drawn.</p>}
      {histograms && <p class="note">Native histograms are drawn as their number of observations.</p>}
      <Legend props={props} list={list} patterns={patterns} />
    </section>
  );
}
