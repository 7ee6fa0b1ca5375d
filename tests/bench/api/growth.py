#!/usr/bin/env python3
"""growth.py - how costs grow: with samples, series in the answer, segments, workers and clients.

usage: growth.py [--samples-max N] [--segments-max N] [--series-max N] [--seconds S] [--only TABLE...]

A table each, over real processes and demo data: samples 10^6 up to --samples-max (default 10^6; the aim is 10^8), series
out 1 up to --series-max, segments 10 up to --segments-max, workers 1, 2 and 4, clients 1 to 64. A row has what
grew, processor time of API and workers in ms for one query (medians of wall clock beside it), and the exponent
against the row before: 1 is linear, and more than 1.2 is marked with an exclamation mark. Small times are
mostly what any query costs, so an exponent far below 1 is nothing to wonder about. PROMFABRIC_BINARY names the
program if it is not that of build/release. The defaults take about two minutes on a quiet machine with two
cores, --samples-max 100000000 an hour and 10 GB of memory and disk together."""
import argparse
import glob
import importlib.util
import json
import math
import os
import shutil
import subprocess
import tempfile
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
spec = importlib.util.spec_from_file_location("light", os.path.join(HERE, "light.py"))
light = importlib.util.module_from_spec(spec)
spec.loader.exec_module(light)

END, HOURS, STEP = 1_700_006_400, 6, 15
SERIES_AN_INSTANCE, SAMPLES_A_SERIES = 81, HOURS * 3600 // STEP
RATE = "sum(rate(http_requests_total[5m]))"


def demo(store, instances, hours=HOURS, step=STEP, window="2h", shards=4):
    subprocess.run([light.harness.BINARY, "demo-data", "--quiet", "--store", store, "--instances", str(instances),
                    "--range", f"{hours}h", "--step", f"{step}s", "--window", window, "--shards", str(shards),
                    "--end", str(END)], check=True, stdout=subprocess.DEVNULL)


def instant(text, at=END - 60):
    return "/api/v1/query?" + urllib.parse.urlencode({"query": text, "time": at})


def over(text, hours=HOURS - 1, step=60):
    return "/api/v1/query_range?" + urllib.parse.urlencode(
        {"query": text, "start": END - hours * 3600, "end": END - 60, "step": step})


def power_of_ten(least, most):
    while least <= most:
        yield least
        least *= 10


class Table:
    """Rows of one thing that grows."""

    def __init__(self, title, unit):
        print(f"\n{title}\n{unit:>12s} {'API ms':>10s} {'workers ms':>11s} {'wall ms':>10s} {'exponent':>9s}")
        self.last = None

    def row(self, size, side, path, runs, note=""):
        for _ in range(3):
            side.ask(path)
        side.begin()
        side.round(path, runs)
        api, workers = (c / runs * 1e3 for c in side.cpu)
        wall = sorted(side.times)[runs // 2] * 1e3
        exponent = ""
        if self.last and size > self.last[0]:
            power = math.log((api + workers) / self.last[1]) / math.log(size / self.last[0])
            exponent = f"{power:.2f}" + ("!" if power > 1.2 else "")
        self.last = size, api + workers
        print(f"{size:12,d} {api:10.2f} {workers:11.2f} {wall:10.2f} {exponent:>9s} {note}", flush=True)


def with_store(folder, name, workers, make):
    store = os.path.join(folder, name)
    make(store)
    return light.Side(os.path.abspath(light.harness.BINARY), store, workers)


def samples(args, folder):
    table = Table(f"samples: {RATE}, range of {HOURS - 1} h", "samples")
    for size in power_of_ten(10**6, args.samples_max):
        instances = max(1, size // SAMPLES_A_SERIES // SERIES_AN_INSTANCE)
        side = with_store(folder, f"samples-{size}", 2, lambda store, n=instances: demo(store, n))
        table.row(instances * SERIES_AN_INSTANCE * SAMPLES_A_SERIES, side, over(RATE), 10)
        side.fabric.close()
        shutil.rmtree(os.path.join(folder, f"samples-{size}"))


def series_out(args, folder):
    instances = max(1, args.series_max // SERIES_AN_INSTANCE + 1)
    side = with_store(folder, "series", 2, lambda store: demo(store, instances, hours=1))
    table = Table("series out: topk(N, all series), instant, and in the end all series", "series")
    for size in power_of_ten(1, args.series_max):
        path = instant(f'topk({size}, {{__name__!=""}})')
        if size * 10 > args.series_max:
            path = instant('{__name__!=""}')
        status, _, body = side.fabric.get(path)
        table.row(len(json.loads(body)["data"]["result"]), side, path, 10, "all of them" if size * 10 > args.series_max else "")
    side.fabric.close()


def segments(args, folder):
    table = Table("segments: count(up) now, in a store of so many", "segments")
    for size in power_of_ten(10, args.segments_max):
        shards = 4 if size <= 1000 else 64
        hours = max(1, size // shards)
        side = with_store(folder, f"segments-{size}", 1,
                          lambda store, h=hours, s=shards: demo(store, 1, hours=h, step=300, window="1h", shards=s))
        count = len(glob.glob(os.path.join(folder, f"segments-{size}", "**", "*.parquet"), recursive=True))
        table.row(count, side, instant("count(up)"), 50)
        side.fabric.close()


def workers(args, folder):
    store = os.path.join(folder, "workers")
    demo(store, max(1, min(args.samples_max, 10**7) // SAMPLES_A_SERIES // SERIES_AN_INSTANCE))
    table = Table(f"workers: {RATE}; processor time should not grow", "workers")
    for count in (1, 2, 4):
        side = light.Side(os.path.abspath(light.harness.BINARY), store, count)
        table.row(count, side, over(RATE), 10)
        side.fabric.close()


def clients(args, folder):
    side = with_store(folder, "clients", 2, lambda store: demo(store, 4, hours=1))
    print("\nclients: count(up)\n     clients  queries/s  processor ms  wake-ups a query")
    for count in (1, 2, 4, 8, 16, 32, 64):
        rate, cpu, slept = light.throughput(side, instant("count(up)"), count, args.seconds)
        print(f"{count:12d} {rate:10.0f} {cpu:13.2f} {slept:17.1f}", flush=True)
    side.fabric.close()


def main():
    tables = {f.__name__: f for f in (samples, series_out, segments, workers, clients)}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples-max", type=int, default=10**6)
    parser.add_argument("--series-max", type=int, default=10**4)
    parser.add_argument("--segments-max", type=int, default=10**3)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--only", nargs="*", choices=tables, default=list(tables))
    args = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="pf-growth-")
    try:
        for name in args.only:
            tables[name](args, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
