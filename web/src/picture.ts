/* picture.ts - the graph as a picture that says what it shows: the queries, the lines, and their names below. */
import { number, short } from "./format";
import type { Run, Series } from "./run";

const NAMES = 24, ROW = 18, EDGE = 16;

export interface Drawn {
  canvas: HTMLCanvasElement;
  runs: Run[];
  series: Series[]; /* that are drawn, in their order */
  color: (index: number) => string;
}

/* Everything in CSS pixels; the canvas has as many of its own as the screen needs. */
export function picture({ canvas, runs, series, color }: Drawn): HTMLCanvasElement {
  const scale = canvas.width / canvas.clientWidth, style = getComputedStyle(window.document.documentElement);
  const ink = style.getPropertyValue("--ink").trim(), titles = runs.map((run) => short(run.ask.q.replace(/\s+/g, " "), 160));
  const named = series.slice(0, NAMES), more = series.length - named.length;
  const top = EDGE + titles.length * ROW, rows = named.length + (more ? 1 : 0);
  const width = canvas.clientWidth + 2 * EDGE, height = top + canvas.clientHeight + (rows + 1) * ROW;
  const out = window.document.createElement("canvas"), pen = out.getContext("2d")!;
  out.width = Math.round(width * scale);
  out.height = Math.round(height * scale);
  pen.scale(scale, scale);
  pen.fillStyle = style.getPropertyValue("--paper").trim();
  pen.fillRect(0, 0, width, height);
  pen.fillStyle = ink;
  pen.textBaseline = "middle";
  pen.font = "600 13px ui-monospace, monospace";
  titles.forEach((title, i) => pen.fillText(title, EDGE, EDGE + i * ROW, width - 2 * EDGE));
  pen.drawImage(canvas, EDGE, top, canvas.clientWidth, canvas.clientHeight);
  pen.font = "12px system-ui, sans-serif";
  named.forEach((one, i) => {
    const y = top + canvas.clientHeight + (i + 0.9) * ROW, last = typeof one.last === "number" ? "  " + number(one.last) : "";
    pen.fillStyle = color(i);
    pen.fillRect(EDGE, y - 2, 18, 4);
    pen.fillStyle = ink;
    pen.fillText(short(one.name, 160) + last, EDGE + 26, y, width - 2 * EDGE - 26);
  });
  if (more) pen.fillText(`and ${more} more`, EDGE + 26, top + canvas.clientHeight + (named.length + 0.9) * ROW);
  return out;
}
