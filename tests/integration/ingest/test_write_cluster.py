"""test_write_cluster.py - samples into three nodes: any of them takes a request, and whatever dies, what
was acknowledged is in the log of its partition, once."""
import signal
import threading
import time
import unittest

from clusters import ClusterTest
from harness import wait_for
from messages import Series, log_of, now_ms, version_1, write, write_series


class WritingCluster(ClusterTest):
    def write_cluster(self, partitions=2, args=()):
        nodes = self.cluster(args=["--partitions", str(partitions), *args])
        for p in range(partitions):
            wait_for("all voters", lambda: all(
                len(self.voters(node, f"metrics-{p}")) == len(nodes) for node in nodes))
        return nodes

    def series(self, i, ts):
        return Series({"__name__": "m", "i": str(i)}, [(ts, float(i))])

    def logs(self, node, partitions=2):
        return [log_of(node, p) for p in range(partitions)]

    def test_any_node_takes_a_request(self):
        nodes, now = self.write_cluster(), now_ms()
        for i in range(30):
            answer = write_series(nodes[i % 3], *[self.series(j, now + i) for j in range(20)],
                                  version=1 + i % 2)
            self.assertEqual(answer[0], 204, answer[1])
        logs = self.logs(nodes[1])
        self.assertEqual(sum(len(log.samples) for log in logs), 30 * 20)
        self.assertGreater(sum(n.metric("promfabric_ingest_queue_forwarded_total") for n in nodes), 0)
        # A repetition at another node is the same request.
        body = version_1([self.series(1, now + 100)])
        for node in nodes:
            self.assertEqual(write(node, body)[0], 204)
        self.assertEqual(sum(log.sample_records for log in self.logs(nodes[0])),
                         sum(log.sample_records for log in logs) + 1)
        # All nodes apply the same.
        total = nodes[0].metric("promfabric_ingest_samples_applied_total")
        wait_for("all to have applied all", lambda: all(
            n.metric("promfabric_ingest_samples_applied_total") == total for n in nodes))

    def test_killed_leaders_lose_and_double_nothing(self):
        nodes = self.write_cluster()
        base, sent, stop, bad = now_ms(), {}, threading.Event(), []

        def send(client):
            i = 0
            while not stop.is_set():
                i += 1
                body = version_1([self.series(client * 10 + j, base + i) for j in range(4)])
                at = (client + i) % 3
                while not stop.is_set():  # as senders do: the same until it is taken
                    try:
                        status, why, _ = write(nodes[at], body, timeout=15)
                    except OSError:
                        status, why = 503, b""
                    if status == 204:
                        sent[client, i] = True
                        break
                    if status < 500:
                        bad.append((status, why))
                        return
                    at = (at + 1) % 3
                    time.sleep(0.02)

        threads = [threading.Thread(target=send, args=(c,)) for c in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(3):
            time.sleep(0.7)
            leader = self.wait_leader(nodes, "metrics-0")
            before = len(sent)
            leader.kill()
            wait_for("writes to go on", lambda: len(sent) > before + 20, 30)
            leader.start()
        stop.set()
        for thread in threads:
            thread.join()
        self.assertEqual(bad, [])
        logs = self.logs(nodes[0])
        for client, i in sent:
            for j in range(4):
                n = client * 10 + j
                found = [log.value({"__name__": "m", "i": str(n)}, base + i) for log in logs]
                self.assertIn(float(n), found, (client, i, j))
        # Each request touches each partition once: as many records as requests and partitions, at most.
        # (Those whose answer was lost are repetitions, which write nothing.)
        for log in logs:
            self.assertEqual(log.doubled, 0)
        # Nobody met a number without its labels, or a record that counts for nothing.
        for node in nodes:
            self.assertEqual(node.metric("promfabric_ingest_head_unknown_series_total"), 0)
            self.assertEqual(node.metric("promfabric_ingest_records_void_total"), 0)

    def test_without_a_leader_writes_fail_within_a_second(self):
        nodes, now = self.write_cluster(1), now_ms()
        self.assertEqual(write_series(nodes[0], self.series(1, now))[0], 204)
        nodes[1].kill()
        nodes[2].kill()
        wait_for("the leader to notice", lambda: write_series(
            nodes[0], self.series(1, now + 1), timeout=30)[0] == 503, 30)
        time.sleep(2)  # an election timeout and more: it follows nobody now
        began = time.monotonic()
        status, why, headers = write_series(nodes[0], self.series(1, now + 2))
        took = time.monotonic() - began
        self.assertEqual((status, headers["Retry-After"]), (503, "1"), why)
        self.assertIn(b"metrics-0", why)
        self.assertLess(took, 1.5)
        nodes[1].start()
        wait_for("writes", lambda: write_series(nodes[0], self.series(1, now + 2))[0] == 204)

    def timed_write(self, node, series):
        """Status, text, headers and how many seconds it took."""
        began = time.monotonic()
        return (*write_series(node, series, timeout=30), time.monotonic() - began)

    def stop_and_write(self, stopped, at, now):
        """Writes at @at from the moment at which nodes are @stopped until one is refused."""
        for node in stopped:
            node.process.send_signal(signal.SIGSTOP)
        try:
            for i in range(20):
                status, why, headers, took = self.timed_write(at, self.series(1, now + i))
                self.assertLess(took, 1.6, (i, status, why))
                if status != 204:
                    break
            self.assertEqual((status, headers["Retry-After"]), (503, "1"), why)
            self.assertIn(b"metrics-0", why)
            return now + i
        finally:
            for node in stopped:
                node.process.send_signal(signal.SIGCONT)

    def test_a_leader_whose_followers_are_stopped_refuses_within_a_second(self):
        # Two to four seconds until it steps down.
        nodes, now = self.write_cluster(1, ["--election-timeout", "2s"]), now_ms()
        leader = self.wait_leader(nodes, "metrics-0")
        self.assertEqual(write_series(leader, self.series(1, now))[0], 204)
        refused = self.stop_and_write([n for n in nodes if n is not leader], leader, now + 1)
        # What was refused is of unknown outcome: sent again it is there once.
        wait_for("writes", lambda: write_series(leader, self.series(1, refused))[0] == 204)
        log = log_of(leader)
        self.assertEqual(log.value({"__name__": "m", "i": "1"}, refused), 1.0)
        self.assertEqual(log.doubled, 0)

    def test_a_follower_does_not_wait_for_a_leader_that_is_stopped(self):
        nodes, now = self.write_cluster(1), now_ms()
        leader = self.wait_leader(nodes, "metrics-0")
        others = [n for n in nodes if n is not leader]
        self.assertEqual(write_series(others[0], self.series(1, now))[0], 204)
        refused = self.stop_and_write([leader], others[0], now + 1)
        wait_for("writes", lambda: write_series(others[0], self.series(1, refused))[0] == 204)
        self.assertEqual(log_of(others[0]).doubled, 0)

    def test_a_new_node_has_the_ledger_by_snapshot(self):
        nodes, now = self.write_cluster(1, ["--log-file-bytes", "1MiB"]), now_ms()
        body = version_1([self.series(1, now)])
        self.assertEqual(write(nodes[0], body)[0], 204)
        new = self.node("d", ["--election-timeout", "500ms"])
        for node in nodes:
            new.args.append(f"--peer={node.name}=127.0.0.1:{node.peer_port}")
        new.start(ready=False)
        # It is dialled by nobody: the others hear from it.
        wait_for("d to join", lambda: self.change_or_none(nodes[0], "add", "d"))
        wait_for("d to vote", lambda: self.change_or_none(nodes[0], "promote", "d"))
        wait_for("d to be ready", new.is_ready)
        self.assertEqual(write(new, body)[0], 204)
        self.assertEqual(log_of(new).sample_records, 1)

    def change_or_none(self, at, change, name):
        status, _ = at.request("POST", "/v1/members", {"change": change, "name": name})
        return status == 200


# The tests of the class it builds on run in their own file.
for name in [n for n in dir(ClusterTest) if n.startswith("test_")]:
    setattr(WritingCluster, name, None)

if __name__ == "__main__":
    unittest.main()
