"""test_beside.py - real sources and real rules: what Prometheus scrapes and writes to us, we answer as it does;
what vmalert makes of our answers and writes back is in the next ones."""
import os
import pathlib
import sys
import tempfile
import time
import unittest

from peers import NODE_EXPORTER, PEERS, Pair, Program, Prometheus, metric, start_node_exporter, wait_for

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api"))
from test_ingest import Cluster, now_ms  # noqa: E402


class Beside(unittest.TestCase):
    def setUp(self):
        self.temp = tempfile.TemporaryDirectory(prefix="pf-beside-")
        self.addCleanup(self.temp.cleanup)
        self.folder = self.temp.name
        self.cluster = Cluster()
        self.addCleanup(self.cluster.close)
        self.node, self.fabric = self.cluster.nodes[0], self.cluster.fabric

    def run_program(self, program):
        self.addCleanup(program.stop)
        return program


class Sources(Beside):
    """node-exporter, and Prometheus itself with its native histograms."""

    def setUp(self):
        for program in (PEERS / "prometheus", NODE_EXPORTER):
            if not program.exists():
                self.skipTest(f"{program} is not there")
        super().setUp()

    def sent(self, prometheus):
        """Up to when everything was sent."""
        return metric(prometheus.port, "prometheus_remote_storage_queue_highest_sent_timestamp_seconds")

    def test_what_it_scrapes_is_answered_as_by_itself(self):
        exporter, port = start_node_exporter(self.folder)
        self.run_program(exporter)
        began = time.time()
        prometheus = self.run_program(Prometheus(self.folder, (
            "global: {scrape_interval: 1s}\n"
            f"remote_write:\n  - url: http://127.0.0.1:{self.node.port}/api/v1/write\n"
            "    protobuf_message: io.prometheus.write.v2.Request\n    send_native_histograms: true\n"
            "    queue_config: {batch_send_deadline: 1s, max_shards: 1}\n"
            "scrape_configs:\n"
            f"  - job_name: node\n    static_configs: [{{targets: ['127.0.0.1:{port}']}}]\n"
            "  - job_name: prometheus\n    scrape_protocols: [PrometheusProto]\n"
            "    static_configs: [{targets: ['SELF']}]\n"),
            "--enable-feature=native-histograms"))
        end = time.time() + 8
        try:
            wait_for("all to be sent", lambda: self.sent(prometheus) > end + 2, 90)
        except AssertionError as error:
            raise AssertionError(f"{error}: {prometheus.log_text()[-2000:]}") from error
        pair, window = Pair(prometheus.port, self.fabric.api_port), f"{int((end - began + 5) * 1000)}ms"
        native = "prometheus_http_request_duration_seconds"
        for expr in (f'{{job="node"}}[{window}]', f"{native}[{window}]", 'count by (__name__) ({job="node"})',
                     f"histogram_quantile(0.9, sum by (handler) ({native}))", f"histogram_count({native})",
                     'rate(node_cpu_seconds_total[4s])', 'sum by (mode) (rate(node_cpu_seconds_total[4s]))',
                     'node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes'):
            with self.subTest(expr=expr):
                self.assertEqual(pair.query(expr, end), "")
        data = self.fabric.query(f"{native}[{window}]", f"{end:.3f}")
        self.assertTrue(any(series.get("histograms") for series in data["result"]), "no native histogram came")
        self.assertGreater(len(self.fabric.query('{job="node"}', f"{end:.3f}")["result"]), 200)


class Rules(Beside):
    """vmalert asks our API and writes what it finds to our ingest node."""

    def setUp(self):
        if not (PEERS / "vmalert").exists():
            self.skipTest(f"{PEERS / 'vmalert'} is not there")
        super().setUp()

    def run_vmalert(self):
        rules = pathlib.Path(self.folder) / "rules.yml"
        rules.write_text(
            "groups:\n  - name: shop\n    interval: 1s\n    rules:\n"
            "      - record: shop:orders:twice\n        expr: orders * 2\n        labels: {made_by: rule}\n"
            "      - alert: TooMany\n        expr: orders > 4\n        annotations: {summary: '{{ $value }}'}\n"
            "      - record: shop:orders:twice:max\n        expr: max(shop:orders:twice)\n")
        return self.run_program(Program(
            self.folder, "vmalert", PEERS / "vmalert", f"-rule={rules}", "-rule.evalDelay=0s", "-evaluationInterval=1s",
            f"-datasource.url=http://127.0.0.1:{self.fabric.api_port}",
            f"-remoteWrite.url=http://127.0.0.1:{self.node.port}", "-remoteWrite.flushInterval=500ms",
            f"-remoteRead.url=http://127.0.0.1:{self.fabric.api_port}",
            "-notifier.blackhole", "-httpListenAddr=127.0.0.1:0"))

    def values(self, expr):
        return {tuple(sorted(s["metric"].items())): float(s["value"][1])
                for s in self.fabric.query(expr, f"{time.time():.3f}")["result"]}

    def test_rules_are_evaluated_and_written_back(self):
        vmalert = self.run_vmalert()

        def holds():
            for i in (3, 5):
                self.assertTrue(self.node.write([f'orders{{shop="{i}"}} {i} {now_ms()}']))
            twice = self.values("shop:orders:twice")
            alerts = self.values('ALERTS{alertname="TooMany",alertstate="firing"}')
            return ({dict(k)["shop"]: v for k, v in twice.items() if dict(k).get("made_by") == "rule"} ==
                    {"3": 6.0, "5": 10.0} and [dict(k)["shop"] for k in alerts] == ["5"] and
                    list(self.values("shop:orders:twice:max").values()) == [10.0])
        try:
            wait_for("the rules' results", holds, 60)
        except AssertionError as error:
            found = self.values('{__name__=~".+"}')
            raise AssertionError(f"{error}: {found}: {vmalert.log_text()[-2000:]}") from error


if __name__ == "__main__":
    unittest.main()
