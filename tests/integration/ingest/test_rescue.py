"""test_rescue.py - when most nodes are lost for good, and when all that is left is a backup: what the manual says
(docs/OPERATIONS.md), step by step."""
import os
import shutil
import signal
import subprocess
import unittest

from clusters import ClusterTest
from harness import BINARY, wait_for
from messages import Series, now_ms, write_series
from sending import Senders

PARTITIONS = 2
QUEUES = ["meta", *[f"metrics-{p}" for p in range(PARTITIONS)]]


class Rescue(ClusterTest):
    def three(self):
        nodes = self.cluster(args=["--partitions", str(PARTITIONS)])
        for queue in QUEUES:
            wait_for("all voters", lambda queue=queue: all(len(self.voters(node, queue)) == 3 for node in nodes))
        return nodes

    def rescue(self, node, *flags):
        done = subprocess.run([BINARY, "queue", "rescue", node.data, *flags], capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout, done.stderr

    def form(self, nodes, wait="60s"):
        done = subprocess.run([BINARY, "queue", "form", *[f"http://127.0.0.1:{n.port}" for n in nodes], f"--wait={wait}"],
                              capture_output=True, text=True, timeout=90)
        return done.returncode, done.stdout, done.stderr

    def send_some(self, nodes, requests=200):
        senders = Senders(nodes)
        self.addCleanup(senders.stop)
        wait_for("some writes", lambda: senders.count() > requests or senders.failed, 60)
        senders.stop()
        return senders

    def applied_by_all(self, nodes):
        name = "promfabric_ingest_samples_applied_total"
        wait_for("all to have applied all", lambda: len({node.metric(name) for node in nodes}) == 1)

    def wipe(self, nodes):
        for node in nodes:
            node.kill()
            shutil.rmtree(node.data)

    def cluster_of(self, node):
        return node.request("GET", "/v1/node")[1]["cluster"]

    def test_one_node_of_three_is_left(self):
        nodes = self.three()
        senders = self.send_some(nodes)
        self.applied_by_all(nodes)
        was, copy = self.cluster_of(nodes[0]), f"{self.folder}/c-as-it-was"
        for node in nodes:
            node.kill()
        shutil.copytree(nodes[2].data, copy)
        self.wipe(nodes[1:])

        # First it is looked at: nothing is changed, and alone it acknowledges nothing.
        code, out, err = self.rescue(nodes[0])
        self.assertEqual((code, err), (0, ""))
        self.assertIn("nothing was changed", out)
        self.assertEqual(len([line for line in out.splitlines() if line.startswith(("q-", "meta"))]), len(QUEUES))
        nodes[0].start(ready=False)
        wait_for("it to answer", lambda: self.answers(nodes[0]))
        self.assertEqual(self.cluster_of(nodes[0]), was)
        self.assertEqual(write_series(nodes[0], Series({"__name__": "late"}, [(now_ms(), 1.0)]), timeout=30)[0], 503)
        self.assertIn("in use by another process", self.rescue(nodes[0], "--yes")[2])
        nodes[0].kill()

        code, out, err = self.rescue(nodes[0], "--yes")
        self.assertEqual((code, err), (0, ""))
        nodes[0].start()
        senders.check(self, nodes[0], PARTITIONS)
        self.assertNotEqual(self.cluster_of(nodes[0]), was)
        for node in nodes[1:]:
            node.start(ready=False)
        code, out, err = self.form(nodes)
        self.assertEqual((code, out), (0, "3 nodes vote\n"), err)
        more = self.send_some(nodes)
        self.applied_by_all(nodes)
        for node in nodes:
            wait_for("ready", node.is_ready)
            senders.check(self, node, PARTITIONS)
            more.check(self, node, PARTITIONS)

        # A node of the old cluster that turns up again is refused, and changes nothing.
        nodes[2].kill()
        shutil.rmtree(nodes[2].data)
        shutil.copytree(copy, nodes[2].data)
        nodes[2].start(ready=False)
        wait_for("it to be refused", lambda: "peer belongs to another cluster" in nodes[2].log_text(), 30)
        code, _, err = self.form(nodes, wait="5s")
        self.assertEqual(code, 1)
        self.assertIn("a and c are in different clusters", err)
        more.check(self, nodes[0], PARTITIONS)

    def answers(self, node):
        try:
            return node.request("GET", "/livez")[0] == 200
        except OSError:
            return False

    def restore(self, nodes, backup):
        """A backup of any node becomes node a; the others begin empty."""
        shutil.copytree(backup, nodes[0].data)
        code, _, err = self.rescue(nodes[0], "--yes", "--as", nodes[0].name)
        self.assertEqual((code, err), (0, ""))
        nodes[0].start()
        for node in nodes[1:]:
            node.start(ready=False)
        code, out, err = self.form(nodes)
        self.assertEqual((code, out), (0, "3 nodes vote\n"), err)

    def test_a_backup_of_a_stopped_node_becomes_a_cluster_again(self):
        nodes, backup = self.three(), f"{self.folder}/backup"
        self.assertEqual(nodes[0].request("PUT", "/v1/queues/jobs")[0], 200)
        self.assertEqual(nodes[0].offer("jobs", b"first")[0], 200)
        before = self.send_some(nodes)
        self.applied_by_all(nodes)
        self.assertEqual(nodes[2].stop(), 0)
        shutil.copytree(nodes[2].data, backup)
        nodes[2].start()
        after = self.send_some(nodes)
        self.wipe(nodes)
        self.restore(nodes, backup)
        for node in nodes:
            wait_for("ready", node.is_ready)
        self.assertEqual([data for _, data in nodes[1].read_all("jobs")], [b"first"])
        before.check(self, nodes[1], PARTITIONS)
        # What came later is lost, unless its senders have it still: sending it again doubles nothing.
        for client, numbers in enumerate(after.sent):
            for number in numbers:
                series = [Series(after.labels(client, part), [(after.base + number, float(number))]) for part in range(4)]
                self.assertEqual(write_series(nodes[2], *series)[0], 204)
        self.applied_by_all(nodes)
        after.check(self, nodes[1], PARTITIONS)

    def test_a_copy_of_the_volume_at_one_moment_is_a_backup(self):
        """As a snapshot of a volume has it: the node runs, and does not know."""
        nodes, backup = self.three(), f"{self.folder}/backup"
        before = self.send_some(nodes)
        leader = self.wait_leader(nodes, "metrics-0")
        under_way = Senders(nodes)
        self.addCleanup(under_way.stop)
        wait_for("writes", lambda: under_way.count() > 20)
        leader.process.send_signal(signal.SIGSTOP)
        shutil.copytree(leader.data, backup)
        leader.process.send_signal(signal.SIGCONT)
        under_way.stop()
        self.wipe(nodes)
        self.restore(nodes, backup)
        self.applied_by_all(nodes)
        before.check(self, nodes[2], PARTITIONS)

    def test_what_cannot_be_rescued_is_said_and_left_alone(self):
        nodes = self.three()
        for node in nodes:
            node.kill()
        empty, never = self.node("x"), self.node("y")
        for path in (empty.data, empty.data / "missing"):
            empty.data = path
            code, _, err = self.rescue(empty, "--yes")
            self.assertEqual(code, 1)
            self.assertIn("has no data of an ingest node", err)
            self.assertFalse(path.exists())
        never.start(ready=False)  # without --bootstrap: in no cluster
        wait_for("it to answer", lambda: self.answers(never))
        never.kill()
        self.assertIn("of a node in no cluster", self.rescue(never, "--yes")[2])
        self.assertIn("1 to 63 bytes", self.rescue(nodes[0], "--yes", "--as", "n" * 64)[2])
        # Queues of one node and meta of another.
        mixed = self.node("z")
        shutil.copytree(nodes[0].data, mixed.data)
        shutil.rmtree(mixed.data / "meta")
        shutil.copytree(nodes[1].data / "meta", mixed.data / "meta")
        code, _, err = self.rescue(mixed, "--yes")
        self.assertEqual(code, 1)
        self.assertIn("belongs to another node than meta", err)

    def test_a_rescue_that_was_cut_off_is_run_again(self):
        """At any moment before its end: the node does not start, and says why."""
        nodes = self.three()
        senders = self.send_some(nodes)
        self.applied_by_all(nodes)
        for node in nodes:
            node.kill()
        meta = f"{self.folder}/meta-as-it-was"
        shutil.copytree(nodes[0].data / "meta", meta)
        self.assertEqual(self.rescue(nodes[0], "--yes")[0], 0)
        shutil.rmtree(nodes[0].data / "meta")
        shutil.copytree(meta, nodes[0].data / "meta")
        nodes[0].start(ready=False)
        self.assertEqual(nodes[0].process.wait(30), 1)
        self.assertIn("queue rescue", nodes[0].log_text())
        nodes[0].log.close()
        self.assertEqual(self.rescue(nodes[0], "--yes")[0], 0)
        nodes[0].start()
        senders.check(self, nodes[0], PARTITIONS)


if __name__ == "__main__":
    unittest.main()
