"""test_retention.py - samples behind a tenant's retention do not exist for queries, whether or not
their files went; files go whole, later, by one API at a time."""
import glob
import json
import os
import pathlib
import re
import subprocess
import threading
import time
import unittest

from fake_ingest import FakeIngest
from harness import BINARY, Fabric, load, wait_for

HOUR = 3600
STEP = 600
# Samples every ten minutes up to now, seven hours of them; the boundary lies between two of them for
# five minutes to come and five before.
NOW = int(time.time())
END = NOW // STEP * STEP
COUNT = 42
FIRST = END - (COUNT - 1) * STEP
# Samples before the boundary, which is not to be where one hour's file ends and the next begins.
CUT = 20 if (FIRST + 20 * STEP) % HOUR else 21
BOUNDARY = FIRST + CUT * STEP - STEP // 2
RETENTION = NOW - BOUNDARY


def lines(skip=0):
    """The same samples, without the first ones."""
    return [line for i in range(8) for line in (
        f'c{{i="{i}"}} {skip * (i + 1)}+{i + 1}x{COUNT - 1 - skip}',
        f'g{{i="{i}"}} {5 - skip}-1x{COUNT - 1 - skip}',
        *([f'old{{i="{i}"}} 1x{CUT - 2}'] if skip == 0 else []))]


# What looks back in every way that there is. The tenant that has everything must answer as the one
# that has only what is not behind its retention.
QUESTIONS = [
    ("query", {"query": "c", "time": END}),
    ("query", {"query": "old", "time": FIRST + (CUT - 2) * STEP}),
    ("query", {"query": "c", "time": BOUNDARY + 60}),                   # lookback across the boundary
    ("query", {"query": "c", "time": BOUNDARY - 60}),
    ("query", {"query": "c", "time": BOUNDARY + 60, "lookback_delta": "2h"}),
    ("query", {"query": "sum(increase(c[6h]))", "time": END}),
    ("query", {"query": "c[7h]", "time": END}),
    ("query", {"query": "rate(c[2h] offset 3h)", "time": END}),
    ("query", {"query": "c offset 6h", "time": END}),
    ("query", {"query": f"c @ {BOUNDARY - 60}", "time": END}),
    ("query", {"query": f"sum_over_time(c[3h] @ {BOUNDARY + HOUR})", "time": END}),
    ("query", {"query": "c @ start()", "time": END}),
    ("query", {"query": "max_over_time(sum(c)[6h:10m])", "time": END}),
    ("query", {"query": "sum_over_time(rate(c[1h])[5h:10m] offset 1h)", "time": END}),
    ("query", {"query": "absent(old)", "time": END - 5 * HOUR}),
    ("query", {"query": "count_over_time(c[30m]) or c offset -1h", "time": BOUNDARY}),
    ("query", {"query": "count(c) by (i) + on (i) count(g offset 4h) by (i)", "time": END}),
    ("query_range", {"query": "c", "start": FIRST, "end": END, "step": 300}),
    ("query_range", {"query": "sum(rate(c[1h]))", "start": FIRST, "end": END, "step": 600}),
    ("query_range", {"query": "topk(2, c)", "start": FIRST, "end": END, "step": 600}),
    ("query_range", {"query": "changes(g[2h])", "start": FIRST, "end": END, "step": 600}),
    ("query_range", {"query": "absent(old)", "start": FIRST, "end": END, "step": 600}),
    ("series", {"match[]": ["c", "old"], "start": FIRST, "end": END}),
    ("series", {"match[]": ["old"], "start": FIRST, "end": BOUNDARY - 60}),
    ("labels", {"start": FIRST, "end": END}),
    ("labels", {"start": FIRST, "end": BOUNDARY - 60, "match[]": "c"}),
    ("label/__name__/values", {"match[]": '{i="1"}', "start": FIRST, "end": END}),
]


class RetentionCase(unittest.TestCase):
    def fabric(self, limits="", flags=(), workers=2):
        fabric = Fabric(workers, start_workers=False)
        self.addCleanup(fabric.close)
        fabric.api.stop()
        self.limits = pathlib.Path(fabric.folder, "limits")
        self.write(limits)
        fabric.api_flags = [f"--tenant-limits={self.limits}", *flags]
        for i in range(workers):
            fabric.start_worker(i)
        return fabric

    def start(self, fabric):
        fabric.start_api()
        fabric.wait_workers(len(fabric.workers))

    def write(self, text):
        fresh = self.limits.with_suffix(".new")
        fresh.write_text(text)
        os.rename(fresh, self.limits)

    def answers(self, fabric, tenant, port=None):
        got = []
        for path, params in QUESTIONS:
            status, answer = fabric.json(f"/api/v1/{path}", params, headers={"X-Scope-OrgID": tenant})
            self.assertEqual(status, 200, (path, params, answer))
            got.append(json.dumps(answer["data"]))
        return got

    def check(self, got, want, what):
        for question, a, b in zip(QUESTIONS, got, want):
            self.assertEqual(a, b, f"{what}: {question}")


def files(fabric, tenant):
    """(first, last, path) in seconds of each segment of a tenant."""
    found = []
    for path in glob.glob(f"{fabric.store}/tenant={tenant}/date=*/*.parquet"):
        low, high = re.match(r"(\d+)_(\d+)_", os.path.basename(path)).groups()
        found.append((int(low) / 1000, int(high) / 1000, path))
    return sorted(found)


class Answers(RetentionCase):
    def test_what_is_behind_it_does_not_exist_whether_its_files_went_or_not(self):
        fabric = self.fabric("cut retention=forever\nfree retention=forever\n",
                             [f"--retention={RETENTION}s"])
        load(fabric.store, lines(), tenant="all", start=FIRST, step=STEP, window=HOUR)
        load(fabric.store, lines(), tenant="free", start=FIRST, step=STEP, window=HOUR)
        load(fabric.store, lines(CUT), tenant="cut", start=FIRST + CUT * STEP, step=STEP, window=HOUR)
        self.start(fabric)
        want = self.answers(fabric, "cut")
        self.check(self.answers(fabric, "all"), want, "before the files went")
        free = self.answers(fabric, "free")
        self.assertGreater(sum(a != b for a, b in zip(free, want)), 15)
        behind = [path for _, last, path in files(fabric, "all") if last < BOUNDARY]
        self.assertGreater(len(behind), 5)
        for path in behind[::2]:
            os.unlink(path)
        self.check(self.answers(fabric, "all"), want, "after some of them went")
        for path in behind[1::2]:
            os.unlink(path)
        self.check(self.answers(fabric, "all"), want, "after all of them went")

    def test_heads_of_ingest_nodes_are_cut_as_well(self):
        ingest = FakeIngest()
        self.addCleanup(ingest.close)
        fabric = self.fabric("", [f"--retention={RETENTION}s", *ingest.flags()])
        self.start(fabric)
        ingest.add(7, ['h{i="1"} 0+1x41', 'h{i="2"} 0+1x41'], FIRST, step=STEP, length=COUNT)
        ingest.add(8, ['ancient 1x3'], FIRST, step=STEP, length=4)
        counted = fabric.query("count_over_time(h[7h])", END)["result"]
        self.assertEqual([s["value"][1] for s in counted], [str(COUNT - CUT)] * 2)
        self.assertEqual(fabric.query("count_over_time(ancient[7h])", END)["result"], [])
        self.assertEqual(fabric.data("/api/v1/series", {"match[]": ["ancient", "h"], "start": FIRST}),
                         [{"__name__": "h", "i": "1"}, {"__name__": "h", "i": "2"}])

    def test_a_changed_file_counts_for_the_next_query(self):
        fabric = self.fabric("t retention=forever\n")
        load(fabric.store, ["c 0+1x41"], tenant="t", start=FIRST, step=STEP, window=HOUR)
        self.start(fabric)

        def count():
            answer = fabric.data("/api/v1/query", {"query": "count_over_time(c[7h])", "time": END},
                                 headers={"X-Scope-OrgID": "t"})["result"]
            return int(answer[0]["value"][1]) if answer else 0
        self.assertEqual(count(), COUNT)
        self.write(f"t retention={RETENTION}s\n")
        wait_for("the file to be read", lambda: count() == COUNT - CUT)
        self.write("t retention=30y\n")
        wait_for("the file to be read again", lambda: count() == COUNT)
        self.write("t retention=soon\n")
        wait_for("a complaint", lambda: "a retention is a duration" in fabric.api.log_text())
        self.assertEqual(count(), COUNT)


# A slack as short as this is for tests; the query timeout is part of it.
SHORT = ["--retention-slack=3s", "--query-timeout=3s"]


class Files(RetentionCase):
    def store(self, fabric, tenant="t"):
        load(fabric.store, lines(), tenant=tenant, start=FIRST, step=STEP, window=HOUR)

    def test_whole_files_go_and_no_answer_changes_meanwhile(self):
        fabric = self.fabric("keep retention=forever\ncut retention=forever\n",
                             [f"--retention={RETENTION}s", *SHORT])
        self.store(fabric)
        self.store(fabric, "keep")
        load(fabric.store, lines(CUT), tenant="cut", start=FIRST + CUT * STEP, step=STEP, window=HOUR)
        before, kept = files(fabric, "t"), files(fabric, "keep")
        stay = [f for f in before if f[1] >= BOUNDARY]
        self.assertTrue(any(first < BOUNDARY for first, _, _ in stay), "no file across the boundary")
        self.start(fabric)
        want = self.answers(fabric, "cut")
        rounds = 0
        while files(fabric, "t") != stay:  # wrong answers and failures end this
            self.check(self.answers(fabric, "t"), want, "while files go")
            rounds += 1
            self.assertLess(rounds, 60)
        self.check(self.answers(fabric, "t"), want, "afterwards")
        self.assertEqual(files(fabric, "keep"), kept)
        self.assertGreater(rounds, 0)
        wait_for("the lease to be given back", lambda: not glob.glob(f"{fabric.store}/_leases/*/*"))
        log = fabric.api.log_text()
        self.assertRegex(log, r'segments behind the retention deleted.*tenant="?t\b')
        self.assertEqual(fabric.metric("promfabric_api_retention_deleted_segments_total"),
                         len(before) - len(stay))
        wait_for("figures", lambda: fabric.metric("promfabric_api_retention_behind_segments") == 0)

    def test_a_shortened_retention_hides_at_once_and_deletes_after_the_slack(self):
        fabric = self.fabric("t retention=30y\n", ["--retention-slack=6s", "--query-timeout=3s"])
        self.store(fabric)
        before = files(fabric, "t")
        self.start(fabric)
        time.sleep(7)  # settled
        self.write("t retention=1s\n")
        wait_for("the file to be read", lambda: fabric.data(
            "/api/v1/query", {"query": "count_over_time(c[7h])", "time": END},
            headers={"X-Scope-OrgID": "t"})["result"] == [])
        hidden = time.monotonic()
        self.assertEqual(files(fabric, "t"), before)
        self.write("t retention=30y\n")  # it was a mistake, and nothing is lost
        time.sleep(7)
        self.assertEqual(files(fabric, "t"), before)
        self.assertGreater(time.monotonic(), hidden)

    def test_two_apis_at_once_do_no_harm_and_a_killed_one_is_taken_over_from(self):
        fabric = self.fabric("", [f"--retention={RETENTION}s", *SHORT])
        self.store(fabric)
        stay = [f for f in files(fabric, "t") if f[1] >= BOUNDARY]
        # A lease of somebody who died: it counts until it was not renewed for its time.
        lease = pathlib.Path(fabric.store, "_leases/retention/00000000000000000007")
        lease.parent.mkdir(parents=True)
        lease.write_text("promfabric-lease 1\n0123456789abcdef\n4000\nsomebody\n")
        self.start(fabric)
        second = subprocess.Popen(
            [BINARY, "api", f"--store={fabric.store}", "--http-listen=127.0.0.1:0",
             f"--worker=127.0.0.1:{fabric.control_ports[0]}", f"--spool={fabric.folder}/spool-2",
             f"--retention={RETENTION}s", *SHORT],
            stdout=subprocess.DEVNULL, stderr=open(f"{fabric.folder}/second.log", "wb"))
        self.addCleanup(lambda: (second.kill(), second.wait()))
        wait_for("the files to go", lambda: files(fabric, "t") == stay)
        self.assertFalse(lease.exists())
        second.terminate()
        self.assertEqual(second.wait(20), 0)


if __name__ == "__main__":
    unittest.main()
