#!/usr/bin/env python3
"""compact.py - what compaction costs and what it is good for.

usage: compact.py [--instances N] [--shards N] [--piece MINUTES] [--days N] [--queries N] [BINARY]

Writes days of demo data (15 s, about 81 series an instance) in pieces of a few minutes, as ingest nodes seal
them, and merges them as `promfabric compact` does. Prints samples a second and core, read and written (those of
all jobs by the processor time of the command: pieces are merged into two hours and these into a day, so each sample
counts twice), files a shard and day, bytes a sample, and the time of queries over 24 hours before and after, the
median of some, each over other times so that no result is kept."""
import argparse
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
import urllib.parse
import urllib.request

TOP = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", ".."))
DAY = 86400
END = 1769817600  # 2026-01-31T00:00:00Z
EXPRESSIONS = ("sum by (job) (rate(http_requests_total[5m]))", "avg(rate(node_cpu_seconds_total[5m]))", "count(up)")


def run(binary, *args):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([binary, *args], check=True, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(store):
    sizes = [os.path.getsize(os.path.join(where, name)) for where, _, names in os.walk(store) for name in names
             if name.endswith(".parquet")]
    return len(sizes), sum(sizes)


class Up:
    """API and one worker over the store."""

    def __init__(self, binary, store, folder):
        self.log = open(os.path.join(folder, "up.log"), "w+", encoding="utf-8")
        self.process = subprocess.Popen([binary, "up", "--store", store, "--workers", "1", "--ingest-nodes", "0",
                                         "--http-listen", "127.0.0.1:0"], stdout=self.log, stderr=self.log)

    def __enter__(self):
        end = time.monotonic() + 120
        while time.monotonic() < end and self.process.poll() is None:
            self.log.seek(0)
            found = re.search(r"is up: (http://\S+)", self.log.read())
            if found:
                self.url = found.group(1)
                return self
            time.sleep(0.1)
        raise RuntimeError("promfabric up did not start")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(60)
        self.log.close()

    def seconds(self, expression, shift):
        """Of a query over 24 hours; it must answer something."""
        params = {"query": expression, "start": END - DAY + 3600 + shift, "end": END - 3600 + shift, "step": 300}
        begin = time.monotonic()
        with urllib.request.urlopen(f"{self.url}/api/v1/query_range?" + urllib.parse.urlencode(params), timeout=600) as a:
            answer = json.load(a)
        if not answer["data"]["result"]:
            raise RuntimeError(f"nothing is answered to {expression}")
        return time.monotonic() - begin


def ask(binary, store, folder, queries):
    """Medians, by expression."""
    with Up(binary, store, folder) as up:
        for expression in EXPRESSIONS:
            up.seconds(expression, -1)  # the segments are with the worker now
        return {e: statistics.median(up.seconds(e, i + 1) for i in range(queries)) for e in EXPRESSIONS}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instances", type=int, default=50)
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--piece", type=int, default=5, metavar="MINUTES")
    parser.add_argument("--days", type=int, default=1)
    parser.add_argument("--queries", type=int, default=9)
    parser.add_argument("binary", nargs="?", default=os.path.join(TOP, "build/release/promfabric"))
    args = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="pf-bench-compact-")
    try:
        report(args, folder, os.path.join(folder, "store"))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def report(args, folder, store):
    made, _ = run(args.binary, "demo-data", "--quiet", "--store", store, "--instances", str(args.instances), "--shards",
                  str(args.shards), "--window", f"{args.piece}m", "--range", f"{args.days * 24}h", "--end", str(END))
    stored = int(re.search(r"imported (\d+) samples", made).group(1))
    files, size = measure(store)
    before = ask(args.binary, store, folder, args.queries)
    out, cpu = run(args.binary, "compact", "--quiet", "--settle=0s", "--grace=1h", "--store", store)
    worked = int(re.search(r"jobs, (\d+) samples", out).group(1))
    run(args.binary, "compact", "--quiet", "--settle=0s", "--grace=0s", "--store", store)
    left, left_size = measure(store)
    after = ask(args.binary, store, folder, args.queries)
    print(f"{args.days} days of {81 * args.instances} series, {args.shards} shards, {stored} samples")
    print(f"compaction: {worked} samples in {cpu:.1f} s of processor time: {worked / cpu / 1e6:.2f} M samples/s and core")
    print(f"files: {files} before, {left} after: {left / args.shards / args.days:.2f} a shard and day")
    print(f"bytes a sample: {size / stored:.2f} before, {left_size / stored:.2f} after")
    for expression in EXPRESSIONS:
        print(f"{expression} over 22 h: {before[expression] * 1e3:.0f} ms before, {after[expression] * 1e3:.0f} ms after, "
              f"{before[expression] / after[expression]:.1f} times")


if __name__ == "__main__":
    main()
