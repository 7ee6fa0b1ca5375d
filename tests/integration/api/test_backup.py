"""test_backup.py - the queues and the store of a cluster are lost and put back as the manual says
(docs/OPERATIONS.md, "Backup and restore"): answers are as they were."""
import os
import shutil
import signal
import subprocess
import threading
import time
import unittest

from harness import BINARY, wait_for
from test_ingest import Cluster, now_ms

SEAL_AGE = "1s"


class Writer:
    """Writes a sample of each of a few series after the other, one millisecond apart, until it is acknowledged."""

    def __init__(self, nodes):
        self.nodes, self.base, self.written, self.stopping = nodes, now_ms(), 0, threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.stopping.is_set():
            n = self.written + 1
            if any(node.write([f'm{{i="{i}"}} {n} {self.base + n}' for i in range(8)]) for node in self.nodes):
                self.written = n
            time.sleep(0.005)

    def stop(self):
        self.stopping.set()
        self.thread.join(60)


class Backup(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster(nodes=3, workers=1, flags=(f"--seal-age={SEAL_AGE}",))
        self.addCleanup(self.cluster.close)
        self.folder = self.cluster.folder

    def counts(self):
        """How many samples of each series there are, and the greatest."""
        found = [self.cluster.values(f"{fn}_over_time(m[1h])") for fn in ("count", "max")]
        return {i: (found[0][i], found[1][i]) for i in found[0]}

    def stop_node(self, node, number=signal.SIGTERM):
        node.process.signal(number)
        node.process.process.wait(60)
        node.process.log.close()

    def wait_writes(self, writer, count):
        wait_for("writes", lambda: writer.written > count, 60)

    def test_queues_and_store_are_put_back_and_every_answer_is_as_it_was(self):
        cluster, nodes = self.cluster, self.cluster.nodes
        writer = Writer(nodes)
        self.addCleanup(writer.stop)
        wait_for("segments", lambda: len(cluster.segments()) > 8, 60)

        # One node first, while the others go on.
        self.stop_node(nodes[2])
        shutil.copytree(f"{self.folder}/n2", f"{self.folder}/backup-queues")
        before = writer.written
        nodes[2].start()
        nodes[2].await_ready()
        # Samples move from queues to store meanwhile.
        segments = len(cluster.segments())
        wait_for("more segments", lambda: len(cluster.segments()) > segments + 8, 60)
        shutil.copytree(cluster.fabric.store, f"{self.folder}/backup-store")
        copied = writer.written
        self.wait_writes(writer, copied + 50)
        writer.stop()
        self.assertEqual(self.counts(), {str(i): (writer.written, writer.written) for i in range(8)})

        # Everything is lost.
        for node in nodes:
            self.stop_node(node, signal.SIGKILL)
            shutil.rmtree(f"{self.folder}/{node.name}")
        store = f"{self.folder}/store-again"
        shutil.copytree(f"{self.folder}/backup-store", store)
        shutil.copytree(f"{self.folder}/backup-queues", f"{self.folder}/n0")
        done = subprocess.run([BINARY, "queue", "rescue", f"{self.folder}/n0", "--as", "n0", "--yes"],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for node in nodes:
            node.store = store
            node.start()
        done = subprocess.run([BINARY, "queue", "form", *[f"http://127.0.0.1:{n.port}" for n in nodes], "--wait=60s"],
                              capture_output=True, text=True, timeout=90)
        self.assertEqual((done.returncode, done.stdout), (0, "3 nodes vote\n"), done.stderr)
        for node in nodes:
            node.await_ready()
        cluster.fabric_store(store)

        # Nothing that was acknowledged before the backup is missing, nothing is there twice; what came later is
        # there as far as it was in the store.
        counts = self.counts()
        self.assertEqual(set(counts), {str(i) for i in range(8)})
        for count, greatest in counts.values():
            self.assertGreaterEqual(count, before)
            self.assertLessEqual(greatest, writer.written)
        # Senders that have the rest still send it again: every answer is as it was.
        for n in range(1, writer.written + 1):
            lines = [f'm{{i="{i}"}} {n} {writer.base + n}' for i in range(8)]
            self.assertTrue(nodes[n % 3].write(lines) or wait_for("the write", lambda lines=lines: nodes[0].write(lines)))
        self.assertEqual(self.counts(), {str(i): (writer.written, writer.written) for i in range(8)})
        # And it stays so when all of it is in the store.
        segments = len(cluster.segments())
        wait_for("it to be sealed", lambda: len(cluster.segments()) > segments, 60)
        self.assertEqual(self.counts(), {str(i): (writer.written, writer.written) for i in range(8)})


if __name__ == "__main__":
    unittest.main()
