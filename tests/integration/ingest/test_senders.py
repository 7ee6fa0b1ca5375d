"""test_senders.py - real senders against one ingest node: what they report as sent is in the log.

Each sends what it scrapes from a small target of ours with known values, and from itself."""
import http.server
import json
import os
import pathlib
import subprocess
import threading
import time
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

    def test_vmagent_with_zstd(self):
        """As it sends to VictoriaMetrics; what the bodies are is seen on their way."""
        if not (PEERS / "vmagent").exists():
            self.skipTest("vmagent is not there")
        ingest, seen = self.ingest, set()

        class Way(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status, text, _ = ingest.raw("POST", self.path, body=body, headers=dict(self.headers))
                seen.add((self.headers["Content-Encoding"], status))
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *args):
                pass
        way = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Way)
        threading.Thread(target=way.serve_forever, daemon=True).start()
        self.addCleanup(way.server_close)
        self.addCleanup(way.shutdown)
        config = pathlib.Path(self.folder) / "scrape.yml"
        config.write_text(f"scrape_configs:\n{self.target_line()}")
        self.run_program(PEERS / "vmagent", f"-promscrape.config={config}", "-remoteWrite.forceVMProto",
                         f"-remoteWrite.url=http://127.0.0.1:{way.server_port}/api/v1/write",
                         f"-httpListenAddr=127.0.0.1:{free_port()}", "-remoteWrite.flushInterval=1s",
                         f"-remoteWrite.tmpDataPath={self.folder}/vmagent")
        self.check_orders()
        self.assertEqual(seen, {("zstd", 204)})

    def test_a_pair_of_vmagents_of_which_the_elected_one_dies(self):
        if not (PEERS / "vmagent").exists():
            self.skipTest("vmagent is not there")
        self.ingest.stop()
        self.ingest.start("--ha-pairs", "--ha-failover", "3s")
        config = pathlib.Path(self.folder) / "scrape.yml"
        config.write_text(f"scrape_configs:\n{self.target_line()}")
        agents = {name: self.run_program(
            PEERS / "vmagent", f"-promscrape.config={config}", f"-remoteWrite.url={self.url}",
            f"-httpListenAddr=127.0.0.1:{free_port()}", "-remoteWrite.flushInterval=1s",
            f"-remoteWrite.tmpDataPath={self.folder}/{name}", f"-remoteWrite.label=__replica__={name}",
            "-remoteWrite.label=cluster=shop") for name in ("one", "two")}

        def elected():
            data = self.ingest.request("GET", "/api/v1/status/ha")[1]["data"]
            return data[0]["replica"] if data else None

        def times():
            return sorted({k[2] for k in log_of(self.ingest).samples
                           if dict(k[1])["__name__"] == "orders_total"})
        wait_for("samples", lambda: len(times()) >= 5 and self.ingest.metric(
            "promfabric_ingest_ha_dropped_samples_total") >= 20, 60)
        first = elected()
        self.assertEqual(self.ingest.metric("promfabric_ingest_ha_failovers_total"), 0)
        agents[first].kill()
        wait_for("the other", lambda: elected() not in (first, None), 60)
        self.assertEqual(self.ingest.metric("promfabric_ingest_ha_failovers_total"), 1)
        count = len(times())
        wait_for("samples of the other", lambda: len(times()) >= count + 3, 60)
        # One sample a second, not two, but for the gap of the failover.
        gaps = [b - a for a, b in zip(times(), times()[1:])]
        self.assertEqual([gap for gap in gaps if gap < 700], [])
        self.assertEqual(len([gap for gap in gaps if gap > 2500]), 1, gaps)
        self.assertFalse(any("__replica__" in dict(k[1]) for k in log_of(self.ingest).samples))

    def test_lines_of_influx_are_named_as_by_victoriametrics(self):
        if not (PEERS / "victoria-metrics").exists():
            self.skipTest("VictoriaMetrics is not there")
        port, now = free_port(), int(time.time())
        self.run_program(PEERS / "victoria-metrics", f"-storageDataPath={self.folder}/victoria",
                         f"-httpListenAddr=127.0.0.1:{port}")
        lines = "\n".join((f'cpu,host=a\\ b,cpu=cpu-total usage_user=1.5,n=3i,u=4u,up=t,down=false {now}',
                           f"disk,path=/var\\,x,mode\\=1=rw free=10,used.percent=2e1 {now}", f"net value=1 {now}"))
        self.assertEqual(self.ingest.raw("POST", "/write?precision=s", body=lines.encode())[0], 204)

        def ask(path, body=None):
            import urllib.request
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", data=body, timeout=5) as answer:
                    return answer.read()
            except OSError:
                return None
        wait_for("VictoriaMetrics", lambda: ask("/write?precision=s", lines.encode()) is not None, 60)
        ask("/internal/force_flush")
        theirs = [tuple(sorted(labels.items())) for labels in json.loads(ask(
            "/api/v1/series?match%5B%5D=%7B__name__%21%3D%22%22%7D&start=-1d"))["data"]]
        self.assertEqual(sorted(theirs), sorted(labels for _, labels, _ in log_of(self.ingest).samples))
        self.assertEqual(len(theirs), 8)

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
