"""test_samples.py - raw samples: remote read in both forms, read by hand and by a real Prometheus that has this API as
its storage; federation, by hand and scraped by a real Prometheus; cardinality.

The real one is what scripts/differential unpacks into the cache folder; those tests are skipped without it."""
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse
import urllib.request

from harness import START, STEP, FabricTest, free_port, load, standard_lines, wait_for
from test_prometheus import BIN

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "ingest"))
from messages import STALE_BITS, field, number, snappy  # noqa: E402
from read_protocol import fields, from_frames, from_samples, read_request  # noqa: E402

END = START + 3600
MS = 1000
HISTOGRAM = "{{schema:1 sum:10 count:13 z_bucket:2 z_bucket_w:0.001 offset:-1 buckets:[1 2 3] n_buckets:[4 1]}}"
CUSTOM = "{{schema:-53 count:10 sum:30 custom_values:[1 2 3] buckets:[1 2 3 4]}}"


def name_is(name):
    return [("__name__", "=", name)]


class Read(FabricTest):
    lines = standard_lines() + ["odd 0 -0 NaN Inf -Inf 1e-300 1.7976931348623157e308 4.9e-324x3 _x3 7 7 stale 1",
                                f"native{{a=\"b\"}} {HISTOGRAM}x20 stale"]

    def read(self, queries, forms=(), status=200):
        got, headers, body = self.fabric.request("POST", "/api/v1/read", body=read_request(queries, forms), headers={
            "Content-Type": "application/x-protobuf", "Content-Encoding": "snappy",
            "X-Prometheus-Remote-Read-Version": "0.1.0", "Accept-Encoding": "gzip"})
        self.assertEqual(got, status, body[:500])
        if status != 200:
            return body.decode()
        if headers["Content-Type"].startswith("application/x-streamed-protobuf"):
            self.assertEqual(headers["Content-Type"],
                             "application/x-streamed-protobuf; proto=prometheus.ChunkedReadResponse")
            self.assertIsNone(headers.get("Content-Encoding"))
            return from_frames(body, len(queries))
        self.assertEqual((headers["Content-Type"], headers.get("Content-Encoding")), ("application/x-protobuf", "snappy"))
        return from_samples(body)

    def test_both_forms_have_every_sample_of_the_range(self):
        queries = [(START * MS + 1, END * MS, name_is("temperature")),
                   (START * MS, START * MS + 300_000, name_is("short_lived")),
                   (START * MS, END * MS, name_is("nothing")),
                   (END * MS, START * MS, name_is("up")),
                   (START * MS, END * MS, name_is("odd"))]
        samples, chunks = self.read(queries), self.read(queries, (1, 0))
        self.assertEqual(samples, chunks)
        self.assertEqual([list(q) for q in samples], [list(q) for q in chunks])  # in the same order
        temperature, short, none, turned, odd = samples
        self.assertEqual((len(temperature), none, turned), (12, {}, {}))
        self.assertEqual(list(temperature), sorted(temperature))
        self.assertEqual([ts for ts, _ in temperature[next(iter(temperature))]],
                         [(START + STEP * k) * MS for k in range(1, 241)])
        (points,) = short.values()
        self.assertEqual(len(points), 21 + 0 if points[-1][1] != STALE_BITS else 21)
        (points,) = odd.values()
        self.assertIn(STALE_BITS, [bits for _, bits in points])
        doubles = [struct.unpack("<d", struct.pack("<Q", bits))[0] for _, bits in points]
        self.assertEqual(doubles[3:7], [float("inf"), float("-inf"), 1e-300, 1.7976931348623157e308])
        self.assertEqual(struct.pack("<d", -0.0), struct.pack("<Q", points[1][1]))

    def test_stale_markers_are_passed_on(self):
        (short,) = self.read([(START * MS, END * MS, name_is("short_lived"))])
        (points,) = short.values()
        self.assertEqual([bits == STALE_BITS for _, bits in points], [False] * 21 + [True])

    def test_matchers(self):
        span = START * MS, END * MS
        (some,) = self.read([(*span, [("__name__", "=~", "temp.*|up"), ("job", "!=", "api"),
                                      ("instance", "!~", "i[0-6]"), ("none", "=", "")])])
        self.assertEqual([dict(labels).get("instance") for labels in some], ["i10", "i8", None])
        everything, named = self.read([(*span, []), (*span, [("__name__", "=~", ".+")])])
        self.assertEqual(everything, named)
        self.assertEqual(len(named), 12 * 2 + 5)

    def test_native_histograms_come_as_samples(self):
        for forms in ((1, 0), (0,), ()):
            (native,) = self.read([(START * MS, END * MS, name_is("native"))], forms)
            (points,) = native.values()
            self.assertEqual(len(points), 22)
            histogram = points[0][1]
            of = dict(histogram)
            self.assertEqual(struct.unpack("<dd", of[2] + of[3]), (13.0, 10.0))
            self.assertEqual(struct.unpack("<dd", of[5] + of[7]), (0.001, 2.0))
            self.assertEqual(of[4], 2)  # schema 1, zigzag
            self.assertEqual(struct.unpack("<3d", of[13]), (1.0, 2.0, 3.0))
            self.assertEqual(fields(of[11]), [(1, 1), (2, 3)])  # offset -1
            self.assertEqual(dict(points[-1][1])[3], struct.pack("<Q", STALE_BITS))  # the sum of a histogram
        text = self.read([(START * MS, END * MS, name_is("native"))], (1,), status=422)
        self.assertIn("native histograms are answered as samples", text)
        self.assertIn("response types", self.read([(START * MS, END * MS, name_is("up"))], (9,), status=422))

    def test_bad_requests_cost_nothing_else(self):
        for body in (b"", b"x", b"\xff\xff\xff\xff\x0f", snappy(b"\x0a\x05no"), snappy(b"\xff" * 40),
                     read_request([(0, 1, [("", "=", "x")])]), read_request([(0, 1, [("a", "=~", "(")])]),
                     snappy(field(1, field(3, number(1, 9) + field(2, b"a")))),
                     snappy(field(1, field(3, field(2, b"\xff\xfe"))))):
            status, headers, answer = self.fabric.request("POST", "/api/v1/read", body=body)
            self.assertEqual((status, headers["Content-Type"]), (400, "text/plain; charset=utf-8"), (body, answer))
            self.assertTrue(answer.endswith(b"\n"))
        self.assertEqual(self.fabric.get("/api/v1/read")[0], 405)
        self.assertEqual(self.read([]), [])

    def test_cardinality(self):
        span = {"start": START, "end": END}
        got = self.fabric.data("/api/v1/status/tsdb", span)
        series = self.fabric.data("/api/v1/series", {"match[]": '{__name__=~".+"}', **span})
        pairs = {pair for one in series for pair in one.items()}
        self.assertEqual(got["headStats"]["numSeries"], len(series))
        self.assertEqual(got["headStats"]["numLabelPairs"], len(pairs))
        self.assertEqual(got["seriesCountByMetricName"][:3], [
            {"name": "http_requests_total", "value": 12}, {"name": "temperature", "value": 12}, {"name": "up", "value": 2}])
        self.assertEqual(got["labelValueCountByLabelName"], [
            {"name": "instance", "value": 12}, {"name": "__name__", "value": 6}, {"name": "job", "value": 2}, {"name": "a", "value": 1}])
        self.assertEqual(got["memoryInBytesByLabelName"][0], {"name": "__name__", "value": len(
            "http_requests_totaltemperatureupshort_livedoddnative")})
        self.assertEqual(len(got["seriesCountByLabelValuePair"]), 10)
        self.assertEqual(got["seriesCountByLabelValuePair"][0], {"name": "job=web", "value": 14})
        few = self.fabric.data("/api/v1/status/tsdb", {"limit": 1, **span})
        self.assertEqual([len(few[key]) for key in few if key != "headStats"], [1] * 4)
        for limit in ("0", "-1", "x"):
            status, answer = self.fabric.json("/api/v1/status/tsdb", {"limit": limit})
            self.assertEqual((status, answer["error"]), (400, "limit must be a positive number"))
        self.assertEqual(self.fabric.data("/api/v1/status/tsdb")["headStats"]["numSeries"], 0)  # of the last hours


class Server:
    """A real Prometheus with this configuration."""

    def __init__(self, config, *flags):
        self.folder = tempfile.mkdtemp(prefix="pf-prom-")
        with open(f"{self.folder}/prometheus.yml", "w") as file:
            file.write(config)
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.log = open(f"{self.folder}/log", "w")
        self.process = subprocess.Popen(
            [BIN / "prometheus", f"--config.file={self.folder}/prometheus.yml", f"--storage.tsdb.path={self.folder}/tsdb",
             f"--web.listen-address=127.0.0.1:{port}", *flags], stdout=self.log, stderr=self.log)
        wait_for("Prometheus", self.is_ready, 60)

    def is_ready(self):
        try:
            with urllib.request.urlopen(self.url + "/-/ready", timeout=2):
                return True
        except OSError:
            return False

    def data(self, path, params):
        with urllib.request.urlopen(self.url + path + "?" + urllib.parse.urlencode(params, doseq=True), timeout=60) as answer:
            return json.load(answer)["data"]

    def close(self):
        self.process.terminate()
        self.process.wait(20)
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def need_prometheus(test):
    return unittest.skipUnless((BIN / "prometheus").exists(),
                               "no Prometheus in the cache folder; scripts/differential puts it there")(test)


@need_prometheus
class FrontEnd(FabricTest):
    lines = Read.lines

    def test_a_prometheus_reads_from_here(self):
        server = Server(f"remote_read:\n- url: http://127.0.0.1:{self.fabric.api_port}/api/v1/read\n  read_recent: true\n")
        self.addCleanup(server.close)
        before = self.fabric.data("/api/v1/queries", {"state": "finished", "limit": 256})
        for expr in ("temperature", "sum by (job) (rate(http_requests_total[5m]))", "short_lived", "odd", "native",
                     "histogram_quantile(0.5, native)", 'count by (__name__) ({__name__=~".+"})', "up offset 1m", "topk(2, temperature)"):
            for path, params in (("/api/v1/query", {"time": START + 200}),
                                 ("/api/v1/query_range", {"start": START, "end": END, "step": 60})):
                params = {"query": expr, **params}
                ours, theirs = self.fabric.data(path, params), server.data(path, params)
                for answer in (ours, theirs):
                    answer["result"].sort(key=lambda s: sorted(s["metric"].items()))
                self.assertEqual(ours, theirs, (expr, path))
                self.assertTrue(ours["result"], expr)
        params = {"match[]": "temperature", "start": START, "end": END}
        self.assertEqual(server.data("/api/v1/series", params), self.fabric.data("/api/v1/series", params))
        after = self.fabric.data("/api/v1/queries", {"state": "finished", "limit": 256})
        self.assertGreater(len([q for q in after if q["kind"] == "read" and q["outcome"] == "ok"]),
                           len([q for q in before if q["kind"] == "read"]) + 18)


class Federate(FabricTest):
    """Data that end now."""
    workers = 1
    lines = ["up 1"]  # of another time

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.now = int(time.time()) // STEP * STEP
        cls.lines_now = ['fresh{job="a",instance="i"} 0+1x40', 'fresh{job="b"} 1e6x40', 'gone 1x38 stale', 'level{v="q\\"\\\\\\n"} NaN -1e300x39',
                         f"native {HISTOGRAM}x40", f"custom {CUSTOM}x40", 'old 1x10', '{"a.b\u00e9","c d"="e"} 5x40']
        load(cls.fabric.store, cls.lines_now, shards=2, start=cls.now - 40 * STEP)

    def text(self, *matches):
        status, headers, body = self.fabric.get("/federate", {"match[]": list(matches)} if matches else {})
        return status, headers["Content-Type"], body.decode()

    def test_the_newest_sample_of_each_series(self):
        ts = self.now * MS
        status, kind, text = self.text('{__name__=~"fresh|gone|level|native|custom|old"}', "fresh", "nothing")
        self.assertEqual((status, kind.split(";")[0]), (200, "text/plain"))
        self.assertEqual(text, (
            "# TYPE fresh untyped\n"
            f'fresh{{instance="i",job="a"}} 40 {ts}\n'
            f'fresh{{job="b",instance=""}} 1e+06 {ts}\n'
            "# TYPE level untyped\n"
            f'level{{v="q\\"\\\\\\n",instance=""}} -1e+300 {ts}\n'))
        self.assertEqual(self.text('{"a.b\u00e9"}')[2], f'# TYPE a_b_ untyped\na_b_{{c_d="e",instance=""}} 5 {ts}\n')
        status, headers, body = self.fabric.get("/federate", {"match[]": '{"a.b\u00e9"}'}, headers={
            "Accept": "application/openmetrics-text;version=1.0.0,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,*/*;q=0.1"})
        self.assertEqual(headers["Content-Type"], "text/plain; version=0.0.4; charset=utf-8; escaping=allow-utf-8")
        self.assertEqual(body.decode(), f'# TYPE "a.b\u00e9" untyped\n{{"a.b\u00e9","c d"="e",instance=""}} 5 {ts}\n')
        self.assertEqual(self.text()[::2], (200, ""))
        self.assertEqual(self.text("{}", "{ }")[::2], (200, ""))
        self.assertEqual(self.text("nothing")[::2], (200, ""))
        for bad in ("up{", "sum(up)", ""):
            status, kind, text = self.text(bad)
            self.assertEqual((status, kind), (400, "text/plain; charset=utf-8"), text)

    @need_prometheus
    def test_a_prometheus_scrapes_it(self):
        server = Server(
            "scrape_configs:\n- job_name: fed\n  honor_labels: true\n  honor_timestamps: true\n  scrape_interval: 1s\n"
            "  metrics_path: /federate\n  params:\n    'match[]': ['{__name__=~\"fresh|level|gone|native\"}']\n"
            f"  static_configs:\n  - targets: ['127.0.0.1:{self.fabric.api_port}']\n")
        self.addCleanup(server.close)
        query = {"query": '{__name__=~"fresh|level|gone|native"}', "time": self.now + 60}
        wait_for("a scrape", lambda: server.data("/api/v1/query", query)["result"], 60)
        got = server.data("/api/v1/query", query)["result"]
        self.assertEqual([(s["metric"]["__name__"], s["metric"].get("instance"), s["metric"].get("job"), s["value"][1])
                          for s in sorted(got, key=lambda s: sorted(s["metric"].items()))], [
            ("fresh", "i", "a", "40"), ("fresh", None, "b", "1000000"), ("level", None, "fed", "-1e+300")])
        up = server.data("/api/v1/query", {"query": "up{job=\"fed\"} and scrape_samples_scraped == 3"})["result"]
        self.assertEqual([s["value"][1] for s in up], ["1"])
        raw = server.data("/api/v1/query", {"query": "fresh{job=\"a\"}[10m]", "time": self.now + 60})["result"]
        self.assertEqual(raw[0]["values"], [[self.now, "40"]])  # its own time

    @need_prometheus
    def test_a_prometheus_scrapes_native_histograms(self):
        """It asks for protobuf, which has a form for them; those of custom bounds have none and cost the others nothing."""
        server = Server(
            "scrape_configs:\n- job_name: fed\n  honor_labels: true\n  scrape_interval: 1s\n  metrics_path: /federate\n"
            "  params:\n    'match[]': ['{__name__=~\"fresh|native|custom\"}']\n"
            f"  static_configs:\n  - targets: ['127.0.0.1:{self.fabric.api_port}']\n", "--enable-feature=native-histograms")
        self.addCleanup(server.close)
        wait_for("a scrape", lambda: server.data("/api/v1/query", {"query": "native"})["result"], 60)
        ours = self.fabric.data("/api/v1/query", {"query": "native", "time": self.now})["result"]
        theirs = server.data("/api/v1/query", {"query": "native", "time": self.now})["result"]
        self.assertEqual(ours[0]["histogram"], theirs[0]["histogram"])
        told = server.data("/api/v1/query", {"query": "scrape_samples_scraped", "time": self.now + 60})["result"]
        self.assertEqual([s["value"][1] for s in told], ["3"])


if __name__ == "__main__":
    unittest.main()
