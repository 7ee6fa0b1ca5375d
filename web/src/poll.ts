/* poll.ts - look at something every second while its tab is open and visible. */
import { useEffect, useState } from "preact/hooks";

export function usePoll<T>(look: (signal: AbortSignal) => Promise<T>, ms = 1000): { value: T | null; error: string | null } {
  const [value, setValue] = useState<T | null>(null), [error, setError] = useState<string | null>(null);
  useEffect(() => {
    const abort = new AbortController();
    let timer = 0;
    const turn = async () => {
      if (!window.document.hidden) {
        try {
          setValue(await look(abort.signal));
          setError(null);
        } catch (problem) {
          if (abort.signal.aborted) return;
          setError(String((problem as Error).message ?? problem));
        }
      }
      if (!abort.signal.aborted) timer = window.setTimeout(turn, ms);
    };
    void turn();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, []);
  return { value, error };
}
