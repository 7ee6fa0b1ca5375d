"""test_clients.py - clients that others wrote: promtool, and npm's eventsource and prometheus-query.

Each is used if it is installed or can be installed; else its tests are skipped with the reason."""
import json
import os
import pathlib
import shutil
import subprocess
import unittest

from harness import START, FabricTest

END = START + 3600
CACHE = pathlib.Path(os.environ.get("PROMFABRIC_CACHE") or
                     pathlib.Path(os.environ.get("XDG_CACHE_HOME") or
                                  pathlib.Path.home() / ".cache") / "promfabric")
PACKAGES = ["eventsource@2", "prometheus-query@3"]


def npm_folder():
    """A folder with the packages installed, or why there is none."""
    if not shutil.which("node") or not shutil.which("npm"):
        return None, "node and npm are not installed"
    folder = CACHE / "npm-api-clients"
    if not (folder / "node_modules" / "eventsource").is_dir() or \
            not (folder / "node_modules" / "prometheus-query").is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        run = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--silent",
                              "--fetch-retries=1", "--fetch-timeout=30000", "--prefix",
                              str(folder), *PACKAGES], capture_output=True, text=True, timeout=240)
        if run.returncode != 0:
            return None, "npm cannot install the packages: " + run.stderr.strip()[-200:]
    return folder, None


class Promtool(FabricTest):
    def promtool(self, *args):
        program = shutil.which("promtool") or str(CACHE / "peers" / "usr" / "bin" / "promtool")
        if not os.path.exists(program):
            self.skipTest("promtool is neither installed nor in the cache folder")
        url = f"http://127.0.0.1:{self.fabric.api_port}"
        run = subprocess.run([program, *[a.replace("URL", url) for a in args]],
                             capture_output=True, text=True, timeout=60)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        return run.stdout

    def test_instant(self):
        out = self.promtool("query", "instant", f"--time={END}", "URL", "up")
        self.assertEqual(sorted(out.splitlines()),
                         [f'up{{job="api"}} => 0 @[{END}]', f'up{{job="web"}} => 1 @[{END}]'])

    def test_range(self):
        out = self.promtool("query", "range", f"--start={END - 60}", f"--end={END}", "--step=30s",
                            "URL", "sum(up)")
        self.assertEqual(out.strip(), "{} =>\n" + "\n".join(f"1 @[{END - 60 + 30 * i}]"
                                                            for i in range(3)))

    def test_series_and_labels(self):
        out = self.promtool("query", "series", "--match=up", f"--start={START}",
                            f"--end={END}", "URL")
        self.assertEqual(sorted(out.split("\n"))[-2:], ['{__name__="up", job="api"}',
                                                        '{__name__="up", job="web"}'])
        self.assertEqual(self.promtool("query", "labels", f"--start={START}", f"--end={END}",
                                       "URL", "job").split(), ["api", "web"])

    def test_checks(self):
        self.promtool("check", "healthy", "--url=URL")
        self.promtool("check", "ready", "--url=URL")


class Npm(FabricTest):
    def node(self, script):
        folder, why = npm_folder()
        if not folder:
            self.skipTest(why)
        env = {**os.environ, "NODE_PATH": str(folder / "node_modules"),
               "URL": f"http://127.0.0.1:{self.fabric.api_port}"}
        run = subprocess.run(["node", "-e", script], capture_output=True, text=True, timeout=60,
                             env=env)
        self.assertEqual(run.returncode, 0, run.stderr)
        return json.loads(run.stdout)

    def test_eventsource(self):
        got = self.node("""
            const EventSource = require('eventsource');
            const source = new EventSource(process.env.URL +
                '/api/v1/metrics/query?q=up&s=%d&e=%d&step=30s');
            const events = [];
            source.onmessage = (message) => {
                const event = JSON.parse(message.data);
                events.push(event);
                if (event.type === 'done') { source.close(); console.log(JSON.stringify(events)); }
            };
            source.onerror = (error) => { console.error(error); process.exit(1); };
        """ % (END - 60, END))
        self.assertEqual([e["type"] for e in got], ["result"] * 6 + ["done"])

    def test_prometheus_query(self):
        got = self.node("""
            const { PrometheusDriver } = require('prometheus-query');
            const prom = new PrometheusDriver({ endpoint: process.env.URL, baseURL: '/api/v1' });
            (async () => {
                const instant = await prom.instantQuery('up', new Date(%d000));
                const range = await prom.rangeQuery('sum(up)', %d000, %d000, 30);
                const series = await prom.series(['up'], new Date(%d000), new Date(%d000));
                const names = await prom.labelNames();
                const values = await prom.labelValues('job');
                console.log(JSON.stringify({
                    instant: instant.result.map((r) => r.value.value),
                    range: range.result[0].values.map((v) => v.value),
                    series: series.length, names, values }));
            })().catch((error) => { console.error(error); process.exit(1); });
        """ % (END, END - 60, END, START, END))
        self.assertEqual(got, {"instant": [0, 1], "range": [1, 1, 1], "series": 2,
                               "names": ["__name__", "instance", "job"],
                               "values": ["api", "web"]})


if __name__ == "__main__":
    unittest.main()
