#!/usr/bin/env python3
"""run - the fault campaign: random queries with known answers while processes and links fail.

Started by scripts/chaos. Every answer must equal the undisturbed one byte for byte, or be an error the
specification allows; no query may outlive its deadline; once faults stop, everything succeeds; and
memory, descriptors and threads level off. The run is seeded: the same seed injects the same faults in
the same order (their timing against the queries is the machine's)."""
import argparse
import collections
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cluster import Api, Worker  # noqa: E402
from proxy import Network  # noqa: E402

DEADLINE_S = 30
# Errors the specification allows while faults are on: no worker in time, deadline, attempts used up,
# an API that is going away or not there.
ALLOWED = {"unavailable", "timeout", "canceled", "io", "no_space", "refused", "busy"}
QUERIES = [
    "sum(rate(http_requests_total[5m]))",
    "sum by (job) (rate(http_requests_total[5m]))",
    "http_requests_total",
    "rate(node_cpu_seconds_total[2m])",
    "histogram_quantile(0.9, sum by (le) (rate(http_request_duration_seconds_bucket[5m])))",
    "topk(3, rate(http_requests_total[5m]))",
    "avg(node_memory_available_bytes) / max(node_memory_available_bytes)",
    "sum by (job) (rate(http_requests_total[5m])) / on () group_left () sum(rate(http_requests_total[5m]))",
    "max_over_time(sum(rate(http_requests_total[1m]))[10m:1m])",
    "count({__name__=~\".+_total\"})",
]


def ask(base, params):
    """(answer bytes or None, error word or None, seconds)."""
    body = urllib.parse.urlencode(params).encode()
    begin = time.monotonic()
    try:
        with urllib.request.urlopen(base + "/api/v1/query_range", data=body, timeout=DEADLINE_S + 10) as r:
            return r.read(), None, time.monotonic() - begin
    except urllib.error.HTTPError as e:
        try:
            word = json.loads(e.read()).get("errorType", str(e.code))
        except ValueError:
            word = str(e.code)
        return None, word, time.monotonic() - begin
    except TimeoutError:
        return None, "hang", time.monotonic() - begin
    except OSError as e:
        word = "hang" if "timed out" in str(e) else "refused"
        return None, word, time.monotonic() - begin


class Client(threading.Thread):
    """Asks without pause and judges every answer."""

    def __init__(self, campaign, seed):
        super().__init__(daemon=True)
        self.campaign, self.rng = campaign, random.Random(seed)

    def run(self):
        while not self.campaign.over.is_set():
            key = self.rng.choice(list(self.campaign.truth))
            api = self.rng.choice(self.campaign.apis)
            answer, error, seconds = ask(api.base, dict(key))
            self.campaign.judge(key, api, answer, error, seconds)
            if error:
                time.sleep(0.05)


class Campaign:
    def __init__(self, args, folder):
        self.args, self.rng = args, random.Random(args.seed)
        self.folder, self.over, self.lock = folder, threading.Event(), threading.Lock()
        self.counts, self.errors, self.faults = collections.Counter(), collections.Counter(), collections.Counter()
        self.quiet, self.disturbed = [], []
        self.last_fault = -1e9
        self.wrong = []
        store = os.path.join(folder, "store")
        subprocess.run([args.promfabric, "demo-data", "--quiet", "--shards", "8", "--store", store], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.network = Network()
        self.workers = [Worker(args.promfabric, self.network, folder, store, i) for i in range(args.workers)]
        self.apis = [Api(args.promfabric, folder, store, self.workers, i) for i in range(args.apis)]
        for process in self.workers + self.apis:
            process.start()
        for api in self.apis:
            api.wait_ready()

    def learn(self):
        """The undisturbed answers, the same from every API."""
        span = json.load(urllib.request.urlopen(
            self.apis[0].base + "/api/v1/query?" + urllib.parse.urlencode(
                {"query": "max(timestamp(last_over_time({__name__=\"http_requests_total\"}[30d])))"}), timeout=60))
        result = span["data"]["result"]
        if not result:
            raise SystemExit("the demo data is empty")
        end = int(float(result[0]["value"][1]))
        self.truth = {}
        for query in QUERIES:
            for minutes, step in ((30, 30), (180, 60)):
                key = (("query", query), ("start", end - minutes * 60), ("end", end), ("step", step))
                answers = {ask(api.base, dict(key))[0] for api in self.apis}
                if len(answers) != 1 or None in answers:
                    raise SystemExit(f"undisturbed answers differ or fail: {query}")
                self.truth[key] = answers.pop()

    def judge(self, key, api, answer, error, seconds):
        with self.lock:
            self.counts["queries"] += 1
            disturbed = time.monotonic() - self.last_fault < 5
            if answer is not None:
                (self.disturbed if disturbed else self.quiet).append(seconds)
                if answer != self.truth[key]:
                    self.wrong.append(f"{api.name}: {key}: {answer[:300]!r}, not {self.truth[key][:300]!r}")
            elif error == "hang" or seconds > DEADLINE_S + 5:
                self.wrong.append(f"{api.name}: {key}: still unanswered after {seconds:.0f} s")
            elif error in ALLOWED:
                self.errors[error] += 1
            else:
                self.wrong.append(f"{api.name}: {key}: error {error}, which is not allowed")

    # Faults. Each leaves the cluster able to recover by itself or mends it before it returns.
    def kill(self):
        self.rng.choice(self.workers).restart_after_kill()

    def stall(self):
        worker = self.rng.choice(self.workers)
        worker.signal(signal.SIGSTOP)
        time.sleep(self.rng.uniform(0.2, 6))
        worker.signal(signal.SIGCONT)

    def drain(self):
        worker = self.rng.choice(self.workers)
        worker.signal(signal.SIGTERM)
        if worker.wait(25) != 0:
            self.wrong.append(f"{worker.name}: did not drain cleanly")
            worker.signal(signal.SIGKILL)
            worker.process.wait()
        worker.start()

    def slow(self):
        relay = self.rng.choice(self.rng.choice(self.workers).relays())
        relay.delay_s = self.rng.uniform(0.01, 0.5)
        time.sleep(self.rng.uniform(1, 4))
        relay.heal()

    def partition(self):
        worker = self.rng.choice(self.workers)
        for relay in worker.relays():
            relay.silent = True
        time.sleep(self.rng.uniform(0.5, 6))
        for relay in worker.relays():
            relay.heal()

    def cut(self):
        relay = self.rng.choice(self.rng.choice(self.workers).relays())
        self.network.do(relay.cut)
        time.sleep(self.rng.uniform(0.1, 3))
        relay.heal()

    def corrupt(self):
        """Flip or cut bytes of whatever artifacts a worker holds now."""
        worker = self.rng.choice(self.workers)
        end = time.monotonic() + 2
        while time.monotonic() < end:
            for where, _, files in os.walk(worker.spool):
                for name in files:
                    self.damage(os.path.join(where, name))
            time.sleep(0.01)

    def damage(self, path):
        try:
            with open(path, "r+b") as f:
                size = os.fstat(f.fileno()).st_size
                if size < 16:
                    return
                if self.rng.random() < 0.5:
                    f.truncate(size // 2)
                else:
                    f.seek(self.rng.randrange(size))
                    f.write(bytes([self.rng.randrange(256)]))
        except OSError:
            pass

    def restart_api(self):
        api = self.rng.choice(self.apis)
        if self.rng.random() < 0.5:
            api.restart_after_kill()
        else:
            api.stop()
            api.start()
        api.wait_ready()

    def inject(self, seconds):
        faults = [self.kill, self.stall, self.drain, self.slow, self.partition, self.cut, self.corrupt,
                  self.restart_api]
        end = time.monotonic() + seconds
        while time.monotonic() < end and len(self.wrong) < 5:
            fault = self.rng.choice(faults)
            with self.lock:
                self.last_fault = time.monotonic()
                self.faults[fault.__name__] += 1
            fault()
            with self.lock:
                self.last_fault = time.monotonic()
            time.sleep(self.rng.uniform(0.1, 2))

    def settle(self):
        """Faults are over: after the longest backoff every query of every API succeeds."""
        time.sleep(12)
        self.over.set()
        for client in self.clients:
            client.join(DEADLINE_S + 15)
        for key, truth in self.truth.items():
            for api in self.apis:
                answer, error, _ = ask(api.base, dict(key))
                if answer != truth:
                    self.wrong.append(f"after the faults: {api.name}: {key}: {error or 'another answer'}")

    def run(self):
        self.learn()
        before = self.sizes()
        self.clients = [Client(self, self.args.seed * 1000 + i) for i in range(self.args.clients)]
        for client in self.clients:
            client.start()
        time.sleep(3)
        self.inject(self.args.minutes * 60)
        self.settle()
        self.report(before, self.sizes())

    def sizes(self):
        return {p.name: (p.resident_kib() // 1024, p.fds(), p.threads()) for p in self.workers + self.apis}

    def report(self, before, after):
        print(f"seed {self.args.seed}: {self.counts['queries']} queries, "
              f"{sum(self.faults.values())} faults, {len(self.wrong)} wrong")
        print("faults: " + ", ".join(f"{k} {v}" for k, v in sorted(self.faults.items())))
        print("allowed errors: " + (", ".join(f"{k} {v}" for k, v in sorted(self.errors.items())) or "none"))
        for name, values in (("undisturbed", self.quiet), ("within 5 s of a fault", self.disturbed)):
            if len(values) > 1:
                q = statistics.quantiles(values, n=100)
                print(f"latency {name}: {len(values)} answers, p50 {q[49] * 1000:.1f} ms, p99 {q[98] * 1000:.1f} ms")
        for name in before:
            print(f"{name}: MiB, descriptors, threads: {before[name]} before, {after[name]} after")
        for line in self.wrong[:20]:
            print("WRONG " + line)

    def stop(self):
        for process in self.apis + self.workers:
            process.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--promfabric", required=True)
    parser.add_argument("--minutes", type=float, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=5)
    parser.add_argument("--apis", type=int, default=2)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--keep", action="store_true", help="keep the folder with logs")
    args = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="promfabric-chaos-")
    campaign = Campaign(args, folder)
    try:
        campaign.run()
    finally:
        campaign.stop()
        if args.keep or campaign.wrong:
            print("logs kept in", folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    passed = campaign.counts["queries"] - len(campaign.wrong)
    print(f"{passed} passed, {len(campaign.wrong)} failed")
    return 1 if campaign.wrong or not campaign.counts["queries"] else 0


if __name__ == "__main__":
    sys.exit(main())
