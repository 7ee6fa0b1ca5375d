/* name.tsx - a series' labels as they would be written. Text of a value may run from right to left, or turn what
 * follows it around: each value is isolated, so that quotes, names and braces stay where they belong. */
import type { ComponentChildren } from "preact";
import type { Labels } from "./format";

/* The same text as seriesName(), at most @max characters of it and a word on the rest. */
export function Name({ labels, max }: { labels: Labels; max: number }) {
  const { __name__: name = "", ...others } = labels, pairs = Object.entries(others), parts: ComponentChildren[] = [];
  let length = 0;
  const put = (text: string, foreign: boolean) => {
    const shown = text.slice(0, Math.max(0, max - length));
    length += text.length;
    if (shown) parts.push(foreign ? <bdi key={parts.length}>{shown}</bdi> : shown);
  };
  put(name, true);
  if (pairs.length || !name) put("{", false);
  pairs.forEach(([key, value], i) => {
    put(i ? ", " : "", false);
    put(key, true);
    put('="', false);
    put(JSON.stringify(value).slice(1, -1), true);
    put('"', false);
  });
  if (pairs.length || !name) put("}", false);
  return <span class="name" dir="ltr">{parts}{length > max && `… (${length} characters)`}</span>;
}
