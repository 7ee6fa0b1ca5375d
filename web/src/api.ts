/* api.ts - the API as the page uses it: requests with the key and the tenant, and event streams. */

export class ApiError extends Error {
  constructor(message: string, readonly status: number, readonly code = "") {
    super(message);
  }
}

/* The key lives as long as the browser's tab and is sent as a header, never in an address. */
const KEY = "promfabric.key";
let tenant = "";

export const credentials = {
  get key() {
    return sessionStorage.getItem(KEY) ?? "";
  },
  set key(value: string) {
    sessionStorage.setItem(KEY, value);
  },
  get tenant() {
    return tenant;
  },
  set tenant(value: string) {
    tenant = value;
  },
};

/* Who wants to know that a key is needed; @refused: one was sent. */
let needKey: (refused: boolean) => void = () => {};
export function onKeyNeeded(fn: (refused: boolean) => void) {
  needKey = fn;
}

export async function request(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  if (credentials.key) headers.set("Authorization", "Bearer " + credentials.key);
  if (credentials.tenant) headers.set("X-Scope-OrgID", credentials.tenant);
  const response = await fetch(path, { ...init, headers });
  if (response.status === 401) needKey(headers.has("Authorization"));
  return response;
}

/* The reason of an answer that is no success, in the words of the API. */
async function failure(response: Response): Promise<ApiError> {
  const text = await response.text();
  try {
    const body = JSON.parse(text);
    return new ApiError(body.message ?? body.error ?? text, response.status, body.code ?? body.errorType);
  } catch {
    return new ApiError(text.slice(0, 300) || "HTTP status " + response.status, response.status);
  }
}

/* The data of one of Prometheus's documents. */
export async function data<T>(path: string, init: RequestInit = {}): Promise<T> {
  const response = await request(path, init);
  if (!response.ok) throw await failure(response);
  return (await response.json()).data as T;
}

export async function document<T>(path: string, signal?: AbortSignal): Promise<T> {
  const response = await request(path, { signal });
  if (!response.ok) throw await failure(response);
  return (await response.json()) as T;
}

/* --- events: queryapi/encode/explain.h has their forms --- */

export type Value = number | string | null | Histogram;
export interface Histogram {
  count: string;
  sum: string;
  buckets?: [number, string, string, string][];
}

export interface PlanNode {
  node: string;
  detail?: string;
  leaf?: number;
  by?: string[];
  without?: string[];
  pos: [number, number];
  steps: number;
  children?: PlanNode[];
}
export interface Leaf {
  id: number;
  kind: string;
  text: string;
  min_ms: number;
  max_ms: number;
  steps: number;
  step_ms: number;
}
export interface Planned {
  query_id: string;
  plan: { tree: PlanNode; leaves: Leaf[] };
  estimate: { segments: number; bytes: number; samples: number; seconds: number };
  works: { id: number; leaf: number; shards: number; segments: number; bytes: number }[];
}
export interface Work {
  id: number;
  state: string;
  worker?: string;
  attempt: number;
  failures: number;
  reason?: string;
  hedged?: boolean;
  queued_us?: number;
  download_us?: number;
  scan_us?: number;
  write_us?: number;
  fetch_us?: number;
  rows?: number;
  series?: number;
  samples?: number;
  artifact_bytes?: number;
  download_bytes?: number;
  cache_hits?: number;
  cache_misses?: number;
}
export interface Done {
  status: string;
  warnings?: string[];
  infos?: string[];
  stats?: Record<string, number>;
  nodes?: { self_us: number; series: number; blocks: number }[]; /* of the plan's tree, in its order */
  coverage?: { segments: number; works: number; heads: number; checksum: string };
}
export interface Batch {
  start: number;
  step: number;
  steps: number;
  rows: [number, ...Value[]][];
}
export type QueryEvent =
  | { type: "stage"; data: { name: string; t_ms: number } }
  | { type: "plan"; data: Planned }
  | { type: "works"; data: { t_ms: number; changed: Work[] } }
  | { type: "series"; data: { first: number; list: Record<string, string>[] } }
  | { type: "batch"; data: Batch }
  | { type: "error"; data: { code: string; message: string } }
  | { type: "done"; data: Done };

export interface Ask {
  q: string;
  s: number;
  e: number;
  step: number;
}

/* Hand over each event of an answer as it comes. */
async function readEvents<E>(response: Response, hear: (event: E) => void): Promise<void> {
  if (!response.ok) throw await failure(response);
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest: string[] = []; /* pieces of a line that has not ended: a label may have a megabyte */
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = value.split("\n");
    if (lines.length === 1) {
      rest.push(value);
      continue;
    }
    lines[0] = rest.join("") + lines[0];
    rest = [lines.pop()!];
    for (const line of lines) if (line.startsWith("data: ")) hear(JSON.parse(line.slice(6)) as E);
  }
}

/* Ask, and hear of everything until it is over. An answer that ends without `done` was cut. */
export async function stream(ask: Ask, signal: AbortSignal, hear: (event: QueryEvent) => void): Promise<void> {
  let over = false;
  const response = await request("/api/v1/metrics/query", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ q: ask.q, s: ask.s / 1000, e: ask.e / 1000, step: ask.step / 1000 + "", format: "batch", explain: true }),
    signal,
  });
  await readEvents<QueryEvent>(response, (event) => {
    over ||= event.type === "done";
    hear(event);
  });
  if (!over) throw new ApiError("The connection was cut before the answer was complete.", 0, "cut");
}

/* A list that tells of its changes, until @signal. */
export async function watch<E>(path: string, signal: AbortSignal, hear: (event: E) => void): Promise<void> {
  await readEvents<E>(await request(path, { signal }), hear);
}
