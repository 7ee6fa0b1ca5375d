#!/usr/bin/env python3
"""background.py - latency of queries with and without compaction running beside them on the same workers.

usage: background.py [--rounds N] [--seconds N] [--series N] [--workers N]

In turns: queries beside a tenant's five-minute pieces of a day, then the same while these are merged: a second API, which is
asked nothing, has the same workers do that. Needs PROMFABRIC_BINARY and
PROMFABRIC_LOADER of a release build, as the tests in tests/integration/api."""
import argparse
import pathlib
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "integration" / "api"))
from harness import Fabric, Process, free_port, load, wait_for  # noqa: E402

START = 1_700_006_400
STEP = 15
COUNT = 86400 // STEP
ASKS = (
    {"query": "sum by (job) (rate(c[5m]))", "start": START + 36000, "end": START + 46800, "step": 60},
    {"query": "max_over_time(g[1h])", "start": START + 36000, "end": START + 57600, "step": 300},
    {"query": "topk(5, c)", "start": START + 80000, "end": START + 80000, "step": 60},
)


def lines(series):
    return [line for i in range(series // 2) for line in (
        f'c{{job="{i % 7}",i="{i}"}} {i}+{i % 9 + 1}x{COUNT - 1}',
        f'g{{job="{i % 7}",i="{i}"}} {100 + i}-0.25x{COUNT - 1}')]


def ask(fabric, seconds, going, took):
    until = time.monotonic() + seconds
    while time.monotonic() < until and going():
        for params in ASKS:
            began = time.monotonic()
            status, _, _ = fabric.get("/api/v1/query_range", params, headers={"X-Scope-OrgID": "asked"})
            took.append(time.monotonic() - began)
            assert status == 200


def show(what, took):
    took.sort()
    print(f"{what:10s} {len(took):6d} queries   p50 {took[len(took) // 2] * 1e3:7.1f} ms   "
          f"p99 {took[len(took) * 99 // 100] * 1e3:7.1f} ms   longest {took[-1] * 1e3:7.1f} ms", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--series", type=int, default=600)
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    fabric = Fabric(options.workers, ["--log-level=warn"], ["--log-level=warn"])
    asked, planner = fabric.api_port, free_port()
    load(fabric.store, lines(200), tenant="asked", start=START, step=STEP, window=86400)
    fabric.wait_workers(options.workers)
    alone, beside, merged = [], [], 0.0

    def figure(name):
        fabric.api_port = planner
        try:
            return fabric.metric(name)
        finally:
            fabric.api_port = asked

    for i in range(options.rounds):
        load(fabric.store, lines(options.series), tenant=f"bulk{i}", start=START, step=STEP, window=300)
        ask(fabric, 12, lambda: True, [])  # until the catalogue has read what there is of them
        ask(fabric, options.seconds, lambda: True, alone)
        api = Process(fabric.folder, f"planner-{i}", [
            "api", f"--store={fabric.store}", f"--http-listen=127.0.0.1:{planner}", "--log-level=warn",
            f"--spool={fabric.folder}/spool-planner", *[f"--worker=127.0.0.1:{p}" for p in fabric.control_ports],
            "--compact", "--compact-interval=1s", "--compact-settle=0s", "--compact-grace=1h"])
        fabric.api_port = planner
        wait_for("the planner", fabric.up, 60)
        fabric.api_port = asked
        wait_for("jobs", lambda: figure("promfabric_api_background_running") > 0, 60)
        before, began = figure("promfabric_api_compaction_samples_total"), time.monotonic()
        ask(fabric, options.seconds, lambda: True, beside)
        merged += (figure("promfabric_api_compaction_samples_total") - before) / (time.monotonic() - began)
        api.stop()
    show("alone", alone)
    show("beside", beside)
    print(f"merged meanwhile: {merged / options.rounds / 1e6:.2f} M samples/s")
    fabric.close()


if __name__ == "__main__":
    main()
