"""test_senders.py - real senders against one ingest node: what they report as sent is in the log.

Each sends what it scrapes from a small target of ours with known values, and from itself."""
import http.server
import os
import pathlib
import subprocess
import threading
import unittest

from harness import NodeTest, free_port, wait_for
from messages import log_of

PEERS = pathlib.Path(os.environ.get("PROMFABRIC_PEERS", "/nowhere")) / "usr/bin"
OLD = pathlib.Path(os.environ.get("PROMFABRIC_OLD_PEERS", "/nowhere")) / "usr/bin"

EXPOSED = b"""# HELP orders_total Orders taken.
# TYPE orders_total counter
orders_total{shop="n\xc3\xb6rd"} 1
# TYPE queue_length gauge
queue_length 17.5
"""


class Target(http.server.BaseHTTPRequestHandler):
    scrapes = 0

    def do_GET(self):
        Target.scrapes += 1
        body = EXPOSED.replace(b'"} 1', b'"} %d' % Target.scrapes)
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def float_of(line):
    return float(line.rsplit(" ", 1)[1])


class Senders(NodeTest):
    def setUp(self):
        super().setUp()
        Target.scrapes = 0
        self.target = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Target)
        threading.Thread(target=self.target.serve_forever, daemon=True).start()
        self.addCleanup(self.target.server_close)
        self.addCleanup(self.target.shutdown)
        self.ingest = self.node().start("--bootstrap")
        self.url = f"http://127.0.0.1:{self.ingest.port}/api/v1/write"

    def run_program(self, *command):
        log = open(pathlib.Path(self.folder) / "program.log", "wb")
        self.addCleanup(log.close)
        process = subprocess.Popen([str(c) for c in command], stdout=log, stderr=log, cwd=self.folder)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def program_log(self):
        return (pathlib.Path(self.folder) / "program.log").read_text(errors="replace")

    def metrics_of(self, port):
        import urllib.request
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            return answer.read().decode().splitlines()

    def target_line(self, extra=""):
        return (f"  - job_name: shop\n    scrape_interval: 1s\n{extra}"
                f"    static_configs: [{{targets: ['127.0.0.1:{self.target.server_port}']}}]\n")

    def run_prometheus(self, program, write="", scrape_self="", flags=()):
        port = free_port()
        config = pathlib.Path(self.folder) / "prometheus.yml"
        config.write_text(
            f"global:\n  scrape_interval: 1s\nremote_write:\n  - url: {self.url}\n"
            f"    queue_config: {{batch_send_deadline: 1s}}\n{write}"
            f"scrape_configs:\n{self.target_line()}"
            f"  - job_name: prometheus\n    scrape_interval: 1s\n{scrape_self}"
            f"    static_configs: [{{targets: ['127.0.0.1:{port}']}}]\n")
        process = self.run_program(program, f"--config.file={config}", f"--web.listen-address=127.0.0.1:{port}",
                                   f"--storage.tsdb.path={self.folder}/tsdb", *flags)
        return process, port

    def orders(self, log):
        """The values of orders_total in the order of time."""
        found = [(ts, value) for (_, labels, ts), value in log.samples.items()
                 if dict(labels).get("__name__") == "orders_total"]
        return [log.value(labels, ts) for _, labels, ts in sorted(
            (k for k in log.samples if dict(k[1]).get("__name__") == "orders_total"),
            key=lambda k: k[2])] if found else []

    def check_orders(self, count=5):
        def enough():
            return len(self.orders(log_of(self.ingest))) >= count
        try:
            wait_for("samples of orders_total", enough, 60)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.program_log()[-2000:]} {self.ingest.log_text()[-1000:]}")
        log = log_of(self.ingest)
        values = [v for v in self.orders(log) if v == v]
        self.assertEqual(values, [float(i + 1) for i in range(len(values))])
        labels = next(dict(k[1]) for k in log.samples if dict(k[1]).get("__name__") == "orders_total")
        self.assertEqual((labels["shop"], labels["job"]), ("nörd", "shop"))
        return log

    def check_no_failures(self, port):
        bad = [line for line in self.metrics_of(port)
               if line.startswith(("prometheus_remote_storage_samples_failed_total",
                                   "prometheus_remote_storage_samples_dropped_total",
                                   "prometheus_remote_storage_histograms_failed_total",
                                   "prometheus_remote_storage_exemplars_failed_total",
                                   "prometheus_remote_storage_metadata_failed_total"))
               and float_of(line) != 0]
        self.assertEqual(bad, [])

    def check_prometheus(self, program, **more):
        if not program.exists():
            self.skipTest(f"{program} is not there")
        process, port = self.run_prometheus(program, **more)
        log = self.check_orders()
        self.check_no_failures(port)
        # Stop: the sender flushes, and everything it reports as sent is here.
        process.terminate()
        process.wait(30)
        self.assertGreater(self.ingest.metric(
            'promfabric_ingest_samples_written_total{kind="float"}'), 500)
        self.assertEqual(self.ingest.metric("promfabric_ingest_samples_refused_total"), 0)
        return log

    def test_prometheus_3_with_version_1(self):
        self.check_prometheus(PEERS / "prometheus")
        self.assertEqual(self.ingest.metric(
            'promfabric_ingest_write_requests_total{protocol="remote_write_2"}'), 0)

    def test_prometheus_3_with_version_2_and_its_own_native_histograms(self):
        log = self.check_prometheus(
            PEERS / "prometheus",
            write="    protobuf_message: io.prometheus.write.v2.Request\n"
                  "    send_native_histograms: true\n    send_exemplars: true\n",
            scrape_self="    scrape_protocols: [PrometheusProto]\n",
            flags=("--enable-feature=native-histograms,metadata-wal-records,exemplar-storage",))
        self.assertGreater(self.ingest.metric(
            'promfabric_ingest_write_requests_total{protocol="remote_write_2"}'), 0)
        self.assertGreater(self.ingest.metric(
            'promfabric_ingest_samples_written_total{kind="histogram"}'), 10)
        wait_for("a native histogram", lambda: any(
            len(value) > 8 and dict(labels).get("__name__") == "prometheus_http_request_duration_seconds"
            for (_, labels, _), value in log_of(self.ingest).samples.items()))
        self.assertTrue(log.samples)

    def test_prometheus_of_debian_12(self):
        self.check_prometheus(OLD / "prometheus")

    def test_vmagent(self):
        if not (PEERS / "vmagent").exists():
            self.skipTest("vmagent is not there")
        config = pathlib.Path(self.folder) / "scrape.yml"
        config.write_text(f"scrape_configs:\n{self.target_line()}")
        port = free_port()
        self.run_program(PEERS / "vmagent", f"-promscrape.config={config}",
                         f"-remoteWrite.url={self.url}", f"-httpListenAddr=127.0.0.1:{port}",
                         "-remoteWrite.flushInterval=1s", f"-remoteWrite.tmpDataPath={self.folder}/vmagent")
        self.check_orders()
        lines = self.metrics_of(port)
        self.assertEqual([line for line in lines if float_of(line) != 0 and line.startswith(
            ("vmagent_remotewrite_packets_dropped_total", "vmagent_remotewrite_samples_dropped_total"))], [])

    def test_promtool_push_metrics(self):
        if not (PEERS / "promtool").exists():
            self.skipTest("promtool is not there")
        done = subprocess.run([PEERS / "promtool", "push", "metrics", self.url, "--label", "source=push"],
                              input=EXPOSED, capture_output=True, timeout=30)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        log = log_of(self.ingest)
        found = {dict(k[1])["__name__"]: log.value(k[1], k[2]) for k in log.samples}
        self.assertEqual(found, {"orders_total": 1.0, "queue_length": 17.5})


if __name__ == "__main__":
    unittest.main()
