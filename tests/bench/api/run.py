#!/usr/bin/env python3
"""run.py - how fast the API is over real processes: light queries, and reassignment after a kill.

usage: run.py [QUERIES [KILLS]]     PROMFABRIC_BINARY and PROMFABRIC_LOADER name the programs"""
import http.client
import json
import os
import re
import signal
import sys
import threading
import time
from datetime import datetime

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "integration", "api"))
from harness import START, Fabric, load, standard_lines, wait_for  # noqa: E402

END = START + 7000


def percentiles(values):
    values = sorted(values)
    return {f"p{p}": values[min(len(values) - 1, len(values) * p // 100)] for p in (50, 90, 99)}


def show(name, values):
    print(f"{name:44s}" + "  ".join(f"{k} {v * 1000:8.2f} ms"
                                    for k, v in percentiles(values).items()), flush=True)


def light_queries(fabric, count):
    paths = {
        "instant sum(rate(x[5m])), 12 series":
            f"/api/v1/query?query=sum(rate(http_requests_total[5m]))&time={END}",
        "instant up, 2 series": f"/api/v1/query?query=up&time={END}",
        "instant 1+1, no work": f"/api/v1/query?query=1%2B1&time={END}",
        "range 12 series x 117 steps":
            f"/api/v1/query_range?query=temperature&start={START}&end={END}&step=60",
    }
    connection = http.client.HTTPConnection("127.0.0.1", fabric.api_port)
    for name, path in paths.items():
        times = []
        for i in range(count + 20):
            begun = time.perf_counter()
            connection.request("GET", path)
            answer = connection.getresponse()
            body = answer.read()
            if answer.status != 200:
                raise SystemExit(f"{name}: {body}")
            if i >= 20:
                times.append(time.perf_counter() - begun)
        show(name, times)


def first_events(fabric, count):
    body = json.dumps({"q": "temperature", "s": START, "e": END, "step": "60s"})
    times = []
    for _ in range(count):
        connection = http.client.HTTPConnection("127.0.0.1", fabric.api_port)
        begun = time.perf_counter()
        connection.request("POST", "/api/v1/metrics/query", body)
        answer = connection.getresponse()
        answer.readline()
        times.append(time.perf_counter() - begun)
        answer.read()
        connection.close()
    show("event stream, time to first event", times)


def log_time(line):
    stamp = re.match(r"ts=(\S+)", line).group(1).replace("Z", "+00:00")
    return datetime.fromisoformat(stamp).timestamp()


def reassignment(kills):
    """Both workers are stopped, so that work waits on them; then one is killed."""
    fabric = Fabric(2)
    times = []
    try:
        load(fabric.store, standard_lines())
        fabric.wait_workers(2)
        for _ in range(kills):
            for worker in fabric.workers:
                worker.signal(signal.SIGSTOP)
            client = threading.Thread(target=lambda: fabric.events("temperature", START, END, "60s"))
            client.start()
            wait_for("assigned work", lambda: fabric.scaling()["work"]["inflight"] >= 4)
            holders = [w for w in fabric.data("/api/v1/workers") if w["assigned"] > 0]
            victim = int(holders[0]["worker_id"].split("-")[1])
            seen = os.path.getsize(fabric.api.log_path)
            begun = time.time()
            os.kill(fabric.workers[victim].pid, signal.SIGKILL)
            line = wait_for("the new assignment", lambda: next(
                (l for l in fabric.api.log_text()[seen:].splitlines()
                 if 'msg="work assigned"' in l and "attempt=2" in l), None))
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
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    kills = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    fabric = Fabric(2, ("--log-level=warn",))
    try:
        load(fabric.store, standard_lines())
        fabric.wait_workers(2)
        light_queries(fabric, count)
        first_events(fabric, count)
    finally:
        fabric.close()
    reassignment(kills)


main()
