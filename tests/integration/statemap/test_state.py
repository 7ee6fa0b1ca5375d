"""test_state.py - promfabric state: maps of this machine from a terminal, with real processes and kills."""
import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

BINARY = os.environ["PROMFABRIC_BINARY"]
KINDS = {"team": "state", "version": "temporal", "site": "ranged", "price": "temporal_ranged", "on_call": "session"}


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="pf-state-")
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.data = os.path.join(self.dir, "maps")

    def command(self, *words, data=None):
        return [BINARY, "state", words[0], f"--data={data or self.data}", *words[1:]]

    def state(self, *words, code=0, data=None):
        done = subprocess.run(self.command(*words, data=data), capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout if code == 0 else done.stderr

    def file(self, name, text):
        path = os.path.join(self.dir, name)
        with open(path, "w") as out:
            out.write(text)
        return path

    def lines(self, name, rows):
        return self.file(name, "".join(json.dumps(row) + "\n" for row in rows))

    def define_all(self, data=None):
        for name, kind in KINDS.items():
            self.state("define", name.upper(), f"--kind={kind}", data=data)

    def some_rows(self):
        return self.lines("rows.jsonl", [
            {"map": "team", "key": "checkout", "value": {"team": "payments", "tier": 1}},
            {"map": "team", "key": "basket \"x\"", "value": "shop"},
            {"map": "version", "key": "checkout", "time": "2026-01-01T00:00:00Z", "value": 1},
            {"map": "version", "key": "checkout", "time": "2026-01-02T00:00:00.5Z", "value": 2.5},
            {"map": "site", "from": 167772160, "to": 184549375, "value": "all"},
            {"map": "site", "from": 167772416, "to": 167772671, "value": "cardiff"},
            {"map": "price", "from": 1, "to": 10, "time": "2026-01-01T00:00:00Z", "type": "double", "value": "NaN"},
            {"map": "on_call", "key": "alice", "start": "2026-01-01T08:00:00Z", "timeout": "12h"},
            {"map": "on_call", "key": "alice", "start": "2026-01-01T19:00:00Z", "end": "2026-01-02T00:00:00Z"}])

    def test_a_map_is_loaded_and_asked(self):
        self.define_all()
        self.assertEqual(self.state("load", self.some_rows()), "9 rows loaded\n")
        self.assertEqual(json.loads(self.state("get", "Team", "checkout"))["value"], {"team": "payments", "tier": 1})
        self.assertEqual(json.loads(self.state("get", "site", "167772417"))["value"], "cardiff")
        self.assertEqual(json.loads(self.state("get", "site", "167772673"))["value"], "all")
        at = "--time=2026-01-01T23:00:00Z"
        self.assertEqual(json.loads(self.state("get", "version", "checkout", at))["value"], 1)
        # Both sessions overlap: the answer is what they are together.
        self.assertEqual(json.loads(self.state("get", "on_call", "alice", at)),
                         {"map": "on_call", "key": "alice", "start": "2026-01-01T08:00:00Z", "end": "2026-01-02T00:00:00Z"})
        self.assertIn("says nothing of bob", self.state("get", "on_call", "bob", code=1))
        self.assertIn("there is no map nowhere", self.state("get", "nowhere", "k", code=1))
        self.assertIn("is no integer", self.state("get", "site", "cardiff", code=1))
        self.assertEqual([line.split()[:2] for line in self.state("maps").splitlines()], sorted(map(list, KINDS.items())))
        self.assertIn("2 rows", self.state("stats", "team"))

    def test_rows_can_be_loaded_again(self):
        self.define_all()
        self.state("load", self.some_rows())
        first = "".join(self.state("rows", name) for name in KINDS)
        other = os.path.join(self.dir, "other")
        self.define_all(data=other)
        self.state("load", self.file("again.jsonl", first), data=other)
        self.assertEqual("".join(self.state("rows", name, data=other) for name in KINDS), first)
        self.assertEqual(len(first.splitlines()), 9)
        self.assertEqual(len(self.state("rows", "team", "--prefix=check").splitlines()), 1)
        self.assertEqual(len(self.state("rows", "on_call", "--limit=1").splitlines()), 1)

    def test_what_is_wrong_is_told_with_file_and_line(self):
        self.define_all()
        good = self.file("good.csv", "map,key,value\nteam,a,b\n")
        bad = self.file("bad.csv", "map,key,value\nteam,a,b\nnowhere,c,d\nsite,x,y\n")
        said = self.state("load", good, bad, code=1)
        self.assertIn("bad.csv: line 3: there is no map nowhere", said)
        self.assertIn("nothing was loaded", said)
        self.assertIn("0 rows", self.state("stats", "team"))
        done = subprocess.run(self.command("load", "--on-error=skip", good, bad), capture_output=True, text=True, timeout=60)
        self.assertEqual(done.stdout, "2 rows loaded, 2 skipped\n")
        self.assertIn("bad.csv: line 4: key is no integer", done.stderr)
        self.assertIn("xml, jsonl or csv", self.state("load", self.file("what.txt", ""), code=1))
        self.assertIn("No such file", self.state("load", os.path.join(self.dir, "absent.csv"), code=1))
        self.assertIn("kind and short keys stay", self.state("define", "team", "--kind=session", code=1))
        self.assertIn("no times", self.state("define", "new", "--kind=state", "--retention=1d", code=1))
        self.assertIn("no name of a map", self.state("define", "a/b", "--kind=state", code=2))

    def test_a_full_map_takes_the_rows_once_it_is_larger(self):
        self.state("define", "team", "--kind=state", "--map-bytes=2MiB")
        for part in range(2):
            rows = self.lines("part.jsonl", [{"map": "team", "key": f"{part} {i}", "value": "x" * 1000} for i in range(900)])
            said = self.state("load", rows, code=part)
        self.assertIn("map team is full: it may have 2097152 bytes", said)
        self.assertIn("900 rows", self.state("stats"))
        self.state("define", "team", "--kind=state", "--map-bytes=8MiB")
        self.state("maintain")
        self.assertIn("1800 rows", self.state("stats"))

    def test_killed_anywhere_a_load_counts_whole_or_not_at_all(self):
        self.define_all()
        prng, whole, none = random.Random(1), 0, 0
        for attempt in range(30):
            rows = self.lines("rows.jsonl", [
                row for i in range(3000)
                for row in ({"map": "team", "key": f"k{i}", "value": attempt},
                            {"map": "version", "key": f"k{i}", "time": f"2026-01-01T00:00:{attempt:02}Z", "value": attempt})])
            began = time.monotonic()
            if attempt == 0:
                self.state("load", rows)
                took = time.monotonic() - began
                continue
            process = subprocess.Popen(self.command("load", rows), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                process.wait(timeout=prng.uniform(0, 1.2 * took))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait()
            self.state("maintain")
            values = {json.loads(line)["value"] for line in self.state("rows", "team").splitlines()}
            versions = [json.loads(line)["value"] for line in self.state("rows", "version").splitlines()]
            self.assertEqual(len(values), 1, "half of a load")
            new = values == {attempt}
            self.assertEqual(versions.count(attempt), 3000 if new else 0)
            whole, none = whole + new, none + (not new)
        self.assertGreater(whole, 0)
        self.assertGreater(none, 0)
        left = [name for folder in ("writer", "receive", "staging", "merging")
                for name in os.listdir(os.path.join(self.data, "tenant=default", folder))]
        self.assertEqual(left, [])

    def test_maintenance_condenses_and_lets_go(self):
        self.state("define", "version", "--kind=temporal", "--condense=1d", "--retention=3650d")
        self.state("define", "on_call", "--kind=session", "--condense=1d")
        self.state("load", self.lines("rows.jsonl", [
            *({"map": "version", "key": "k", "time": f"2024-01-{day:02}T00:00:00Z", "value": day // 10} for day in range(1, 31)),
            {"map": "version", "key": "k", "time": "2001-01-01T00:00:00Z", "value": 9},
            {"map": "version", "key": "k", "time": "2002-01-01T00:00:00Z", "value": 8},
            *({"map": "on_call", "key": "a", "start": f"2024-01-01T{hour:02}:00:00Z", "timeout": "1h"} for hour in range(9))]))
        self.state("maintain")
        self.assertEqual([json.loads(line)["value"] for line in self.state("rows", "version").splitlines()], [8, 0, 1, 2, 3])
        self.assertEqual([(row["start"], row["end"]) for row in map(json.loads, self.state("rows", "on_call").splitlines())],
                         [("2024-01-01T00:00:00Z", "2024-01-01T09:00:00Z")])
        self.state("drop", "version")
        self.state("maintain")
        self.assertEqual(os.listdir(os.path.join(self.data, "tenant=default", "shards")), ["on_call"])
        self.assertNotIn("version", self.state("maps"))

    def test_tenants_have_maps_of_their_own(self):
        self.define_all()
        self.assertEqual(self.state("maps", "--tenant=other"), "")
        self.assertIn("no name of a tenant", self.state("maps", "--tenant=a/b", code=2))


unittest.main()
