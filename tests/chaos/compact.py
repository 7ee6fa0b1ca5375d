"""compact - segments are merged and replaced ones deleted while everything fails: again and again, killed now and then."""
import os
import random
import re
import threading
import time

SUMMARY = re.compile(r"(\d+) jobs, \d+ samples, in [\d.]+ s; (\d+) replaced ones deleted")
SETTLE_S = 5
RUN_S = 180  # longer than any fault of the store, and than nodes are asked


class Compactor(threading.Thread):
    """`promfabric compact` in a loop. That it fails while the store or a partition is away is no failure: what counts is
    that no answer changes, and that it does what it is for."""

    def __init__(self, cluster, program, folder, seed, grace_s):
        super().__init__(daemon=True)
        self.cluster, self.over, self.rng = cluster, threading.Event(), random.Random(seed * 1000 + 999)
        self.log = os.path.join(folder, "compact.log")
        self.command = [program, "compact", "--quiet", "--store", cluster.store.url, "--settle", f"{SETTLE_S}s",
                        "--grace", f"{grace_s}s", "--temp-dir", folder]
        for node in cluster.ingests:
            self.command += ["--ingest", f"{node.host.ip}:{node.http_port}"]
        self.runs, self.killed, self.failed, self.hung = 0, 0, 0, 0

    def run(self):
        while not self.over.is_set():
            self.once()
            self.over.wait(self.rng.uniform(0.5, 4))

    def once(self):
        process = self.cluster.spawner.spawn(self.cluster.hosts["driver"], self.command, self.log, self.cluster.store.env)
        self.runs += 1
        limit = self.rng.uniform(0.1, 4) if self.rng.random() < 0.25 else RUN_S
        end = time.monotonic() + limit
        while process.poll() is None and time.monotonic() < end:
            time.sleep(0.05)
        if process.poll() is None:
            process.kill()
            self.killed += limit != RUN_S
            self.hung += limit == RUN_S
        elif process.returncode != 0:
            self.failed += 1
        process.wait()

    def done(self):
        """Jobs, and replaced segments that were deleted."""
        try:
            with open(self.log, encoding="utf-8", errors="replace") as f:
                found = SUMMARY.findall(f.read())
        except FileNotFoundError:
            found = []
        return sum(int(jobs) for jobs, _ in found), sum(int(deleted) for _, deleted in found)

    def problems(self):
        """What must not be, once it has ended."""
        jobs, _ = self.done()
        if self.hung:
            yield f"compaction took longer than {RUN_S} s, {self.hung} times; see {self.log}"
        if not jobs and self.runs >= 20:
            yield f"compaction ran {self.runs} times and merged nothing; see {self.log}"

    def figures(self):
        jobs, deleted = self.done()
        return {"runs of compaction meanwhile": self.runs, "of which killed": self.killed, "and failed": self.failed,
                "its jobs": jobs, "segments that it deleted": deleted}
