#!/usr/bin/env python3
"""hedge.py - what a slow worker costs, with and without --hedge-after.

usage: hedge.py [--rounds N] [--instances N] [--workers N] [--slow FACTOR] [--period SECONDS]
                [--hedge FACTOR...]

The queries of tests/bench/queries.txt, round after round on one connection, in four settings: all
workers as they are, and one of them slowed (it runs a FACTORth of each period and is stopped for
the rest), each without and with hedging. Prints p50, p90 and p99 over all queries, and how
many items were sent to a second worker. Queries follow each other, so that a client which waits asks
less: the whole time says more than p50. PROMFABRIC_BINARY names the program if it is not that of
build/release. Takes about two minutes on a quiet machine with two cores."""
import argparse
import http.client
import importlib.util
import os
import re
import signal
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
spec = importlib.util.spec_from_file_location("run", os.path.join(HERE, "run.py"))
run = importlib.util.module_from_spec(spec)
spec.loader.exec_module(run)


class Slowed:
    """A process that runs a FACTORth of the time."""

    def __init__(self, pid, factor, period):
        self.pid, self.over = pid, threading.Event()
        self.runs, self.stops = period / factor, period - period / factor
        self.thread = threading.Thread(target=self.work)

    def work(self):
        while not self.over.is_set():
            os.kill(self.pid, signal.SIGSTOP)
            time.sleep(self.stops)
            os.kill(self.pid, signal.SIGCONT)
            time.sleep(self.runs)

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def ask(connection, path):
    begun = time.perf_counter()
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read()
    if answer.status != 200:
        raise SystemExit(f"{path}: {body}")
    return time.perf_counter() - begun


def hedges(fabric):
    text = fabric.get("/metrics")[2].decode()
    return [int(float(re.search(rf'work_hedges_total{{event="{event}"}} (\S+)', text).group(1)))
            for event in ("started", "won")]


def rounds(fabric, count):
    paths = [run.params_of(kind, text) for _, kind, text in run.queries()]
    connection = http.client.HTTPConnection("127.0.0.1", fabric.api_port)
    times = [ask(connection, path) for _ in range(count) for path in paths]
    connection.close()
    return times


def restart(fabric, factor):
    """An API that knows nothing yet, with this factor."""
    fabric.api.stop()
    fabric.api_flags = ["--log-level=warn", "--small-scan=2ms", f"--hedge-after={factor}"]
    fabric.start_api()
    fabric.wait_workers(len(fabric.workers))
    rounds(fabric, 3)  # caches, and what queries cost


def measure(fabric, args, factor, slow):
    restart(fabric, factor)
    if slow:
        with Slowed(fabric.workers[0].pid, args.slow, args.period):
            times = rounds(fabric, args.rounds)
    else:
        times = rounds(fabric, args.rounds)
    time.sleep(0.5)  # metrics are brought up to date a few times a second
    started, won = hedges(fabric)
    run.show(f"{'one slow' if slow else 'all well'}, --hedge-after={factor}", times)
    print(f"    {len(times)} queries in {sum(times):.1f} s, {started} hedges, {won} won", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--instances", type=int, default=100, help="34 series each")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--slow", type=float, default=10)
    parser.add_argument("--period", type=float, default=0.5,
                        help="below 3, or the worker is lost to its missed heartbeats")
    parser.add_argument("--hedge", type=float, nargs="*", default=[4])
    args = parser.parse_args()
    fabric = run.Fabric(args.workers, (), ("--log-level=warn",))
    try:
        run.fill(fabric, args.instances)
        for slow in (False, True):
            for factor in [0, *args.hedge]:
                measure(fabric, args, factor, slow)
    finally:
        fabric.close()


if __name__ == "__main__":
    main()
