"""test_annex.py - exemplars and metadata outlive the ingest nodes that took them: in the store, answered without them,
cut by retention, the same after compaction."""
import glob
import os
import subprocess
import sys
import time
import unittest

from harness import BINARY, wait_for
from test_ingest import Cluster, now_ms

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [os.path.join(HERE, "..", "ingest")]
from messages import TYPE_2, Series, snappy, version_2  # noqa: E402


def annexes(store, kind="*", tenant="default"):
    return sorted(glob.glob(f"{store}/annex/tenant={tenant}/{kind}/date=*/*.annex"))


def run(*args):
    return subprocess.run([BINARY, *args], capture_output=True, text=True, timeout=120)


class Sealed(unittest.TestCase):
    """Written by remote write 2.0."""

    def setUp(self):
        self.cluster = Cluster()
        self.addCleanup(self.cluster.close)
        self.fabric = self.cluster.fabric

    def write(self, name, traces, help_text, kind=1, ago_ms=0):
        ts = now_ms() - ago_ms
        series = Series({"__name__": name, "a": "b"}, [(ts, 1.0)],
                        exemplars=[((("trace_id", t),), 1.5, ts - i) for i, t in enumerate(traces)],
                        metadata=(kind, help_text, "s"))
        status, body = self.cluster.nodes[0].request(
            "POST", "/api/v1/write", snappy(version_2([series])),
            {"Content-Type": TYPE_2, "Content-Encoding": "snappy",
             "X-Prometheus-Remote-Write-Version": "2.0.0"})
        self.assertEqual(status, 204, body)

    def traces(self, query="{a='b'}", **params):
        found = self.fabric.data("/api/v1/query_exemplars", {"query": query, **params})
        return {e["labels"]["trace_id"] for s in found for e in s["exemplars"]}

    def metadata(self, **params):
        return {name: m["help"] for name, (m,) in self.fabric.data("/api/v1/metadata", params).items()}

    def restart_api(self, *flags):
        self.fabric.api.stop()
        self.fabric.api_flags = list(flags)
        self.fabric.start_api()

    def test_they_are_answered_without_ingest_nodes_and_after_restarts(self):
        """Sealed, killed, restarted, and the nodes taken away: the same answer each time."""
        store = self.fabric.store
        self.write("m_total", ["x", "y"], "old")
        self.write("other", ["z"], "another", 2)
        wait_for("both kinds", lambda: annexes(store, "exemplars") and annexes(store, "metadata"), 60)
        self.write("m_total", ["w"], "new")
        want = {"w", "x", "y", "z"}, {"m_total": "new", "other": "another"}

        def check():
            self.assertEqual((self.traces(), self.metadata()), want)
            self.assertEqual(self.traces("rate(m_total[5m])"), {"w", "x", "y"})
            self.assertEqual(self.metadata(metric="other"), {"other": "another"})
            self.assertEqual(len(self.metadata(limit=1)), 1)
        check()
        self.cluster.restart_nodes()  # of what is sealed they know nothing any more
        check()
        wait_for("the last range", lambda: b"trace_id\x01w" in b"".join(
            open(path, "rb").read() for path in annexes(store, "exemplars")), 60)
        check()
        for node in self.cluster.nodes:
            node.process.signal(9)
        self.restart_api()
        check()
        verified = run("segments", "verify", "--store", store)
        self.assertEqual(verified.returncode, 0, verified.stderr)
        self.assertIn("files of exemplars and metadata verified", verified.stdout)
        self.assertEqual(self.traces(end=1000), set())

    def test_what_is_behind_the_retention_is_not_answered_and_its_files_go(self):
        """Whether ingest nodes have it or the store does."""
        store, ingest = self.fabric.store, self.fabric.api_flags
        retention = ["--retention=30m", "--retention-slack=3s", "--query-timeout=3s"]
        self.write("m_total", ["old"], "help", ago_ms=3600_000)
        self.restart_api(*ingest, *retention)
        self.write("m_total", ["young"], "help")
        self.assertEqual(self.traces(), {"young"})
        wait_for("what is young", lambda: b"young" in b"".join(
            open(path, "rb").read() for path in annexes(store, "exemplars")), 60)
        self.assertEqual(self.traces(), {"young"})
        self.restart_api()
        before = self.traces()
        self.assertIn("young", before)
        self.restart_api(*retention)
        self.assertEqual(self.traces(), {"young"})
        self.assertEqual(self.metadata(), {"m_total": "help"})
        if len(annexes(store, "exemplars")) > 1:  # the old one was sealed by itself: its file goes whole
            wait_for("the file", lambda: not any(
                b"old" in open(path, "rb").read() for path in annexes(store, "exemplars")), 60)
        self.assertEqual(self.traces(), {"young"})

    def test_what_acknowledged_requests_said_is_in_every_answer(self):
        """While ranges close, are sealed and forgotten, and a node is killed in between."""
        sent, deadline, i = set(), time.monotonic() + 120, 0
        while i < 40 or len(annexes(self.fabric.store, "exemplars")) < 3:
            self.assertLess(time.monotonic(), deadline)
            self.write("m_total", [f"t{i}"], f"help {i}")
            sent.add(f"t{i}")
            self.assertEqual(self.traces(), sent)
            self.assertEqual(self.metadata(), {"m_total": f"help {i}"})
            if i == 20:
                self.cluster.restart_nodes()
            i += 1


if __name__ == "__main__":
    unittest.main()
