#!/usr/bin/env python3
"""fresh.py - what a light query costs more with ingest nodes than without.

usage: fresh.py BINARY [QUERIES]

One store, one worker; an API without --ingest, one with it. The same light query is asked of both by turns,
over connections that are kept, so that a busy machine is busy for both: with no fresh samples in its time
range, and with some. Either way it reads segments as well, so that a worker has something to do. Prints the
median of the times and their fastest hundredth, in milliseconds: on a busy machine the median is mostly waiting
for a core, which a query with more hops does more often."""
import http.client
import os
import subprocess
import sys
import tempfile
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "lib"))
from ports import free_port  # noqa: E402

BINARY, QUERIES = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 400


def start(folder, *args):
    return subprocess.Popen([BINARY, *args], cwd=folder, stdout=subprocess.DEVNULL,
                            stderr=open(os.path.join(folder, args[0] + ".log"), "ab"))


def wait_ready(port, path="/readyz"):
    for _ in range(600):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
            connection.request("GET", path)
            if connection.getresponse().status == 200:
                return
        except OSError:
            pass
        time.sleep(0.1)
    raise SystemExit(f"nothing is ready at {port}")


class Asker:
    def __init__(self, port):
        self.connection, self.times = http.client.HTTPConnection("127.0.0.1", port), []

    def ask(self, expr, at):
        began = time.perf_counter()
        self.connection.request("GET", "/api/v1/query?" + urllib.parse.urlencode({"query": expr, "time": at}))
        answer = self.connection.getresponse()
        body = answer.read()
        self.times.append((time.perf_counter() - began) * 1000)
        assert answer.status == 200, body
        return body


def figures(times):
    times = sorted(times)
    return times[len(times) // 2], times[len(times) // 100]


def compare(name, without, with_, expr, at):
    for asker in (without, with_):
        asker.times = []
    for _ in range(QUERIES):
        a, b = without.ask(expr, at), with_.ask(expr, at)
    a, b = figures(without.times), figures(with_.times)
    print(f"{name:48} {a[0]:7.2f} {b[0]:7.2f} {b[0] - a[0]:+7.2f}   {a[1]:7.2f} {b[1]:7.2f} {b[1] - a[1]:+7.2f}")


def main():
    folder = tempfile.mkdtemp(prefix="pf-bench-fresh-", dir="/dev/shm")
    control, artifacts, plain, fresh, write, peer = (free_port() for _ in range(6))
    now = int(time.time())
    for end in (now - 86400 * 2, now):
        subprocess.run([BINARY, "demo-data", "--quiet", "--store", folder + "/store", "--end", str(end),
                        "--range", "2h"], check=True, stdout=subprocess.DEVNULL)
    processes = [
        start(folder, "ingest", "--data", "data", "--store", "store", "--bootstrap", "--ingest-id", "a",
              "--http-listen", f"127.0.0.1:{write}", "--peer-listen", f"127.0.0.1:{peer}"),
        start(folder, "worker", "--store", "store", "--spool", "w", "--control-listen", f"127.0.0.1:{control}",
              "--http-listen", f"127.0.0.1:{artifacts}")]
    try:
        wait_ready(write)
        for port, flags in ((plain, ()), (fresh, (f"--ingest=127.0.0.1:{write}",))):
            processes.append(start(folder, "api", "--store", "store", "--http-listen", f"127.0.0.1:{port}",
                                   "--worker", f"127.0.0.1:{control}", *flags))
            wait_ready(port)
        time.sleep(1)
        without, with_ = Asker(plain), Asker(fresh)
        print(f"{'':48} {'median ms':^23}   {'fastest hundredth ms':^23}")
        print(f"{'':48} {'without':>7} {'with':>7} {'more':>7}   {'without':>7} {'with':>7} {'more':>7}")
        old, query = now - 86400 * 2 - 60, "sum(up)"
        for asker in (without, with_):  # warm up
            for _ in range(20):
                asker.ask(query, old)
        compare("history, below the floor", without, with_, query, old)
        compare("now, nothing is in heads", without, with_, query, now)
        lines = "".join(f'fresh{{i="{i}"}} {i} {now * 1000}\n' for i in range(1000))
        connection = http.client.HTTPConnection("127.0.0.1", write)
        connection.request("POST", "/api/v1/import/prometheus", lines)
        assert connection.getresponse().status == 204
        compare("now, nothing in the head matches", without, with_, query, now)
        compare("now, one series of 1000 in the head", without, with_,
                'count({__name__=~"up|fresh",i=~"|7"})', now)
        compare("now, all 1000 series of the head", without, with_, 'count({__name__=~"up|fresh"})', now)
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()


main()
