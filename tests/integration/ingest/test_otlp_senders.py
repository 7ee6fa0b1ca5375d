"""test_otlp_senders.py - OpenTelemetry's own SDK and exporters (JavaScript) send to one ingest node, and the
names and labels that come of it are those that VictoriaMetrics makes, where its rules are the same."""
import json
import os
import pathlib
import subprocess
import unittest
import urllib.request

from harness import NodeTest, free_port, wait_for
from messages import double, field, log_of, now_ms, number
from test_otlp import PATH, PROTOBUF, fixed, message

SEND = os.environ.get("OTLP_SEND", "")
VICTORIA = pathlib.Path(os.environ.get("PROMFABRIC_PEERS", "/nowhere")) / "usr/bin/victoria-metrics"
TARGET = {"job": "demo/shop", "instance": "i-1"}

# What send.mjs measures: name, labels beside those of the target, value; None: a native histogram.
SENT = [
    ("orders_placed_total", {"shop_name": "nörd", "paid": "true"}, 3.0),
    ("queue_length", {"n": "7"}, -2.0),
    ("disk_free_bytes", {"device_id": "/dev/sda"}, 1.5e9),
    ("cpu_load_ratio", {}, 0.25),
    ("request_size_bytes_bucket", {"route": "/a", "le": "10.0"}, 1.0),
    ("request_size_bytes_bucket", {"route": "/a", "le": "100.0"}, 3.0),
    ("request_size_bytes_bucket", {"route": "/a", "le": "+Inf"}, 4.0),
    ("request_size_bytes_sum", {"route": "/a"}, 625.0),
    ("request_size_bytes_count", {"route": "/a"}, 4.0),
    ("latency_seconds", {}, None),
]


def key(name, labels):
    return name, tuple(sorted(labels.items()))


def send(coding, url):
    done = subprocess.run(["node", SEND, coding, url], capture_output=True, timeout=60, check=False)
    return done.returncode, done.stderr.decode()


class Exporters(NodeTest):
    def written(self, node, tenant):
        log, found = log_of(node), {}
        for (of, labels, ts) in log.samples:
            if of == tenant:
                labels_of = dict(labels)
                found[key(labels_of.pop("__name__"), labels_of)] = log.value(labels, ts, tenant)
        return found

    def test_both_exporters_write_what_was_measured(self):
        node = self.node().start("--bootstrap")
        for coding in ("proto", "json"):
            status, why = send(coding, f"http://127.0.0.1:{node.port}{PATH}")
            self.assertEqual(status, 0, why)
            found = self.written(node, coding)
            self.assertEqual(found.pop(key("target_info", {**TARGET, "host_name": "h1"})), 1.0)
            want = {key(name, {**labels, **TARGET}): value for name, labels, value in SENT}
            self.assertEqual({k for k in found}, {self.with_le(found, k) for k in want})
            for name, value in want.items():
                got = found[self.with_le(found, name)]
                if value is None:
                    self.assertIsInstance(got, bytes)
                else:
                    self.assertEqual(got, value, name)

    def with_le(self, found, name):
        """A bound is the same number however it is written."""
        if name in found or "le" not in dict(name[1]):
            return name
        labels = dict(name[1])
        return key(name[0], {**labels, "le": f"{float(labels['le']):g}"})

    def test_an_exporter_that_is_limited_tries_again(self):
        """What it is told is what it understands: it waits and sends the same, which is then written."""
        node = self.node(args=["--tenant-samples-rate", "9"]).start("--bootstrap")
        url = f"http://127.0.0.1:{node.port}{PATH}"
        self.assertEqual(send("proto", url), (0, ""))
        self.assertEqual(send("proto", url), (0, ""))
        self.assertGreater(node.metric('promfabric_ingest_limited_samples_total{limit="samples-rate"}'), 0)
        times = {ts for _, labels, ts in log_of(node).samples if ("__name__", "cpu_load_ratio") in labels}
        self.assertEqual(len(times), 4)  # each exports when it flushes, and when it ends


@unittest.skipUnless(VICTORIA.exists(), "VictoriaMetrics is not there")
class Translation(NodeTest):
    """Names, units and labels of our own choice, in one request to both. Names with a leading digit, with ':'
    or with characters of no language are not among them: VictoriaMetrics leaves or changes them otherwise."""

    NAMES = ("a.b", "a..b", "http.server.duration", "x_seconds", "process.runtime.go.mem.heap_alloc",
             "CamelCase", "total", "request_total", "with space", "trailing_", "bytes.read", "_leading")
    UNITS = ("", "s", "ms", "By", "KiBy", "MBy", "1", "%", "{request}", "By/s", "m/s", "Cel", "Hz", "min", "us", "custom")
    ATTRIBUTES = {"plain": "v", "dotted.name": "v", "1digit": "v", "with-dash": "v", "ünder": "v", "UPPER": "v"}

    def setUp(self):
        super().setUp()
        self.port = free_port()
        log = open(self.folder + "/victoria.log", "wb")
        self.addCleanup(log.close)
        self.victoria = subprocess.Popen(
            [VICTORIA, f"-storageDataPath={self.folder}/victoria", f"-httpListenAddr=127.0.0.1:{self.port}",
             "-opentelemetry.usePrometheusNaming", "-opentelemetry.promoteScopeMetadata=false",
             "-opentelemetry.promoteAllResourceAttributes=false", "-retentionPeriod=100y"], stdout=log, stderr=log)
        self.addCleanup(self.victoria.wait)
        self.addCleanup(self.victoria.kill)
        wait_for("VictoriaMetrics", lambda: self.ask("/health") == b"OK", 60)

    def ask(self, path, body=None, headers=None):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data=body, headers=headers or {})
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.read()
        except OSError:
            return None

    def metrics(self, ts):
        """A gauge, a counter and a sum that is none, of every name and unit; the value says which it is."""
        for i, name in enumerate(self.NAMES):
            for j, unit in enumerate(self.UNITS):
                for kind in range(3):
                    attributes = b"".join(field(7, field(1, k.encode()) + field(2, field(1, v.encode())))
                                          for k, v in {**self.ATTRIBUTES, "id": f"{i}.{j}.{kind}"}.items())
                    point = fixed(3, ts * 10**6) + double(4, float(i * 1000 + j * 10 + kind)) + attributes
                    data = field(1, point) + (number(2, 2) + number(3, kind == 1) if kind else b"")
                    yield (field(1, name.encode()) + field(3, unit.encode())
                           + field(7 if kind else 5, data))

    def test_names_and_labels_are_those_of_victoriametrics(self):
        node, ts = self.node().start("--bootstrap"), now_ms()
        body = message(list(self.metrics(ts)))
        status, why, _ = node.raw("POST", PATH, body=body, headers={"Content-Type": PROTOBUF})
        self.assertEqual((status, why), (200, b""))
        self.assertIsNotNone(self.ask("/opentelemetry/v1/metrics", body, {"Content-Type": PROTOBUF}))
        self.ask("/internal/force_flush")
        ours = {dict(labels)["id"]: dict(labels) for _, labels, _ in log_of(node).samples}
        answer = self.ask("/api/v1/series?match%5B%5D=%7Bid%21%3D%22%22%7D&start=-1d")
        theirs = {labels["id"]: labels for labels in json.loads(answer)["data"]}
        self.assertEqual(len(ours), len(self.NAMES) * len(self.UNITS) * 3)
        self.assertEqual(ours.keys(), theirs.keys())
        for one, labels in theirs.items():
            if one.endswith(f".{self.UNITS.index('1')}.2"):  # Prometheus has ratios of gauges alone
                self.assertEqual(labels["__name__"], ours[one]["__name__"] + "_ratio")
                labels["__name__"] = ours[one]["__name__"]
        self.assertEqual({(labels["__name__"], theirs[one]["__name__"]) for one, labels in ours.items()
                          if labels["__name__"] != theirs[one]["__name__"]}, set())
        self.assertEqual(ours, theirs)


if __name__ == "__main__":
    unittest.main()
