/* tabs.tsx - tabs as the keyboard knows them: one stop, arrows move. */
import type { JSX } from "preact";

interface TabsProps<T extends string> {
  label: string;
  kind: string; /* prefix of ids */
  names: Record<T, string>;
  order: readonly T[];
  chosen: T;
  panel: string;
  choose: (tab: T) => void;
}

export function Tabs<T extends string>({ label, kind, names, order, chosen, panel, choose }: TabsProps<T>) {
  const move = (e: JSX.TargetedKeyboardEvent<HTMLElement>) => {
    const at = order.indexOf(chosen), last = order.length - 1;
    const to = { ArrowRight: at === last ? 0 : at + 1, ArrowLeft: at === 0 ? last : at - 1, Home: 0, End: last }[e.key];
    if (to === undefined) return;
    e.preventDefault();
    choose(order[to]);
    window.document.getElementById(`${kind}-${order[to]}`)?.focus();
  };
  return (
    <div class={"tabs " + kind} role="tablist" aria-label={label} onKeyDown={move}>
      {order.map((tab) => (
        <button key={tab} type="button" role="tab" id={`${kind}-${tab}`} data-testid={`${kind}-${tab}`} aria-selected={chosen === tab} aria-controls={panel} data-name={names[tab]} tabIndex={chosen === tab ? 0 : -1} onClick={() => choose(tab)}>
          {names[tab]}
        </button>
      ))}
    </div>
  );
}
