"""test_write.py - samples into one node: what is acknowledged is in the log, once."""
import gzip
import struct
import threading
import unittest

from harness import NodeTest, wait_for
from messages import (STALE_BITS, Series, histogram, log_of, now_ms, text, version_1, write,
                      write_series)

UP = {"__name__": "up", "job": "a"}


def kinds_of(log):
    """Of its records, floors aside, which come when the leader thinks of them."""
    return [kind for kind, _ in log.kinds if kind != 4]


class Writing(NodeTest):
    def start(self, *args):
        return self.node(args=args).start("--bootstrap")

    def test_samples_of_both_versions_are_in_the_log_and_survive_a_kill(self):
        node, now = self.start(), now_ms()
        for i in range(20):
            self.assertEqual(write_series(node, Series(UP, [(now + i, float(i))]))[0], 204)
            self.assertEqual(write_series(node, Series({"__name__": "v2", "n": str(i % 3)},
                                                       [(now + i, float(i))]), version=2)[0], 204)
        node.kill()
        node.start()
        self.assertEqual(write_series(node, Series(UP, [(now + 100, 100.0)]))[0], 204)
        log = log_of(node)
        for i in range(20):
            self.assertEqual(log.value(UP, now + i), float(i))
            self.assertEqual(log.value({"__name__": "v2", "n": str(i % 3)}, now + i), float(i))
        self.assertEqual(log.value(UP, now + 100), 100.0)
        # Labels are told once per range, and once more by a new leader.
        self.assertEqual(log.fresh, 4 + 1)

    def test_stale_markers_start_times_and_histograms_keep_their_bits(self):
        node, now = self.start(), now_ms()
        stale = struct.pack("<Q", STALE_BITS)
        self.assertEqual(write_series(node, Series(UP, [(now, stale)], start=now - 5), version=2)[0],
                         204)
        self.assertEqual(write_series(node, Series({"__name__": "h"}, histograms=[histogram(now)]))[0],
                         204)
        self.assertEqual(write_series(node, Series(
            {"__name__": "c"}, histograms=[histogram(now, schema=-53, custom=[0.5, 1.0])]),
            version=2)[0], 204)
        log = log_of(node)
        self.assertEqual(log.samples["default", (("__name__", "up"), ("job", "a")), now], stale)
        self.assertEqual(log.starts["default", (("__name__", "up"), ("job", "a")), now], now - 5)
        self.assertGreater(len(log.value({"__name__": "h"}, now)), 8)
        self.assertGreater(len(log.value({"__name__": "c"}, now)), 8)

    def test_a_repetition_is_one_record_and_gets_the_same_answer(self):
        node, now = self.start(), now_ms()
        body = version_1([Series(UP, [(now, 1.0)]), Series({"__name__": "old"}, [(now - 1, 2.0)])])
        self.assertEqual(write(node, body)[0], 204)
        self.assertEqual(write(node, body)[0], 204)
        refused = version_1([Series(UP, [(now, 9.0)]), Series({"__name__": "b"}, [(now, 1.0)])])
        first, second = write(node, refused), write(node, refused)
        self.assertEqual((first[0], second[0]), (400, 400))
        self.assertIn(b"duplicate sample for timestamp", first[1])
        node.kill()
        node.start()
        self.assertEqual(write(node, body)[0], 204)
        self.assertEqual(log_of(node).sample_records, 2)
        self.assertEqual(node.metric("promfabric_ingest_write_repeated_total"), 1)

    def test_repetitions_at_the_same_time_are_one_record(self):
        node, now = self.start(), now_ms()
        body = version_1([Series(UP, [(now, 1.0)])])
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(write(node, body)[0]))
                   for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(answers, [204] * 16)
        self.assertEqual(log_of(node).sample_records, 1)

    def test_a_key_of_ones_own_counts_whatever_the_body(self):
        node, now = self.start(), now_ms()
        key = {"Idempotency-Key": "order 17"}
        one = version_1([Series(UP, [(now, 1.0)])])
        two = version_1([Series(UP, [(now + 1, 1.0)])])
        self.assertEqual(write(node, one, headers=key)[0], 204)
        self.assertEqual(write(node, one, headers=key)[0], 204)
        self.assertEqual(write(node, two, headers=key)[0], 422)
        self.assertEqual(write(node, one, headers={**key, "X-Scope-OrgID": "other"})[0], 204)
        self.assertEqual(log_of(node).sample_records, 2)

    def test_samples_without_a_time_are_two_when_they_are_sent_twice(self):
        node = self.start()
        self.assertEqual(text(node, "up 1\n")[0], 204)
        self.assertEqual(text(node, "up 1\n")[0], 204)
        self.assertEqual(log_of(node).sample_records, 2)
        for _ in range(2):
            self.assertEqual(text(node, "up 1\n", {"Idempotency-Key": "k"})[0], 204)
        self.assertEqual(log_of(node).sample_records, 3)
        now = now_ms()
        for _ in range(2):
            self.assertEqual(text(node, f"timed 1 {now}\n")[0], 204)
        self.assertEqual(log_of(node).sample_records, 4)

    def test_text_plain_and_gzip_and_openmetrics(self):
        node, now = self.start(), now_ms() // 1000 * 1000
        lines = f'# TYPE http_requests counter\nhttp_requests_total{{path="/a b"}} 17 {now}\n'
        self.assertEqual(text(node, lines)[0], 204)
        self.assertEqual(text(node, gzip.compress(b"zipped 2 %d\n" % now),
                              {"Content-Encoding": "gzip"})[0], 204)
        self.assertEqual(text(node, f"om 3 {now // 1000}\n# EOF\n",
                              {"Content-Type": "application/openmetrics-text; version=1.0.0"})[0], 204)
        status, why, _ = text(node, f"good 1 {now}\nbad{{ 2\n\xff 3\nfine 4 {now}\n")
        self.assertEqual(status, 400)
        self.assertIn(b"line 2: the label braces do not close", why)
        log = log_of(node)
        self.assertEqual(log.value({"__name__": "http_requests_total", "path": "/a b"}, now), 17.0)
        self.assertEqual(log.value({"__name__": "zipped"}, now), 2.0)
        self.assertEqual(log.value({"__name__": "om"}, now), 3.0)
        self.assertEqual((log.value({"__name__": "good"}, now), log.value({"__name__": "fine"}, now)),
                         (1.0, 4.0))

    def test_tenants_are_apart(self):
        node, now = self.start(), now_ms()
        for i, tenant in enumerate(("x", "y")):
            self.assertEqual(write_series(node, Series(UP, [(now, float(i))]),
                                          headers={"X-Scope-OrgID": tenant})[0], 204)
        log = log_of(node)
        self.assertEqual((log.value(UP, now, "x"), log.value(UP, now, "y")), (0.0, 1.0))

    def test_times_that_are_too_old_or_too_new_are_refused_and_the_rest_is_written(self):
        node, now = self.start(), now_ms()
        hour = 3600_000
        self.assertEqual(write_series(node, Series(UP, [(now, 1.0)]))[0], 204)
        status, why, headers = write_series(
            node, Series({"__name__": "old"}, [(now - 3 * hour, 1.0), (now - hour, 2.0)]),
            Series({"__name__": "new"}, [(now + hour, 1.0)]), version=2)
        self.assertEqual(status, 400)
        self.assertIn(b'out of order', why)
        self.assertIn(b'__name__="old"', why)
        self.assertEqual(headers["X-Prometheus-Remote-Write-Samples-Written"], "1")
        self.assertEqual(write_series(node, Series({"__name__": "new"}, [(now + hour, 1.0)]))[0], 400)
        log = log_of(node)
        self.assertEqual(log.value({"__name__": "old"}, now - hour), 2.0)
        self.assertIsNone(log.value({"__name__": "old"}, now - 3 * hour))
        self.assertIsNone(log.value({"__name__": "new"}, now + hour))

    def test_ranges_are_closed_by_age_and_numbers_start_anew(self):
        node, now = self.start("--seal-age", "1s"), now_ms()
        self.assertEqual(write_series(node, Series(UP, [(now, 1.0)]))[0], 204)
        wait_for("a SEAL", lambda: node.metric("promfabric_ingest_ranges_closed_total") == 1)
        self.assertEqual(write_series(node, Series(UP, [(now + 1, 2.0)]))[0], 204)
        log = log_of(node)
        self.assertEqual(kinds_of(log)[:3], [1, 2, 1])
        self.assertEqual(log.value(UP, now + 1), 2.0)
        self.assertEqual(log.fresh, 2)

    def test_ranges_are_closed_early_when_memory_is_short(self):
        node, now = self.start("--head-bytes", "1KiB"), now_ms()
        series = [Series({"__name__": "m", "i": str(i)}, [(now, 1.0)]) for i in range(100)]
        self.assertEqual(write_series(node, *series)[0], 204)

        def refused():
            status, why, _ = write_series(node, Series(UP, [(now_ms(), 1.0)]))
            return status == 503 and b"memory" in why
        wait_for("503", refused)
        wait_for("a SEAL", lambda: node.metric("promfabric_ingest_ranges_closed_total") == 1)

    def test_a_node_that_drains_closes_its_ranges(self):
        node, now = self.start(), now_ms()
        self.assertEqual(write_series(node, Series(UP, [(now, 1.0)]))[0], 204)
        wait_for("its housekeeping", lambda: node.metric("promfabric_ingest_series") == 1)
        self.assertEqual(node.stop(), 0)
        node.start()
        self.assertEqual(kinds_of(log_of(node))[:2], [1, 2])

    def test_limits_of_a_tenant_are_429_and_the_rest_is_written(self):
        node, now = self.start("--tenant-series", "2"), now_ms()
        status, why, headers = write_series(
            node, *[Series({"__name__": f"m{i}"}, [(now, 1.0)]) for i in range(3)], version=2)
        self.assertEqual((status, headers["Retry-After"]), (429, "1"))
        self.assertIn(b"too many series", why)
        self.assertEqual(headers["X-Prometheus-Remote-Write-Samples-Written"], "2")
        other = write_series(node, Series(UP, [(now, 1.0)]), headers={"X-Scope-OrgID": "other"})
        self.assertEqual(other[0], 204)

    def test_partitions_are_fixed_when_the_cluster_is_made(self):
        node, now = self.start("--partitions", "4"), now_ms()
        names = [q["name"] for q in node.request("GET", "/v1/queues")[1]["queues"]]
        self.assertEqual(names, ["meta"] + [f"metrics-{i}" for i in range(4)])
        series = [Series({"__name__": "m", "i": str(i)}, [(now, float(i))]) for i in range(100)]
        self.assertEqual(write_series(node, *series)[0], 204)
        self.assertEqual(write_series(node, *series)[0], 204)
        logs = [log_of(node, p) for p in range(4)]
        self.assertTrue(all(10 < len(log.samples) < 45 for log in logs))
        for i in range(100):
            found = [log.value({"__name__": "m", "i": str(i)}, now) for log in logs]
            self.assertEqual(sorted(x for x in found if x is not None), [float(i)])
        # The name has no say: all metrics of a target's labels are in one place.
        self.assertEqual(write_series(node, Series({"__name__": "n", "i": "7"}, [(now, 1.0)]))[0], 204)
        of = [p for p in range(4) if log_of(node, p).value({"__name__": "n", "i": "7"}, now)]
        self.assertIsNotNone(logs[of[0]].value({"__name__": "m", "i": "7"}, now))
        node.stop()
        node.args = ["--partitions", "2"]
        node.start(ready=False)
        self.assertNotEqual(node.process.wait(20), 0)
        self.assertIn("--partitions 2: the cluster has 4", node.log_text())
        node.args = []
        node.start()
        self.assertEqual(write_series(node, *series)[0], 204)

    def test_without_space_samples_are_503_until_there_is_some(self):
        node, now = self.start(), now_ms()
        body = version_1([Series(UP, [(now, 1.0)])])
        self.assertEqual(write(node, body)[0], 204)
        node.stop()
        node.args = ["--disk-reserve", "1000TiB"]  # as if the disk were full but for its reserve
        node.start()
        for version, written in ((1, None), (2, "0")):
            status, why, headers = write_series(node, Series(UP, [(now + 1, 2.0)]), version=version)
            self.assertEqual((status, headers["Retry-After"]), (503, "1"), why)
            self.assertIn(b"no space", why)
            self.assertEqual(headers["X-Prometheus-Remote-Write-Samples-Written"], written)
        self.assertEqual(write(node, body)[0], 204)  # what is written is known all the same
        node.stop()
        node.args = []
        node.start()
        self.assertEqual(write_series(node, Series(UP, [(now + 1, 2.0)]))[0], 204)
        self.assertEqual(log_of(node).value(UP, now + 1), 2.0)

    def test_too_much_that_waits_for_the_store_is_503(self):
        node, now = self.start("--log-file-bytes", "1MiB", "--data-bytes", "4MiB"), now_ms()
        statuses = set()

        def refused():
            nonlocal now
            now += 1
            series = [Series({"__name__": "m", "i": str(i), "x": f"{now}" * 400}, [(now, 1.0)])
                      for i in range(100)]
            status, why, _ = write_series(node, *series)
            statuses.add(status)
            return status == 503 and b"waits to be sealed" in why
        wait_for("503", refused)
        self.assertEqual(statuses, {204, 503})

    def test_the_records_of_partitions_are_nobodys_to_write(self):
        node = self.start()
        self.assertEqual(node.offer("metrics-0", b"x")[0], 400)
        self.assertEqual(node.request("DELETE", "/v1/queues/metrics-0")[0], 400)


if __name__ == "__main__":
    unittest.main()
