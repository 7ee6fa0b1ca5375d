/* watch.ts - lists that are looked at while their tab is open: told of by the API, or asked for again and
 * again. A connection that is lost comes back by itself. */
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, watch } from "./api";

const AGAIN_MS = 1000;

function problem(error: unknown): string {
  if (error instanceof ApiError) return error.message;
  return "The API cannot be reached; trying again.";
}
/* Nothing that time would mend: no right to see it, no such thing. */
function isFinal(error: unknown): boolean {
  return error instanceof ApiError && error.status >= 400 && error.status < 500 && error.status !== 429;
}

/* Hear of each event at @path. What is wrong now, or null. */
export function useWatch<E>(path: string, hear: (event: E) => void): string | null {
  const [error, setError] = useState<string | null>(null), latest = useRef(hear);
  latest.current = hear;
  useEffect(() => {
    const over = new AbortController();
    let timer = 0;
    const turn = async () => {
      try {
        await watch<E>(path, over.signal, (event) => {
          setError(null);
          latest.current(event);
        });
        if (!over.signal.aborted) setError("The API ended the stream; trying again.");
      } catch (thrown) {
        if (over.signal.aborted) return;
        setError(problem(thrown));
        if (isFinal(thrown)) return;
      }
      if (!over.signal.aborted) timer = window.setTimeout(turn, AGAIN_MS);
    };
    void turn();
    return () => {
      over.abort();
      clearTimeout(timer);
    };
  }, [path]);
  return error;
}

/* What @look gives, every now and then while the page is visible; null before the first time, and while
 * it fails. */
export function usePoll<T>(look: (signal: AbortSignal) => Promise<T>, ms: number): T | null {
  const [value, setValue] = useState<T | null>(null);
  useEffect(() => {
    const over = new AbortController();
    let timer = 0;
    const turn = async () => {
      if (!window.document.hidden)
        await look(over.signal).then(setValue, () => !over.signal.aborted && setValue(null));
      if (!over.signal.aborted) timer = window.setTimeout(turn, ms);
    };
    void turn();
    return () => {
      over.abort();
      clearTimeout(timer);
    };
  }, []);
  return value;
}
