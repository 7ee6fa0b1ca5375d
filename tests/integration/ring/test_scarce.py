"""test_scarce.py - fewer storage nodes, or fewer ingest nodes, than a quorum: what is acknowledged is durable, the rest is refused."""
import random
import subprocess
import time
import unittest

from harness import BINARY, wait_for
from heads import status, write
from keepers import api
from test_migrations import NOW, MigrationTest

BIG = 12000  # series of a request: some hundred KiB of log
REFUSED_S = 10  # "at once", on a machine that is busy; without a bound it would be that of the client


class Scarce(MigrationTest):
    def more(self, metric, node, series=BIG):
        """A sample of each series; its status."""
        self.round += 1
        values = random.Random(self.round)
        lines = "".join(f'{metric}{{s="{s}"}} {values.random()} {NOW + self.round}\n' for s in range(series))
        code = write(node, lines, timeout=60)
        self.taken += series * (code == 204 and metric == "m")
        return code

    def segments(self):
        listed = subprocess.run([BINARY, "segments", "ls", "--store", self.store], capture_output=True, text=True, timeout=60)
        self.assertEqual(listed.returncode, 0, listed.stderr)
        return listed.stdout.count(".parquet")

    def sealed(self):
        def nothing_waits():
            code, answer = status(self.nodes[0])
            return code == 200 and not any(p["ranges"] for p in answer["partitions"])
        wait_for("everything to be sealed", nothing_waits, 180)

    def counted(self):
        code, body, _ = self.reader.raw("GET", "/api/v1/query", {"query": "sum(count_over_time(m[1h]))", "time": NOW / 1000 + 60})
        return code == 200 and f'"{self.taken}"'.encode() in body

    def test_without_a_quorum_of_either_kind_of_node(self):
        self.round = self.taken = 0
        self.fabric(nodes=3, copies=3, args=["--log-file-bytes", "1MiB", "--data-bytes", "4MiB"])
        self.reader = api(self.folder, self.store, self.nodes[0], list(self.keepers.values()))
        self.processes.append(self.reader.start())
        self.assertEqual(self.more("m", self.nodes[0]), 204)
        self.sealed()
        before = self.segments()
        self.assertGreater(before, 0)

        # One storage node of three: nothing is sealed, writers go on until the logs are full, and everything is in answers.
        for name in ("k0", "k1"):
            self.keepers[name].kill()
        taken = 0
        while (code := self.more("m", self.nodes[taken % 3])) == 204 and taken < 60:
            taken += 1
            time.sleep(0.5)
        self.assertEqual(code, 503)
        self.assertGreater(taken, 1)
        self.assertEqual(self.segments(), before)
        wait_for("sealing to fail", lambda: sum(n.metric("promfabric_ingest_seal_failures_total") for n in self.nodes) > 0, 60)
        wait_for("all that was acknowledged to be in answers", self.counted, 60)
        for name in ("k0", "k1"):
            self.keepers[name].start()
        self.sealed()
        self.assertGreater(self.segments(), before)
        wait_for("samples to be taken again", lambda: self.more("m", self.nodes[0], 10) == 204, 60)

        # One ingest node of three: nothing is acknowledged, which is said at once.
        for node in self.nodes[1:]:
            node.kill()
        for _ in range(3):
            began = time.monotonic()
            self.assertEqual(self.more("unknown", self.nodes[0], 10), 503)
            self.assertLess(time.monotonic() - began, REFUSED_S)
        for node in self.nodes[1:]:
            node.start(ready=False)
        wait_for("samples to be taken again", lambda: self.more("m", self.nodes[0], 10) == 204, 60)
        self.sealed()
        wait_for("all that was acknowledged to be in answers", self.counted, 60)


if __name__ == "__main__":
    unittest.main()
