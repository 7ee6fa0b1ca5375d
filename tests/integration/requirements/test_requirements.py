"""test_requirements.py - what the specification asks of the whole and no other test looks at."""
import os
import pathlib
import re
import statistics
import time
import unittest
import urllib.request

from harness import START, FabricTest, load, standard_lines, wait_for

AT = START + 600


class Whole(FabricTest):
    workers = 3
    api_flags = ("--small-scan=0s",)  # every leaf is spread, small as the data are
    lines = standard_lines(24)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        load(cls.fabric.store, ['spread{i="%d"} %d+1x100' % (i, i) for i in range(200)],
             tenant="spread", shards=16)

    def worker_metrics(self, index):
        with urllib.request.urlopen(
                f"http://127.0.0.1:{self.fabric.http_ports[index]}/metrics", timeout=10) as answer:
            return answer.read().decode()

    def worker_metric(self, index, name):
        return float(re.search(rf"^{name} (\S+)$", self.worker_metrics(index), re.M)[1])

    def accepted(self):
        return [self.worker_metric(i, "promfabric_worker_works_accepted_total")
                for i in range(self.workers)]

    def spread(self):
        """A query of sixteen work items; how many each worker accepted."""
        before = self.accepted()
        answer = self.fabric.data("/api/v1/query", {"query": "sum(spread)", "time": AT},
                                  headers={"X-Scope-OrgID": "spread"})
        self.assertEqual(len(answer["result"]), 1)
        return [after - old for after, old in zip(self.accepted(), before)]

    def test_light_queries_take_less_than_a_second(self):
        self.fabric.query("sum(up)", AT)
        took = []
        for _ in range(20):
            begun = time.monotonic()
            self.fabric.query('sum by (job) (rate(http_requests_total{job="api"}[5m]))', AT)
            took.append(time.monotonic() - begun)
        self.assertLess(statistics.median(took), 1.0, took)

    def test_a_query_fans_out_over_all_workers(self):
        counts = self.spread()
        self.assertEqual(sum(counts), 16)
        self.assertTrue(all(counts), counts)

    def test_the_same_data_goes_to_the_same_worker(self):
        first = self.spread()
        missed = self.fabric.metric('promfabric_api_work_affinity_total{result="miss"}')
        for _ in range(3):
            self.assertEqual(self.spread(), first)
        self.assertEqual(
            self.fabric.metric('promfabric_api_work_affinity_total{result="miss"}'), missed)

    def peers(self, pid):
        """Remote ports of a process's TCP connections that are not its own server's."""
        inodes = set()
        for fd in os.listdir(f"/proc/{pid}/fd"):
            try:
                inodes |= set(re.findall(r"^socket:\[(\d+)\]$", os.readlink(f"/proc/{pid}/fd/{fd}")))
            except OSError:
                pass
        ports = set()
        for name in ("tcp", "tcp6"):
            for line in pathlib.Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]:
                fields = line.split()
                local, remote = (int(fields[i].split(":")[1], 16) for i in (1, 2))
                if fields[9] in inodes and remote and local != self.fabric.api_port:
                    ports.add(remote)
        return ports

    def test_a_query_writes_nothing_but_its_spool(self):
        """The API talks to workers alone and leaves no file behind: no queue, no database."""
        fabric = self.fabric
        known = set(fabric.control_ports) | set(fabric.http_ports)
        before = {path for path, _, _ in os.walk(fabric.folder) if "spool" not in path}
        for _ in range(10):
            fabric.query("topk(3, http_requests_total)", AT)
            self.assertLessEqual(self.peers(fabric.api.pid), known)
        self.assertTrue(self.peers(fabric.api.pid) & set(fabric.control_ports))
        self.assertEqual({path for path, _, _ in os.walk(fabric.folder) if "spool" not in path},
                         before)
        for fd in os.listdir(f"/proc/{fabric.api.pid}/fd"):
            try:
                target = os.readlink(f"/proc/{fabric.api.pid}/fd/{fd}")
            except OSError:
                continue
            if target.startswith("/"):
                self.assertRegex(target, r"^(/dev/|/proc/|/sys/|%s)" % re.escape(fabric.folder))
        wait_for("an empty spool", lambda: not [
            name for _, _, names in os.walk(f"{fabric.folder}/spool-api") for name in names])

    def test_logs_of_both_sides_carry_the_ids(self):
        status, headers, _ = self.fabric.get("/api/v1/query", {"query": "sum(up)", "time": AT})
        self.assertEqual(status, 200)
        query_id = headers["X-Query-Id"]

        def works(process):
            return set(re.findall(rf"query_id={query_id}\b.* work_id=(\d+)", process.log_text())) | \
                set(re.findall(rf"work_id=(\d+).* query_id={query_id}\b", process.log_text()))
        api = wait_for("work_id in the API's log", lambda: works(self.fabric.api))
        workers = wait_for("work_id in a worker's log", lambda: set().union(
            *[works(worker) for worker in self.fabric.workers]))
        self.assertTrue(workers and workers <= api, (workers, api))

    def test_every_metric_the_specification_names_is_there(self):
        self.fabric.query("sum(up)", AT)
        api = self.fabric.get("/metrics")[2].decode()
        for what, name in (
                ("active streams", "promfabric_api_control_streams"),
                ("heartbeat round trip", "promfabric_api_heartbeat_rtt_seconds_count"),
                ("disconnects", "promfabric_api_control_disconnects_total"),
                ("reconnect latency", "promfabric_api_control_reconnect_seconds_count"),
                ("assignment latency", "promfabric_api_work_assignment_seconds_count"),
                ("accepted", "promfabric_api_work_accepted_total"),
                ("rejected", "promfabric_api_work_rejected_total"),
                ("reassigned", "promfabric_api_work_reassigned_total"),
                ("affinity hits", 'promfabric_api_work_affinity_total{result="hit"}'),
                ("queue depth", "promfabric_api_work_queued"),
                ("oldest age", "promfabric_api_work_oldest_age_seconds"),
                ("query duration", "promfabric_api_query_duration_seconds_count"),
                ("first result", "promfabric_api_query_first_result_seconds_count"),
                ("errors by reason", 'promfabric_api_queries_total{outcome="timeout"}'),
                ("ready to fetch", "promfabric_api_artifact_ready_to_fetch_seconds_count"),
                ("fetch", "promfabric_api_artifact_fetch_seconds_count"),
                ("checksum mismatches",
                 'promfabric_api_artifact_fetch_failures_total{reason="checksum"}')):
            self.assertRegex(api, rf"(?m)^{re.escape(name)} \S+$", what)
        for what, name in (
                ("queue depth", "promfabric_worker_queue_depth"),
                ("task runtime", "promfabric_worker_task_seconds_count"),
                ("download duration", "promfabric_worker_download_seconds_count"),
                ("cancel latency", "promfabric_worker_cancel_seconds_count"),
                ("TTL cleanups", 'promfabric_worker_artifact_ttl_cleanups_total{state="unacked"}'),
                ("spool bytes", "promfabric_worker_spool_bytes"),
                ("cache bytes", "promfabric_worker_cache_bytes"),
                ("free bytes", "promfabric_worker_disk_free_bytes")):
            self.assertGreaterEqual(self.worker_metric(0, re.escape(name)), 0, what)

    def test_the_operations_manual_names_every_metric(self):
        manual = (pathlib.Path(__file__).parents[3] / "docs/OPERATIONS.md").read_text()
        text = self.fabric.get("/metrics")[2].decode() + self.worker_metrics(0)
        names = set(re.findall(r"^# TYPE (\S+) ", text, re.M))
        self.assertGreater(len(names), 60)
        self.assertEqual({name for name in names if f"`{name}`" not in manual}, set())


if __name__ == "__main__":
    unittest.main()
