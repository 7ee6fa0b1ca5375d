"""test_import.py - imports into segments on our own nodes: all of it or nothing, beside live samples, whoever dies."""
import json
import os
import subprocess
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

from harness import BINARY, wait_for
from heads import write
from keepers import Process, api
from test_migrations import MigrationTest

DAY = 86400
# Of the day before yesterday, so that all of it is in the past and the fresh is not meant.
THEN = int(time.time()) // DAY * DAY - 2 * DAY


def text(value, hours=1, series=6):
    """OpenMetrics: a sample of each series in each of so many hours, with help, type and an exemplar."""
    lines = ["# HELP c How many", "# TYPE c counter"]
    for i in range(series):
        for hour in range(hours):
            exemplar = f' # {{trace_id="{value}-{i}"}} {i}.5' if hour == 0 else ""
            lines.append(f'c_total{{i="{i}"}} {value + i} {THEN + 3600 * hour}{exemplar}')
    return "\n".join([*lines, "# EOF"]) + "\n"


class ImportTest(MigrationTest):
    def command(self, store, *flags):
        return [BINARY, "import", "--quiet", "--store", store, "--format", "openmetrics", *flags, "-"]

    def load(self, what, *flags, store=None, code=0):
        done = subprocess.run(self.command(store or self.store, *flags), input=what, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, code, (done.stdout, done.stderr))
        return done.stdout + done.stderr

    def listed(self):
        done = subprocess.run([BINARY, "segments", "ls", "--store", self.store], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return sorted(word for word in done.stdout.split() if word.endswith(".parquet"))

    def reader(self):
        self.api = api(self.folder, self.store, self.nodes[0], [k for k in self.keepers.values() if k.process])
        self.processes.append(self.api.start())

    def ask_api(self, path, params, process=None):
        code, body, _ = (process or self.api).raw("GET", path, params)
        return json.loads(body)["data"] if code == 200 else None

    def answers(self, process=None, at=THEN):
        """All that was imported, as far as queries tell."""
        return [self.ask_api("/api/v1/query_range", {"query": "c_total", "start": at, "end": at + 7200, "step": 3600}, process),
                self.ask_api("/api/v1/query_exemplars", {"query": "c_total", "start": at - 60, "end": at + 7200}, process),
                self.ask_api("/api/v1/metadata", {"metric": "c"}, process)]

    def value(self, i=0, at=THEN):
        data = self.ask_api("/api/v1/query", {"query": f'c_total{{i="{i}"}}', "time": at})
        return float(data["result"][0]["value"][1]) if data and data["result"] else None

    def await_value(self, value, **which):
        wait_for(f"the value {value}", lambda: self.value(**which) == value, 30)

    def claims(self):
        """Of imports that are under way, as keepers hold them, be they named or not."""
        return {name for k in self.keepers.values() for name in k.blobs() if name.startswith("_claims/")}


class Beside(ImportTest):
    def test_it_answers_as_the_same_import_into_a_folder_does(self):
        self.fabric(nodes=3, keepers=3, copies=3)
        folder = os.path.join(self.folder, "store")
        for store in (self.store, folder):
            self.assertIn("6 exemplars, metadata of 1 metrics", self.load(text(10, hours=3), store=store))
        self.reader()
        worker = Process(self.folder, "worker", "plain", "--store", folder, "--spool", os.path.join(self.folder, "spool-plain"))
        worker.ports = {"http": 0, "control": 0}
        self.processes.append(worker.start())
        plain = Process(self.folder, "api", "plain-api", "--store", folder, f"--worker=127.0.0.1:{worker.ports['control']}")
        plain.ports = {"http": 0}
        self.processes.append(plain.start())
        self.await_value(10)
        wanted = self.answers(plain)
        self.assertEqual(len(wanted[0]["result"]), 6)
        self.assertEqual(len(wanted[1]), 6)
        self.assertEqual(wanted[2], {"c": [{"type": "counter", "help": "How many", "unit": ""}]})
        self.assertEqual(self.answers(), wanted)
        before = self.listed()
        self.assertIn("nothing was new", self.load(text(10, hours=3)))
        self.assertEqual(self.listed(), before)

        # A keeper and an ingest node are away: what the majority has is imported, and the keeper gets it.
        self.keepers["k0"].kill()
        self.nodes[2].kill()
        self.load(text(20))
        self.await_value(20)
        # As a node of the ring, but one that looks for itself what it lacks.
        self.keepers["k0"].command += ["--keep-mend-every", "1s"]
        self.keepers["k0"].start()
        segments = set(self.listed())
        wait_for("the keeper to be complete", lambda: set(self.keepers["k0"].blobs()) >= segments, 60)

        # Beside live samples the last one counts, be they sealed or not.
        at = int(time.time()) - 30
        self.assertEqual(write(self.nodes[0], f'c_total{{i="0"}} 1 {at * 1000}\n'), 204)
        self.await_value(1, at=at)
        time.sleep(0.05)
        self.load(f'c_total{{i="0"}} 2 {at}\n# EOF\n')
        self.await_value(2, at=at)
        wait_for("the range to be sealed", lambda: len(self.listed()) > len(segments) + 1, 60)
        self.assertEqual(self.value(at=at), 2)
        self.assertEqual(write(self.nodes[0], f'c_total{{i="0"}} 3 {at * 1000}\n'), 204)
        self.await_value(3, at=at)
        wait_for("the range to be sealed", lambda: len(self.listed()) > len(segments) + 2, 60)
        self.assertEqual(self.value(at=at), 3)


class Faults(ImportTest):
    def killed(self, what, *flags):
        """An import that is killed when some of its segments, but not all of them, are with keepers."""
        before = sum(len(k.blobs()) for k in self.keepers.values())
        process = subprocess.Popen(self.command(self.store, *flags), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdin.write(what.encode())
        process.stdin.close()
        wait_for("some segments to be put", lambda: sum(len(k.blobs()) for k in self.keepers.values()) > before + 12, 60)
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()
        return process.returncode

    def test_killed_in_the_middle_nothing_is_there_and_the_next_run_completes_it(self):
        self.fabric(keepers=3, copies=3)
        self.reader()
        what = text(10, hours=40, series=2)
        self.assertEqual(self.killed(what, "--window", "1h", "--shards", "1"), -9)
        self.assertEqual(self.listed(), [])
        self.assertEqual(len(self.claims()), 1)
        self.assertIn("40 segments", self.load(what, "--window", "1h", "--shards", "1"))
        self.assertEqual(len(self.listed()), 40)
        self.await_value(10)
        self.assertEqual(self.value(at=THEN + 39 * 3600), 10)

        # Several at once: each has a generation of its own, and one of them counts for all series.
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda i: self.load(text(1000 * i)), range(1, 5)))
        generations = {name.rsplit("_g", 1)[1].split("_")[0] for name in self.listed()}
        self.assertEqual(len(generations), 5)
        wait_for("the last one to count", lambda: self.value() in (1000, 2000, 3000, 4000), 30)
        self.assertEqual(self.value(i=5), self.value() + 5)

    def test_more_than_one_entry_can_name_comes_in_steps(self):
        self.fabric(keepers=3, copies=3)

        def add(hours):
            return subprocess.run([os.environ["ADD_SEGMENTS"], self.store, str(hours), "4", str(THEN * 1000)], capture_output=True,
                                  text=True, timeout=120)
        for hours, said in ((9, "9 new, 0 present\n"), (13, "4 new, 9 present\n"), (13, "0 new, 13 present\n")):
            done = add(hours)
            self.assertEqual((done.returncode, done.stdout), (0, said), done.stderr)
            self.assertEqual(len(self.listed()), hours)
        claims = self.claims()  # three steps of the first, one of the second, none of the third
        self.assertEqual(len(claims), 5, claims)
        self.assertIsNone(next((c for c in claims if self.is_named(c)), None))

    def test_a_claim_that_was_taken_away_and_keepers_that_are_away_are_said(self):
        self.fabric(keepers=3, copies=3)
        process = subprocess.Popen(self.command(self.store), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_for("the claim", self.claims, 30)
        claim = self.claims().pop()
        self.remove(claim)
        said = process.communicate(text(10), timeout=60)
        self.assertEqual(process.returncode, 1, said)
        self.assertIn("was taken away meanwhile: import again; nothing was imported", said[1])
        self.assertEqual(self.listed(), [])

        for name in ("k0", "k1"):
            self.keepers[name].kill()
        said = self.load(text(10), code=1)
        self.assertIn("no majority of its owners has it", said)
        self.assertEqual(self.listed(), [])
        for name in ("k0", "k1"):
            self.keepers[name].start()
        self.load(text(10))
        self.assertGreater(len(self.listed()), 0)

        for node in self.nodes:
            node.kill()
        said = self.load(text(20), code=1)
        self.assertIn("error: ", said)

    def is_named(self, name):
        """Any partition has the name among what was never removed: of a removed one a page from the beginning says nothing."""
        return self.partition_that_names(name) is not None

    def partition_that_names(self, name):
        for partition in range(64):
            code, body, _ = self.nodes[0].raw("GET", "/v1/manifest", {"partition": partition, "queue": 0, "since": 0, "after": 0})
            if code != 200:
                return None
            if name.encode() in body:
                return str(partition)
        return None

    def remove(self, name):
        """As whoever merges segments takes away a claim whose import seems dead: a note in the partition that names it."""
        partition = wait_for("it to be named", lambda: self.partition_that_names(name), 30)
        code, answer = self.nodes[0].request("POST", "/v1/manifest", {"partition": partition},
                                             bytes([5, 1, len(name)]) + name.encode())
        self.assertEqual(code, 200, answer)

    def test_a_ring_without_storage_nodes_is_said(self):
        node = self.node("a", ["--bootstrap"]).start()
        said = self.load(text(10), store=f"ring://127.0.0.1:{node.port}", code=1)
        self.assertIn("the ring has no nodes yet", said)
        code, answer = node.request("POST", "/v1/manifest?partition=0", body=b"\1")
        self.assertEqual(code, 400, answer)


del MigrationTest  # its own tests are run elsewhere

if __name__ == "__main__":
    unittest.main()
