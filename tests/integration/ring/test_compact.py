"""test_compact.py - segments on our own nodes become few: killed at any step, beside imports, removals and nodes that come and go,
never another answer."""
import glob
import http.client
import http.server
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest

from harness import BINARY, wait_for
from heads import status, write
from keepers import api
from kills import kill_when
from test_import import ImportTest
from test_migrations import NODES

WINDOW = 7200
SERIES = 16
SHARDS = 4
NOW = ["--settle=0s"]


class CompactTest(ImportTest):
    def begin(self, **fabric):
        # The last window of two hours that is over.
        self.at = int(time.time()) // WINDOW * WINDOW - WINDOW
        self.temp = tempfile.mkdtemp(prefix="pf-compact-")
        self.addCleanup(shutil.rmtree, self.temp, True)
        self.fabric(copies=3, **fabric)

    def lines(self, value, minutes, series=SERIES):
        return [(i, self.at + 60 * minute, value + i) for i in range(series) for minute in minutes]

    def live(self, value, minutes):
        """A range of samples that is sealed."""
        text = "".join(f'c{{i="{i}"}} {v} {ts * 1000}\n' for i, ts, v in self.lines(value, minutes))
        self.assertEqual(write(self.nodes[0], text), 204)

        def sealed():
            code, answer = status(self.nodes[0])
            return code == 200 and not any(p["ranges"] for p in answer["partitions"])
        wait_for("the range to be sealed", sealed, 60)

    def backfill(self, value, minutes):
        text = "# TYPE c gauge\n" + "".join(f'c{{i="{i}"}} {v} {ts}\n' for i, ts, v in self.lines(value, minutes)) + "# EOF\n"
        self.load(text, "--shards", str(SHARDS))

    def fill(self):
        """Ranges and imports in turn, which overwrite each other."""
        for value in (100, 200):
            self.live(value, range(10))
        self.backfill(300, range(3, 20))
        for value in (400, 500):
            self.live(value, range(5, 25))
        for value in (600, 700):
            self.backfill(value, range(8, 12))

    def merger(self, *flags, store=None):
        return [BINARY, "compact", "--store", store or self.store, "--temp-dir", self.temp, *NOW, *flags]

    def compact(self, *flags, code=0):
        done = subprocess.run(self.merger(*flags), capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, code, (done.stdout, done.stderr))
        return done.stdout + done.stderr

    def answer(self):
        return self.ask_api("/api/v1/query_range", {"query": "c", "start": self.at, "end": self.at + 1800, "step": 60})

    def check(self, step):
        self.assertEqual(self.answer(), self.right, step)

    def kill_when(self, step, happened, store=None):
        process = subprocess.Popen(self.merger("--quiet", store=store), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        said = kill_when(process, happened)
        self.assertIn(process.returncode, (0, -signal.SIGKILL), f"{step}: {said}")
        self.check(step)

    def gate(self):
        gate = Gate(self.nodes[0].port)
        self.addCleanup(gate.close)
        return gate

    def stopped_when_put(self):
        """A compactor whose first outputs lie with keepers, and which is about to trade them."""
        gate = self.gate()
        process = subprocess.Popen(self.merger(store=gate.store), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertTrue(gate.reached.wait(120))
        return process, gate

    def go_on(self, process, gate):
        gate.opened.set()
        said = process.communicate(timeout=120)[0]
        self.assertEqual(process.returncode, 0, said)
        return said


class Gate:
    """Stands before an ingest node: entries that name segments wait here until it is opened."""

    def __init__(self, port):
        self.reached, self.opened = threading.Event(), threading.Event()
        gate = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def forward(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                if self.command == "POST" and self.path.startswith("/v1/manifest") and b".parquet" in body:
                    gate.reached.set()
                    gate.opened.wait(120)
                node = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                node.request(self.command, self.path, body, {"Content-Type": self.headers.get("Content-Type") or ""})
                answer = node.getresponse()
                said = answer.read()
                node.close()
                try:
                    self.send_response(answer.status)
                    self.send_header("Content-Length", str(len(said)))
                    self.end_headers()
                    self.wfile.write(said)
                except OSError:
                    pass  # who asked is dead
            do_GET = do_POST = forward

            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()
        self.store = f"ring://127.0.0.1:{self.server.server_port}"

    def close(self):
        self.opened.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


class Asker(threading.Thread):
    def __init__(self, test):
        super().__init__()
        self.test, self.ended, self.wrong, self.asked = test, threading.Event(), [], 0

    def run(self):
        while not self.ended.is_set():
            answer = self.test.answer()
            self.asked += 1
            if answer != self.test.right:
                self.wrong.append(answer)


class Compact(CompactTest):
    def test_answers_never_change_whoever_dies(self):
        self.begin(nodes=3, keepers=4)
        self.fill()
        self.reader()
        wait_for("the last import to count", lambda: self.value_at(3, 9) == 703, 30)
        self.right = self.answer()
        self.assertEqual(len(self.right["result"]), SERIES)
        self.assertEqual([self.value_at(3, minute) for minute in (0, 4, 5, 9, 22)], [203, 303, 503, 703, 503])
        before = self.listed()
        self.assertIn("would merge", self.compact("--dry-run"))
        self.assertEqual(self.listed(), before)
        asker = Asker(self)
        asker.start()
        self.addCleanup(asker.join)
        self.addCleanup(asker.ended.set)

        self.kill_when("settle", lambda: any(n.startswith("_below/") for n in self.keepers["k0"].blobs()))
        self.kill_when("read", lambda: glob.glob(f"{self.temp}/*"))
        self.kill_when("write", lambda: glob.glob(f"{self.temp}/*/output-0"))
        gate = self.gate()
        self.kill_when("put", gate.reached.is_set, gate.store)
        self.assertEqual(self.listed(), before)
        gate.opened.set()  # the entry of one that is dead
        wait_for("the first trade", lambda: self.listed() != before, 30)
        self.check("traded")

        # Two at once, a keeper and an ingest node away; somebody who wants another cluster asked is told.
        self.keepers["k0"].kill()
        self.nodes[2].kill()
        two = [subprocess.Popen(self.merger(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for _ in range(2)]
        for process in two:
            said = process.communicate(timeout=300)[0]
            self.assertEqual(process.returncode, 0, said)
        self.assertIn("would run 0 jobs", self.compact("--dry-run"))
        self.compact("--ingest=127.0.0.1:1", code=2)
        asker.ended.set()
        asker.join()
        self.assertEqual(asker.wrong, [])
        self.assertGreater(asker.asked, 5)
        self.check("merged")

        # Of each shard two runs of ranges and two of imports, however many there were.
        after = self.listed()
        shards = {re.search(r"_s\d+of\d+_", name).group() for name in after}
        self.assertEqual(len(shards), SHARDS)
        self.assertGreaterEqual(len(before), 7 * SHARDS)
        self.assertEqual(len(after), 4 * SHARDS, after)
        self.assertFalse(set(before) <= set(after))
        for word in ("verify", "sweep"):
            done = subprocess.run([BINARY, "segments", word, "--store", self.store], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 0, done.stderr)
        # A reader that knows nothing from before, and a keeper that was away.
        self.keepers["k0"].command += ["--keep-mend-every", "1s"]
        self.keepers["k0"].start()
        self.reader()
        wait_for("the same answer", lambda: self.answer() == self.right, 30)

    def value_at(self, i, minute):
        data = self.ask_api("/api/v1/query", {"query": f'c{{i="{i}"}}', "time": self.at + 60 * minute})
        return float(data["result"][0]["value"][1]) if data and data["result"] else None

    def test_what_happens_meanwhile_decides(self):
        self.begin(keepers=4)
        for value in (100, 200):
            self.live(value, range(10))
        self.reader()
        wait_for("an answer", lambda: self.value_at(3, 9) == 203, 30)
        self.right = self.answer()

        # Owners change between the outputs' put and the trade: they are put again.
        stopped = self.stopped_when_put()
        self.assertEqual(self.ended(self.ask("DELETE", NODES + "/k0")["migration"])["status"], "completed")
        self.keepers.pop("k0").kill()
        self.go_on(*stopped)
        self.reader()
        wait_for("the same answer", lambda: self.answer() == self.right, 30)
        held = self.copies()
        self.assertTrue(all(len(held[name]) >= 2 for name in self.listed()), held)

        # What is removed meanwhile is not brought back, nor by an import's clock; what is claimed is left alone.
        self.live(300, range(10))
        self.right = self.answer()
        stopped = self.stopped_when_put()
        removed = subprocess.run([BINARY, "segments", "rm", "--store", self.store, "--tenant", "default", "--yes", "--to",
                                  str(self.at + WINDOW)], capture_output=True, text=True, timeout=60)
        self.assertEqual(removed.returncode, 0, removed.stderr)
        self.assertEqual(self.listed(), [])
        self.assertIn("another compactor was quicker", self.go_on(*stopped))
        self.assertEqual(self.listed(), [])
        wait_for("nothing", lambda: self.answer()["result"] == [], 30)

        # An import under way keeps what comes after it apart; retention takes what is old. (A request that was sent before is not
        # written again.)
        for value in (1100, 1200):
            self.live(value, range(10))
        waits = subprocess.Popen(self.command(self.store), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_for("the claim", self.claims, 30)
        for value in (1300, 1400):
            self.live(value, range(10))
        self.compact()
        self.assertEqual({s: sum(s in n for n in self.listed()) for s in ("_s0of4_", "_s1of4_")}, {"_s0of4_": 3, "_s1of4_": 3})
        waits.communicate("# EOF\n", timeout=60)
        self.compact()
        self.assertEqual(len(self.listed()), SHARDS)
        wait_for("the last one to count", lambda: self.value_at(3, 9) == 1403, 30)
        gone = subprocess.run([BINARY, "segments", "expire", "--store", self.store, "--retention", "1m", "--retention-slack", "1s",
                               "--yes"], capture_output=True, text=True, timeout=60)
        self.assertEqual(gone.returncode, 0, gone.stderr)
        self.assertEqual(self.listed(), [])

    def test_workers_do_it_where_the_inputs_are(self):
        self.begin(keepers=5)
        self.fill()
        workers = list(self.keepers.values())
        flags = ["--compact", "--compact-interval=1s", "--compact-settle=0s"]
        self.api = api(self.folder, self.store, self.nodes[0], workers, *flags)
        self.processes.append(self.api.start())
        other = api(self.folder, self.store, self.nodes[0], workers, *flags, name="other")
        self.processes.append(other.start())
        wait_for("it to be merged", lambda: len(self.listed()) == 4 * SHARDS, 120)
        self.assertEqual([self.value_at(3, minute) for minute in (0, 4, 5, 9, 22)], [203, 303, 503, 703, 503])
        done = [re.search(r"shard=(\d+) .*worker_id=(\S+)", line).groups() for process in (self.api, other)
                for line in process.log_text().splitlines() if 'msg="compaction job done"' in line]
        self.assertGreaterEqual(len(done), 3 * SHARDS)
        held = self.copies()
        for shard, worker in done:
            owners = set().union(*(held[n] for n in self.listed() if f"_s{shard}of" in n))
            self.assertIn(worker, owners)
        self.assertEqual(json.loads(self.api.raw("GET", "/api/v1/compaction")[1]).get("error", ""), "")


del ImportTest  # its own tests are run elsewhere

if __name__ == "__main__":
    unittest.main()
