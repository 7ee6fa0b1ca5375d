"""test_prometheus.py - the same requests to a real Prometheus with the same data: the same answers.

Uses the server that scripts/differential unpacks into the cache folder; skipped without it."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest
import urllib.error
import urllib.parse
import urllib.request

from harness import START, STEP, FabricTest, free_port, standard_lines, wait_for

END = START + 3600
CACHE = pathlib.Path(os.environ.get("PROMFABRIC_CACHE") or
                     pathlib.Path(os.environ.get("XDG_CACHE_HOME") or
                                  pathlib.Path.home() / ".cache") / "promfabric")
BIN = CACHE / "peers" / "usr" / "bin"


def open_metrics():
    """harness.standard_lines() as OpenMetrics text, without the series that goes stale."""
    lines = []
    for name, kind in (("http_requests", "counter"), ("temperature", "gauge"), ("up", "gauge")):
        lines.append(f"# TYPE {name} {kind}")
        rows = []
        if name == "up":
            rows = [('up{job="web"}', lambda k: 1), ('up{job="api"}', lambda k: 0)]
        else:
            for i in range(12):
                labels = f'{{job="{"api" if i % 2 else "web"}",instance="i{i}"}}'
                if name == "temperature":
                    rows.append((f"temperature{labels}", lambda k, i=i: 20 + i - 0.25 * k))
                else:
                    rows.append((f"http_requests_total{labels}", lambda k, i=i: (i + 1) * k))
        for series, value in rows:
            lines += [f"{series} {value(k)} {START + STEP * k}" for k in range(481)]
    return "\n".join(lines) + "\n# EOF\n"


def settle(answer):
    """Take out what depends on the order of a map, or came after the server's version."""
    data = answer.get("data")
    if isinstance(data, dict) and data.get("resultType") == "vector":
        data["result"].sort(key=lambda s: sorted(s["metric"].items()))
    for notes in ("warnings", "infos"):
        if notes in answer:
            answer[notes] = sorted(n for n in answer[notes] if "sort is ineffective" not in n)
            if not answer[notes]:
                del answer[notes]
    if answer.get("errorType") == "execution":
        answer["error"] = answer["error"].split("[")[0]  # which of several series is named
    strip(data)
    return answer


def strip(node):
    """parse_query's fields for extended range selectors and fill modifiers."""
    if isinstance(node, dict):
        node.pop("anchored", None)
        node.pop("smoothed", None)
        node.pop("fillValues", None)
        for child in node.values():
            strip(child)
    elif isinstance(node, list):
        for child in node:
            strip(child)


@unittest.skipUnless((BIN / "prometheus").exists() and (BIN / "promtool").exists(),
                     "no Prometheus in the cache folder; scripts/differential puts it there")
class SameAsPrometheus(FabricTest):
    lines = [line for line in standard_lines() if not line.startswith("short_lived")]

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = tempfile.mkdtemp(prefix="pf-prom-")
        with open(f"{cls.folder}/data.om", "w") as file:
            file.write(open_metrics())
        subprocess.run([BIN / "promtool", "tsdb", "create-blocks-from", "openmetrics",
                        f"{cls.folder}/data.om", f"{cls.folder}/tsdb"], check=True,
                       capture_output=True)
        open(f"{cls.folder}/prometheus.yml", "w").close()
        port = free_port()
        cls.url = f"http://127.0.0.1:{port}"
        cls.log = open(f"{cls.folder}/log", "w")
        cls.prometheus = subprocess.Popen(
            [BIN / "prometheus", f"--config.file={cls.folder}/prometheus.yml",
             f"--storage.tsdb.path={cls.folder}/tsdb", f"--web.listen-address=127.0.0.1:{port}",
             "--storage.tsdb.retention.time=100y"], stdout=cls.log, stderr=cls.log)
        wait_for("Prometheus", cls.is_ready, 60)

    @classmethod
    def is_ready(cls):
        try:
            with urllib.request.urlopen(cls.url + "/-/ready", timeout=2):
                return True
        except OSError:
            return False

    @classmethod
    def tearDownClass(cls):
        cls.prometheus.terminate()
        cls.prometheus.wait(20)
        cls.log.close()
        shutil.rmtree(cls.folder, ignore_errors=True)
        super().tearDownClass()

    def theirs(self, path, params):
        url = self.url + path + "?" + urllib.parse.urlencode(params, doseq=True)
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def compare(self, path, params):
        with self.subTest(path=path, params=params):
            status, _, body = self.fabric.get(path, params)
            their_status, their_body = self.theirs(path, params)
            ours, theirs = json.loads(body), json.loads(their_body)
            self.assertEqual((status, settle(ours)), (their_status, settle(theirs)))

    def test_queries(self):
        for query in ("up", "1", '"text"', "sum by (job) (rate(http_requests_total[5m]))",
                      "temperature[1m]", "rate(temperature[5m])", "-temperature", "1/0", "up == 2",
                      "sum(", "temperature + on (job) http_requests_total", "vector(time())",
                      "label_replace(up, \"a\", \"$1\", \"job\", \"(.*)\")", "foo(1)", "up{a=",
                      "histogram_quantile(2, up)", "avg_over_time(temperature[10m:1m])",
                      "topk(3, temperature)", "sort_desc(temperature)", "absent(nothing)"):
            self.compare("/api/v1/query", {"query": query, "time": END})
            self.compare("/api/v1/query_range", {"query": query, "start": END - 600, "end": END,
                                                 "step": "30s"})

    def test_parameters(self):
        for params in ({}, {"query": "up", "time": "x"}, {"query": "up", "time": f"{END}.123"},
                       {"query": "up", "time": "2023-11-14T23:20:00Z"},
                       {"query": "temperature", "time": END, "limit": 2 ** 31},
                       {"query": "up", "time": END, "limit": -1},
                       {"query": "up", "time": END, "limit": "many"},
                       {"query": "up", "time": END, "timeout": "soon"},
                       {"query": "up", "time": END + 290, "lookback_delta": "1m"},
                       {"query": "up", "time": END + 7000, "lookback_delta": "2h"}):
            self.compare("/api/v1/query", params)
        for params in ({"query": "up"}, {"query": "up", "start": 1, "end": 2},
                       {"query": "up", "start": 2, "end": 1, "step": 1},
                       {"query": "up", "start": 1, "end": 2, "step": 0},
                       {"query": "up", "start": 1, "end": 2, "step": -1},
                       {"query": "up", "start": 1, "end": 2, "step": "x"},
                       {"query": "up", "start": 0, "end": 12000, "step": 1},
                       {"query": "up", "start": "a", "end": 12000, "step": 1},
                       {"query": "up", "start": END, "end": END + 3, "step": "1500ms"}):
            self.compare("/api/v1/query_range", params)

    def test_series_and_labels(self):
        span = {"start": START, "end": END}
        for params in ({}, {"match[]": "up"}, {"match[]": ["up", 'temperature{instance="i1"}']},
                       {"match[]": '{job="web"}', **span}, {"match[]": "{}"},
                       {"match[]": '{job=~".*"}'}, {"match[]": "up{"}, {"match[]": "nothing"},
                       {"match[]": "up", "start": 1, "end": 0}, {"match[]": "sum(up)"},
                       {"match[]": "up", "limit": 1}, {"match[]": "up", "start": "x"}):
            self.compare("/api/v1/series", params)
        for params in ({}, span, {"match[]": "up"}, {"match[]": "nothing"}, {"limit": 1},
                       {"match[]": "{"}, {"match[]": ["up", "temperature"], **span}):
            self.compare("/api/v1/labels", params)
            self.compare("/api/v1/label/job/values", params)
        self.compare("/api/v1/label/__name__/values", {"match[]": '{job="web"}'})
        self.compare("/api/v1/label/none/values", {})

    def test_formatting(self):
        for query in ("up", "sum by(job)(up)", "sum(", "a+b*c", "rate(x[5m:1m] offset 1h)",
                      "up{a=~\"b|c\",d!='e'} @ start()", "-(1)", ""):
            self.compare("/api/v1/format_query", {"query": query})
            self.compare("/api/v1/parse_query", {"query": query})


if __name__ == "__main__":
    unittest.main()
