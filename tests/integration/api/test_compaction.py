"""test_compaction.py - many small segments become few as background work, while questions with known
answers are asked all the time, and workers and APIs come and go."""
import glob
import json
import os
import re
import threading
import unittest

from harness import Fabric, Process, free_port, load, wait_for

STEP = 60
START = 1_700_006_400  # a day begins
HOURS = 3
COUNT = HOURS * 60
END = START + (COUNT - 1) * STEP
PIECE = 300
SHARDS = 2
PIECES = HOURS * 3600 // PIECE * SHARDS
WAIT = 240

FLAGS = ["--compact", "--compact-interval=1s", "--compact-settle=0s", "--compact-grace=3s",
         "--catalog-refresh=1s"]
# Bytes a second: a job takes seconds, so that there is a middle of it.
SLOW = "--background-rate=16KiB"

QUESTIONS = [
    ("query_range", {"query": "c", "start": START, "end": END, "step": 600}),
    ("query_range", {"query": "sum(rate(c[10m]))", "start": START, "end": END, "step": 300}),
    ("query", {"query": f"count_over_time(g[{HOURS}h])", "time": END}),
    ("query", {"query": "topk(3, c)", "time": END}),
    ("series", {"match[]": ["c", "g"], "start": START, "end": END}),
    ("label/i/values", {"start": START, "end": END}),
]


def lines(instances=8):
    return [line for i in range(instances) for line in (
        f'c{{i="{i}"}} {i}+{i + 1}x{COUNT - 1}', f'g{{i="{i}"}} {100 + i}-0.25x{COUNT - 1}')]


def fill(store):
    """Five-minute pieces, twice in one stretch: later ones overwrite earlier ones."""
    load(store, [f'c{{i="0"}} 7x{COUNT - 1}'], shards=SHARDS, start=START, step=STEP, window=3600)
    load(store, lines(), shards=SHARDS, start=START, step=STEP, window=PIECE)


def segments(store):
    return glob.glob(f"{store}/tenant=*/date=*/*.parquet")


class CompactionCase(unittest.TestCase):
    def fabric(self, flags=FLAGS, workers=2, worker_flags=(), data=fill):
        fabric = Fabric(workers, worker_flags=worker_flags, start_workers=False)
        self.addCleanup(fabric.close)
        fabric.api.stop()
        data(fabric.store)
        fabric.api_flags = list(flags)
        return fabric

    def begin(self, fabric):
        """The answers before, by an API that merges nothing, then the fabric as it was asked for."""
        flags, fabric.api_flags = fabric.api_flags, ["--catalog-refresh=1s"]
        for i in range(len(fabric.workers)):
            fabric.start_worker(i)
        fabric.start_api()
        fabric.wait_workers(len(fabric.workers), 60)
        self.want = self.answers(fabric)
        fabric.api.stop()
        fabric.api_flags = flags
        fabric.start_api()
        self.asking = True
        self.asked, self.wrong = 0, []
        self.asker = threading.Thread(target=self.keep_asking, args=(fabric,))
        self.asker.start()
        self.addCleanup(self.stop_asking)

    def answers(self, fabric):
        got = []
        for path, params in QUESTIONS:
            status, answer = fabric.json(f"/api/v1/{path}", params)
            if status != 200:
                return (status, answer)
            got.append(json.dumps(answer["data"]))
        return got

    def keep_asking(self, fabric):
        while self.asking:
            try:
                got = self.answers(fabric)
            except OSError:
                continue  # the API is being killed
            if got != self.want and not (isinstance(got, tuple) and got[0] in (503, 504)):
                self.wrong.append(got)
            self.asked += 1

    def stop_asking(self):
        self.asking = False
        self.asker.join()

    def check_asked(self):
        self.stop_asking()
        self.assertEqual(self.wrong, [])
        self.assertGreater(self.asked, 0)

    def wait_merged(self, fabric, count=SHARDS):
        wait_for(f"{count} segments", lambda: len(segments(fabric.store)) == count, WAIT)

    def state(self, fabric):
        return fabric.data("/api/v1/compaction")

    def wait_job(self, fabric, worker):
        """Until @worker runs a job."""
        wait_for(f"a job on {worker}", lambda: any(
            job.get("worker_id") == worker for job in self.state(fabric)["jobs"]), WAIT)


def metric_by(fabric, name, label):
    text = fabric.get("/metrics")[2].decode()
    found = re.search(rf'^{name}{{{label}}} ([0-9.e+]+)$', text, re.M)
    return float(found.group(1)) if found else 0.0


class Compaction(CompactionCase):
    def test_pieces_become_a_segment_per_shard_and_a_killed_worker_costs_nothing(self):
        fabric = self.fabric(worker_flags=[SLOW])
        self.begin(fabric)
        self.assertGreaterEqual(len(segments(fabric.store)), PIECES)
        self.wait_job(fabric, "worker-0")
        fabric.workers[0].kill()
        wait_for("a job to go elsewhere",
                 lambda: fabric.metric("promfabric_api_background_reassigned_total") >= 1, WAIT)
        fabric.start_worker(0, ["--background-rate=0B"])
        self.wait_merged(fabric)
        wait_for("nothing left to do", lambda: self.state(fabric)["behind_segments"] == 0, WAIT)
        self.check_asked()
        self.assertEqual(self.answers(fabric), self.want)
        self.assertGreater(metric_by(fabric, "promfabric_api_compaction_jobs_total", 'outcome="done"'), 0)
        self.assertGreater(fabric.metric("promfabric_api_compaction_samples_total"), 0)
        self.assertGreater(fabric.metric("promfabric_api_compaction_deleted_segments_total"), PIECES)
        self.assertIn("compaction job done", fabric.api.log_text())
        slots = [w["background_slots"] for w in fabric.data("/api/v1/workers")]
        self.assertEqual(slots, [1, 1])

    def test_a_drained_worker_gives_its_job_back_at_once(self):
        fabric = self.fabric(worker_flags=[SLOW])
        self.begin(fabric)
        self.wait_job(fabric, "worker-1")
        self.assertEqual(fabric.workers[1].stop(timeout=60), 0)
        self.assertIn("background job not done here", fabric.workers[1].log_text())
        wait_for("the job elsewhere",
                 lambda: fabric.metric("promfabric_api_background_reassigned_total") >= 1, WAIT)
        fabric.start_worker(1, ["--background-rate=0B"])
        self.wait_merged(fabric)
        self.check_asked()

    def test_one_of_two_apis_plans_and_the_other_goes_on_when_it_is_killed(self):
        fabric = self.fabric(worker_flags=[SLOW])
        self.begin(fabric)
        wait_for("a job", lambda: self.state(fabric)["running"] > 0, WAIT)
        port = free_port()
        other = Process(fabric.folder, "api-2", [
            "api", f"--store={fabric.store}", f"--http-listen=127.0.0.1:{port}",
            f"--spool={fabric.folder}/spool-api-2", "--small-scan=0s", "--log-level=info",
            *[f"--worker=127.0.0.1:{p}" for p in fabric.control_ports], *FLAGS])
        self.addCleanup(other.stop)
        first, fabric.api_port = fabric.api_port, port
        wait_for("the other API", fabric.up, 60)
        wait_for("it to see that another does it", lambda: metric_by(
            fabric, "promfabric_api_compaction_runs_total", 'outcome="busy"') >= 1, 60)
        self.assertEqual(self.state(fabric)["running"], 0)
        fabric.api.kill()
        wait_for("it to go on", lambda: self.state(fabric)["running"] > 0, WAIT)
        for i in range(2):  # faster from here on
            fabric.workers[i].stop(timeout=60)
            fabric.start_worker(i, ["--background-rate=0B"])
        self.wait_merged(fabric)
        self.check_asked()
        self.assertEqual(self.answers(fabric), self.want)
        fabric.api_port = first

    def test_a_damaged_segment_is_named_and_left_alone(self):
        fabric = self.fabric()
        victim = sorted(segments(fabric.store))[-1]
        with open(victim, "r+b") as file:
            file.truncate(os.path.getsize(victim) - 9)
        for i in range(2):
            fabric.start_worker(i)
        fabric.start_api()
        wait_for("it to be told", lambda: fabric.metric("promfabric_api_compaction_damaged_segments") == 1,
                 WAIT)
        # What has a moment in common with it, and generations on either side, stays beside it.
        wait_for("the others", lambda: len(segments(fabric.store)) <= SHARDS + 3, WAIT)
        self.assertIn(victim, segments(fabric.store))
        damaged = self.state(fabric)["damaged"]
        self.assertTrue(any(os.path.basename(victim) in text for text in damaged), damaged)
        self.assertEqual(fabric.api.log_text().count("is left alone by compaction"), 1)

    def test_jobs_wake_a_sleeping_fabric_only_if_asked_to(self):
        fabric = self.fabric(workers=1)
        fabric.start_api()
        wait_for("it to see that nobody takes jobs", lambda: metric_by(
            fabric, "promfabric_api_compaction_runs_total", 'outcome="no_workers"') >= 1, WAIT)
        self.assertGreater(self.state(fabric)["behind_segments"], PIECES // 2)
        self.assertEqual(fabric.scaling()["work"]["inflight"], 0)
        self.assertEqual(fabric.scaling()["background"], {"queued": 0, "running": 0})
        fabric.start_worker(0, ["--background-slots=0"])
        fabric.wait_workers(1, 60)
        self.assertEqual(self.state(fabric)["slots"], 0)
        fabric.api.stop()
        fabric.api_flags.append("--compact-wakes-workers")
        fabric.start_api()
        wait_for("jobs to be counted", lambda: fabric.scaling()["work"]["inflight"] > 0, WAIT)
        self.assertGreater(fabric.scaling()["background"]["queued"], 0)
        self.assertEqual(len(segments(fabric.store)), PIECES + HOURS)  # i="0" is in one shard

    def test_the_state_is_shown_to_operators_alone(self):
        fabric = self.fabric(workers=1)
        keys = os.path.join(fabric.folder, "keys")
        with open(keys, "w", encoding="ascii") as file:
            file.write("key-a a\nkey-op *\n")
        os.chmod(keys, 0o600)
        fabric.api_flags.append(f"--api-keys={keys}")
        fabric.start_api()
        self.assertEqual(fabric.get("/api/v1/compaction", headers={"Authorization": "Bearer key-a"})[0], 403)
        status, answer = fabric.json("/api/v1/compaction", headers={"Authorization": "Bearer key-op"})
        self.assertEqual(status, 200)
        self.assertEqual(answer["data"]["jobs"], [])


if __name__ == "__main__":
    unittest.main()
