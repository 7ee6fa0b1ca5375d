"""test_ingest.py - segments of ingest nodes are merged while they write: what is not sealed yet stays on its side."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "api"))
from harness import BINARY, wait_for  # noqa: E402
from test_ingest import Cluster, Node  # noqa: E402

WINDOW = 7200


def ended_window():
    """A moment in the last window of two hours that is over."""
    return int(time.time()) // WINDOW * WINDOW - 1800


def compact(store, *flags, timeout=300):
    return subprocess.run([BINARY, "compact", "--store", store, *flags], capture_output=True, text=True, timeout=timeout)


def import_lines(store, lines):
    subprocess.run([BINARY, "import", "--quiet", f"--store={store}", "-"], input="\n".join(lines) + "\n", text=True,
                   check=True, stdout=subprocess.DEVNULL)


def below(node, body, headers=None):
    status, text = node.request("POST", "/v1/below", json.dumps(body), headers, timeout=60)
    return status, json.loads(text)


class Rule(unittest.TestCase):
    """A tenant with an import, then a range that is open, then another import."""

    def setUp(self):
        self.cluster = Cluster(flags=("--seal-age=1h",))
        self.addCleanup(self.cluster.close)
        self.store, self.node = self.cluster.fabric.store, self.cluster.nodes[0]
        self.at = at = ended_window()
        import_lines(self.store, [f'm{{i="a"}} 1 {at * 1000}', f'm{{i="b"}} 1 {at * 1000}'])
        self.assertTrue(self.node.write([f'm{{i="a"}} 2 {at * 1000}']))
        time.sleep(0.01)  # generations are milliseconds
        import_lines(self.store, [f'm{{i="{i}"}} 3 {(at + 600) * 1000}' for i in "ab"])
        self.right = {"a": 2, "b": 1}
        self.await_answer(self.right)

    def answer(self):
        return self.cluster.values("m", self.at + 1)

    def await_answer(self, wanted):
        try:
            wait_for("the answer", lambda: self.answer() == wanted, 60)
        except AssertionError:
            self.assertEqual(self.answer(), wanted)

    def test_what_is_not_sealed_stays_on_its_side(self):
        ingest = f"--ingest=127.0.0.1:{self.node.port}"
        wait_for("the store to know of the tenant",
                 lambda: os.path.exists(os.path.join(self.store, "_ingest", "tenant=default")), 60)
        refused = compact(self.store, "--settle=0s")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("name them with --ingest", refused.stderr)
        # Between the imports there is a range: they are not merged with each other.
        files = len(self.cluster.segments())
        self.assertEqual(compact(self.store, "--settle=0s", "--grace=0s", ingest).returncode, 0)
        self.assertEqual(len(self.cluster.segments()), files)
        self.await_answer(self.right)
        # Who says that there is none gets the wrong answer: this is what the rule is for.
        lied = compact(self.store, "--settle=0s", "--grace=0s", "--ingest-stopped")
        self.assertEqual(lied.returncode, 0, lied.stderr)
        self.await_answer({"a": 1, "b": 1})

    def test_what_is_sealed_is_merged(self):
        ingest = f"--ingest=127.0.0.1:{self.node.port}"
        # By the time that is over, not by what was sealed a moment ago: the first run leaves word, a later one uses it.
        early = compact(self.store, "--settle=2s", "--grace=0s", ingest)
        self.assertEqual(early.returncode, 0, early.stderr)
        files = len(self.cluster.segments())
        self.node.process.stop(60)
        self.node.start("--seal-age=1s")
        self.node.await_ready()
        self.await_answer(self.right)

        def merged():
            run = compact(self.store, "--settle=2s", "--grace=0s", ingest)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertEqual(self.answer(), self.right)
            return len(self.cluster.segments()) < files
        wait_for("segments to be merged", merged, 60)

    def test_the_wrong_nodes_are_not_believed(self):
        folder = tempfile.mkdtemp(prefix="pf-other-")
        self.addCleanup(shutil.rmtree, folder, True)
        other = Node(folder, os.path.join(folder, "store"), "x").start("--bootstrap")
        self.addCleanup(other.process.stop, 60)
        other.await_ready()
        wait_for("the store to know of the tenant",
                 lambda: os.path.exists(os.path.join(self.store, "_ingest", "clusters")), 60)
        refused = compact(self.store, "--settle=0s", f"--ingest=127.0.0.1:{other.port}")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("is written by ingest nodes of cluster", refused.stderr)
        other.process.stop(60)
        away = compact(self.store, "--settle=0s", f"--ingest=127.0.0.1:{other.port}")
        self.assertEqual(away.returncode, 1)
        self.assertEqual(compact(self.store, "--settle=0s", "--ingest=nowhere").returncode, 1)
        both = compact(self.store, f"--ingest=127.0.0.1:{self.node.port}", "--ingest-stopped")
        self.assertEqual(both.returncode, 2)
        self.await_answer(self.right)

    def test_what_a_compactor_asks(self):
        far = int(time.time() + 3600) * 1_000_000
        status, first = below(self.node, {"tenant": "default", "generation": far})
        self.assertEqual(status, 200)
        self.assertLess(first["generation"], int(time.time() * 1_000_000))  # the open range
        self.assertEqual(below(self.node, {"tenant": "default", "generation": far}), (200, first))
        self.assertEqual(below(self.node, {"tenant": "default", "generation": 5})[1]["generation"], 5)
        status, new = below(self.node, {"tenant": "nobody", "generation": far})
        self.assertEqual(status, 200)
        self.assertGreater(new["generation"], first["generation"])
        for body in ({}, {"tenant": "a/b", "generation": 1}, {"tenant": "t", "generation": -1},
                     {"tenant": "t", "generation": 1 << 63}, {"tenant": "t", "generation": "1"}, []):
            self.assertEqual(below(self.node, body)[0], 400, body)
        self.assertEqual(self.node.request("GET", "/v1/below")[0], 405)


class Keys(unittest.TestCase):
    def test_only_operators_settle(self):
        folder = tempfile.mkdtemp(prefix="pf-keys-")
        self.addCleanup(shutil.rmtree, folder, True)
        for name, text in (("keys", "operator *\ntenant default\n"), ("operator", "operator\n"), ("tenant", "tenant\n")):
            with open(os.path.join(folder, name), "w", encoding="ascii") as file:
                os.chmod(file.name, 0o600)
                file.write(text)
        store = os.path.join(folder, "store")
        node = Node(folder, store, "n", [f"--api-keys={folder}/keys"]).start("--bootstrap")
        self.addCleanup(node.process.stop, 60)
        node.await_ready()
        import_lines(store, [f"m 1 {ended_window() * 1000}"])
        asked = ["--settle=0s", f"--ingest=127.0.0.1:{node.port}"]
        allowed = compact(store, *asked, f"--ingest-key={folder}/operator")
        self.assertEqual(allowed.returncode, 0, allowed.stderr)
        for flags in ([], [f"--ingest-key={folder}/tenant"]):
            refused = compact(store, *asked, *flags)
            self.assertEqual(refused.returncode, 1)
            self.assertIn("do not accept the key", refused.stderr)
        self.assertIn("none", compact(store, *asked, f"--ingest-key={folder}/none").stderr)


class Running(unittest.TestCase):
    """Three nodes that write, seal and die, and a compactor that never rests."""

    def setUp(self):
        self.cluster = Cluster(nodes=3, flags=("--seal-age=1s",))
        self.addCleanup(self.cluster.close)
        self.ended = threading.Event()
        self.runs, self.merged = [], 0

    def compact_always(self):
        flags = ["--settle=1s", "--grace=3s", *(f"--ingest=127.0.0.1:{node.port}" for node in self.cluster.nodes)]
        while not self.ended.is_set():
            run = compact(self.cluster.fabric.store, *flags)
            self.runs.append((run.returncode, run.stdout, run.stderr))
            self.merged += "merging" in run.stderr

    def write(self, lines):
        def once():
            return any(node.ready() and node.write(lines) for node in self.cluster.nodes)
        wait_for("a write", once, 60)

    def test_the_last_write_is_the_answer(self):
        compactor = threading.Thread(target=self.compact_always)
        compactor.start()
        self.addCleanup(compactor.join)
        self.addCleanup(self.ended.set)
        at, round_number, until = ended_window(), 0, time.monotonic() + 15
        while time.monotonic() < until or (self.merged < 2 and time.monotonic() < until + 90):
            round_number += 1
            # An older time than the newest of its series: another value is taken.
            self.write([line for i in range(4) for line in (f'm{{i="{i}"}} 0 {(at + 600) * 1000}',
                                                            f'm{{i="{i}"}} {round_number} {at * 1000}')])
            self.assertEqual(self.cluster.values("m", at + 1), {str(i): round_number for i in range(4)})
            if round_number % 10 == 5:
                node = self.cluster.nodes[round_number // 10 % 3]
                node.process.kill()
                node.start()
            time.sleep(0.1)
        self.ended.set()
        compactor.join()
        self.assertGreaterEqual(self.merged, 2, self.runs)
        self.assertEqual(self.cluster.values("m", at + 1), {str(i): round_number for i in range(4)})
        # What failed did so because no node could tell.
        for code, _, errors in self.runs:
            self.assertTrue(code == 0 or "ingest nodes" in errors or "127.0.0.1" in errors, errors)


if __name__ == "__main__":
    unittest.main()
