"""compact - segments are merged and replaced ones deleted while everything fails, all the time: by the workers, as
background work that the APIs plan, and now and then by a second compactor, which is killed in between."""
import os
import random
import re
import threading
import time

SUMMARY = re.compile(r"(\d+) jobs, \d+ samples, in [\d.]+ s; (\d+) replaced ones deleted")
SETTLE_S = 5
INTERVAL_S = 3
FIRST_S = 30  # until then workers alone have merged
REST_S = (20, 60)
JOBS_S = 120  # after the faults, until a job is done if none was
RUN_S = 600  # hundreds of segments, five tries for each, of a store that fails on a machine that is busy; more is a hang
RATE = "64KiB"  # of a worker's jobs: they last for seconds, so that faults hit them


def grace_s(minutes):
    """Longer than a listing takes of an API that is stalled meanwhile, or whose store is slow, and than queries."""
    return 90 if minutes < 10 else 240


def api_flags(minutes):
    return ["--compact", "--compact-interval", f"{INTERVAL_S}s", "--compact-settle", f"{SETTLE_S}s",
            "--compact-grace", f"{grace_s(minutes)}s"]


class Background:
    """What the logs of APIs and workers say of the background lane; processes that were killed have no counters left."""
    DONE = re.compile(r'msg="compaction job done" .* segments=(\d+) outputs=(\d+)')
    PASS = re.compile(r'msg=compaction .* deleted=(\d+)')
    COUNTS = {"given to another worker": r'msg="background job assigned again"',
              "that ended without a result": r'msg="compaction job not done"',
              "failed on a worker": r'msg="background job failed[,"]'}
    STOPPED = 'msg="background job stopped"'

    def __init__(self, cluster):
        self.cluster = cluster

    def figures(self):
        merged, into, deleted, jobs = 0, 0, 0, 0
        counts = dict.fromkeys(self.COUNTS, 0)
        for line in lines_of(api.log for api in self.cluster.apis):
            if found := self.DONE.search(line):
                jobs, merged, into = jobs + 1, merged + int(found.group(1)), into + int(found.group(2))
            elif found := self.PASS.search(line):
                deleted += int(found.group(1))
            for name, pattern in self.COUNTS.items():
                counts[name] += re.search(pattern, line) is not None
        stopped = sum(self.STOPPED in line for line in lines_of(worker.log for worker in self.cluster.workers))
        return {"background jobs done by workers": jobs, "segments that they merged": merged, "into": into,
                "replaced ones that APIs deleted": deleted, "background jobs canceled or given back": stopped,
                **{f"background jobs {name}": count for name, count in counts.items()}}

    def jobs(self):
        return self.figures()["background jobs done by workers"]

    def problems(self):
        """A lane on which nothing was done proves nothing."""
        end = time.monotonic() + JOBS_S
        while not self.jobs() and time.monotonic() < end:
            time.sleep(1)
        if not self.jobs():
            yield f"workers did no background job, and none within {JOBS_S} s after the faults"


def lines_of(paths):
    for path in paths:
        with open(path, encoding="utf-8", errors="replace") as f:
            yield from f


class Compactor(threading.Thread):
    """`promfabric compact` in a loop. That it fails while the store or a partition is away is no failure: what counts is
    that no answer changes."""

    def __init__(self, cluster, program, folder, seed, minutes):
        super().__init__(daemon=True)
        self.cluster, self.over, self.rng = cluster, threading.Event(), random.Random(seed * 1000 + 999)
        self.log = os.path.join(folder, "compact.log")
        self.command = [program, "compact", "--quiet", "--store", cluster.store.url, "--settle", f"{SETTLE_S}s",
                        "--grace", f"{grace_s(minutes)}s", "--temp-dir", folder]
        for node in cluster.ingests if not cluster.ring else []:  # which the ring's own URL names
            self.command += ["--ingest", f"{node.host.ip}:{node.http_port}"]
        self.runs, self.killed, self.failed, self.hung = 0, 0, 0, 0

    def run(self):
        self.over.wait(FIRST_S)
        while not self.over.is_set():
            self.once()
            self.over.wait(self.rng.uniform(*REST_S))

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
        if self.hung:
            yield f"compaction took longer than {RUN_S} s, {self.hung} times; see {self.log}"

    def figures(self):
        jobs, deleted = self.done()
        return {"runs of a second compactor": self.runs, "of which killed": self.killed, "and failed": self.failed,
                "its jobs": jobs, "segments that it deleted": deleted}
