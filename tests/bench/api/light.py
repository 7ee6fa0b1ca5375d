#!/usr/bin/env python3
"""light.py - what a light query costs: switches between threads, system calls, processor time, and throughput.

usage: light.py [--queries N] [--clients N...] [--workers N] [--instances N] [--seconds S] [--calls]
                [--only TEXT] [BINARY...]

Real processes over the data of the peers benchmark, one fabric for each BINARY (default: that of
build/release), asked in turn so that a busy machine is busy for all of them. Prints for each query
and binary, per query: times a thread went to sleep and was woken (voluntary context switches), or
was pushed off its core, processor time of the API and of the workers, the median and the fastest
hundredth of the wall clock. Then queries a second with several clients. --calls adds a count of
system calls (strace; its times say nothing)."""
import argparse
import http.client
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.normpath(os.path.join(HERE, "..", "..", ".."))
os.environ.setdefault("PROMFABRIC_BINARY", os.path.join(TOP, "build/release/promfabric"))
os.environ.setdefault("PROMFABRIC_LOADER", "")  # the harness asks; nothing is loaded with it here
sys.path.insert(0, os.path.join(TOP, "tests", "integration", "api"))
import harness  # noqa: E402

spec = importlib.util.spec_from_file_location("dataset", os.path.join(HERE, "../peers/dataset.py"))
dataset = importlib.util.module_from_spec(spec)
spec.loader.exec_module(dataset)

HOURS, WARM = 6, 30
END = dataset.START_S + HOURS * 3600
INSTANT = ('up{instance="host-0001"}', "count(up)", "sum(http_requests_total)")
RANGE = ('node_cpu_seconds_total{mode="idle",cpu="0",instance=~"host-00[0-4]."}',
         '1 - avg by (instance) (rate(node_cpu_seconds_total{mode="idle",cpu="0"}[5m]))')
NAMED = {"1 + 1": "no work"}


def paths():
    for text in ("1 + 1", *INSTANT):
        yield text, "/api/v1/query?" + urllib.parse.urlencode({"query": text, "time": END - 60})
    for text in RANGE:
        yield text, "/api/v1/query_range?" + urllib.parse.urlencode(
            {"query": text, "start": dataset.START_S + 3600, "end": END, "step": 60})


def threads(pid):
    return pathlib.Path(f"/proc/{pid}/task").glob("*")


def switches(pid):
    """(voluntary, involuntary) of all threads."""
    sums = [0, 0]
    for thread in threads(pid):
        text = (thread / "status").read_text()
        for i, name in enumerate(("voluntary", "nonvoluntary")):
            sums[i] += int(re.search(rf"^{name}_ctxt_switches:\s+(\d+)", text, re.M).group(1))
    return sums


def cpu_seconds(pid):
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads(pid)) / 1e9


class Side:
    """A fabric of one binary."""

    def __init__(self, binary, store, workers):
        harness.BINARY = binary
        self.name = os.path.relpath(binary, TOP) if binary.startswith(TOP) else binary
        self.fabric = harness.Fabric(workers, ("--log-level=warn", "--small-scan=2ms", f"--store={store}"),
                                     ("--log-level=warn", f"--store={store}"))
        self.fabric.wait_workers(workers, 60)
        self.connection = http.client.HTTPConnection("127.0.0.1", self.fabric.api_port)
        self.begin()

    def begin(self):
        self.times, self.cpu, self.slept, self.pushed = [], [0, 0], [0, 0], 0

    def ask(self, path):
        begun = time.perf_counter()
        self.connection.request("GET", path)
        answer = self.connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise SystemExit(f"{path}: {body}")
        return time.perf_counter() - begun

    def used(self):
        pids = [self.fabric.api.pid], [worker.pid for worker in self.fabric.workers]
        cpu = [sum(cpu_seconds(pid) for pid in group) for group in pids]
        both = [[sum(n) for n in zip(*(switches(pid) for pid in group))] for group in pids]
        return cpu, [b[0] for b in both], sum(b[1] for b in both)

    def round(self, path, count):
        before = self.used()
        self.times += [self.ask(path) for _ in range(count)]
        time.sleep(0.01)  # what goes on behind an answer belongs to it
        after = self.used()
        self.cpu = [c + a - b for c, a, b in zip(self.cpu, after[0], before[0])]
        self.slept = [s + a - b for s, a, b in zip(self.slept, after[1], before[1])]
        self.pushed += after[2] - before[2]

    def show(self, text):
        count, times = len(self.times), sorted(self.times)
        api, workers = (c / count * 1e3 for c in self.cpu)
        slept = " + ".join(f"{s / count:5.1f}" for s in self.slept)
        print(f"{NAMED.get(text, text)[:44]:46s}{self.name[-30:]:32s}{slept:>14s} "
              f"{self.pushed / count:6.1f} {api:8.2f} {workers:8.2f} "
              f"{times[count // 2] * 1e3:8.2f} {times[count // 100] * 1e3:8.2f}", flush=True)


def costs(sides, args):
    print(f"{'query':46s}{'binary':32s}{'slept API + W':>14s} {'pushed':>6s} {'API ms':>8s} "
          f"{'W ms':>8s} {'median':>8s} {'fastest':>8s}")
    for text, path in paths():
        if args.only and args.only not in text:
            continue
        for side in sides:
            side.begin()
            for _ in range(WARM):
                side.ask(path)
        for _ in range(10):
            for side in sides:
                side.round(path, max(1, args.queries // 10))
        for side in sides:
            side.show(text)


def throughput(side, path, clients, seconds):
    """Queries a second, and the processor time of one in ms."""
    counts, stop = [0] * clients, time.monotonic() + seconds

    def client(i):
        connection = http.client.HTTPConnection("127.0.0.1", side.fabric.api_port)
        while time.monotonic() < stop:
            connection.request("GET", path)
            connection.getresponse().read()
            counts[i] += 1

    before, slept, _ = side.used()
    crew = [threading.Thread(target=client, args=(i,)) for i in range(clients)]
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join()
    after, woken, _ = side.used()
    total = max(1, sum(counts))
    return (total / seconds, (sum(after) - sum(before)) / total * 1e3,
            (sum(woken) - sum(slept)) / total)


def throughputs(sides, args):
    path = dict(paths())["count(up)"]
    print("\ncount(up): clients, binary, queries a second, processor time (API and workers) and switches a query")
    for clients in args.clients:
        for side in sides:
            rate, cpu, slept = throughput(side, path, clients, args.seconds)
            print(f"{clients:4d}  {side.name[-30:]:32s}{rate:8.0f} {cpu:8.2f} ms {slept:6.1f}", flush=True)


def calls(side, path, count):
    """System calls of all processes while @count queries are asked."""
    found = {}
    for process in (side.fabric.api, *side.fabric.workers):
        out = tempfile.NamedTemporaryFile()
        tracer = subprocess.Popen(["strace", "-c", "-f", "-p", str(process.pid), "-o", out.name],
                                  stderr=subprocess.DEVNULL)
        time.sleep(1)
        for _ in range(count):
            side.ask(path)
        tracer.terminate()
        tracer.wait()
        for line in pathlib.Path(out.name).read_text().splitlines():
            fields = line.split()
            if len(fields) >= 5 and fields[3].isdigit() and fields[-1] != "total":
                found[fields[-1]] = found.get(fields[-1], 0) + int(fields[3])
    most = sorted(found.items(), key=lambda item: -item[1])[:12]
    print(f"{side.name[-30:]:32s}" + ", ".join(f"{name} {n / count:.1f}" for name, n in most), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--clients", type=int, nargs="*", default=[1, 8, 32])
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--instances", type=int, default=100, help="34 series each")
    parser.add_argument("--calls", action="store_true")
    parser.add_argument("--only", help="queries that have this text")
    parser.add_argument("--store", help="a store of these data, made if it is not there; kept")
    parser.add_argument("binaries", nargs="*", default=[harness.BINARY])
    args = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="pf-light-")
    store, sides = args.store or os.path.join(folder, "store"), []
    try:
        if not os.path.isdir(store):
            os.makedirs(store)
            source = os.path.join(folder, "data.om")
            with open(source, "w", encoding="utf-8") as out:
                dataset.write(out, args.instances, HOURS, 15)
            subprocess.run([harness.BINARY, "import", "--store", store, source], check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            os.unlink(source)
        sides = [Side(os.path.abspath(binary), store, args.workers) for binary in args.binaries]
        costs(sides, args)
        if args.clients:
            throughputs(sides, args)
        if args.calls:
            print("\ncount(up): system calls a query")
            for side in sides:
                calls(side, dict(paths())["count(up)"], 200)
    finally:
        for side in sides:
            side.fabric.close()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
