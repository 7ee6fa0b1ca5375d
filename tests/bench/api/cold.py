#!/usr/bin/env python3
"""cold.py - the first query after a start, with data in a bucket only: in parts and whole.

usage: tests/integration/s3/run tests/bench/api/cold.py [--instances N] [--hours N] [--shards N] [--runs N]
                                                        [--partial-from BYTES...]

Starts behind the real S3 server of the tests (`run` starts it). Demo data of one window, a segment for each
shard, go into the bucket; then for each query and each --partial-from an API and a worker with an empty
spool are started, and the query is asked once, and once more. Prints wall clock and processor time of the
worker for the first, wall clock for the second, requests to the store and bytes that came; fails if an
answer differs. PROMFABRIC_BINARY and PROMFABRIC_BUCKET name the programs if they are not those of
build/release."""
import argparse
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.normpath(os.path.join(HERE, "..", "..", ".."))
os.environ.setdefault("PROMFABRIC_BINARY", os.path.join(TOP, "build/release/promfabric"))
os.environ.setdefault("PROMFABRIC_LOADER", "")  # the harness asks; nothing is loaded with it here
BUCKET = os.environ.get("PROMFABRIC_BUCKET",
                        os.path.join(TOP, "build/release/tests/integration/s3/integration_s3"))
sys.path.insert(0, os.path.join(TOP, "tests", "integration", "api"))
from harness import BINARY, Fabric  # noqa: E402

STORE = "s3://segments/cold"
END = 1769815800  # 2026-01-30T23:30:00Z: a day in one window
QUERIES = (
    ("one series, now", 'up{instance="host-0:9100"}', 0),
    ("one metric of all targets, now", "sum(up)", 0),
    ("rate of one metric over an hour", "sum by (job) (rate(http_requests_total[5m]))", 3600),
    ("everything, now", 'count({__name__!=""})', 0),
)


def cpu_seconds(pid):
    return sum(int(path.read_text().split()[0])
               for path in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


def figure(text, name):
    return sum(float(v) for v in re.findall(rf"^{name}(?:{{[^}}]*}})? (\S+)$", text, re.M))


def ask(fabric, query, span):
    begin = time.monotonic()
    if span:
        status, _, body = fabric.get("/api/v1/query_range", {
            "query": query, "start": END - 600 - span, "end": END - 600, "step": 60}, timeout=300)
    else:
        status, _, body = fabric.get("/api/v1/query", {"query": query, "time": END - 600}, timeout=300)
    if status != 200:
        raise SystemExit(f"{query}: {status} {body[:300]}")
    return (time.monotonic() - begin) * 1e3, body[body.index(b'"data"'):]


def once(query, span, partial_from):
    fabric = Fabric(1, ("--log-level=warn", f"--store={STORE}", "--small-scan=2ms"),
                    ("--log-level=warn", f"--store={STORE}", f"--partial-from={partial_from}"))
    try:
        fabric.wait_workers(1)
        ask(fabric, "vector(1)", 0)
        used = cpu_seconds(fabric.workers[0].pid)
        first, body = ask(fabric, query, span)
        used = (cpu_seconds(fabric.workers[0].pid) - used) * 1e3
        second, _ = ask(fabric, query, span)
        with urllib.request.urlopen(f"http://127.0.0.1:{fabric.http_ports[0]}/metrics") as answer:
            metrics = answer.read().decode()
        return first, used, second, figure(metrics, "promfabric_worker_download_bytes_total"), body
    finally:
        fabric.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--instances", type=int, default=120)
    parser.add_argument("--hours", type=int, default=23)
    parser.add_argument("--shards", type=int, default=1)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--partial-from", nargs="+", default=["0B", "8MiB"])
    args = parser.parse_args()
    if "PF_S3_ENDPOINT" not in os.environ:
        raise SystemExit("start it with tests/integration/s3/run")
    os.environ.update(AWS_ACCESS_KEY_ID=os.environ["PF_S3_ACCESS_KEY"],
                      AWS_SECRET_ACCESS_KEY=os.environ["PF_S3_SECRET_KEY"],
                      AWS_REGION=os.environ["PF_S3_REGION"],
                      AWS_ENDPOINT_URL_S3=os.environ["PF_S3_ENDPOINT"])
    subprocess.run([BUCKET, "objects_survive*"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([BINARY, "demo-data", "--quiet", f"--store={STORE}", f"--instances={args.instances}",
                    f"--range={args.hours}h", "--window=24h", f"--shards={args.shards}", f"--end={END}"],
                   check=True)
    print(subprocess.run([BINARY, "segments", "ls", f"--store={STORE}"], check=True, text=True,
                         stdout=subprocess.PIPE).stdout.splitlines()[-1])
    print("| query | from | first, ms | processor | second, ms | MB fetched |")
    for name, query, span in QUERIES:
        answers = set()
        for partial_from in args.partial_from:
            runs = [once(query, span, partial_from) for _ in range(args.runs)]
            answers |= {run[4] for run in runs}
            first, used, second, fetched = (statistics.median(run[i] for run in runs) for i in range(4))
            print(f"| {name} | {partial_from} | {first:.0f} | {used:.0f} | {second:.1f} | {fetched / 1e6:.2f} |",
                  flush=True)
        if len(answers) > 1:
            raise SystemExit(f"{query}: answers differ")


if __name__ == "__main__":
    main()
