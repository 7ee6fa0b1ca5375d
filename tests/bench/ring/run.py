#!/usr/bin/env python3
"""run.py - segments on the cluster's own nodes against a folder, one node, and a plain copy.

usage: run.py [--only read,put,bootstrap] [--rounds N] [--instances N] [--puts N] [--bytes N] [--sync-ms N] [--blobs N] [--blob-bytes N]
              [--disk FOLDER]

read       The same queries over the same data, in turn: three workers over a folder, and three that keep three copies. Wall
           clock, and processor time of API and workers, less what they use while idle, which tells them apart on a busy
           machine, with a work item for each shard on both sides; fails if an answer differs.
put        Blobs of --bytes with one keeper, and with three at a quorum: each on a tmpfs, each of its syncs takes --sync-ms.
bootstrap  A fourth node joins three that keep three copies of --blobs blobs of --blob-bytes on --disk, with nothing to hold
           it back; against a plain copy of the same files, there too, each synced. In turn, the better of two counts.

Prints what it aims at and what it got; exit code 1 if an answer differs. PROMFABRIC_BINARY names the program if it is not that of
build/release, whose bench_ring and slow_sync are used."""
import argparse
import contextlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parents[3]
os.environ.setdefault("PROMFABRIC_BINARY", str(TOP / "build/release/promfabric"))
sys.path[:0] = [str(TOP / "tests/integration/ring"), str(TOP / "tests/integration/ingest")]
from harness import BINARY, Node, wait_for  # noqa: E402
from keepers import Keeper, Process, api  # noqa: E402

BUILD = pathlib.Path(BINARY).parent
CLIENT = BUILD / "tests/bench/ring/bench_ring"
SLOW_SYNC = next((BUILD / "tests/bench/queue").glob("*slow_sync.so"), None)
NODES = "/v1/admin/storage-nodes"
END = 1769860800  # of the data
IDLE_S = 5
QUERIES = [("sum(rate(http_requests_total[5m]))", 21600), ("sum by (job) (rate(http_requests_total[5m]))", 21600),
           ("avg(node_memory_available_bytes) / max(node_memory_available_bytes)", 21600),
           ('count({__name__=~".+_total"})', 3600), ("topk(3, rate(http_requests_total[5m]))", 3600)]


def cpu_seconds(processes):
    return sum(int(path.read_text().split()[0]) for process in processes
               for path in pathlib.Path(f"/proc/{process.process.pid}/task").glob("*/schedstat")) / 1e9


class Ring:
    """An ingest node and storage nodes; `grow` adds one."""

    def __init__(self, folder, keepers, copies, env=None):
        self.folder, self.env, self.keepers = folder, env, []
        self.node = Node(folder, "a", ["--seal-age", "1h"])
        self.store = f"ring://127.0.0.1:{self.node.port}"
        self.node.args += ["--store", self.store]
        self.node.start("--bootstrap")
        for _ in range(keepers):
            self.grow()
        self.ask("POST", "/v1/admin/ring", {"copies": copies})
        wait_for("keepers to be told", lambda: all(int(n["incarnation"], 16) for n in self.ask("GET", NODES)["nodes"]), 60)

    def ask(self, method, path, params=None):
        status, answer = self.node.request(method, path, params)
        if status != 200:
            raise SystemExit(f"{method} {path}: {status} {answer}")
        return answer

    def grow(self):
        # It gets everything from the leader of meta, and does not look for itself.
        keeper = Keeper(self.folder, f"k{len(self.keepers)}", self.store, "--keep-mend-every", "1h", "--keep-scrub-rate", "0B",
                        "--log-level", "warn")
        self.keepers.append(keeper.start(self.env))
        self.asked = time.monotonic()
        return self.ask("POST", NODES, {"name": keeper.name, "url": keeper.url}).get("migration")

    def stop(self):
        for process in [*self.keepers, self.node]:
            process.kill()


@contextlib.contextmanager
def folder_in(where):
    path = tempfile.mkdtemp(prefix="promfabric-bench-ring-", dir=where)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def load():
    return f"load {os.getloadavg()[0]:.1f}"


# --- read ---

def demo_data(args, store):
    subprocess.run([BINARY, "demo-data", "--quiet", "--store", store, "--instances", str(args.instances), "--shards", "8", "--window", "1h", "--range", "6h", "--end",
                    "2026-01-31T12:00:00Z"], check=True)


def ask(reader, query, span):
    begin = time.monotonic()
    status, body, _ = reader.raw("GET", "/api/v1/query_range", {"query": query, "start": END - span, "end": END, "step": 30}, timeout=120)
    if status != 200:
        raise SystemExit(f"{query}: {status} {body[:300]}")
    return time.monotonic() - begin, body


def measure_read(args):
    with folder_in(None) as plain, folder_in(None) as own:
        ring, processes = Ring(own, 3, 3), []
        try:
            demo_data(args, plain + "/store")
            demo_data(args, ring.store)
            workers = [Process(plain, "worker", f"w{i}", "--worker-id", f"w{i}", "--store", plain + "/store", "--spool", f"{plain}/spool-{i}",
                               "--log-level", "warn") for i in range(3)]
            for worker in workers:
                worker.ports = {"http": 0, "control": 0}
                processes.append(worker.start())
            readers = []
            for where, store, those in ((plain, plain + "/store", workers), (own, ring.store, ring.keepers)):
                readers.append(api(where, store, ring.node, those, "--small-scan", "0s"))
                processes.append(readers[-1].start())
                wait_for("workers", lambda: readers[-1].metric("promfabric_api_control_streams") == 3, 60)
            return compare_reads(args, list(zip(("folder", "ring"), readers, (workers, ring.keepers))))
        finally:
            for process in processes:
                process.kill()
            ring.stop()


def idle_use(sides):
    """Processor seconds that API and workers of each side use in a second in which nobody asks anything."""
    def used():
        return {name: (cpu_seconds([reader]), cpu_seconds(workers)) for name, reader, workers in sides}
    begin, before = time.monotonic(), used()
    time.sleep(IDLE_S)
    passed, after = time.monotonic() - begin, used()
    rates = {name: [(b - a) / passed for a, b in zip(before[name], after[name])] for name in before}
    print("read, idle: " + "; ".join(f"{name}: API {1e3 * api_:.1f} ms a second, workers {1e3 * workers:.1f}"
                                     for name, (api_, workers) in rates.items()), flush=True)
    return rates


def compare_reads(args, sides):
    figures, same = {name: {} for name, _, _ in sides}, True
    idle = idle_use(sides)
    for round_ in range(args.rounds + 2):  # two to warm up
        bodies = {}
        for query, span in QUERIES:
            for name, reader, workers in (sides if round_ % 2 else sides[::-1]):
                before = cpu_seconds([reader]), cpu_seconds(workers)
                wall, body = ask(reader, query, span)
                after = cpu_seconds([reader]), cpu_seconds(workers)
                if round_ >= 2:
                    for what, took in (("wall clock", wall), ("processor of the API", after[0] - before[0] - wall * idle[name][0]),
                                       ("processor of workers", after[1] - before[1] - wall * idle[name][1])):
                        figures[name].setdefault(what, {}).setdefault(query, []).append(took)
                bodies.setdefault(query, set()).add(body)
        same = same and all(len(found) == 1 for found in bodies.values())
    for what in figures["ring"]:
        folder, ring = (1e3 * sum(statistics.median(took) for took in figures[name][what].values()) for name in ("folder", "ring"))
        print(f"read, {what}: {len(QUERIES)} queries {folder:.1f} ms from the folder, {ring:.1f} ms from the ring: "
              f"{100 * (ring / folder - 1):+.1f} % (aim: within 5 %); medians of {args.rounds}, {load()}", flush=True)
    if not same:
        print("read: answers differ")
    return same


# --- put ---

def put(store, count, size, threads, named=0):
    return json.loads(subprocess.check_output([CLIENT, store, str(count), str(size), str(threads), str(named)]))


def measure_put(args):
    env = {"LD_PRELOAD": str(SLOW_SYNC), "SLOW_SYNC_US": str(int(args.sync_ms * 1000))}
    with folder_in("/dev/shm") as one, folder_in("/dev/shm") as three:
        rings = []
        try:
            rings = [Ring(one, 1, 1, env), Ring(three, 3, 3, env)]
            for threads in (1, 4):
                got = [[put(ring.store, args.puts, args.bytes, threads) for _ in range(3)] for ring in rings]
                best = [min(runs, key=lambda run: run["p50_ms"]) for runs in got]
                print(f"put, {threads} at a time, {args.bytes} bytes: one keeper p50 {best[0]['p50_ms']} ms, p99 {best[0]['p99_ms']} ms, "
                      f"{best[0]['per_second']}/s; quorum of three p50 {best[1]['p50_ms']} ms, p99 {best[1]['p99_ms']} ms, "
                      f"{best[1]['per_second']}/s: {best[1]['p50_ms'] / best[0]['p50_ms']:.2f}x (aim: 2x); the best of 3, {load()}",
                      flush=True)
        finally:
            for ring in rings:
                ring.stop()
    return True


# --- bootstrap ---

def plain_copy(files, to):
    """One after the other, each synced: seconds."""
    os.makedirs(to)
    begin = time.monotonic()
    for i, source in enumerate(files):
        with open(source, "rb") as f, open(f"{to}/{i}", "wb") as out:
            shutil.copyfileobj(f, out, 1 << 20)
            out.flush()
            os.fdatasync(out.fileno())
    return time.monotonic() - begin


def bootstrap(ring):
    """A node more: seconds, bytes, its files."""
    migration = ring.grow()

    def over():
        now = ring.ask("GET", f"/v1/admin/migrations/{migration}")
        return now["status"] != "running" and now
    done = wait_for("the migration to end", over, 600)
    if done["status"] != "completed":
        raise SystemExit(f"the migration is {done}")
    return time.monotonic() - ring.asked, done["progress"]["bytes"], list(ring.keepers[-1].blobs().values())


def measure_bootstrap(args):
    with folder_in(args.disk) as folder:
        ring = Ring(folder, 3, 3)
        try:
            put(ring.store, args.blobs, args.blob_bytes, 4, 1)
            os.sync()
            for _ in range(2):
                took, size, files = bootstrap(ring)
                copied = plain_copy(files, f"{folder}/plain-{len(ring.keepers)}")
                print(f"bootstrap: {size >> 20} MiB in {len(files)} blobs in {took:.1f} s, {size / took / 1048576:.0f} MiB/s; a plain copy "
                      f"{size / copied / 1048576:.0f} MiB/s: {100 * copied / took:.0f} % (aim: 80 %); {load()}", flush=True)
        finally:
            ring.stop()
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="read,put,bootstrap")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--instances", type=int, default=64, help="size of what is read: some 120,000 samples each")
    parser.add_argument("--puts", type=int, default=200)
    parser.add_argument("--bytes", type=int, default=65536)
    parser.add_argument("--sync-ms", type=float, default=4)
    parser.add_argument("--blobs", type=int, default=128)
    parser.add_argument("--blob-bytes", type=int, default=4 << 20)
    parser.add_argument("--disk")
    args = parser.parse_args()
    measures = {"read": measure_read, "put": measure_put, "bootstrap": measure_bootstrap}
    return 0 if all([measures[name](args) for name in args.only.split(",")]) else 1


if __name__ == "__main__":
    sys.exit(main())
