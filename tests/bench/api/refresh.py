#!/usr/bin/env python3
"""refresh.py - what a dashboard costs that is refreshed, with results kept by the workers and without.

usage: refresh.py [--refreshes N] [--instances N] [--workers N]

20 panels over 6 h at 60 s, refreshed every 30 s (of the data's time: nobody waits), over the data of the
peers benchmark. Two fabrics over the same store, asked in turn, one with --result-memory. Prints
processor time of APIs and workers for one refresh, and fails if an answer differs in a byte.
PROMFABRIC_BINARY names the program if it is not that of build/release."""
import argparse
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.normpath(os.path.join(HERE, "..", "..", ".."))
os.environ.setdefault("PROMFABRIC_BINARY", os.path.join(TOP, "build/release/promfabric"))
os.environ.setdefault("PROMFABRIC_LOADER", "")  # the harness asks; nothing is loaded with it here
sys.path.insert(0, os.path.join(TOP, "tests", "integration", "api"))
from harness import BINARY, Fabric  # noqa: E402

spec = importlib.util.spec_from_file_location("dataset", os.path.join(HERE, "../peers/dataset.py"))
dataset = importlib.util.module_from_spec(spec)
spec.loader.exec_module(dataset)

HOURS, RANGE_S, STEP_S, EVERY_S = 7, 6 * 3600, 60, 30


def panels():
    with open(os.path.join(HERE, "..", "panels.txt"), encoding="utf-8") as f:
        return [line.strip() for line in f if line.strip() and not line.startswith("#")]


PANELS = panels()


def cpu_seconds(pid):
    """To the nanosecond: a refresh takes less than the ticks of /proc/PID/stat."""
    return sum(int(path.read_text().split()[0])
               for path in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


class Side:
    """A fabric and what it used."""

    def __init__(self, name, workers, store, flags):
        self.name = name
        self.fabric = Fabric(workers, ("--log-level=warn", "--small-scan=2ms", f"--store={store}"),
                             ("--log-level=warn", f"--store={store}", *flags))
        self.fabric.wait_workers(workers)

    def used(self):
        return (cpu_seconds(self.fabric.api.pid),
                sum(cpu_seconds(worker.pid) for worker in self.fabric.workers))

    def refresh(self, end):
        out = []
        for text in PANELS:
            status, _, body = self.fabric.get("/api/v1/query_range", {
                "query": text, "start": end - RANGE_S, "end": end, "step": STEP_S})
            if status != 200:
                raise SystemExit(f"{self.name}: {text}: {body}")
            out.append(json.loads(body)["data"])
            if not out[-1]["result"]:
                raise SystemExit(f"{self.name}: {text}: no series")
        return out


def measure(sides, refreshes):
    totals = {side.name: [0.0, 0.0] for side in sides}
    start = dataset.START_S + RANGE_S + 600
    for n in range(-3, refreshes):  # the first ones fill caches
        end = (start + n * EVERY_S) // STEP_S * STEP_S
        answers = []
        for side in sides if n % 2 else sides[::-1]:
            before = side.used()
            answers.append(side.refresh(end))
            if n >= 0:
                totals[side.name] = [t + now - then for t, now, then in
                                     zip(totals[side.name], side.used(), before)]
        if answers[0] != answers[1]:
            raise SystemExit(f"refresh {n}: the answers differ")
    for name, (api, workers) in totals.items():
        print(f"{name:24s} API {api / refreshes * 1e3:8.1f} ms, workers "
              f"{workers / refreshes * 1e3:8.1f} ms of processor time a refresh", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--refreshes", type=int, default=20)
    parser.add_argument("--instances", type=int, default=100)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="pf-refresh-")
    store, source = os.path.join(folder, "store"), os.path.join(folder, "data.om")
    os.mkdir(store)
    sides = []
    try:
        with open(source, "w", encoding="utf-8") as out:
            series, samples = dataset.write(out, args.instances, HOURS, 15)
        subprocess.run([BINARY, "import", "--store", store, source], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.unlink(source)
        print(f"{series} series, {samples} samples, {len(PANELS)} panels", flush=True)
        sides = [Side("computed each time", args.workers, store, ()),
                 Side("results kept", args.workers, store, ("--result-memory=64MiB",))]
        measure(sides, args.refreshes)
    finally:
        for side in sides:
            side.fabric.close()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
