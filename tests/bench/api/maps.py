#!/usr/bin/env python3
"""maps.py - what a join with a state map costs, against the same join with a metric that has the same series.

usage: maps.py BINARY LOADER [QUERIES]     LOADER is load_series of the integration tests

10,000 series, and 10,000 rows that say each one's team: once as the state map `team` (metric team_info), once as samples of the
metric team_samples, one a minute. An ingest node, a worker and an API; the two joins are asked by turns, so that a busy machine is
busy for both. Prints medians and fastest tenths of the times in milliseconds, and how many times as long the map takes."""
import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "lib"))
from ports import free_port  # noqa: E402

BINARY, LOADER = (os.path.abspath(path) for path in sys.argv[1:3])
QUERIES = int(sys.argv[3]) if len(sys.argv) > 3 else 30
SERIES, START, STEP, LENGTH = 10000, 1_700_000_400, 60, 60
JOIN = "sum by (team) (x * on (instance) group_left (team) team_{})"


def request(port, method, path, params=None, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        connection.request(method, path + ("?" + urllib.parse.urlencode(params) if params else ""), body)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def wait_for(what, condition):
    for _ in range(1200):
        try:
            if condition():
                return
        except OSError:
            pass
        time.sleep(0.1)
    raise SystemExit(f"timed out waiting for {what}")


def team_of(i):
    return f"team{i % 20}"


def load_samples(store):
    lines = [f'x{{instance="i{i}",job="a"}} {i}+1x{LENGTH}' for i in range(SERIES)]
    lines += [f'team_samples{{key="i{i}",instance="i{i}",team="{team_of(i)}"}} 1x{LENGTH}' for i in range(SERIES)]
    subprocess.run([LOADER, store, "default", "4", str(START * 1000), str(STEP * 1000), "7200000"],
                   input="\n".join(lines).encode(), check=True)


def load_map(port):
    assert request(port, "PUT", "/api/v1/state/maps/team", body='{"kind":"state","metric":"team_info"}')[0] == 200
    rows = "".join(json.dumps({"map": "team", "key": f"i{i}", "value": {"instance": f"i{i}", "team": team_of(i)}}) + "\n"
                   for i in range(SERIES))
    status, answer = request(port, "POST", "/api/v1/state/load", {"format": "jsonl"}, rows)
    assert status == 200, answer


def ask(port, what):
    """Seconds, and the answer."""
    began = time.perf_counter()
    status, body = request(port, "GET", "/api/v1/query_range", {
        "query": JOIN.format(what), "start": START, "end": START + LENGTH * STEP, "step": 60})
    took = time.perf_counter() - began
    return took, status, body


def compare(port):
    times = {"samples": [], "info": []}
    wait_for("the map", lambda: ask(port, "info")[2] == ask(port, "samples")[2])
    for _ in range(QUERIES):
        for what in times:
            took, status, body = ask(port, what)
            assert status == 200, body
            times[what].append(took * 1000)
    print(f"{'join with':12} {'median ms':>10} {'fastest tenth':>14}")
    figures = {}
    for what, taken in times.items():
        taken.sort()
        figures[what] = taken[len(taken) // 2], taken[len(taken) // 10]
        print(f"{what:12} {figures[what][0]:10.1f} {figures[what][1]:14.1f}")
    print(f"{'times':12} {figures['info'][0] / figures['samples'][0]:10.2f} {figures['info'][1] / figures['samples'][1]:14.2f}")


def main():
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="pf-bench-maps-", dir=memory) as folder:
        write, peer, control, artifacts, port = (free_port() for _ in range(5))
        store = os.path.join(folder, "store")
        os.mkdir(store)
        load_samples(store)
        processes = []

        def start(*args):
            processes.append(subprocess.Popen([BINARY, *args], cwd=folder, stdout=subprocess.DEVNULL,
                                              stderr=open(os.path.join(folder, args[0] + ".log"), "ab")))
        try:
            start("ingest", "--data", "data", "--store", "store", "--bootstrap", "--ingest-id", "a",
                  "--http-listen", f"127.0.0.1:{write}", "--peer-listen", f"127.0.0.1:{peer}")
            start("worker", "--store", "store", "--spool", "w", "--control-listen", f"127.0.0.1:{control}",
                  "--http-listen", f"127.0.0.1:{artifacts}")
            start("api", "--store", "store", "--http-listen", f"127.0.0.1:{port}", "--worker", f"127.0.0.1:{control}",
                  f"--ingest=127.0.0.1:{write}")
            wait_for("the ingest node", lambda: request(write, "GET", "/readyz")[0] == 200)
            load_map(write)
            wait_for("the API", lambda: request(port, "GET", "/readyz")[0] == 200)
            compare(port)
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                process.wait()


main()
