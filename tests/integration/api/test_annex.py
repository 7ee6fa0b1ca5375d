"""test_annex.py - exemplars and metadata outlive the ingest nodes that took them: in the store, answered without them,
cut by retention, the same after compaction."""
import glob
import os
import subprocess
import sys
import time
import unittest

from harness import BINARY, Fabric, wait_for
from test_ingest import Cluster, now_ms

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [os.path.join(HERE, "..", "ingest")]
from messages import TYPE_2, Series, snappy, version_2  # noqa: E402
DAY = 86400


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


    def test_text_has_them_as_well(self):
        """POST /api/v1/import/prometheus, with and without times of its own; a line that is malformed is told by number."""
        def send(text, kind="application/openmetrics-text"):
            return self.cluster.nodes[0].request("POST", "/api/v1/import/prometheus", text.encode(),
                                                 {"Content-Type": kind})
        now = now_ms() / 1000
        status, body = send("# HELP t_seconds How \\\"long\\\"\\nit takes\n# TYPE t_seconds histogram\n# UNIT t_seconds seconds\n"
                            f't_seconds_bucket{{a="b",le="1"}} 3 {now} # {{trace_id="x"}} 0.5 {now - 1}\n'
                            f't_seconds_bucket{{a="b",le="2"}} 3 {now} # {{trace_id="y"}} 1.5\n# EOF\n')
        self.assertEqual(status, 204, body)
        status, body = send('# TYPE u counter\nu{a="b"} 1 # {trace_id="z"} 7\n', "text/plain")
        self.assertEqual(status, 204, body)
        want = {"t_seconds": [{"type": "histogram", "help": 'How "long"\nit takes', "unit": "seconds"}],
                "u": [{"type": "counter", "help": "", "unit": ""}]}
        self.assertEqual(self.fabric.data("/api/v1/metadata"), want)
        self.assertEqual(self.traces(), {"x", "y", "z"})
        for text, what in (("# TYPE v meter\n", "line 2: no metric has such a type"),
                           ('v 1 # {trace_id="x"} one\n', "line 2: the value of an exemplar is not a number")):
            status, body = send("w 1\n" + text)
            self.assertEqual(status, 400, body)
            self.assertIn(what, body.decode())
        self.assertEqual(self.fabric.data("/api/v1/metadata"), want)


class Stored(unittest.TestCase):
    """Imported, without ingest nodes."""

    def setUp(self):
        self.fabric = Fabric(1)
        self.addCleanup(self.fabric.close)
        self.store = self.fabric.store

    def load(self, *lines, tenant="default"):
        path = os.path.join(self.fabric.folder, "text.om")
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join([*lines, "# EOF"]) + "\n")
        return run("import", "--store", self.store, "--tenant", tenant, "--format", "openmetrics", path)

    def answers(self):
        return (self.fabric.data("/api/v1/query_exemplars", {"query": "{__name__=~'.+'}"}),
                self.fabric.data("/api/v1/metadata"))

    def test_imported_ones_are_answered_and_the_same_after_compaction(self):
        day = int(time.time()) // DAY * DAY - 3 * DAY
        for i in range(6):  # on two days
            ts = day + i % 2 * DAY + i
            done = self.load("# HELP c How many", f"# TYPE c {'counter' if i else 'unknown'}",
                             f'c_total{{i="{i % 3}"}} {i} {ts} # {{trace_id="{i}"}} {i}.5 {ts - 0.5}' if i != 5
                             else f'c_total{{i="{i % 3}"}} {i} {ts} # {{}} {i}')
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("; 1 exemplars, metadata of 1 metrics", done.stdout)
        before = self.answers()
        self.assertEqual(before[1], {"c": [{"type": "counter", "help": "How many", "unit": ""}]})
        self.assertEqual([s["seriesLabels"]["i"] for s in before[0]], ["0", "1", "2"])
        self.assertEqual(before[0][0]["exemplars"], [
            {"labels": {"trace_id": "0"}, "value": "0.5", "timestamp": day - 0.5},
            {"labels": {"trace_id": "3"}, "value": "3.5", "timestamp": day + DAY + 2.5}])
        self.assertEqual(before[0][2]["exemplars"][-1], {"labels": {}, "value": "5", "timestamp": day + DAY + 5})
        self.assertEqual(len(annexes(self.store, "exemplars")), 6)
        would = run("compact", "--store", self.store, "--settle=0s", "--dry-run")
        self.assertIn("files of exemplars and metadata would be merged", would.stdout)
        done = run("compact", "--store", self.store, "--settle=0s", "--grace=0s")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertLessEqual(len(annexes(self.store, "exemplars")), 3)
        self.assertEqual(self.answers(), before)
        self.fabric.api.stop()
        self.fabric.start_api()
        self.assertEqual(self.answers(), before)
        verified = run("segments", "verify", "--store", self.store)
        self.assertEqual(verified.returncode, 0, verified.stderr)

    def test_what_is_wrong_is_told_with_its_line(self):
        for line, what in (("# TYPE a meter", "no metric has such a type"),
                           ("# HELP", "whose name is malformed or missing"),
                           ('a 1 5 # {b="c"} x', "the value of an exemplar is not a number")):
            done = self.load("b 1 5", line)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, rf"text.om:2: .*{what}")
        self.assertEqual(annexes(self.store), [])

    def test_files_go_with_rm_and_expire_and_damage_is_found(self):
        now = int(time.time())
        for age in (40 * DAY, 20 * DAY, 60):
            self.assertEqual(self.load(f'a_total 1 {now - age} # {{trace_id="{age}"}} 1').returncode, 0)

        def ages():
            return sorted(int(e["labels"]["trace_id"]) for s in self.answers()[0] for e in s["exemplars"])
        self.assertEqual(ages(), [60, 20 * DAY, 40 * DAY])
        gone = run("segments", "expire", "--store", self.store, "--retention=30d", "--yes")
        self.assertEqual(gone.returncode, 0, gone.stderr)
        self.assertIn("and 1 file of exemplars and metadata", gone.stdout)
        self.assertEqual(ages(), [60, 20 * DAY])
        gone = run("segments", "rm", "--store", self.store, "--tenant=default", "--to", str(now - 10 * DAY), "--yes")
        self.assertEqual(gone.returncode, 0, gone.stderr)
        self.assertEqual(ages(), [60])
        (path,) = annexes(self.store, "exemplars")
        with open(path, "r+b") as file:
            file.seek(50)
            byte = file.read(1)
            file.seek(50)
            file.write(bytes([byte[0] ^ 1]))
        verified = run("segments", "verify", "--store", self.store)
        self.assertEqual(verified.returncode, 1)
        self.assertIn(os.path.relpath(path, self.store), verified.stderr)
        self.fabric.api.stop()
        self.fabric.start_api()
        status, body = self.fabric.json("/api/v1/query_exemplars", {"query": "a_total"})
        self.assertEqual(status // 100, 5, body)
        self.assertIn(os.path.basename(path), body["error"])
        self.assertEqual(run("segments", "rm", "--store", self.store, "--yes",
                             os.path.relpath(path, self.store)).returncode, 0)
        self.assertEqual(ages(), [])


if __name__ == "__main__":
    unittest.main()
