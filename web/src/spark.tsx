/* spark.tsx - a small line of what was a moment ago. */

/* Values that are kept: of a minute, told twice a second. */
export const PAST = 120;

export function Spark({ values, most, label }: { values: number[]; most: number; label: string }) {
  const height = 28, width = 120, top = Math.max(1, most);
  const at = (i: number) => width - (values.length - 1 - i) * (width / (PAST - 1));
  const line = values.map((value, i) => `${at(i).toFixed(1)},${(height - 1 - (Math.min(value, top) / top) * (height - 3)).toFixed(1)}`);
  return (
    <svg class="spark" viewBox={`0 0 ${width} ${height}`} width={width} height={height} role="img" aria-label={label}>
      {values.length > 1 && <polygon points={`${at(0)},${height} ${line.join(" ")} ${width},${height}`} />}
      {values.length > 1 && <polyline points={line.join(" ")} />}
    </svg>
  );
}
