"""test_limits.py - what a tenant may send: rates, active series, labels; by flag, by file, by cluster."""
import time
import unittest

from clusters import ClusterTest
from harness import NodeTest, wait_for
from messages import Series, log_of, now_ms, version_1, write, write_series

LIMITED = 'promfabric_ingest_limited_samples_total{limit="%s"}'


def many(count, ts, first=0, name="m"):
    return [Series({"__name__": name, "i": str(first + i)}, [(ts, float(i))]) for i in range(count)]


class Limits(NodeTest):
    def start(self, *args, lines=""):
        self.file = self.folder + "/limits"
        self.say(lines)
        return self.node(args=[*args, "--tenant-limits", self.file]).start("--bootstrap")

    def say(self, lines):
        with open(self.file, "w", encoding="utf-8") as file:
            file.write(lines)

    def send(self, node, tenant, *series, version=2):
        return write_series(node, *series, version=version, headers={"X-Scope-OrgID": tenant})

    def test_too_many_active_series_name_the_ten_noisiest_metrics(self):
        node, now = self.start("--series-idle", "4s", lines="small series=66\n"), now_ms()
        for i in range(1, 12):
            self.assertEqual(self.send(node, "small", *many(i, now, name=f"m{i}"))[0], 204)
        status, why, headers = self.send(node, "small", *many(1, now, name="one_more"))
        self.assertEqual((status, headers["Retry-After"]), (429, "1"))
        self.assertEqual(why.decode().strip(),
                         "the tenant has too many series: 66 active, its limit series=66; most are of "
                         + ", ".join(f"m{i} {i}" for i in range(11, 1, -1)))
        # What is active goes on, others have limits of their own.
        self.assertEqual(self.send(node, "small", *many(11, now + 1, name="m11"))[0], 204)
        self.assertEqual(self.send(node, "other", *many(100, now))[0], 204)
        self.assertEqual(node.metric(LIMITED % "series"), 1)
        wait_for("the gauge", lambda: node.metric("promfabric_ingest_series_active") == 166)
        # Those that are idle make room.
        wait_for("idle series to go", lambda: self.send(
            node, "small", *many(1, now_ms(), name="one_more"))[0] == 204, 30)

    def test_a_range_that_ends_frees_nothing(self):
        node, now = self.start("--seal-age", "1s", "--tenant-series", "2"), now_ms()
        self.assertEqual(self.send(node, "t", *many(2, now))[0], 204)
        wait_for("the range to end", lambda: node.metric("promfabric_ingest_ranges_closed_total"))
        status, _, headers = self.send(node, "t", *many(2, now + 1, first=1))
        self.assertEqual((status, headers["X-Prometheus-Remote-Write-Samples-Written"]), (429, "1"))

    def test_rates_are_429_with_the_time_to_wait_and_the_repetition_is_whole(self):
        node, now = self.start(lines="slow samples-rate=20\nthin bytes-rate=2KiB\n"), now_ms()
        self.assertEqual(self.send(node, "slow", *many(200, now))[0], 204)  # more than the bucket
        body = version_1(many(40, now + 1))
        status, why, headers = write(node, body, headers={"X-Scope-OrgID": "slow"})
        self.assertEqual(status, 429, why)
        self.assertIn(b"samples-rate", why)
        self.assertTrue(8 <= int(headers["Retry-After"]) <= 10, headers["Retry-After"])
        self.assertEqual(self.send(node, "thin", *many(200, now))[0], 204)
        status, why, _ = self.send(node, "thin", *many(200, now + 1))
        self.assertEqual(status, 429)
        self.assertIn(b"bytes-rate", why)
        # Another tenant is not asked to wait. A repetition before the time is not even read.
        self.assertEqual(self.send(node, "free", *many(1000, now))[0], 204)
        wait_for("a request that is turned away", lambda: write(
            node, body, headers={"X-Scope-OrgID": "slow"})[0] == 429 and node.metric(
                "promfabric_ingest_write_turned_away_total"), 5)
        self.assertEqual(node.metric(LIMITED % "samples-rate") % 40, 0)
        self.assertGreater(node.metric(LIMITED % "samples-rate"), 0)
        self.assertEqual(node.metric(LIMITED % "bytes-rate"), 200)
        wait_for("the bucket to fill", lambda: write(
            node, body, headers={"X-Scope-OrgID": "slow"})[0] == 204, 30)
        log = log_of(node)
        for i in range(40):
            self.assertEqual(log.samples.get(
                ("slow", (("__name__", "m"), ("i", str(i))), now + 1)) is not None, True)

    def test_labels_of_one_tenant_and_of_all(self):
        node, now = self.start("--labels-max", "3",
                               lines="wide labels=5 label-name-bytes=4KiB label-value-bytes=100\n"), now_ms()

        def labels(count):
            return Series({"__name__": "m", **{f"l{i}": "v" for i in range(count - 1)}}, [(now, 1.0)])
        self.assertEqual(self.send(node, "any", labels(3))[0], 204)
        status, why, _ = self.send(node, "any", labels(4))
        self.assertEqual(status, 400)
        self.assertIn(b"too many labels (its limit is labels=3)", why)
        self.assertEqual(self.send(node, "wide", labels(5))[0], 204)
        self.assertEqual(self.send(node, "wide", labels(6))[0], 400)
        long = Series({"__name__": "m", "n" * 2000: "v"}, [(now, 1.0)])
        self.assertEqual(self.send(node, "any", long)[0], 400)
        self.assertEqual(self.send(node, "wide", long)[0], 204)
        self.assertEqual(self.send(node, "wide", Series({"__name__": "m", "v": "v" * 101},
                                                        [(now, 1.0)]))[0], 400)
        for limit, count in (("labels", 2), ("label-name-bytes", 1), ("label-value-bytes", 1)):
            self.assertEqual(node.metric(LIMITED % limit), count, limit)

    def test_the_file_is_read_again_and_nonsense_changes_nothing(self):
        node, now = self.start(lines="t series=1\n"), now_ms()
        self.assertEqual(self.send(node, "t", *many(2, now))[0], 429)
        self.say("t series=2 queries=7\n")  # the API's file as well
        wait_for("more series", lambda: self.send(node, "t", *many(2, now))[0] == 204)
        self.say("t series=zwei\n")
        wait_for("a warning", lambda: "limits cannot be read" in node.log_text())
        self.assertEqual(self.send(node, "t", *many(3, now))[0], 429)
        self.assertEqual(self.send(node, "t", *many(2, now))[0], 204)
        self.say("t series=3\n")
        wait_for("more series", lambda: self.send(node, "t", *many(3, now))[0] == 204)

    def test_a_file_that_makes_no_sense_at_the_start_is_said(self):
        self.file = self.folder + "/limits"
        self.say("t rows=1\n")
        node = self.node(args=["--tenant-limits", self.file]).start("--bootstrap", ready=False)
        self.assertEqual(node.process.wait(20), 2)
        self.assertIn("limits:1: no such limit", node.log_text())


class LimitsOfCluster(ClusterTest):
    def write_cluster(self, partitions, args):
        nodes = self.cluster(args=["--partitions", str(partitions), *args])
        for p in range(partitions):
            wait_for("all voters", lambda: all(
                len(self.voters(node, f"metrics-{p}")) == len(nodes) for node in nodes))
        return nodes

    def spread(self, nodes, partitions):
        """Have every node lead something."""
        for p in range(partitions):
            to = nodes[p % len(nodes)]
            wait_for("the leader to go", lambda: self.leader(nodes, f"metrics-{p}") is to or (
                nodes[0].request("POST", f"/v1/queues/metrics-{p}/transfer", {"to": to.name}),
                time.sleep(0.5))[0] is True)

    def test_three_nodes_hold_limits_as_a_whole(self):
        nodes = self.write_cluster(4, ["--tenant-series", "80", "--tenant-samples-rate", "400"])
        self.spread(nodes, 4)
        now, written = now_ms(), 0
        for i in range(6):
            _, _, headers = write_series(nodes[i % 3], *many(60, now, first=60 * i), version=2)
            written += int(headers["X-Prometheus-Remote-Write-Samples-Written"] or 0)
        wait_for("the gauges", lambda: sum(
            n.metric("promfabric_ingest_series_active") for n in nodes) == written)
        self.assertLessEqual(written, 80)
        self.assertGreaterEqual(written, 60)
        self.assertGreaterEqual(len([n for n in nodes if n.metric(LIMITED % "series")]), 2)

        # 400 a second, and buckets of two seconds.
        began, count = time.monotonic(), 0
        while time.monotonic() < began + 4:
            count += 1
            write_series(nodes[count % 3], *many(60, now + count), version=2,
                         headers={"X-Scope-OrgID": "rates"})
        seconds = time.monotonic() - began
        applied = sum(len([1 for key in log.samples if key[0] == "rates"])
                      for log in (log_of(nodes[0], p) for p in range(4)))
        self.assertLessEqual(applied, 400 * (seconds + 2) + 60)
        self.assertGreater(applied, 400)


if __name__ == "__main__":
    unittest.main()
