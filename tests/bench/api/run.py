#!/usr/bin/env python3
"""run.py - how fast the API is over real processes, warm: a light instant query, the queries of
tests/bench/queries.txt, the first event of each, peak memory, and reassignment after a kill.

usage: run.py [--light N] [--runs N] [--kills N] [--instances N] [--workers N]

Data are those of the peers benchmark: 34 series an instance, 6 h at 15 s; range queries of 5 h at
60 s. PROMFABRIC_BINARY and PROMFABRIC_LOADER name the programs if they are not those of
build/release. Takes about a minute on a quiet machine with two cores."""
import argparse
import http.client
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.parse
from datetime import datetime

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.normpath(os.path.join(HERE, "..", "..", ".."))
os.environ.setdefault("PROMFABRIC_BINARY", os.path.join(TOP, "build/release/promfabric"))
os.environ.setdefault("PROMFABRIC_LOADER",
                      os.path.join(TOP, "build/release/tests/integration/api/load_series"))
sys.path.insert(0, os.path.join(TOP, "tests", "integration", "api"))
from harness import BINARY, START, Fabric, load, standard_lines, wait_for  # noqa: E402

spec = importlib.util.spec_from_file_location("dataset", os.path.join(HERE, "../peers/dataset.py"))
dataset = importlib.util.module_from_spec(spec)
spec.loader.exec_module(dataset)

HOURS = 6
WARM = 5  # runs that are not counted
# As `promfabric up` has it: the tests' harness says otherwise.
API_FLAGS = ("--log-level=warn", "--small-scan=2ms")


def queries():
    with open(os.path.join(HERE, "..", "queries.txt"), encoding="utf-8") as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                name, kind, text = line.split(None, 2)
                yield name, kind, text.strip()


def percentile(values, p):
    values = sorted(values)
    return values[min(len(values) - 1, len(values) * p // 100)] * 1000


def show(name, values):
    print(f"{name:44s}" + "  ".join(f"p{p} {percentile(values, p):8.2f} ms" for p in (50, 90, 99)),
          flush=True)


def params_of(kind, text):
    end = dataset.START_S + HOURS * 3600
    if kind == "instant":
        return "/api/v1/query?" + urllib.parse.urlencode({"query": text, "time": end - 60})
    return "/api/v1/query_range?" + urllib.parse.urlencode(
        {"query": text, "start": dataset.START_S + 3600, "end": end, "step": 60})


def answers(fabric, path, count):
    """Seconds that whole answers take, on one connection."""
    connection = http.client.HTTPConnection("127.0.0.1", fabric.api_port)
    times, size = [], 0
    for i in range(count + WARM):
        begun = time.perf_counter()
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise SystemExit(f"{path}: {body}")
        if i >= WARM:
            times.append(time.perf_counter() - begun)
        size = len(body)
    connection.close()
    return times, size


def first_events(fabric, kind, text, count):
    """Seconds to the first event of a stream, connection included; the rest is not waited for."""
    end = dataset.START_S + HOURS * 3600
    start = end - 60 if kind == "instant" else dataset.START_S + 3600
    end = end - 60 if kind == "instant" else end
    body = json.dumps({"q": text, "s": start, "e": end, "step": "60s"})
    times = []
    for i in range(count + WARM):
        connection = http.client.HTTPConnection("127.0.0.1", fabric.api_port)
        begun = time.perf_counter()
        connection.request("POST", "/api/v1/metrics/query", body)
        line = connection.getresponse().readline()
        if i >= WARM:
            times.append(time.perf_counter() - begun)
        if not line.startswith(b"data: "):
            raise SystemExit(f"{text}: {line}")
        connection.close()
    return times


def peak_mib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmHWM")) / 1024


def fill(fabric, instances):
    source = os.path.join(fabric.folder, "data.om")
    with open(source, "w", encoding="utf-8") as out:
        series, samples = dataset.write(out, instances, HOURS, 15)
    subprocess.run([BINARY, "import", "--store", fabric.store, source], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.unlink(source)
    print(f"{series} series, {samples} samples", flush=True)


def measure_queries(args):
    fabric = Fabric(args.workers, API_FLAGS, ("--log-level=warn",))
    try:
        fill(fabric, args.instances)
        fabric.wait_workers(args.workers)
        for name, text in (("light instant: up{instance=one}", 'up{instance="host-0001"}'),
                           ("light instant: up", "up"), ("light instant: sum(up)", "sum(up)"),
                           ("light instant: 1 + 1, no work", "1 + 1")):
            show(name, answers(fabric, params_of("instant", text), args.light)[0])
        show("light instant: up, time to first event",
             first_events(fabric, "instant", "up", args.light))
        print(f"\n{'query':<16}{'p50 ms':>10}{'p99 ms':>10}{'first event p50':>18}{'p99 ms':>10}"
              f"{'answer bytes':>14}")
        for name, kind, text in queries():
            times, size = answers(fabric, params_of(kind, text), args.runs)
            first = first_events(fabric, kind, text, args.runs)
            print(f"{name:<16}{percentile(times, 50):>10.1f}{percentile(times, 99):>10.1f}"
                  f"{percentile(first, 50):>18.1f}{percentile(first, 99):>10.1f}{size:>14}",
                  flush=True)
        print("\npeak memory: API " + f"{peak_mib(fabric.api.pid):.0f} MiB, workers " +
              " and ".join(f"{peak_mib(w.pid):.0f}" for w in fabric.workers) + " MiB", flush=True)
    finally:
        fabric.close()


def log_time(line):
    stamp = re.match(r"ts=(\S+)", line).group(1).replace("Z", "+00:00")
    return datetime.fromisoformat(stamp).timestamp()


def reassignment(kills):
    """Both workers are stopped, so that work waits on them; then one is killed."""
    end = START + 7000
    fabric = Fabric(2)
    times = []
    try:
        load(fabric.store, standard_lines())
        fabric.wait_workers(2)
        for _ in range(kills):
            for worker in fabric.workers:
                worker.signal(signal.SIGSTOP)
            client = threading.Thread(target=lambda: fabric.events("temperature", START, end, "60s"))
            client.start()
            wait_for("assigned work", lambda: fabric.scaling()["work"]["inflight"] >= 4)
            holders = [w for w in fabric.data("/api/v1/workers") if w["assigned"] > 0]
            victim = int(holders[0]["worker_id"].split("-")[1])
            seen = os.path.getsize(fabric.api.log_path)
            begun = time.time()
            os.kill(fabric.workers[victim].pid, signal.SIGKILL)
            line = wait_for("the new assignment", lambda: next(
                (l for l in fabric.api.log_text()[seen:].splitlines()
                 if 'msg="work assigned again"' in l and "attempt=2" in l), None))
            times.append(max(log_time(line) - begun, 0))
            fabric.workers[1 - victim].signal(signal.SIGCONT)
            fabric.workers[victim].kill()
            client.join(30)
            fabric.start_worker(victim)
            fabric.wait_workers(2)
    finally:
        fabric.close()
    show("SIGKILL to the new AssignWork", times)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--light", type=int, default=300, help="runs of each light query")
    parser.add_argument("--runs", type=int, default=20, help="runs of the others")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--instances", type=int, default=100, help="34 series each")
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    measure_queries(args)
    if args.kills:
        reassignment(args.kills)


if __name__ == "__main__":
    main()
