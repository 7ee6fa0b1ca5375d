"""test_compact.py - small segments become few under queries: killed at any moment, two at once, never another answer."""
import os
import random
import re
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api"))
from harness import BINARY, START, Fabric, load, standard_lines  # noqa: E402

HOURS = 3
END = START + HOURS * 3600
QUESTIONS = ["temperature", "sum by (job) (rate(http_requests_total[5m]))", "up", "short_lived",
             "max_over_time(temperature[1h])"]
NOW = ["--settle=0s"]


def compact(store, *flags):
    return subprocess.run([BINARY, "compact", "--store", store, *flags], capture_output=True, text=True, timeout=300)


def segments(store):
    out = subprocess.run([BINARY, "segments", "ls", "--store", store], capture_output=True, text=True, check=True).stdout
    return int(re.search(r"^(\d+) segments", out, re.M).group(1))


class Asker(threading.Thread):
    """Asks the same questions again and again and keeps what was answered otherwise."""

    def __init__(self, fabric):
        super().__init__()
        self.fabric, self.ended, self.wrong, self.asked = fabric, threading.Event(), [], 0
        self.right = {q: self.ask(q) for q in QUESTIONS}

    def ask(self, question):
        status, _, body = self.fabric.get("/api/v1/query_range", {"query": question, "start": START, "end": END,
                                                                  "step": "60s"})
        return status, body

    def run(self):
        while not self.ended.is_set():
            for question, right in self.right.items():
                answer = self.ask(question)
                self.asked += 1
                if answer != right:
                    self.wrong.append((question, answer[0], answer[1][:300]))


class Compact(unittest.TestCase):
    def setUp(self):
        self.fabric = Fabric(2)
        self.addCleanup(self.fabric.close)
        self.store = self.fabric.store
        lines = standard_lines(instances=4, length=HOURS * 240)
        load(self.store, lines, shards=2, window=300)
        # Newer values for a part of it: which ones count is decided by merging.
        load(self.store, ['temperature{job="web",instance="i0"} 99x200'], shards=2, window=600, start=START + 900)
        self.fabric.wait_workers(2)

    def test_answers_never_change(self):
        before = segments(self.store)
        asker = Asker(self.fabric)
        self.assertEqual({status for status, _ in asker.right.values()}, {200})
        self.assertIn(b'"99"', asker.right["temperature"][1])
        dry = compact(self.store, *NOW, "--dry-run")
        self.assertEqual(dry.returncode, 0, dry.stderr)
        self.assertIn("would merge", dry.stdout)
        self.assertEqual(segments(self.store), before)
        asker.start()
        chance = random.Random(1)
        for _ in range(4):  # killed somewhere between listing and deleting
            process = subprocess.Popen([BINARY, "compact", "--store", self.store, *NOW, "--grace=1s"],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(chance.uniform(0.1, 2))
            process.kill()
            process.wait()
        two = [subprocess.Popen([BINARY, "compact", "--store", self.store, *NOW, "--grace=1h"], stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True) for _ in range(2)]
        for process in two:
            out = process.communicate(timeout=300)[0]
            self.assertEqual(process.returncode, 0, out)
        time.sleep(2)
        last = compact(self.store, *NOW, "--grace=1s")
        self.assertEqual(last.returncode, 0, last.stderr)
        time.sleep(1)
        asker.ended.set()
        asker.join()
        self.assertEqual(asker.wrong, [])
        self.assertGreater(asker.asked, len(QUESTIONS))
        self.assertGreater(before, 70)
        self.assertLessEqual(segments(self.store), 4)  # two shards, and the data may lie in two days
        verified = subprocess.run([BINARY, "segments", "verify", "--store", self.store], capture_output=True, text=True)
        self.assertEqual(verified.returncode, 0, verified.stderr)

    def test_what_cannot_be_done_is_said(self):
        young = compact(self.store)
        self.assertEqual(young.returncode, 0, young.stderr)
        self.assertIn("too young", young.stdout)
        os.makedirs(os.path.join(self.store, "_ingest"))
        with open(os.path.join(self.store, "_ingest", "tenant=default"), "w", encoding="ascii") as file:
            file.write("\n")
        refused = compact(self.store, *NOW)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("written by ingest nodes", refused.stderr)
        allowed = compact(self.store, *NOW, "--ingest-stopped")
        self.assertEqual(allowed.returncode, 0, allowed.stderr)
        self.assertEqual(compact(self.store, "--settle=2h").returncode, 2)
        self.assertEqual(compact(self.store, "word").returncode, 2)
        self.assertEqual(compact(os.path.join(self.store, "nowhere")).returncode, 1)

    def test_a_damaged_segment_is_named(self):
        names = sorted(os.path.join(folder, name) for folder, _, files in os.walk(self.store) for name in files
                       if name.endswith(".parquet"))
        with open(names[3], "r+b") as file:
            file.seek(60)
            byte = file.read(1)
            file.seek(60)
            file.write(bytes([byte[0] ^ 0x55]))
        result = compact(self.store, *NOW)
        self.assertEqual(result.returncode, 1)
        self.assertIn(os.path.basename(names[3]), result.stderr)
        self.assertTrue(os.path.exists(names[3]))


if __name__ == "__main__":
    unittest.main()
