/* main.tsx - the shell: tabs, theme, key, and the address that says it all. */
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import "uplot/dist/uPlot.min.css";
import "./style.css";
import { credentials, document, onKeyNeeded } from "./api";
import { FabricTab, type Scaling } from "./fabric";
import { counted, setZone, zone, zones } from "./format";
import { setRegion } from "./live";
import { MetricsTab } from "./metrics";
import { QueriesTab } from "./queries";
import { QueryTab } from "./query";
import { read, TABS, write, type State, type Tab } from "./state";
import { Tabs } from "./tabs";
import { chosenTheme, keepTheme, systemDark, type Theme } from "./theme";
import { usePoll } from "./watch";

const NAMES: Record<Tab, string> = { query: "Query", queries: "Queries", fabric: "Fabric", metrics: "Metrics" };

/* Threads over and under each other; index.html has it too. */
function Mark() {
  return (
    <svg class="mark" viewBox="0 0 24 24" width="24" height="24" aria-hidden="true">
      <g fill="none" stroke-width="3.4" stroke-linecap="round">
        <path class="warp" d="M6 3v5M6 16v5M12 3v1.5M12 10.5v3M12 19.5v1.5M18 3v5M18 16v5" />
        <path class="warp" d="M6 8v8M18 8v8M12 4.5v6M12 13.5v6" opacity=".45" />
        <path class="weft" d="M3 6h18M3 12h18M3 18h18" />
        <path class="warp" d="M12 4.4v3.2M6 10.4v3.2M18 10.4v3.2M12 16.4v3.2" />
      </g>
    </svg>
  );
}

function KeyForm({ refused, done }: { refused: boolean; done: () => void }) {
  const [key, setKey] = useState("");
  return (
    <form class="key" aria-label="API key" data-testid="key-form" onSubmit={(e) => { e.preventDefault(); credentials.key = key.trim(); done(); }}>
      <p>
        <b>{refused ? "That key is not, or no longer, good here." : "This API asks for a key."}</b> It is kept until this tab is closed, and sent to this server only.
      </p>
      <label>API key <input type="password" autocomplete="off" value={key} ref={(field) => field?.focus()} onInput={(e) => setKey(e.currentTarget.value)} /></label>
      <button type="submit" class="primary">Use it</button>
    </form>
  );
}

/* Is there anybody to do the work? */
function Health({ open }: { open: () => void }) {
  const scaling = usePoll((signal) => document<Scaling>("/monitor/scaling", signal), 3000);
  const alive = scaling?.workers.alive ?? 0;
  return (
    <button type="button" class={"health " + (!scaling ? "away" : alive ? "good" : "none")} data-testid="health" onClick={open} title="Workers that this API reaches">
      {!scaling ? "API away" : alive ? counted(alive, "worker") : "no workers"}
    </button>
  );
}

function ZoneSelect({ changed }: { changed: () => void }) {
  return (
    <select aria-label="Time zone" title="Time zone" data-testid="zone" value={zone()} onChange={(e) => { setZone(e.currentTarget.value); changed(); }}>
      <option value="local">Local time</option>
      <option value="utc">UTC</option>
      <optgroup label="Elsewhere">{zones().map((name) => <option key={name} value={name}>{name}</option>)}</optgroup>
    </select>
  );
}

function ThemeSelect({ theme, change }: { theme: Theme; change: (theme: Theme) => void }) {
  return (
    <select aria-label="Theme" title="Theme" value={theme} data-testid="theme" onChange={(e) => { keepTheme(e.currentTarget.value as Theme); change(e.currentTarget.value as Theme); }}>
      <option value="system">Auto</option>
      <option value="light">Light</option>
      <option value="dark">Dark</option>
    </select>
  );
}

function App() {
  const [state, setState] = useState<State>(() => read(location.search));
  const [theme, setTheme] = useState(chosenTheme), [dark, setDark] = useState(systemDark());
  const [keyForm, setKeyForm] = useState<"" | "needed" | "refused">(""), [life, setLife] = useState(0), [, setClock] = useState(0);
  const isDark = theme === "system" ? dark : theme === "dark";
  window.document.documentElement.dataset.theme = isDark ? "dark" : "light";
  credentials.tenant = state.tenant;

  useEffect(() => {
    onKeyNeeded((refused) => setKeyForm(refused ? "refused" : "needed"));
    const media = window.matchMedia("(prefers-color-scheme: dark)"), changed = () => setDark(media.matches);
    const back = () => {
      setState(read(location.search));
      setLife((n) => n + 1);
    };
    media.addEventListener("change", changed);
    window.addEventListener("popstate", back);
    return () => {
      media.removeEventListener("change", changed);
      window.removeEventListener("popstate", back);
    };
  }, []);
  const change = (changes: Partial<State>, push = false) =>
    setState((old) => {
      const next = { ...old, ...changes }, address = write(next);
      if (push && address !== location.pathname + location.search) history.pushState(null, "", address);
      return next;
    });
  const restart = () => {
    setKeyForm("");
    setLife((n) => n + 1);
  };
  return (
    <>
      <header>
        <h1><Mark /> Promfabric</h1>
        <nav aria-label="Promfabric"><Tabs label="Pages" kind="tab" names={NAMES} order={TABS} chosen={state.tab} panel="main" choose={(tab) => change({ tab }, true)} /></nav>
        <span class="spread" />
        <Health open={() => change({ tab: "fabric" }, true)} />
        <input class="tenant" aria-label="Tenant" title="Tenant: empty is the key's own, or the default" placeholder="tenant" value={state.tenant} data-testid="tenant" onChange={(e) => { change({ tenant: e.currentTarget.value.trim() }, true); restart(); }} />
        <ZoneSelect changed={() => setClock((n) => n + 1)} />
        <ThemeSelect theme={theme} change={setTheme} />
      </header>
      {keyForm && <KeyForm refused={keyForm === "refused"} done={restart} />}
      <main id="main" role="tabpanel" aria-labelledby={"tab-" + state.tab} key={state.tab + "/" + life + "/" + state.tenant}>
        {state.tab === "query" && <QueryTab state={state} change={change} dark={isDark} />}
        {state.tab === "queries" && <QueriesTab ask={(changes) => change({ tab: "query", view: "graph", ...changes }, true)} />}
        {state.tab === "fabric" && <FabricTab />}
        {state.tab === "metrics" && <MetricsTab until={state.end} ask={(expr) => change({ tab: "query", view: "graph", exprs: [expr] }, true)} />}
      </main>
      <div class="unseen" role="status" aria-live="polite" data-testid="live" ref={setRegion} />
      <footer><a href="/assets/licences.txt">Licences</a> <a href="/metrics">Metrics of this API</a></footer>
    </>
  );
}

render(<App />, window.document.getElementById("app")!);
