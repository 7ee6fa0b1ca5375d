"""test_lane.py - workers merge what ingest nodes write, while these write it and everybody dies in turn: an API plans, as with
`api --compact`. In a folder, or in a bucket where tests/integration/s3/run started a server."""
import os
import subprocess
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "api"))
from harness import BINARY, wait_for  # noqa: E402
from test_ingest import Cluster  # noqa: E402

WINDOW = 7200
SERIES = 4
KILLS = 6
BETWEEN = 4  # seconds
JOBS = 3
LONGEST = 400  # merging is what a busy machine does last
REST = 0.5
FLAGS = ["--compact", "--compact-settle=2s", "--compact-grace=10s", "--catalog-refresh=1s"]


def bucket():
    """The store, or None for a folder."""
    if "PF_S3_ENDPOINT" not in os.environ:
        return None
    made = subprocess.run([os.environ["PROMFABRIC_MAKE_BUCKET"], "objects_survive*"], capture_output=True, text=True)
    assert made.returncode == 0, made.stdout + made.stderr
    os.environ.update(AWS_ACCESS_KEY_ID=os.environ["PF_S3_ACCESS_KEY"], AWS_REGION=os.environ["PF_S3_REGION"],
                      AWS_SECRET_ACCESS_KEY=os.environ["PF_S3_SECRET_KEY"],
                      AWS_ENDPOINT_URL_S3=os.environ["PF_S3_ENDPOINT"])
    return "s3://segments/lane"


class Lane(unittest.TestCase):
    def setUp(self):
        self.store = bucket()
        # The lease of the one that plans lasts four intervals, and a server has to renew it in time on a busy machine.
        flags = [*FLAGS, f"--compact-interval={10 if self.store else 1}s"]
        self.cluster = Cluster(nodes=3, flags=("--seal-age=1s",), api_flags=flags, store=self.store)
        self.addCleanup(self.cluster.close)
        self.fabric = self.cluster.fabric
        # In a window of two hours that is over.
        self.at = int(time.time()) // WINDOW * WINDOW - 1800
        self.round = 0

    def write(self):
        """Another value at one time, and one more time: what was merged must neither hide the first nor lose the second."""
        self.round += 1
        at, lines = self.at * 1000, []
        for i in range(SERIES):
            lines += [f'm{{i="{i}"}} 0 {at + 600000}', f'm{{i="{i}"}} {self.round} {at}',
                      f'n{{i="{i}"}} {self.round} {at + self.round}']
        wait_for("a write", lambda: any(node.ready() and node.write(lines) for node in self.cluster.nodes), 60)

    def check(self):
        self.assertEqual(self.cluster.values("m", self.at + 1), {str(i): self.round for i in range(SERIES)})
        self.assertEqual(self.cluster.values("count_over_time(n[10m])", self.at + 300),
                         {str(i): self.round for i in range(SERIES)})

    def jobs_done(self):
        return self.fabric.api.log_text().count('msg="compaction job done"')

    def told(self):
        """What the API says of it, without the core's steps."""
        lines = [line for line in self.fabric.api.log_text().splitlines() if "level=debug" not in line]
        return "\n".join([*lines[-40:], str(self.fabric.data("/api/v1/compaction"))])

    def kill(self, number):
        """An ingest node, a worker, the API, in turn."""
        if number % 3 == 0:
            node = self.cluster.nodes[number // 3 % 3]
            node.process.kill()
            node.start()
        elif number % 3 == 1:
            worker = number // 3 % len(self.fabric.workers)
            self.fabric.workers[worker].kill()
            self.fabric.start_worker(worker)
        else:
            self.fabric.api.kill()
            self.fabric.start_api()
            self.fabric.wait_workers(len(self.fabric.workers), 60)

    def verify(self):
        return subprocess.run([BINARY, "segments", "verify", "--store", self.fabric.store], capture_output=True, text=True,
                              timeout=120)

    def test_the_last_write_is_the_answer_while_workers_merge(self):
        began, kills = time.monotonic(), 0
        while True:
            self.write()
            self.check()
            passed = time.monotonic() - began
            if kills == KILLS and self.jobs_done() >= JOBS:
                break
            self.assertLess(passed, LONGEST, f"{self.jobs_done()} jobs:\n{self.told()}")
            # Whoever plans next waits until the lease of the one that was killed is over.
            if kills < KILLS and passed > BETWEEN * (kills + 1):
                self.kill(kills)
                kills += 1
            time.sleep(REST)
        # Merged once more without writes beside it, and answered the same.
        before = self.jobs_done()
        wait_for("nothing to be left, or another job", lambda: self.jobs_done() > before or
                 self.fabric.data("/api/v1/compaction")["behind_segments"] == 0, 240)
        self.check()
        done = self.verify()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
