/* main.tsx - the shell: tabs, theme, key, and the address that says it all. */
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import "uplot/dist/uPlot.min.css";
import "./style.css";
import { credentials, onKeyNeeded } from "./api";
import { FabricTab } from "./fabric";
import { setZone, zone } from "./format";
import { MetricsTab } from "./metrics";
import { QueriesTab } from "./queries";
import { QueryTab } from "./query";
import { read, TABS, write, type State, type Tab } from "./state";

const NAMES: Record<Tab, string> = { query: "Query", queries: "Queries", fabric: "Fabric", metrics: "Metrics" };
const THEME = "promfabric.theme";

function systemDark() {
  return window.matchMedia("(prefers-color-scheme: dark)").matches;
}

function KeyForm({ done }: { done: () => void }) {
  const [key, setKey] = useState("");
  return (
    <form class="key" aria-label="API key" data-testid="key-form" onSubmit={(e) => { e.preventDefault(); credentials.key = key.trim(); done(); }}>
      <p>This API asks for a key. It is kept until this tab is closed, and sent to this server only.</p>
      <label>API key <input type="password" autocomplete="off" value={key} onInput={(e) => setKey(e.currentTarget.value)} /></label>
      <button type="submit" class="primary">Use it</button>
    </form>
  );
}

function App() {
  const [state, setState] = useState<State>(() => read(location.search));
  const [theme, setTheme] = useState(localStorage.getItem(THEME) ?? "system"), [dark, setDark] = useState(systemDark());
  const [keyNeeded, setKeyNeeded] = useState(false), [life, setLife] = useState(0), [clock, setClock] = useState(zone());
  const isDark = theme === "system" ? dark : theme === "dark";
  window.document.documentElement.dataset.theme = isDark ? "dark" : "light";

  useEffect(() => {
    onKeyNeeded(() => setKeyNeeded(true));
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
    setKeyNeeded(false);
    setLife((n) => n + 1);
  };
  return (
    <>
      <header>
        <h1>Promfabric</h1>
        <nav role="tablist" aria-label="Pages">
          {TABS.map((tab) => <button key={tab} type="button" role="tab" id={"tab-" + tab} aria-selected={state.tab === tab} aria-controls="main" data-testid={"tab-" + tab} onClick={() => change({ tab }, true)}>{NAMES[tab]}</button>)}
        </nav>
        <span class="spread" />
        <label>Tenant <input class="narrow" defaultValue={credentials.tenant} onChange={(e) => { credentials.tenant = e.currentTarget.value.trim(); restart(); }} /></label>
        <label>Clock <select value={clock} onChange={(e) => { setZone(e.currentTarget.value); setClock(e.currentTarget.value); }}><option value="local">local</option><option value="utc">UTC</option></select></label>
        <label>Theme <select value={theme} data-testid="theme" onChange={(e) => { localStorage.setItem(THEME, e.currentTarget.value); setTheme(e.currentTarget.value); }}><option value="system">system</option><option value="light">light</option><option value="dark">dark</option></select></label>
      </header>
      {keyNeeded && <KeyForm done={restart} />}
      <main id="main" role="tabpanel" aria-labelledby={"tab-" + state.tab} key={state.tab + "/" + life}>
        {state.tab === "query" && <QueryTab state={state} change={change} dark={isDark} />}
        {state.tab === "queries" && <QueriesTab />}
        {state.tab === "fabric" && <FabricTab />}
        {state.tab === "metrics" && <MetricsTab until={state.end} ask={(expr) => change({ tab: "query", exprs: [expr] }, true)} />}
      </main>
    </>
  );
}

render(<App />, window.document.getElementById("app")!);
